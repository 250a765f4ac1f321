package kernel

import (
	"fmt"
	"sync"

	"github.com/perlica/perlica/eventlog/event"
)

// Phase is where a run stands.
type Phase string

// The life of a run.
const (
	Accepted Phase = "accepted" // the input is known
	Intended Phase = "intended" // the intent is on disk
	Prompted Phase = "prompted" // the prompt may have left
	Ended    Phase = "ended"    // there is an outcome
)

// next is the whole life of a run: a pair that is absent cannot happen. A provider may
// fail before there is an intent; then no call was made, and the input may be tried
// again.
var next = map[Phase]map[event.Type]Phase{
	Accepted: {
		event.Requested:       Intended,
		event.CancelRequested: Accepted,
		event.ProviderError:   Ended,
	},
	Intended: {
		event.RequestSent:     Prompted,
		event.CancelRequested: Intended,
		event.ProviderError:   Ended,
		event.OutcomeUnknown:  Ended,
	},
	Prompted: {
		event.InteractionRequested: Prompted,
		event.InteractionAnswered:  Prompted,
		event.CancelRequested:      Prompted,
		event.Responded:            Ended,
		event.ProviderError:        Ended,
		event.OutcomeUnknown:       Ended,
	},
}

// state is a run's phase. It is changed before the event that changes it is appended.
type state struct {
	mu    sync.Mutex
	phase Phase
}

// advance moves the state by an event, or says that the event cannot happen now.
func (s *state) advance(t event.Type) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	to, ok := next[s.phase][t]
	if !ok {
		return fmt.Errorf("kernel: %s cannot happen to a run that is %s", t, s.phase)
	}
	s.phase = to
	return nil
}
