package approvals

import (
	"path/filepath"
	"testing"
)

// TestVouchers: what was vouched for counts until it is taken back, and again when it is given again.
func TestVouchers(t *testing.T) {
	v := NewVouchers(filepath.Join(t.TempDir(), "state", "approvals"))
	type decision struct{ What string }
	yes := decision{"yes"}
	for i, step := range []struct {
		do   func(any) error
		want bool
	}{{nil, false}, {v.Add, true}, {v.Add, true}, {v.Revoke, false}, {v.Add, true}} {
		if step.do != nil {
			if err := step.do(yes); err != nil {
				t.Fatal(err)
			}
		}
		if known, err := v.Knows(yes); err != nil || known != step.want {
			t.Errorf("step %d: known %t, %v", i, known, err)
		}
		if known, err := v.Knows(decision{"another"}); err != nil || known {
			t.Errorf("step %d: another is known: %t, %v", i, known, err)
		}
	}
}
