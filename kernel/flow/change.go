package flow

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/perlica/perlica/eventlog"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/message"
	"github.com/perlica/perlica/interaction"
	"github.com/perlica/perlica/kernel/fact"
)

// These are the errors of End and Retry.
var (
	ErrFinished = message.New("flow.finished", "the flow run has ended")
	errNotEnded = message.New("flow.not-ended",
		"only a failed step, or a step with an unknown outcome, can be called again: %s is %s")
	noStep   = message.New("flow.no-step", "the flow %s has no step %s")
	noItem   = message.New("flow.no-item", "step %s has %d items, and no item %d")
	hasItems = message.New("flow.has-items", "step %s has items: name one as %s/N")
)

// Retry records a person's decision to call a step or an item again, with a new input. item is 0 for a single step. The
// next driver makes the call.
func Retry(ctx context.Context, log *eventlog.Log, s *State, id string, item int, by string) (event.InputID, error) {
	st := s.step(id)
	switch {
	case st == nil:
		return "", noStep.With(s.Flow.Name, id)
	case item < 0 || item > len(st.Items):
		return "", noItem.With(id, len(st.Items), item)
	case item == 0 && st.Expanded:
		return "", hasItems.With(id, id)
	case st.unit(item).Phase != Failed && st.unit(item).Phase != Unknown:
		return "", errNotEnded.With(id, string(st.unit(item).Phase))
	}
	u := st.unit(item)
	d := fact.FlowDecided{Step: id, Item: item, Attempt: u.Attempt + 1, Decision: fact.FlowRetry, Run: u.Run, By: by}
	key := event.InteractionID(s.inputOf(st, item, d.Attempt))
	// A second retry of the same attempt would have the same key, and the log accepts a key once. So two people who
	// retry at the same time make one new attempt.
	refs := event.Refs{Run: RunID(s.ID), Interaction: key + "/asked"}
	unless := event.Query{Interaction: refs.Interaction, Types: []event.Type{event.FlowStepDecided}}
	if _, err := log.AppendUnless(ctx, unless, event.NewFact(event.FlowStepDecided, "user", refs, d)); err != nil {
		return "", err
	}
	return event.InputID(key), nil
}

// cancel records a person's decision to end a flow run. Its driver begins no further step.
func cancel(ctx context.Context, log *eventlog.Log, s *State, by string) error {
	if s.Finished != nil {
		return fmt.Errorf("%w: %s", ErrFinished, s.Finished.Outcome)
	}
	run := RunID(s.ID)
	unless := event.Query{Run: run, Types: []event.Type{event.FlowFinished}, After: s.retried}
	_, err := log.AppendUnless(ctx, unless, event.NewFact(event.FlowFinished, "user",
		event.Refs{Run: run, Interaction: event.Flows}, fact.FlowFinished{Outcome: fact.FlowCancelled, By: by}))
	var conflict *eventlog.ConflictError
	if errors.As(err, &conflict) {
		return ErrFinished
	}
	return err
}

// cancelInner ends the flows inside of a cancelled flow run, so that their drivers begin no further step.
func cancelInner(ctx context.Context, log *eventlog.Log, id, by string) error {
	all, err := nested(ctx, log, id)
	for _, s := range all[min(len(all), 1):] {
		if cerr := cancel(ctx, log, s, by); cerr != nil && !errors.Is(cerr, ErrFinished) {
			err = errors.Join(err, cerr)
		}
	}
	return err
}

// nested returns the state of a flow run, followed by the states of its begun inner flows. The inner flows of
// attempts before a retry are included.
func nested(ctx context.Context, log *eventlog.Log, id string) (all []*State, err error) {
	ids := []string{id}
	for i := 0; i < len(ids); i++ {
		s, err := readState(ctx, &log.Reader, ids[i])
		if errors.Is(err, ErrNoRun) {
			continue
		}
		if err != nil {
			return all, err
		}
		all = append(all, s)
		for _, st := range s.Steps {
			for attempt := 0; st.Flow != "" && attempt <= st.Attempt; attempt++ {
				ids = append(ids, strings.TrimPrefix(string(s.inputOf(st, 0, attempt)), event.FlowPrefix))
			}
		}
	}
	return all, nil
}

// CloseQuestions closes the open questions of a flow run that no process continues, and of the flows inside of it. If a
// person continues the flow run later, its steps ask again.
func CloseQuestions(ctx context.Context, log *eventlog.Log, c *interaction.Coordinator, id string) error {
	all, err := nested(ctx, log, id)
	if err != nil {
		return err
	}
	var runs []event.RunID
	for _, s := range all {
		runs = append(runs, RunID(s.ID))
	}
	open, err := interaction.Pending(ctx, &log.Reader, runs)
	for _, q := range open {
		err = errors.Join(err, c.Abandon(ctx, q, interaction.RunEnded))
	}
	return err
}
