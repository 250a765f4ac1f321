package kernel

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/coder/acp-go-sdk"

	"github.com/perlica/perlica/eventlog"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/store"
	"github.com/perlica/perlica/interaction"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/kernel/filelock"
	"github.com/perlica/perlica/provider"
)

// Unfinished is a run whose intent has no outcome.
type Unfinished struct {
	Run   event.RunID
	Input event.InputID
	Alive bool // its process still holds the run's lock
}

// ListUnfinished returns the runs without an outcome, oldest first. It changes nothing.
func ListUnfinished(ctx context.Context, log *store.Reader, locks string) ([]Unfinished, error) {
	ids, err := log.OpenRuns(ctx)
	if err != nil {
		return nil, err
	}
	unlisted, err := log.UnlistedRuns(ctx)
	if err != nil {
		return nil, err
	}
	return listUnfinished(ctx, log, locks, append(unlisted, ids...))
}

// listUnfinished says of runs without an outcome whether they live.
func listUnfinished(ctx context.Context, log *store.Reader, locks string, ids []event.RunID) ([]Unfinished, error) {
	var list []Unfinished
	for _, id := range ids {
		intent, _, err := log.Last(ctx, event.Query{Run: id, Types: []event.Type{event.Requested}})
		if err != nil {
			return nil, err
		}
		alive, err := filelock.Held(filelock.Run(locks, string(id)))
		if err != nil {
			return nil, err
		}
		list = append(list, Unfinished{Run: id, Input: intent.Input, Alive: alive})
	}
	return list, nil
}

// Unfinished reports whether the log, when it was opened, listed runs without an outcome. If it
// did not, a Recover at the start has nothing to do, and to ask costs a connection to the file.
func (r *Runner) Unfinished() bool { return r.log.Unfinished() }

// Recover writes the outcome of every run whose process is gone: unknown, since the
// prompt may have left. It sends nothing. It returns the results it wrote.
func (r *Runner) Recover(ctx context.Context) ([]Result, error) {
	return r.recoverAll(ctx, died)
}

// cause is why a run has no outcome of its own.
type cause struct{ subtype, message string }

var died = cause{"perlica_died", "Perlica ended before the outcome was known"}

func (r *Runner) recoverAll(ctx context.Context, why cause) ([]Result, error) {
	ids, err := r.log.OpenRuns(ctx)
	if err != nil {
		return nil, err
	}
	return r.recoverRuns(ctx, ids, why)
}

// RecoverUnlisted does the same for runs that are not on the log's list of those without an
// outcome, as after somebody changed the file. It looks at all runs, which takes a moment.
func (r *Runner) RecoverUnlisted(ctx context.Context) ([]Result, error) {
	ids, err := r.log.UnlistedRuns(ctx)
	if err != nil {
		return nil, err
	}
	return r.recoverRuns(ctx, ids, died)
}

func (r *Runner) recoverRuns(ctx context.Context, ids []event.RunID, why cause) ([]Result, error) {
	var recovered []Result
	for _, id := range ids {
		// The holder of the lock is the run itself, or is recovering it already.
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
		res, err := ReadResult(ctx, &r.log.Reader, id)
		if err != nil {
			return recovered, err
		}
		recovered = append(recovered, res)
	}
	return recovered, nil
}

// resolveRest resolves the questions of a run that were answered, or lapsed, but not resolved.
// Whether the agent got the answer is known only where that is on record: else its process died with
// the answer in hand.
func (r *Runner) resolveRest(ctx context.Context, id event.RunID) error {
	ends := map[event.InteractionID]event.Event{} // the last of each
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
			// What cannot be decoded any more was pruned, or is a later version's.
			sent, _ := fact.Decode[fact.ReplySent](e)
			res = interaction.Resolution{Option: sent.Option, Sent: true}
		}
		resolved = append(resolved, event.NewFact(event.InteractionResolved, "perlica", e.Refs, res))
	}
	slices.SortFunc(resolved, func(a, b event.Event) int { return strings.Compare(string(a.Interaction), string(b.Interaction)) })
	return r.log.Record(resolved...)
}

