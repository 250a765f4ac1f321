package kernel

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/perlica/perlica/eventlog"
	"github.com/perlica/perlica/interaction"
)

// What keeps a question from being answered.
var (
	ErrNoQuestion        = errors.New("there is no such question")
	ErrAmbiguousQuestion = errors.New("more than one question matches")
	ErrRunGone           = errors.New("the process that asked is gone")
	ErrNotWoken          = errors.New("the answer is on record, but the process that asked could not be woken")
)

// PendingQuestions returns the questions that somebody waits for, oldest first: those of
// runs whose process lives, and that have no end on the log yet. It changes nothing.
func PendingQuestions(ctx context.Context, log *eventlog.Reader, locks string) ([]interaction.Question, error) {
	unfinished, err := ListUnfinished(ctx, log, locks)
	if err != nil {
		return nil, err
	}
	var living []eventlog.RunID
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
		if q.Expires.After(q.Asked) { // else nobody was to be asked, and it is about to lapse
			open = append(open, q)
		}
	}
	return open, nil
}

// FindQuestion returns the question with this id, or with this unique beginning or end of
// an id, whether it is open or not. The error is ErrNoQuestion or ErrAmbiguousQuestion.
func FindQuestion(ctx context.Context, log *eventlog.Reader, ref string) (interaction.Question, error) {
	q, err := interaction.Find(ctx, log, eventlog.InteractionID(ref))
	if ref != "" && err == nil {
		return q, nil
	}
	var found eventlog.InteractionID
	for e, err := range log.Events(ctx, eventlog.Query{Types: []eventlog.Type{eventlog.InteractionRequested}}) {
		switch {
		case err != nil:
			return interaction.Question{}, err
		case !isShortFor(ref, string(e.Interaction)):
		case found != "" && found != e.Interaction:
			return interaction.Question{}, fmt.Errorf("%w: %s", ErrAmbiguousQuestion, ref)
		default:
			found = e.Interaction
		}
	}
	if found == "" {
		return interaction.Question{}, fmt.Errorf("%w: %s", ErrNoQuestion, ref)
	}
	return interaction.Find(ctx, log, found)
}

// minShort is the least that is taken for a part of an id.
const minShort = 4

// isShortFor reports whether ref is an id or enough of its beginning or its end.
func isShortFor(ref, id string) bool {
	if len(ref) < minShort {
		return false
	}
	return strings.HasPrefix(id, ref) || strings.HasSuffix(id, ref)
}

// AnswerQuestion answers a question of another process. With a nil error the answer is on
// disk, it counts, and the process that asked has seen it. The other errors are a
// *interaction.TakenError, which says who was first; ErrRunGone, if nobody waits for an
// answer; ErrNotWoken, if the answer counts but will be seen only when the question's time
// is up; and those of interaction.Question.Check.
func (r *Runner) AnswerQuestion(ctx context.Context, q interaction.Question, a interaction.Answer) error {
	closed, err := interaction.Closed(ctx, &r.log.Reader, q.ID)
	if err != nil {
		return err
	}
	alive, err := isLocked(runLockPath(r.opt.Paths.Locks, string(q.Refs.Run)))
	if err != nil {
		return err
	}
	if closed == nil && !alive {
		// An answer that nobody acts upon would look like one that counted.
		return fmt.Errorf("%w: run %s ended without an outcome", ErrRunGone, q.Refs.Run)
	}
	err = r.questions.Answer(ctx, q.ID, a)
	if closed != nil && r.log.Err() == nil {
		return closed // whatever else may be wrong with the answer
	}
	if !errors.Is(err, interaction.ErrAskerGone) {
		return err
	}
	alive, lerr := isLocked(runLockPath(r.opt.Paths.Locks, string(q.Refs.Run)))
	switch {
	case lerr != nil:
		return errors.Join(err, lerr)
	case alive:
		return fmt.Errorf("%w: %w", ErrNotWoken, err)
	}
	return fmt.Errorf("%w, just as the answer was recorded: run %s", ErrRunGone, q.Refs.Run)
}
