package eventlog

import (
	"slices"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/evidence"
)

// An entry is what one call wants written, all or none of it.
type entry struct {
	events     []event.Event
	checkpoint bool                 // a checkpoint is wanted behind them
	store      *evidence.Checkpoint // has a note that is to be stored; nil: none
	unless     event.Query          // nothing is written if the log holds an event that it selects; zero: whatever it holds
	ahead      bool                 // who waits does not wait for the checkpoint that the events ask for
	wait       chan result          // nil if no one waits; capacity 1
}

// makesCheckpoint reports whether the batch with the entry ends with a checkpoint.
func (e entry) makesCheckpoint() bool { return e.checkpoint || !e.ahead && e.endsRun() }

// checkpointFollows reports whether a checkpoint is to follow the batch with the entry.
func (e entry) checkpointFollows() bool { return e.ahead && e.endsRun() }

// follows reports whether the entry is such a checkpoint: no one waits for it.
func (e entry) follows() bool { return e.checkpoint && e.wait == nil }

func (e entry) endsRun() bool {
	return slices.ContainsFunc(e.events, func(e event.Event) bool { return e.Type == event.CallEnforced })
}

type result struct {
	last       event.Seq
	checkpoint evidence.Checkpoint
	err        error
}

// weight is what an event takes in memory, about: a flood of short lines is one, too.
func weight(e *event.Event) int { return len(e.Payload) + 512 }
