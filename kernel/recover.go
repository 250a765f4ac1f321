package kernel

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sort"

	"github.com/coder/acp-go-sdk"

	"github.com/perlica/perlica/eventlog"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/message"
	"github.com/perlica/perlica/interaction"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/kernel/filelock"
	"github.com/perlica/perlica/kernel/record"
	"github.com/perlica/perlica/provider"
)

// Unfinished reports whether the log listed runs without an outcome when it was opened. If it returns false, the caller
// need not call Recover, which opens another connection to the log's file.
func (r *Runner) Unfinished() bool { return r.log.Unfinished() }

// Recover records an unknown outcome for every run without a living process, because the prompt may have been sent. It
// sends nothing. It returns the recorded results.
func (r *Runner) Recover(ctx context.Context) ([]record.Result, error) {
	return r.recoverAll(ctx, died)
}

// cause is the reason why a run did not record its own outcome.
type cause struct {
	subtype string
	said    *message.Text
}

// These are the reasons why a run did not record its own outcome.
var (
	died = cause{"perlica_died", message.New("kernel.died", "Perlica ended before the outcome was known")}
	lost = cause{"record_failed", message.New("kernel.outcome-lost",
		"the event log could not be written, and the outcome was not recorded")}
)

func (r *Runner) recoverAll(ctx context.Context, why cause) ([]record.Result, error) {
	ids, err := r.log.OpenRuns(ctx)
	if err != nil {
		return nil, err
	}
	return r.recoverRuns(ctx, ids, why)
}

// RecoverUnlisted works like Recover, but for runs that are missing in the log's list of open runs. Another program may
// have changed the file, for example. It reads all runs, so it takes longer.
func (r *Runner) RecoverUnlisted(ctx context.Context) ([]record.Result, error) {
	ids, err := r.log.UnlistedRuns(ctx)
	if err != nil {
		return nil, err
	}
	return r.recoverRuns(ctx, ids, died)
}

func (r *Runner) recoverRuns(ctx context.Context, ids []event.RunID, why cause) ([]record.Result, error) {
	var recovered []record.Result
	for _, id := range ids {
		// If the lock is held, the run is alive, or another process recovers it.
		lock, err := filelock.Acquire(filelock.Run(r.opt.Paths.Locks, string(id)))
		if errors.Is(err, filelock.ErrHeld) {
			continue
		}
		if err != nil {
			return recovered, err
		}
		ended, err := r.recoverRun(ctx, id, why)
		lock.Release()
		if err != nil {
			return recovered, err
		}
		if !ended {
			continue
		}
		res, err := record.ReadResult(ctx, &r.log.Reader, id)
		if err != nil {
			return recovered, err
		}
		recovered = append(recovered, res)
	}
	return recovered, nil
}

// resolveRest completes the record of the run's answered and lapsed questions. Each of these questions needs an
// event interaction.resolved, which says whether the agent got the answer. If the log has a reply, the agent got
// the answer. Otherwise the process ended before it could reply.
func (r *Runner) resolveRest(ctx context.Context, id event.RunID) error {
	ends := map[event.InteractionID]event.Event{} // the newest event of each question
	for e, err := range r.log.Events(ctx, event.Query{Run: id, Types: []event.Type{
		event.InteractionAnswered, event.InteractionLapsed, event.ReplySent, event.InteractionResolved,
	}}) {
		if err != nil {
			return err
		}
		if e.Interaction != "" {
			ends[e.Interaction] = e
		}
	}
	var resolved []event.Event
	for _, e := range ends {
		res := interaction.Resolution{Reason: interaction.Crashed}
		switch e.Type {
		case event.InteractionResolved:
			continue
		case event.ReplySent:
			// The error may be ignored: the payload was pruned or comes from a later version, and sent stays empty.
			sent, _ := fact.Decode[fact.ReplySent](e)
			res = interaction.Resolution{Option: sent.Option, Sent: true}
		}
		resolved = append(resolved, event.NewFact(event.InteractionResolved, "perlica", e.Refs, res))
	}
	sort.Slice(resolved, func(i, j int) bool { return resolved[i].Interaction < resolved[j].Interaction })
	return r.log.Record(resolved...)
}

