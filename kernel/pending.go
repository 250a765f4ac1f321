package kernel

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/store"
	"github.com/perlica/perlica/interaction"
	"github.com/perlica/perlica/kernel/filelock"
)

// The reasons why an answer fails or has not been seen.
var (
	ErrRunGone  = errors.New("the process that asked is gone")
	ErrNotWoken = errors.New("the answer is on record, but the process that asked has not seen it yet")
)

// PendingQuestions returns the open questions of the living runs, oldest first. It changes nothing.
func PendingQuestions(ctx context.Context, log *store.Reader, locks string) ([]interaction.Question, error) {
	ids, err := log.OpenRuns(ctx) // it lists every living run
	if err != nil {
		return nil, err
	}
	unfinished, err := listUnfinished(ctx, log, locks, ids)
	if err != nil {
		return nil, err
	}
	var living []event.RunID
	for _, u := range unfinished {
		if u.Alive {
			living = append(living, u.Run)
		}
	}
	all, err := interaction.Pending(ctx, log, living)
	if err != nil {
		return nil, err
	}
	var open []interaction.Question
	for _, q := range all {
		if q.Expires.After(q.Asked) { // otherwise no person can be asked, and the question is about to lapse
			open = append(open, q)
		}
	}
	return open, nil
}

// PendingQuestions returns the open questions of this context's living runs.
func (r *Runner) PendingQuestions(ctx context.Context) ([]interaction.Question, error) {
	return PendingQuestions(ctx, &r.log.Reader, r.opt.Paths.Locks)
}

// AnswerQuestion answers a question of this or of another process. With a nil error the answer is on disk and
// counts, and the asking process has seen it. The error is a *interaction.TakenError, with the earlier answer,
// if the question was answered before. It is ErrRunGone if no process waits for the answer, and ErrNotWoken if
// the answer counts but the asking process does not react, because it is suspended. Other errors are those of
// interaction.Question.Check.
func (r *Runner) AnswerQuestion(ctx context.Context, q interaction.Question, a interaction.Answer) error {
	// This order matters: a process that is gone now has written its last event.
	alive, err := q.Writer == r.log.Writer(), error(nil)
	if !alive {
		alive, err = filelock.Held(filelock.Run(r.opt.Paths.Locks, string(q.Refs.Run)))
	}
	if err != nil {
		return err
	}
	closed, err := interaction.Closed(ctx, &r.log.Reader, q.ID)
	if err != nil {
		return err
	}
	if closed == nil && !alive {
		// Without a process to act on it, the answer would look like one that counted.
		return fmt.Errorf("%w: run %s ended without an outcome", ErrRunGone, q.Refs.Run)
	}
	err = r.questions.Answer(ctx, q.ID, a)
	if closed != nil && r.log.Err() == nil {
		return closed // it explains more than another fault of the answer
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

// awaitSeen waits until an answered question is resolved. A process that cannot be woken looks at the log
// itself within a second.
func (r *Runner) awaitSeen(ctx context.Context, id event.InteractionID) (bool, error) {
	changes, err := r.log.Changes(ctx)
	if err != nil {
		return false, err
	}
	defer func() { _ = changes.Close() }() // nothing was written
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
