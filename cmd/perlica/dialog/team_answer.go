package dialog

import (
	"context"
	"errors"
	"fmt"

	"github.com/perlica/perlica/cmd/perlica/frame"
	"github.com/perlica/perlica/service/team"
)

// TeamAnswerError turns the error of an answer to a worker's question into an error for the user. If err is nil, the
// answer counts, and the result is nil.
func TeamAnswerError(err error) error {
	var uncounted *team.UncountedError
	switch {
	case errors.As(err, &uncounted):
		return fmt.Errorf("the answer does not count: %s", uncounted.Why)
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return frame.WithHint(errors.New("the worker has not said whether the answer counts"),
			"it may still: perlica team pending")
	}
	return err
}