// recoverRun records the outcome of a run after the end of its process. It returns false if the run already has an
// outcome. It also returns false if the run has no intent and so made no call.
func (r *Runner) recoverRun(ctx context.Context, id event.RunID, why cause) (ended bool, err error) {
	left, err := record.Read(ctx, &r.log.Reader, id, event.Query{})
	if err != nil {
		return false, err
	}
	if !left.Intended {
		return false, nil
	}
	// Record the missing resolutions first. Readers must see them before the ends of the questions that are still open.
	if err := r.resolveRest(ctx, id); err != nil {
		return false, err
	}
	questions, err := interaction.Pending(ctx, &r.log.Reader, []event.RunID{id})
	if err != nil {
		return false, err
	}
	for _, q := range questions {
		if err := r.questions.Abandon(ctx, q, interaction.Crashed); err != nil {
			return false, err
		}
	}
	e := (&provider.Error{
		Provider: left.Provider, Type: provider.TypeGone, Subtype: why.subtype, Method: acp.AgentMethodSessionPrompt,
	}).Saying(why.said)
	_, err = r.log.EndRun(ctx,
		event.NewFact(event.OutcomeUnknown, "perlica", left.Refs, fact.Failed{
			Error: e, Text: left.Said.Text(), Content: left.Said.Blocks, NoticedBy: "recovery", Known: left.Progress().Text,
			KnownMessage: left.Progress().Coded,
		}),
		event.NewFact(event.CallEnforced, "perlica", left.Refs, fact.Enforced{Calls: 1, Blocked: len(left.Refused),
			Permissions: left.Counted()}))
	var conflict *eventlog.ConflictError
	if errors.As(err, &conflict) {
		return false, nil
	}
	return err == nil, err
}

// Recorded returns the recorded result of an input. ok is false if the input was never called. The error is
// ErrInputRunning while the call is running. It wraps disk.ErrCorrupt if the events of the input contradict each other.
func (r *Runner) Recorded(ctx context.Context, id event.InputID) (res record.Result, ok bool, err error) {
	intent, ok, err := r.log.Intent(ctx, id)
	if err != nil || !ok {
		return lostResult(err)
	}
	res, err = r.recordedResult(ctx, intent)
	return res, true, err
}

// IntentLost is the subtype of the error in a result, if the log has lost the intent of the input.
const IntentLost = "intent_lost"

// lostResult returns the result of an input without an intent in the log. If err says that the log has lost the intent,
// the outcome is unknown. Otherwise the input was not called, or err is another error.
func lostResult(err error) (res record.Result, ok bool, _ error) {
	var lost *eventlog.LostIntentError
	if !errors.As(err, &lost) {
		return record.Result{}, false, err
	}
	return record.Result{Input: lost.Input, Outcome: record.OutcomeUnknown, Err: &provider.Error{
		Type: provider.TypeRecord, Subtype: IntentLost, Method: acp.AgentMethodSessionPrompt, Message: lost.Error(),
	}}, true, nil
}

// replayInput returns the recorded result of a repeated input. The input must be equal to the called one. If the intent
// was pruned, they cannot be compared, and the result has a warning.
func (r *Runner) replayInput(ctx context.Context, in Input) (res record.Result, ok bool, err error) {
	intent, ok, err := r.log.Intent(ctx, in.ID)
	if err != nil || !ok {
		return lostResult(err)
	}
	var requested fact.Requested
	if intent.Payload != nil {
		if requested, err = fact.Decode[fact.Requested](intent); err != nil {
			return record.Result{}, true, err
		}
	}
	if requested.Input != "" {
		files, err := in.files()
		if err != nil {
			return record.Result{}, true, err
		}
		if given := r.digest(in, files); given != requested.Input {
			return record.Result{}, true, &InputConflictError{Input: in.ID, Run: intent.Run, Recorded: requested.Input,
				Given: given}
		}
	}
	res, err = r.recordedResult(ctx, intent)
	if err == nil && requested.Input == "" {
		res.Warnings = append(res.Warnings, record.NewWarned("input_not_compared", notCompared))
	}
	return res, true, err
}

// recordedResult returns the result of the run with this intent, and recovers the run if its process has ended.
func (r *Runner) recordedResult(ctx context.Context, intent event.Event) (record.Result, error) {
	res, err := record.ReadResult(ctx, &r.log.Reader, intent.Run)
	if err != nil || res.Outcome != "" {
		return res, err
	}
	// The run may be missing in the list of open runs that Recover has read, so its outcome is recorded here. While the
	// process of the run lives, this call changes nothing.
	ended, err := r.recoverRuns(ctx, []event.RunID{intent.Run}, died)
	switch {
	case err != nil:
		return res, err
	case len(ended) == 0:
		return res, ErrInputRunning
	}
	return ended[0], nil
}

