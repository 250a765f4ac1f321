package record

import (
	"slices"
	"testing"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/provider"
)

// TestRecordOfAnything checks that the type of an event is used even if its payload is unreadable. For an
// unreadable payload, Apply must return an error exactly if it decodes payloads of this type.
func TestRecordOfAnything(t *testing.T) {
	for _, typ := range event.Known().Types() {
		r := &Record{}
		for _, payload := range [][]byte{nil, []byte(`"no object"`)} {
			e := event.Event{Seq: 1, Type: typ, Class: typ.Class(), Payload: payload,
				Refs: event.Refs{Run: "r", Interaction: "q"}}
			if err := r.Apply(e); (err != nil) != (payload != nil && readers[typ] != nil) {
				t.Errorf("%s: %v", typ, err)
			}
			if payload == nil && !r.Withheld {
				t.Errorf("%s: that the payload is withheld is not known", typ)
			}
		}
		if ends := r.Outcome != ""; ends != typ.Outcome() {
			t.Errorf("%s: outcome %q", typ, r.Outcome)
		}
		if opens := typ.Step() == event.Opens; opens != r.Intended {
			t.Errorf("%s: intended: %v", typ, r.Intended)
		}
		if typ.Outcome() && !slices.Contains(resulting, typ) {
			t.Errorf("%s is no part of a result", typ)
		}
		if r.Counted(); r.Progress() == nil {
			t.Errorf("%s: nothing is known", typ)
		}
	}
}

// TestJoin checks that a new message begins on a new line.
func TestJoin(t *testing.T) {
	type piece struct{ id, text string }
	for want, pieces := range map[string][]piece{
		"ab":     {{"1", "a"}, {"1", "b"}},
		"a\nb":   {{"1", "a"}, {"2", "b"}},
		"a\n\nb": {{"1", "a\n\n"}, {"2", "b"}},
		"abc":    {{"", "a"}, {"1", "b"}, {"", "c"}},
		"a\nbc":  {{"1", "a"}, {"", ""}, {"2", ""}, {"2", "b"}, {"2", "c"}},
	} {
		var m Messages
		for _, p := range pieces {
			u := provider.Update{Kind: provider.AgentMessageChunk, Message: p.id, Text: p.text}
			m.Add(&u)
			thought := provider.Update{Kind: provider.AgentThoughtChunk, Message: "t", Text: "hm"}
			m.Add(&thought)
		}
		if got := m.Text(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
