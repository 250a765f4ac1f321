package report

import (
	"errors"
	"fmt"

	"github.com/perlica/perlica/policy"
)

// What keeps a standing approval from being found.
var (
	ErrNoApproval        = errors.New("there is no such standing approval")
	ErrAmbiguousApproval = errors.New("more than one standing approval matches")
)

// FindApproval returns the approval with this id, or with this unique beginning or end of
// an id, among those that stand.
func FindApproval(list []policy.Approval, ref string) (policy.Approval, error) {
	var found []policy.Approval
	for _, a := range list {
		if a.ID == ref {
			return a, nil
		}
		if isShortFor(ref, a.ID) {
			found = append(found, a)
		}
	}
	switch len(found) {
	case 0:
		return policy.Approval{}, fmt.Errorf("%w: %s", ErrNoApproval, ref)
	case 1:
		return found[0], nil
	}
	return policy.Approval{}, fmt.Errorf("%w: %s", ErrAmbiguousApproval, ref)
}
