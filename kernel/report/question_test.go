package report

import (
	"errors"
	"testing"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/interaction"
)

func questionFact(id event.InteractionID) event.Event {
	refs := event.Refs{Run: runA, Interaction: id}
	return event.NewFact(event.InteractionRequested, "agent", refs, interaction.Question{ID: id, Title: string(id)})
}

func TestFindQuestion(t *testing.T) {
	log := logWith(t, questionFact("0199aaaa-1111"), questionFact("0199aaaa-2222"))
	for ref, want := range map[string]error{
		"0199aaaa-1111": nil, "1111": nil, "aa-2222": nil,
		"0199aaaa": ErrAmbiguousQuestion, "111": ErrNoQuestion, "": ErrNoQuestion, "3333": ErrNoQuestion,
	} {
		if _, err := FindQuestion(t.Context(), &log.Reader, ref); !errors.Is(err, want) || err != nil && want == nil {
			t.Errorf("FindQuestion(%q): %v, want %v", ref, err, want)
		}
	}
}
