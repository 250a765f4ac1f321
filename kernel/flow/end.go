package flow

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/message"
	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/kernel/filelock"
	"github.com/perlica/perlica/kernel/record"
)

// endLimit is the longest time for which End waits for the process that drives the flow run.
const endLimit = time.Minute

// ErrGoesOn means that a process still drives a cancelled flow run.
var ErrGoesOn = message.New("flow.goes-on",
	"the flow run is cancelled, and the process that drives it has not ended its calls yet")

// End ends a flow run and the flows inside of it, for the person that the stop names. It records the end, stops the
// running calls and closes the open questions. A call that has just begun has no intent on the log yet. So End repeats
// these steps until no process drives the flow run. locks is the folder of the locks. If the flow run was cancelled
// before, End completes an interrupted End and returns ErrFinished.
func End(ctx context.Context, r *kernel.Runner, locks string, s *State, stop fact.Stop) error {
	before := cancel(ctx, r.Log(), s, stop.Person)
	if before != nil && (s.Finished == nil || s.Finished.Outcome != fact.FlowCancelled) {
		return before
	}
	ctx, done := context.WithTimeout(ctx, endLimit)
	defer done()
	stopped := map[event.RunID]bool{}
	err := filelock.Poll(ctx, true, func() error {
		driven, err := filelock.Held(filelock.Run(locks, string(RunID(s.ID))))
		if err != nil {
			return err
		}
		if err := cancelInner(ctx, r.Log(), s.ID, stop.Person); err != nil {
			return err
		}
		open, err := record.ListUnfinished(ctx, &r.Log().Reader, locks)
		if err != nil {
			return err
		}
		for _, u := range open {
			if !u.Alive || stopped[u.Run] || !strings.HasPrefix(string(u.Input), string(RunID(s.ID))+"/") {
				continue
			}
			if err := r.CancelRun(ctx, u.Run, stop); err != nil && !errors.Is(err, kernel.ErrRunGone) {
				return err
			}
			stopped[u.Run] = true
		}
		if err := CloseQuestions(ctx, r.Log(), r.Questions(), s.ID); err != nil {
			return err
		}
		if driven {
			return ErrGoesOn
		}
		return nil
	}, ErrGoesOn)
	return cmp.Or(err, before)
}
