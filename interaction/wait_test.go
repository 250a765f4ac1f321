package interaction_test

import (
	"testing"
	"time"

	"github.com/perlica/perlica/interaction"
)

// TestWait checks that a key that allows has no effect for half a second after the drawing, and for 300 ms after
// another key.
func TestWait(t *testing.T) {
	at := func(ms int) time.Time { return time.Unix(1, 0).Add(time.Duration(ms) * time.Millisecond) }
	for name, c := range map[string]struct {
		drawn  []int
		inputs []int
		now    int
		want   time.Duration
	}{
		"just drawn":                  {[]int{0}, nil, 0, 500 * time.Millisecond},
		"almost":                      {[]int{0}, nil, 499, time.Millisecond},
		"half a second":               {[]int{0}, nil, 500, 0},
		"a key before the drawing":    {[]int{0}, []int{-10}, 500, 0},
		"a key in the wait":           {[]int{0}, []int{100}, 499, time.Millisecond},
		"a key near its end":          {[]int{0}, []int{450}, 500, 250 * time.Millisecond},
		"a key that repeats":          {[]int{0}, []int{450, 500, 5000}, 5050, 250 * time.Millisecond},
		"quiet after it":              {[]int{0}, []int{450, 500, 5000}, 5300, 0},
		"another page":                {[]int{0, 2000}, []int{1999}, 2400, 100 * time.Millisecond},
		"the clock was put backwards": {[]int{0}, []int{100}, -200, 700 * time.Millisecond},
	} {
		var w interaction.Wait
		for _, ms := range c.drawn {
			w.Drawn(at(ms))
		}
		for _, ms := range c.inputs {
			w.Input(at(ms))
		}
		if got := w.Left(at(c.now)); got != c.want {
			t.Errorf("%s: %v is left, want %v", name, got, c.want)
		}
	}
}
