package flow

import (
	"context"
	"errors"
	"strings"

	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/kernel/record"
)

// End ends a flow run for the person that the stop names. It records the end, stops the running calls and closes the
// open questions. locks is the folder of the locks.
func End(ctx context.Context, r *kernel.Runner, locks string, s *State, stop fact.Stop) error {
	if err := cancel(ctx, r.Log(), s, stop.Person); err != nil {
		return err
	}
	open, err := record.ListUnfinished(ctx, &r.Log().Reader, locks)
	if err != nil {
		return err
	}
	for _, u := range open {
		if u.Alive && strings.HasPrefix(string(u.Input), string(RunID(s.ID))+"/") {
			if err := r.CancelRun(ctx, u.Run, stop); err != nil && !errors.Is(err, kernel.ErrRunGone) {
				return err
			}
		}
	}
	return CloseQuestions(ctx, r.Log(), r.Questions(), s.ID)
}
