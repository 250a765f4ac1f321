package kernel

import (
	"errors"
	"github.com/perlica/perlica/kernel/record"
	"slices"
	"testing"
)

// TestLowSpace checks that a run warns exactly once if the free space is low.
func TestLowSpace(t *testing.T) {
	for name, tc := range map[string]struct {
		free uint64
		err  error
		warn int
	}{
		"enough":       {LowSpace, nil, 0},
		"little":       {LowSpace - 1, nil, 1},
		"not known":    {0, errors.ErrUnsupported, 0},
		"nothing left": {0, nil, 1},
	} {
		r := openRunner(t)
		r.opt.FreeSpace = func(dir string) (uint64, error) {
			if dir != r.opt.Paths.Dir {
				t.Errorf("%s: of %s", name, dir)
			}
			return tc.free, tc.err
		}
		shown := 0
		show := func(n record.Notice) {
			if w, ok := n.(record.Warned); ok && w.Subtype == "disk_low" {
				shown++
			}
		}
		warnings := func(res record.Result) (n int) {
			return len(slices.DeleteFunc(res.Warnings, func(w record.Warned) bool { return w.Code != diskLow.Code }))
		}
		res, err := hostileTurn(t, r, "hello", func(t *Turn) { t.Show = show })
		if err != nil || res.Outcome != record.OutcomeResponded || shown != tc.warn || warnings(res) != tc.warn {
			t.Errorf("%s: shown %d times, %+v, %v", name, shown, res, err)
		}
		c := converse(t, r, "", "", "")
		for range 2 {
			if res := say(t, c, "hello"); warnings(res) != tc.warn {
				t.Errorf("%s: in a conversation: %+v", name, res)
			}
		}
		closeConversation(t, c)
	}
}
