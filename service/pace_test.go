package service

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/perlica/perlica/service/channel"
)

// TestSlots: they are taken in order; what was given back for a while is there again at once, and the
// next in line waits one longer for it.
func TestSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlots(1)
		var got []string
		take := func(ctx context.Context, name string) {
			go func() {
				if s.take(ctx) {
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
		s.give() // a waits for a person
		is("a", "c")
		s.retake()
		s.give() // c has ended
		is("a", "c")
		s.give()
		is("a", "c", "d")
	})
}

// TestPace: polls that bring nothing new and come back at once are a second apart, then more, at most five.
// What is new, or was waited for, begins anew.
func TestPace(t *testing.T) {
	one, two := []channel.Inbound{{ID: "1"}}, []channel.Inbound{{ID: "2"}}
	p := pace{least: time.Second}
	for i, step := range []struct {
		took     time.Duration
		messages []channel.Inbound
		want     time.Duration
	}{
		{0, nil, time.Second}, {0, nil, 2 * time.Second}, {0, nil, 4 * time.Second}, {0, nil, 5 * time.Second}, {0, nil, 5 * time.Second},
		{0, one, 0}, {0, two, 0}, {0, two, time.Second}, {0, two, 2 * time.Second}, {50 * time.Second, two, 0}, {0, nil, time.Second},
		{50 * time.Second, nil, 0},
	} {
		if got := p.pause(step.took, step.messages); got != step.want {
			t.Errorf("%d: a pause of %s, want %s", i, got, step.want)
		}
	}
}
