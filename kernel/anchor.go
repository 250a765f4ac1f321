package kernel

import (
	"errors"
	"fmt"

	"github.com/perlica/perlica/eventlog/evidence"
)

// warnOfAnchor warns where the checkpoint of the run is not signed, or not in the anchor. It was
// written while the agent was ended; the outcome is on disk in any case.
func (run *run) warnOfAnchor() {
	if subtype, err := run.r.anchorFault(); err != nil {
		run.client.warnLate(subtype, err.Error())
	}
}

// anchorFault returns why the last checkpoint is not signed, or not in the anchor, and the
// warning's subtype.
func (r *Runner) anchorFault() (subtype string, err error) {
	err = r.log.Anchored()
	switch {
	case err == nil, r.log.Err() != nil: // of a dead log there is more to say, and it is said
	case !errors.Is(err, evidence.ErrKey):
		return "checkpoint_not_anchored", fmt.Errorf("%w. The answer is on record; when there is room, 'perlica log checkpoint' makes up for it", err)
	case r.keys != nil:
		return "checkpoint_not_signed", err
	}
	return "", nil
}