// These are the reasons why Resolve refuses a run.
var (
	ErrOutcomeKnown = errors.New("the run's outcome is known")
	ErrNoOutcome    = errors.New("the run has no outcome on record yet")
	ErrNoCall       = errors.New("the run made no call")
)

// Resolve records a person's judgement whether the prompt of a run with an unknown outcome was sent. A newer judgement
// replaces an older one. Resolve only records this event. It returns ErrOutcomeKnown for a known outcome and
// ErrUnderWay for a running run. It returns ErrNoOutcome if Recover has not yet ended the run, and ErrNoCall if the run
// has no intent.
func (r *Runner) Resolve(ctx context.Context, run event.RunID, f fact.Resolved) error {
	e, ok, err := r.log.Last(ctx, event.Query{Run: run, Types: []event.Type{
		event.Responded, event.ProviderError, event.OutcomeUnknown,
	}})
	if err != nil {
		return err
	}
	if !ok {
		alive, err := filelock.Held(filelock.Run(r.opt.Paths.Locks, string(run)))
		if err != nil {
			return err
		}
		_, intended, err := r.log.Last(ctx, event.Query{Run: run, Types: []event.Type{event.Requested}})
		switch {
		case err != nil:
			return err
		case alive:
			return ErrUnderWay
		case intended:
			return ErrNoOutcome
		}
		return ErrNoCall
	}
	if e.Type != event.OutcomeUnknown {
		return fmt.Errorf("%w: %s", ErrOutcomeKnown, e.Type)
	}
	if _, err = r.log.Append(ctx, event.NewFact(event.RunResolved, "user", e.Refs, f)); err == nil {
		r.makeCheckpoint(ctx)
	}
	return err
}

// repairLog opens a failed log again, so that the next input can use it. The file must have all events that were
// acknowledged. Then it records the outcomes that runs of this process could not record. If the log has not failed, it
// does nothing. The error is the reason why no input can be accepted.
//
// A run or a kept agent that was alive when the log failed has lines without a record, so it must not continue.
// repairLog ends these runs first. It increases epoch, so that such an agent is not used again.
func (r *Runner) repairLog(ctx context.Context) error {
	r.repairing.Lock()
	defer r.repairing.Unlock()
	dead := r.log.Err()
	if dead == nil {
		return nil
	}
	if err := r.endRecorded(ctx); err != nil {
		return errors.Join(dead, err)
	}
	r.epoch.Add(1)
	if err := r.log.Reopen(ctx); err != nil {
		return fmt.Errorf("%w; it cannot be opened again: %w", dead, err)
	}
	r.opt.Trail.Warn("the event log was opened again", "error", dead.Error())
	_, err := r.recoverAll(ctx, lost)
	return err
}

// endRecorded ends the runs that have recorded events, and waits for their end. A run that only waits for its locks has
// lost nothing, so it continues.
func (r *Runner) endRecorded(ctx context.Context) error {
	r.mu.Lock()
	list := slices.Collect(maps.Values(r.live))
	r.mu.Unlock()
	for _, run := range list {
		if !run.recorded.Load() {
			continue
		}
		go func() { // this goroutine ends with the run
			select {
			case <-run.client.lifecycle.attached:
				run.client.lifecycle.conn.Kill()
			case <-run.released:
			}
		}()
		select {
		case <-run.released:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// forgetAgent ends a kept agent if the log has failed since the agent's start, because some of its lines may be lost.
// It also checks whether the session itself is recorded. The caller holds turnMu.
func (c *Conversation) forgetAgent(ctx context.Context) error {
	l := c.present()
	if c.epoch == c.r.epoch.Load() {
		return nil
	}
	if l != nil {
		l.cancel()
		<-l.ready
		if l.conn != nil {
			l.conn.Kill()
		}
		c.dropAgent(ctx, l)
	}
	_, there, err := c.r.log.Last(ctx, event.Query{Session: c.setup.Session})
	if err != nil {
		return err
	}
	c.sessionMu.Lock()
	c.created = !there
	c.sessionMu.Unlock()
	c.epoch = c.r.epoch.Load()
	return nil
}
