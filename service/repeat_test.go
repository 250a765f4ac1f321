package service_test

import (
	"strings"
	"testing"

	"github.com/perlica/perlica/service/local"
)

// TestAKnownIDWithAnotherText: what comes with a known id is taken for the same only if it is the same;
// the phone is told.
func TestAKnownIDWithAnotherText(t *testing.T) {
	w := newWorld(t)
	s := w.serve(local.DefaultLimits())
	p := newPerson(t, w.socket(), "bob")
	refused := make(chan local.Refusal, 1)
	p.Refused = func(r local.Refusal) { refused <- r }
	w.run(p)
	w.pair(s, p)
	for _, text := range []string{"hello", "hello", "goodbye"} {
		p.Say(local.Message{ID: "x1", Text: text})
	}
	if r := <-refused; r.ID != "x1" || !strings.Contains(r.Error, "was received before with another text") {
		t.Errorf("refused %+v", r)
	}
	p.expect("hello")
	if err := p.Flush(t.Context()); err != nil {
		t.Error(err)
	}
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	if got := w.prompts(); strings.Count(got, "hello") != 1 || strings.Contains(got, "goodbye") {
		t.Errorf("called with %q", got)
	}
}
