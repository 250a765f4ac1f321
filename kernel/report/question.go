package report

import (
	"context"
	"errors"
	"fmt"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/store"
	"github.com/perlica/perlica/interaction"
)

// What keeps a question from being found.
var (
	ErrNoQuestion        = errors.New("there is no such question")
	ErrAmbiguousQuestion = errors.New("more than one question matches")
)

// FindQuestion returns the question with this id, or with this unique beginning or end of
// an id, whether it is open or not. The error is ErrNoQuestion or ErrAmbiguousQuestion.
func FindQuestion(ctx context.Context, log *store.Reader, ref string) (interaction.Question, error) {
	q, err := interaction.Find(ctx, log, event.InteractionID(ref))
	if ref != "" && err == nil {
		return q, nil
	}
	var found event.InteractionID
	for e, err := range log.Events(ctx, event.Query{Types: []event.Type{event.InteractionRequested}}) {
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
