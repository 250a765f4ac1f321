package command

import (
	"errors"
	"testing"

	"github.com/perlica/perlica/interaction"
)

// TestReadChoice: an option, its word and its confirmation, and nothing that could be two things:
// an agent may call its options anything.
func TestReadChoice(t *testing.T) {
	q := interaction.Question{Word: "root", Options: []interaction.Option{
		{ID: "a", Label: "Allow", Kind: "allow_once"}, {ID: "b", Label: "Always", Kind: "allow_always"}, {ID: "c", Label: "1 always", Kind: "reject_once"},
	}}
	for text, want := range map[string]Choice{
		"1": {Option: q.Options[0]}, "1 root": {Option: q.Options[0], Word: "root"}, "Allow  root": {Option: q.Options[0], Word: "root"},
		"2 always": {Option: q.Options[1], Always: true}, "2 root always": {Option: q.Options[1], Word: "root", Always: true},
		"Always": {Option: q.Options[1]},
	} {
		if got, err := ReadChoice(q, text); err != nil || got != want {
			t.Errorf("%q is %+v, %v", text, got, err)
		}
	}
	if _, err := ReadChoice(q, "1 always"); !errors.Is(err, interaction.ErrAmbiguous) {
		t.Errorf("what means two options: %v", err)
	}
	for _, text := range []string{"", "root", "always", "1 ROOT", "2 always please", "1root", "4"} {
		if got, err := ReadChoice(q, text); err == nil {
			t.Errorf("%q chooses %+v", text, got)
		}
	}
}
