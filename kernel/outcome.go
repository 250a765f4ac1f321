package kernel

import (
	"context"
	"errors"

	"github.com/coder/acp-go-sdk"

	"github.com/perlica/perlica/eventlog"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/message"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/kernel/record"
	"github.com/perlica/perlica/provider"
)

// failEarly ends a run before its prompt was sent. If the caller or the log caused the error, failEarly returns the
// error and records no outcome.
func (run *run) failEarly(ctx context.Context, err error) (record.Result, error) {
	_ = run.checkStop() // also record a stop that came at the same time
	var conflict *eventlog.ConflictError
	if errors.As(err, &conflict) || isUsage(err) {
		return record.Result{}, err
	}
	if dead := run.r.log.Err(); dead != nil {
		if errors.Is(err, dead) {
			return record.Result{}, err
		}
		return record.Result{}, errors.Join(dead, err) // the log's error is the reason, so it comes first
	}
	var e *provider.Error
	if !errors.As(err, &e) {
		e = (&provider.Error{Provider: run.t.Agent.ID, Type: provider.TypeStopped}).Saying(message.Of(err))
	}
	if run.stopped != nil && !run.stopRecorded {
		if serr := run.recordStop(ctx, *run.stopped); serr != nil {
			return record.Result{}, serr
		}
	}
	return run.writeOutcome(event.ProviderError, e)
}

// recordAnswer records the outcome: the agent's answer, or the error instead of an answer.
func (run *run) recordAnswer(a provider.Answer, err error) record.Result {
	run.awaitLastWords()
	var e *provider.Error
	outcome := event.Responded
	if err != nil {
		if !errors.As(err, &e) {
			e = &provider.Error{Provider: run.t.Agent.ID, Type: provider.TypeProtocol, Method: acp.AgentMethodSessionPrompt}
			e = e.Saying(message.Of(err))
		}
		outcome = event.OutcomeUnknown
		if !run.call.MayHaveLeft() || !e.Unknown && isAnswer(e) {
			outcome = event.ProviderError
		}
	} else if a.StopReason == "" {
		run.client.warn("no_stop_reason", noStopReason)
	}
	run.client.sums.setAnswer(a)
	res, cerr := run.writeOutcome(outcome, e)
	if cerr != nil {
		// The prompt was sent and its outcome cannot be recorded. The agent is ended, and the next start records an
		// unknown outcome.
		run.agent.conn.Kill()
		res.Outcome = record.OutcomeUnknown
		res.Err = &provider.Error{Provider: run.t.Agent.ID, Type: provider.TypeRecord, Method: acp.AgentMethodSessionPrompt}
		res.Err = res.Err.Saying(message.Of(cerr))
	}
	return res
}

// awaitLastWords waits for updates that the agent sends after its answer.
func (run *run) awaitLastWords() {
	if run.kept {
		if !run.t.Agent.Orderly {
			run.client.drainUpdates(nil)
		}
		return
	}
	run.agent.beginClose()
	run.client.drainUpdates(run.agent.closing)
}

// isAnswer reports whether the error is the agent's answer to the request, or an answer that cannot be decoded.
func isAnswer(e *provider.Error) bool {
	switch e.Type {
	case provider.TypeAgent, provider.TypeAuth:
		return true
	}
	return e.Type == provider.TypeProtocol && (e.Subtype == "undecodable_error" || e.Subtype == "undecodable_result")
}

// writeOutcome ends the turn's questions, and writes the outcome with its related facts and a checkpoint. When it
// returns, the outcome is on disk and all earlier notices were shown.
func (run *run) writeOutcome(outcome event.Type, e *provider.Error) (record.Result, error) {
	run.client.endTurn()
	run.client.judgeTools()
	if err := run.state.advance(outcome); err != nil {
		return run.result(), err
	}
	res := run.result()
	res.Outcome = map[event.Type]record.Outcome{
		event.Responded:      record.OutcomeResponded,
		event.ProviderError:  record.OutcomeProviderError,
		event.OutcomeUnknown: record.OutcomeUnknown,
	}[outcome]
	res.Err = e.Masked(run.r.opt.Redactor.Text)
	refs := run.client.refs()
	var events []event.Event
	for _, u := range res.Unasked {
		events = append(events, event.NewFact(event.PolicyUnasked, "agent", refs, u))
	}
	events = append(events, run.outcomeFact(outcome, refs, res),
		event.NewFact(event.CallEnforced, "perlica", refs, fact.Enforced{
			Calls: res.Calls, Blocked: res.Blocked, LinesLost: run.r.opt.TrailLost(), Permissions: res.Permissions,
			Unasked: len(res.Unasked) - res.Freed(), Freed: res.Freed(),
		}))
	if run.agent.closedInTime() {
		events = append(events, run.agent.closedFact())
		run.agent.beginEnd() // the agent can exit during the write
	}
	write := run.r.log.EndRun
	if run.kept {
		write = run.r.log.EndRunEarly // the caller waits for the answer, so the checkpoint follows later
	}
	_, err := write(context.Background(), events...)
	run.client.show.closeQueue()
	res.Warnings = run.client.sums.listWarnings()
	return res, err
}

func (run *run) outcomeFact(outcome event.Type, refs event.Refs, res record.Result) event.Event {
	if outcome == event.Responded {
		return event.NewFact(outcome, "agent", refs, fact.Responded{
			Provider: res.Provider, Text: res.Text, Content: res.Content, StopReason: res.StopReason, Usage: res.Usage,
			OfSession: res.OfSession, Cost: res.Cost,
			DurationMS: res.Duration.Milliseconds(), FirstMS: run.client.sums.firstUpdate().Milliseconds(),
			Tools: run.client.sums.toolsSeen(),
		})
	}
	f := fact.Failed{Error: res.Err, DurationMS: res.Duration.Milliseconds(), Text: res.Text, Content: res.Content,
		Tools: run.client.sums.toolsSeen()}
	if outcome == event.OutcomeUnknown {
		known := mayHaveLeft
		if res.Err != nil && res.Err.Unknown {
			known = agentUnsure
		}
		f.NoticedBy, f.Known, f.KnownMessage = "run", known.Text, known.Coded
	}
	return event.NewFact(outcome, "perlica", refs, f)
}

// result returns the run's result so far.
func (run *run) result() record.Result {
	res := record.Result{
		Run: run.refs.Run, Input: run.refs.Input, Session: run.refs.Session, Provider: run.t.Agent.ID,
		Duration: run.r.opt.Now().Sub(run.started), Stopped: run.stopped,
	}
	if run.call.MayHaveLeft() {
		res.Calls = 1
	}
	run.client.sums.fillResult(&res)
	if a := run.agent; a != nil {
		res.OfSession = res.Usage != nil && a.setup.Agent.CountsSession(a.info.AgentInfo)
	}
	return res
}

func (run *run) agentName() string {
	if len(run.t.Agent.Command) == 0 {
		return ""
	}
	return run.t.Agent.Command[0]
}
