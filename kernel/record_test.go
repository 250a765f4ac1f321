package kernel

import (
	"slices"
	"testing"

	"github.com/perlica/perlica/eventlog/event"
)

// TestRecordOfAnything: an event of any type that is withheld or cannot be decoded says what its
// type says, in any order, and what cannot be decoded is an error exactly where it is read.
func TestRecordOfAnything(t *testing.T) {
	for _, typ := range event.Types() {
		r := &Record{}
		for _, payload := range [][]byte{nil, []byte(`"no object"`)} {
			e := event.Event{Seq: 1, Type: typ, Class: typ.Class(), Payload: payload, Refs: event.Refs{Run: "r", Interaction: "q"}}
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
		if r.Counted(); r.Progress() == "" {
			t.Errorf("%s: nothing is known", typ)
		}
	}
}
