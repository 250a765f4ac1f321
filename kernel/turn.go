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

// Turn is an input together with all settings for its answer.
type Turn struct {
	Input Input
	Setup      // a conversation ignores it and uses its own; see Converse
	Wait  bool // wait for a busy session instead of returning filelock.ErrBusy

	// Rules are the rules in Options.Rules that apply to this run alone, as a person wrote them. They are recorded.
	Rules []string

	Permissions policy.Mode
	AnswerIn    time.Duration // time limit for the answer to a question; 0 means that no person can be asked

	// Stop stops the turn: Run asks the agent to cancel and waits for the agent's answer. To end the agent at once,
	// cancel the ctx of Run. If the cause of ctx is a StoppedError, it names the person or the limit that stopped the
	// turn.
	Stop <-chan fact.Stop
	// Show is called for each notice, never concurrently. It may be nil.
	Show func(record.Notice)

	launched *process.Launched // set by Launch
}

// Launch starts the agent's process before Runner.Run, so that the process starts while the caller opens the log.
// Until Run has the log, Perlica writes nothing to the process and reads nothing from it. The parameters "environ"
// and "redactor" must equal the values in the Runner's Options. Setup, Permissions and AnswerIn must be set.
//
// The caller must call the function "end" after Run, or if Run is not called. The function "end" ends a process that
// Run has not taken.
func (t *Turn) Launch(environ []string, redactor *redact.Redactor) (end func() error) {
	setup := t.limited()
	if t.launched = setup.Agent.Launch(setup.process(environ, redactor)); t.launched == nil {
		return func() error { return nil }
	}
	return t.launched.End
}

// limited returns the Setup for the fresh strategy. Its Limit is set for runs that the agent itself starts.
func (t Turn) limited() Setup {
	s := t.Setup
	s.Limit = cmp.Or(s.Limit, t.limit())
	return s
}

// limit returns the permission mode for runs that the agent itself starts. If no person can be asked in this turn, no
// person can be asked in those runs.
func (t Turn) limit() policy.Mode {
	if t.Permissions == policy.ModeAsk && t.AnswerIn <= 0 {
		return policy.ModeDeny
	}
	return t.Permissions
}

// ErrInputRunning means that another process is calling the agent for this input.
var ErrInputRunning = message.New("kernel.input-running", "a call for this input is under way")

// A StoppedError means that the turn was stopped before its input was accepted.
type StoppedError struct{ Stop fact.Stop }

// Tell returns the error's sentence.
func (e *StoppedError) Tell() *message.Text { return stopped.With(e.Stop.Reason()) }

func (e *StoppedError) Error() string { return e.Tell().Text }

// phase is the progress of a run.
type phase string

// These are the phases of a run, in order.
const (
	phaseAccepted phase = "accepted" // the input was accepted
	phaseIntended phase = "intended" // the intent is on disk
	phasePrompted phase = "prompted" // the prompt may have been sent
	phaseEnded    phase = "ended"    // the outcome exists
)

// next has every transition of a run. A missing pair cannot happen. An agent may fail before the intent. In that case
// no call was made, and the same input may be given again.
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

// state is the phase of a run. It changes before the event is appended.
type state struct {
	mu    sync.Mutex
	phase phase
}

// is reports whether the run is in this phase.
func (s *state) is(p phase) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.phase == p
}

// advance changes the phase because of an event. It returns an error if the event cannot happen in the present phase.
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
