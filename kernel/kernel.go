// Package kernel takes one input, makes at most one call for it, and records everything that happens.
//
// An input id is called at most once, for ever. The intent, an answer and a cancellation are on disk before they
// take effect. Every intent gets exactly one outcome. The agent's output is on disk before it is shown. The package
// never retries, never guesses the outcome of a call, and never says yes without a person or a rule. It prints
// nothing: Turn.Show gets the notices.
//
// Every action has the same order: change the state, append the event, act, append the result. A crash may lose
// the action, but never the event before it. After a crash, recovery continues from the log.
//
// Runner.answerInput answers one input. An agentSource provides the agent: freshAgent, Conversation or
// attachedAgent.
//
// # Goroutines
//
//   - The caller of Run owns the fields of run. untilStopped lends the fields stopped and stopRecorded to a
//     goroutine until the returned function done has returned.
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
//   - While runs are running, a timer of the Runner reads the log. The listener of interaction.Coordinator
//     reads it when another process wakes this one. Both send to run.remoteStop.
//
// # Locks
//
// A goroutine takes locks from the top to the bottom of this list, and at most one lock of each line:
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
