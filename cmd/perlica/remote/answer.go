package remote

import (
	"context"
	"errors"
	"fmt"

	"github.com/perlica/perlica/cmd/perlica/exitcode"
	"github.com/perlica/perlica/service/team"
)

// OfAnswer says to a person what came of an answer to a worker's question; nil stays nil: it counts.
func OfAnswer(err error) error {
	var uncounted *team.UncountedError
	switch {
	case errors.As(err, &uncounted):
		return fmt.Errorf("the answer does not count: %s", uncounted.Why)
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return exitcode.WithHint(errors.New("the worker has not said whether the answer counts"), "it may still: perlica team pending")
	}
	return err
}
