package kernel

import (
	"cmp"
	"fmt"
	"sync"
	"time"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/message"
	"github.com/perlica/perlica/eventlog/redact"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/kernel/record"
	"github.com/perlica/perlica/policy"
	"github.com/perlica/perlica/provider/process"
)

// Turn is an input and the way in which it is answered.
type Turn struct {
	Input Input
	Setup      // ignored by a conversation, which has its own; see Converse
	Wait  bool // wait for a busy session, without filelock.ErrBusy

	// Rules are the rules of Options.Rules that hold for this run alone, as a person wrote them. They go on
	// record.
	Rules []string

	Permissions policy.Mode
	AnswerIn    time.Duration // the time in which a question must be answered; 0 means that no person can be asked

	// Stop ends the turn: Run asks the agent to cancel and waits for its answer. To end the agent as well,
	// cancel the context of Run. A StoppedError as the cause of the context names the person or limit that
	// stopped the turn.
	Stop <-chan fact.Stop
	// Show is called with each notice, one at a time. It may be nil.
	Show func(record.Notice)

	launched *process.Launched // set by Launch
}

// Launch starts the agent's process before Runner.Run, while the log is opened. Perlica writes nothing to the
// process and reads nothing from it before Run has the log. environ and redactor must equal those in the
// Runner's Options. Setup, Permissions and AnswerIn must be set.
//
// The caller must call end after Run, or if no Run follows. end ends a process that no Run has taken.
func (t *Turn) Launch(environ []string, redactor *redact.Redactor) (end func() error) {
	setup := t.limited()
	if t.launched = setup.Agent.Launch(setup.process(environ, redactor)); t.launched == nil {
		return func() error { return nil }
	}
	return t.launched.End
}

// limited returns the Setup for the fresh strategy, with the limit for runs that the agent starts.
func (t Turn) limited() Setup {
	s := t.Setup
	s.Limit = cmp.Or(s.Limit, t.limit())
	return s
}

// limit returns the permission mode for runs that the agent starts. If no person can be asked in this turn,
// none can be asked in them.
func (t Turn) limit() policy.Mode {
	if t.Permissions == policy.ModeAsk && t.AnswerIn <= 0 {
		return policy.ModeDeny
	}
	return t.Permissions
}

// ErrInputRunning says that another process calls the agent for this input.
var ErrInputRunning = message.New("kernel.input-running", "a call for this input is under way")

// A StoppedError says that the turn was stopped before its input was accepted.
type StoppedError struct{ Stop fact.Stop }

// Tell returns the error's sentence.
func (e *StoppedError) Tell() *message.Text { return stopped.With(e.Stop.Reason()) }

func (e *StoppedError) Error() string { return e.Tell().Text }

// phase is the state of a run.
type phase string

// The phases of a run, in order.
const (
	phaseAccepted phase = "accepted" // the input is known
	phaseIntended phase = "intended" // the intent is on disk
	phasePrompted phase = "prompted" // the prompt may have left
	phaseEnded    phase = "ended"    // there is an outcome
)

// next has every transition of a run. A pair that is absent cannot happen. An agent may fail before the
// intent: then no call was made, and the same input may be tried again.
var next = map[phase]map[event.Type]phase{
	phaseAccepted: {
		event.Requested:       phaseIntended,
		event.CancelRequested: phaseAccepted,
		event.ProviderError:   phaseEnded,
	},
	phaseIntended: {
		event.RequestSent:     phasePrompted,
		event.CancelRequested: phaseIntended,
		event.ProviderError:   phaseEnded,
		event.OutcomeUnknown:  phaseEnded,
	},
	phasePrompted: {
		event.InteractionRequested: phasePrompted,
		event.InteractionAnswered:  phasePrompted,
		event.CancelRequested:      phasePrompted,
		event.Responded:            phaseEnded,
		event.ProviderError:        phaseEnded,
		event.OutcomeUnknown:       phaseEnded,
	},
}

// state is a run's phase. It changes before its event is appended.
type state struct {
	mu    sync.Mutex
	phase phase
}

// is reports whether the run is in the phase.
func (s *state) is(p phase) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.phase == p
}

// advance moves the state by an event. It returns an error if the event cannot happen now.
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
