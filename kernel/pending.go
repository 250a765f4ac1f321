package kernel

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/message"
	"github.com/perlica/perlica/interaction"
	"github.com/perlica/perlica/kernel/filelock"
	"github.com/perlica/perlica/kernel/record"
)

// These are the errors of AnswerQuestion if the asking process does not react.
var (
	ErrRunGone  = message.New("kernel.run-gone", "the process that asked has ended")
	ErrNotWoken = message.New("kernel.not-woken",
		"the answer is on record, but the process that asked has not seen it yet")
)

// PendingQuestions returns the open questions of this context's running runs.
func (r *Runner) PendingQuestions(ctx context.Context) ([]interaction.Question, error) {
	return record.PendingQuestions(ctx, &r.log.Reader, r.opt.Paths.Locks)
}

// FollowLog yields the events of this context that follow the event with the Seq "after". See record.Reading.Follow.
func (r *Runner) FollowLog(ctx context.Context, after event.Seq) iter.Seq2[record.Entry, error] {
	return (&record.Reading{Log: &r.log.Reader, Locks: r.opt.Paths.Locks, At: after}).Follow(ctx)
}

// AnswerQuestion answers a question of this or another process. If the error is nil, the answer is on disk and
// valid, and the asking process has seen it. If the question was answered before, the error is a
// *interaction.TakenError with the earlier answer. If no process waits for the answer, the error is ErrRunGone. If
// the answer is valid but the asking process does not react, for example because it is suspended, the error is
// ErrNotWoken. Any other error comes from interaction.Question.Check. A question of a flow run needs no process:
// the next process that drives the flow run takes the answer.
func (r *Runner) AnswerQuestion(ctx context.Context, q interaction.Question, a interaction.Answer) error {
	// Check the lock before reading the events. If the lock is free, the process has ended and its last event is
	// already on the log.
	ofFlow := strings.HasPrefix(string(q.Refs.Run), event.FlowPrefix)
	own := q.Writer == r.log.Writer()
	alive, err := ofFlow || own, error(nil)
	if !alive {
		alive, err = filelock.Held(filelock.Run(r.opt.Paths.Locks, string(q.Refs.Run)))
	}
	if err != nil {
		return err
	}
	var closed *interaction.TakenError
	if !own {
		if closed, err = interaction.Closed(ctx, &r.log.Reader, q.ID); err != nil {
			return err
		}
	}
	if closed == nil && !alive {
		// Refuse the answer: no process would act on it, but the log would look as if it had an effect.
		return fmt.Errorf("%w: run %s ended without an outcome", ErrRunGone, q.Refs.Run)
	}
	err = r.questions.Answer(ctx, q.ID, a)
	if own && err != nil {
		closed, _ = interaction.Closed(ctx, &r.log.Reader, q.ID) // the error of Answer matters
	}
	if closed != nil && r.log.Err() == nil {
		return closed // more helpful than another error about the answer
	}
	if ofFlow && (errors.Is(err, interaction.ErrAskerAsleep) || errors.Is(err, interaction.ErrAskerGone)) {
		return nil
	}
	if errors.Is(err, interaction.ErrAskerAsleep) {
		return fmt.Errorf("%w: %w", ErrNotWoken, err)
	}
	if !errors.Is(err, interaction.ErrAskerGone) {
		return err
	}
	if seen, err := r.awaitSeen(ctx, q.ID); seen || err != nil {
		return err
	}
	alive, lerr := filelock.Held(filelock.Run(r.opt.Paths.Locks, string(q.Refs.Run)))
	switch {
	case lerr != nil:
		return errors.Join(err, lerr)
	case alive:
		return fmt.Errorf("%w: %w", ErrNotWoken, err)
	}
	return fmt.Errorf("%w, just as the answer was recorded: run %s", ErrRunGone, q.Refs.Run)
}

// awaitSeen waits until the asking process has resolved an answered question. A process that cannot be woken reads the
// log by itself within a second.
func (r *Runner) awaitSeen(ctx context.Context, id event.InteractionID) (bool, error) {
	changes, err := r.log.Changes(ctx)
	if err != nil {
		return false, err
	}
	defer func() { _ = changes.Close() }() // nothing was written, so the error does not matter
	for end := time.Now().Add(3 * lookEvery); ; {
		_, ok, err := r.log.Last(ctx, event.Query{Interaction: id, Types: []event.Type{event.InteractionResolved}})
		left := time.Until(end)
		if err != nil || ok || left <= 0 {
			return ok, err
		}
		if _, err := changes.Wait(ctx, left); err != nil {
			return false, err
		}
	}
}
