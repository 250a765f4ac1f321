package kernel

import (
	"errors"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/perlica/perlica/eventlog/anchor"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/kernel/record"
)

// TestTheSameInputAtOnce starts two runs with the same input at the same time. Only one may make a call. The other run
// must return the result of the first, or ErrInputRunning.
func TestTheSameInputAtOnce(t *testing.T) {
	r := openRunner(t)
	turn := Turn{Input: Input{ID: "one", Text: "hello", Source: "test"}, Setup: testSetup(t, r)}
	release := holdLog(t, r)
	ends := make(chan record.Result, 2)
	for range 2 {
		go func() {
			res, err := r.Run(t.Context(), turn)
			if err != nil && !errors.Is(err, ErrInputRunning) {
				t.Error(err)
			}
			ends <- res
		}()
	}
	for late := time.After(2 * time.Minute); intending(r) < 2; {
		select {
		case <-late:
			t.Fatal("two runs never come to their intents")
		case <-time.After(time.Millisecond):
		}
	}
	release()
	calls := 0
	for range 2 {
		res := soon(t, "a run's end", ends)
		if res.Calls == 1 && !res.Replayed {
			calls++
		}
		if res.Calls == 1 && res.Text != "You said: hello" {
			t.Errorf("%+v", res)
		}
	}
	if all, _ := sent(t, r, "session/prompt"); calls != 1 || all != 1 {
		t.Errorf("%d runs made a call, and %d prompts were sent; want 1", calls, all)
	}
}

// TestASessionPrecedesItsInput checks that the first event of a session is its creation, in both strategies.
func TestASessionPrecedesItsInput(t *testing.T) {
	r := openRunner(t)
	fresh, err := hostileTurn(t, r, "hello", nil)
	if err != nil {
		t.Fatal(err)
	}
	c := converse(t, r, "", "", "")
	kept := say(t, c, "hello")
	closeConversation(t, c)
	for _, res := range []record.Result{fresh, kept} {
		var types []event.Type
		for e, err := range r.log.Events(t.Context(), event.Query{Session: res.Session, Limit: 2, Class: event.Fact}) {
			if err != nil {
				t.Fatal(err)
			}
			types = append(types, e.Type)
		}
		if want := []event.Type{event.SessionCreated, event.MessageReceived}; !slices.Equal(types, want) {
			t.Errorf("the session begins with %v, want %v", types, want)
		}
	}
}

// TestACheckpointWithoutItsAnchor checks the warning if a checkpoint cannot be written to the anchor. A fresh run must
// warn about its own checkpoint, and a turn of a conversation about the checkpoint of the previous turn.
func TestACheckpointWithoutItsAnchor(t *testing.T) {
	r := openAlone(t)
	path := anchor.Path(r.opt.Paths.EventLog)
	if err := errors.Join(os.RemoveAll(path), os.Mkdir(path, 0o700)); err != nil {
		t.Fatal(err)
	}
	warned := func(res record.Result) bool {
		return slices.ContainsFunc(res.Warnings, func(w record.Warned) bool {
			return w.Subtype == "checkpoint_not_anchored"
		})
	}
	if res, err := hostileTurn(t, r, "hello", nil); err != nil || !warned(res) {
		t.Errorf("fresh: %+v, %v", res.Warnings, err)
	}
	c := converse(t, r, "", "", "")
	if res := say(t, c, "hello"); !warned(res) {
		t.Errorf("kept: %+v", res.Warnings)
	}
	closeConversation(t, c)
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}
