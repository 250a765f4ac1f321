package command

import (
	"errors"
	"strings"
	"testing"

	"github.com/perlica/perlica/interaction"
	"github.com/perlica/perlica/kernel/language"
)

// TestReadChoice checks that ReadChoice accepts an option, the question's word and a confirmation. It must refuse a
// text with two meanings, because an agent may call its options anything.
func TestReadChoice(t *testing.T) {
	q := interaction.Question{Word: "root", Options: []interaction.Option{
		{ID: "a", Label: "Allow", Kind: "allow_once"}, {ID: "b", Label: "Always", Kind: "allow_always"},
		{ID: "c", Label: "1 always", Kind: "reject_once"},
	}}
	for text, want := range map[string]Choice{
		"1": {Option: q.Options[0]}, "1 root": {Option: q.Options[0], Word: "root"},
		"Allow  root": {Option: q.Options[0], Word: "root"},
		"2 always":    {Option: q.Options[1], Always: true}, "2 root always": {Option: q.Options[1], Word: "root", Always: true},
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

// TestAddressInOnePiece checks that an address is also shown unbroken, unless some of its characters could mislead a
// reader.
func TestAddressInOnePiece(t *testing.T) {
	long := "https://sign.in.example/" + strings.Repeat("a", 80)
	for address, whole := range map[string]bool{long: true, "https://e.example/`x`": false, "https://ех.example": false,
		"https://e.example/\u202ex": false} {
		var b strings.Builder
		Describe(&b, language.English.Sentences(), interaction.Question{Subject: interaction.Subject{Kind: "form", Fields: []interaction.Field{{Name: "address", Value: address}}}})
		if strings.Contains(b.String(), "`"+address+"`") != whole {
			t.Errorf("%q: %s", address, b.String())
		}
	}
}
