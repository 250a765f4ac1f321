package interaction

import (
	"bytes"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/perlica/perlica/eventlog"
	"github.com/perlica/perlica/eventlog/event"
)

// TestMaskedText checks a typed text that the log would mask. It must never count, from any process, and it must
// never be on the log.
func TestMaskedText(t *testing.T) {
	path, dir := filepath.Join(t.TempDir(), "eventlog.db"), t.TempDir()
	var cs [2]*Coordinator
	for i := range cs {
		log, err := eventlog.Open(t.Context(), path, eventlog.Options{Context: "default",
			Redact: func(p []byte) []byte {
				return bytes.ReplaceAll(p, []byte("hush"), []byte("[redacted]"))
			}})
		if err != nil {
			t.Fatal(err)
		}
		cs[i] = New(log, dir, time.Now)
		t.Cleanup(func() {
			if err := errors.Join(cs[i].Close(), log.Close()); err != nil {
				t.Error(err)
			}
		})
	}
	q := Question{
		Title: "Name", Input: &Input{Type: "string"}, Refs: event.Refs{Run: "r"},
		Options: []Option{{ID: "text", Kind: "answer", Text: true}},
	}
	ticket := ask(t, cs[0], q)
	a := Answer{Option: "text", Text: "hush", By: "u"}
	for i := range cs {
		if err := cs[i].Answer(t.Context(), ticket.ID, a); !errors.Is(err, ErrNotAnOption) {
			t.Errorf("process %d: %v", i, err)
		}
	}
	for e, err := range cs[0].log.Events(t.Context(), event.Query{}) {
		if err != nil || bytes.Contains(e.Payload, []byte("hush")) {
			t.Errorf("%s: %s, %v", e.Type, e.Payload, err)
		}
	}
	if err := cs[1].Answer(t.Context(), ticket.ID, Answer{Option: "text", Text: "Ada", By: "u"}); err != nil {
		t.Error(err)
	}
}
