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

// What keeps a question from being answered.
var (
	ErrRunGone  = errors.New("the process that asked is gone")
	ErrNotWoken = errors.New("the answer is on record, but the process that asked has not seen it yet")
)

// PendingQuestions returns the questions that somebody waits for, oldest first: those of
// runs whose process lives, and that have no end on the log yet. It changes nothing.
func PendingQuestions(ctx context.Context, log *store.Reader, locks string) ([]interaction.Question, error) {
	ids, err := log.OpenRuns(ctx) // a run that lives is on the list
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
		if q.Expires.After(q.Asked) { // else there was no person to ask, and it is about to lapse
			open = append(open, q)
		}
	}
	return open, nil
}

// PendingQuestions returns the questions of this context that somebody waits for.
func (r *Runner) PendingQuestions(ctx context.Context) ([]interaction.Question, error) {
	return PendingQuestions(ctx, &r.log.Reader, r.opt.Paths.Locks)
}

// AnswerQuestion answers a question of this or of another process. With a nil error the answer is on
// disk, it counts, and the process that asked has seen it. The other errors are a
// *interaction.TakenError, which says who was first; ErrRunGone, if no process waits for an
// answer; ErrNotWoken, if the answer counts but the process that asked does not look, because
// it is suspended; and those of interaction.Question.Check.
func (r *Runner) AnswerQuestion(ctx context.Context, q interaction.Question, a interaction.Answer) error {
	// In this order: a process that is gone by now has written all it will ever write.
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
		// An answer without a process to act upon it would look like one that counted.
		return fmt.Errorf("%w: run %s ended without an outcome", ErrRunGone, q.Refs.Run)
	}
	err = r.questions.Answer(ctx, q.ID, a)
	if closed != nil && r.log.Err() == nil {
		return closed // whatever else may be wrong with the answer
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

// awaitSeen waits until a question that was answered is resolved: a process that cannot be woken
// looks by itself before long.
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