// recoverRun ends one run of a process that is gone. It returns false if the run has its
// outcome: it ended in order after it was found open; or if it has no intent: then there is
// nothing to be known about.
func (r *Runner) recoverRun(ctx context.Context, id event.RunID, why cause) (ended bool, err error) {
	left, err := ReadRecord(ctx, &r.log.Reader, id, event.Query{})
	if err != nil {
		return false, err
	}
	if !left.Intended {
		return false, nil
	}
	if err := r.resolveRest(ctx, id); err != nil { // before others are closed, which takes a moment to be seen
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
	e := &provider.Error{
		Provider: left.Provider, Type: provider.TypeGone, Subtype: why.subtype, Method: acp.AgentMethodSessionPrompt,
		Message: why.message,
	}
	_, err = r.log.Append(ctx,
		event.NewFact(event.OutcomeUnknown, "perlica", left.Refs, fact.Failed{
			Error: e, Text: left.Said.String(), Content: left.Blocks, NoticedBy: "recovery", Known: left.Progress(),
		}),
		event.NewFact(event.CallEnforced, "perlica", left.Refs, fact.Enforced{Calls: 1, Blocked: len(left.Refused), Permissions: left.Counted()}))
	var conflict *eventlog.ConflictError
	if errors.As(err, &conflict) {
		return false, nil
	}
	return err == nil, err
}

// Recorded returns the result of the input with this id as the log has it. ok is false if
// no call was ever made for the input. The error is ErrInputRunning while a call is under way, and wraps
// disk.ErrCorrupt where the log contradicts itself about the input.
func (r *Runner) Recorded(ctx context.Context, id event.InputID) (res Result, ok bool, err error) {
	intent, ok, err := r.log.Intent(ctx, id)
	if err != nil || !ok {
		return lostResult(err)
	}
	res, err = r.recordedResult(ctx, intent)
	return res, true, err
}

// IntentLost is the subtype of the error in the result of an input whose intent the log lost.
const IntentLost = "intent_lost"

// lostResult is the result of an input of which the log has no intent. The outcome of one that the log
// lost is unknown.
func lostResult(err error) (res Result, ok bool, _ error) {
	var lost *eventlog.LostIntentError
	if !errors.As(err, &lost) {
		return Result{}, false, err
	}
	return Result{Input: lost.Input, Outcome: OutcomeUnknown, Err: &provider.Error{
		Type: provider.TypeRecord, Subtype: IntentLost, Method: acp.AgentMethodSessionPrompt, Message: lost.Error(),
	}}, true, nil
}

// Content yields what of a run's messages is no text, with what it holds, from the record, in the order
// of Result.Content. What was pruned is left out.
func (r *Runner) Content(ctx context.Context, run event.RunID) iter.Seq2[provider.Block, error] {
	return func(yield func(provider.Block, error) bool) {
		rec := Record{Result: Result{Run: run}}
		for e, err := range r.log.Events(ctx, event.Query{Run: run, Class: event.Frame}) {
			if err != nil {
				yield(provider.Block{}, err)
				return
			}
			known := len(rec.Blocks)
			_ = rec.Apply(e) // a frame has no payload of Perlica's
			if len(rec.Blocks) > known && !yield(*rec.Update.Block, nil) {
				return
			}
		}
	}
}

// replay is Recorded for an input that is given again: it must be the one that was called. Where
// that is not on record, because the intent is of an earlier version or was pruned, the result has a
// warning.
func (r *Runner) replay(ctx context.Context, in Input) (res Result, ok bool, err error) {
	intent, ok, err := r.log.Intent(ctx, in.ID)
	if err != nil || !ok {
		return lostResult(err)
	}
	var requested fact.Requested
	if intent.Payload != nil {
		if requested, err = fact.Decode[fact.Requested](intent); err != nil {
			return Result{}, true, err
		}
	}
	if requested.Input != "" {
		files, err := in.files()
		if err != nil {
			return Result{}, true, err
		}
		if given := r.digest(in, files); given != requested.Input {
			return Result{}, true, &InputConflictError{Input: in.ID, Run: intent.Run, Recorded: requested.Input, Given: given}
		}
	}
	res, err = r.recordedResult(ctx, intent)
	if err == nil && requested.Input == "" {
		res.Warnings = append(res.Warnings, "input_not_compared: whether this is the text that was called is not on record any more")
	}
	return res, true, err
}

// recordedResult is the result of the run with this intent.
func (r *Runner) recordedResult(ctx context.Context, intent event.Event) (Result, error) {
	res, err := ReadResult(ctx, &r.log.Reader, intent.Run)
	if err != nil || res.Outcome != "" {
		return res, err
	}
	// Recover has ended what is listed as open and whose process is gone. If this is neither
	// alive nor listed, nothing else would ever end it.
	ended, err := r.recoverRuns(ctx, []event.RunID{intent.Run}, died)
	switch {
	case err != nil:
		return res, err
	case len(ended) == 0:
		return res, ErrInputRunning
	}
	return ended[0], nil
}

// What keeps a run from being resolved.
var (
	ErrOutcomeKnown = errors.New("the run's outcome is known")
	ErrNoOutcome    = errors.New("the run has no outcome on record yet")
	ErrNoCall       = errors.New("the run made no call")
)

// Resolve puts a person's judgement of a run on record whose outcome is unknown: whether its
// prompt was sent. The last judgement counts. It sends nothing and changes nothing else. It
// fails with ErrOutcomeKnown, with ErrUnderWay while the run lives, with ErrNoOutcome if it
// died and Recover has not seen it yet, and with ErrNoCall if there was no intent.
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
		r.seal(ctx)
	}
	return err
}

// repair makes a log that failed fit for another input: it opens the file again, in which all that
// was acknowledged must be, and gives an outcome to the runs of this process that could not
// write theirs. A log that lives it leaves alone. The error says why no input can be accepted.
//
// Whatever was under way when the log failed has lines that are not on record, and must not go
// on: those runs are ended first, and an agent that was kept is not used again; see epoch.
func (r *Runner) repair(ctx context.Context) error {
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
	_, err := r.recoverAll(ctx, cause{"record_failed", "the event log could not be written, and the outcome was not recorded"})
	return err
}

// endRecorded ends the runs that have something on record, and waits until they have gone. One
// that only waits for its locks has lost nothing.
func (r *Runner) endRecorded(ctx context.Context) error {
	r.mu.Lock()
	list := slices.Collect(maps.Values(r.live))
	r.mu.Unlock()
	for _, run := range list {
		if !run.recorded.Load() {
			continue
		}
		go func() { // ends with the run
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

// forget ends a kept agent whose session has lines that are not on record, and sees that the
// session itself is. The caller holds turnMu.
func (c *Conversation) forget(ctx context.Context) error {
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
		c.drop(ctx, l)
	}
	_, there, err := c.r.log.Last(ctx, event.Query{Session: c.setup.Session})
	if err != nil {
		return err
	}
	c.created = !there
	c.epoch = c.r.epoch.Load()
	return nil
}
