package service

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// TestSlots checks that slots are taken in order. A released slot is taken back at once, and the
// next turn in line then waits for one more end.
func TestSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlots(1)
		var got []string
		take := func(ctx context.Context, name string) {
			go func() {
				if s.takeSlot(ctx) {
					got = append(got, name)
				}
			}()
			synctest.Wait()
		}
		is := func(want ...string) {
			t.Helper()
			synctest.Wait()
			if len(got) != len(want) || len(want) > 0 && got[len(want)-1] != want[len(want)-1] {
				t.Errorf("%q have one, want %q", got, want)
			}
		}
		left, leave := context.WithCancel(t.Context())
		take(t.Context(), "a")
		take(left, "b")
		take(t.Context(), "c")
		take(t.Context(), "d")
		is("a")
		leave()
		is("a")
		s.giveBack() // the turn a waits for a person
		is("a", "c")
		s.retakeSlot()
		s.giveBack() // the turn c has ended
		is("a", "c")
		s.giveBack()
		is("a", "c", "d")
	})
}

// TestPace checks that polls that return at once without a new cursor are a second apart, then
// longer, at most five. A moved cursor or a long poll resets the pause.
func TestPace(t *testing.T) {
	p := pace{least: time.Second}
	for i, step := range []struct {
		took time.Duration
		next string
		want time.Duration
	}{
		{0, "a", time.Second}, {0, "a", 2 * time.Second}, {0, "a", 4 * time.Second}, {0, "a", 5 * time.Second},
		{0, "a", 5 * time.Second},
		{0, "b", 0}, {0, "c", 0}, {0, "a", time.Second}, {0, "a", 2 * time.Second}, {50 * time.Second, "a", 0},
		{0, "a", time.Second},
	} {
		if got := p.nextPause(step.took, "a", step.next); got != step.want {
			t.Errorf("%d: a pause of %s, want %s", i, got, step.want)
		}
	}
}
