// Package kernel takes one input, makes at most one call for it, and records everything that happens.
//
// An input id is called once, for ever. The intent, an answer and a cancellation are on disk before they take
// effect. Every intent gets exactly one outcome. The agent's output is on disk before it is shown. The package
// never retries, never guesses the outcome of a call, and never says yes without a person or a rule. It prints
// nothing: Turn.Show gets the notices.
//
// Every effect has the same order: change the state, append the event, act, append the result. A crash may
// lose the act, and never its record. After a crash, recovery reads the log in the same way.
//
// Runner.answerInput is the run of one input. An agentSource gives it the agent: freshAgent, Conversation or
// attachedAgent.
//
// # Goroutines
//
//   - The caller of Run owns the fields of run. untilStopped lends stopped and stopRecorded to a goroutine
//     until its done returns.
//   - The reader of provider.Conn calls agentSession with each line and question, and holds agentSession.mu
//     for reading during the call. It owns client.answered, and the fields origins, earlier and alone of an
//     Attached.
//   - questions.decideLoop judges the questions of a turn in wire order. Each open question has a goroutine
//     that awaits the answer. client.joinGoroutines joins all of them.
//   - shower.showLoop calls Turn.Show. client.closeTurn joins it.
//   - A Conversation starts its agent in one goroutine, which sets keptAgent.err and closes ready. Another one
//     watches the agent until its end. A third one, joined by after, sets next. A timer ends an idle agent.
//   - An agentSession has a goroutine for session/close, one for the end of the process, and one for each
//     answer between two turns. agentSession.endProcess joins them.
//   - A timer of the Runner looks at the log while runs are under way, and the listener of
//     interaction.Coordinator does so when another process wakes this one. Both send to run.remoteStop.
//
// # Locks
//
// A goroutine takes locks from the top to the bottom of this list, and never two of one line:
//
//	Conversation.turnMu, Attached.turnMu
//	Runner.repairing
//	Conversation.mu, Runner.looks, questions.deciding
//	changes.mu
//	agentSession.mu
//	Runner.mu
//	accumulator.mu, shower.mu, state.mu, Conversation.sessionMu
//	the locks of eventlog
package kernel
