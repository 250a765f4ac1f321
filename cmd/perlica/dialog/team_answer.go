package dialog

import (
	"context"
	"errors"
	"fmt"

	"github.com/perlica/perlica/cmd/perlica/frame"
	"github.com/perlica/perlica/service/team"
)

// TeamAnswerError says to a person what came of an answer to a worker's question; nil stays nil: it counts.
func TeamAnswerError(err error) error {
	var uncounted *team.UncountedError
	switch {
	case errors.As(err, &uncounted):
		return fmt.Errorf("the answer does not count: %s", uncounted.Why)
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return frame.WithHint(errors.New("the worker has not said whether the answer counts"), "it may still: perlica team pending")
	}
	return err
}
