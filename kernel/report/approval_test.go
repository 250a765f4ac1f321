package report

import (
	"errors"
	"testing"

	"github.com/perlica/perlica/policy"
)

func TestFindApproval(t *testing.T) {
	list := []policy.Approval{{ID: "0199aaaa-1111"}, {ID: "0199aaaa-2222"}, {ID: "1111"}}
	for ref, want := range map[string]string{"0199aaaa-2222": "0199aaaa-2222", "-2222": "0199aaaa-2222", "1111": "1111",
		"0199aaaa-1": "0199aaaa-1111"} {
		if got, err := FindApproval(list, ref); err != nil || got.ID != want {
			t.Errorf("FindApproval(%q) = %v, %v, want %s", ref, got.ID, err, want)
		}
	}
	if _, err := FindApproval(list, "0199"); !errors.Is(err, ErrAmbiguousApproval) {
		t.Errorf("an ambiguous beginning: %v", err)
	}
	for _, ref := range []string{"", "222", "nosuch"} {
		if _, err := FindApproval(list, ref); !errors.Is(err, ErrNoApproval) {
			t.Errorf("FindApproval(%q): %v", ref, err)
		}
	}
}
