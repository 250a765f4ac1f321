package service_test

import (
	"strings"
	"testing"
	"time"

	"github.com/perlica/perlica/eventlog"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/service"
	"github.com/perlica/perlica/service/local"
)

// TestAKnownIDWithAnotherText checks that a message with a known id counts as repeated only if its
// content is the same. The phone is told.
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

// TestAKnownIDThatCannotBeCompared checks a recorded message without a digest. The phone is told.
func TestAKnownIDThatCannotBeCompared(t *testing.T) {
	w := newWorld(t)
	log, err := eventlog.Open(t.Context(), w.path("eventlog.db"), eventlog.Options{Context: "default"})
	if err != nil {
		t.Fatal(err)
	}
	old := event.NewFact(event.BridgeReceived, "user", event.Refs{Input: service.InputID("local", contactOf("bob")+"/x1")},
		map[string]string{"channel": "local", "contact": contactOf("bob"), "kind": "refused", "word": "too old"})
	if _, err := log.Append(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	s := w.serve(local.DefaultLimits())
	p := newPerson(t, w.socket(), "bob")
	refused := make(chan local.Refusal, 1)
	p.Refused = func(r local.Refusal) { refused <- r }
	w.run(p)
	w.pair(s, p)
	p.Say(local.Message{ID: "x1", Text: "hello"})
	select {
	case r := <-refused:
		if r.ID != "x1" || !strings.Contains(r.Error, "is not on record any more") {
			t.Errorf("refused %+v", r)
		}
	case <-time.After(2 * time.Minute):
		t.Error("nothing was said")
	}
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	if got := w.prompts(); got != "" {
		t.Errorf("called with %q", got)
	}
}
