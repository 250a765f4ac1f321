package kernel

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/redact"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/policy"
	"github.com/perlica/perlica/provider"
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
	Stop <-chan Stop
	// Show is called with each notice, one at a time. It may be nil.
	Show func(Notice)

	launched *process.Launched // set by Launch
}

// Launch starts the agent's process before Runner.Run, while the log is opened. Nothing is written to the
// process and nothing is read from it before Run has a log for it. environ and redactor are those of the
// Runner's Options. Setup, Permissions and AnswerIn must be set.
//
// The caller must call end after Run, or if no Run follows. It ends a process that no Run has taken.
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

// Stop names the person or limit that ends a turn, and the reason.
type Stop struct {
	By     string `json:"by"`               // "user", "timeout", "terminated"
	Why    string `json:"why"`              // in words
	Person string `json:"person,omitempty"` // the person, if Why does not name one
}

// Outcome is the end of an intent.
type Outcome string

// The three outcomes.
const (
	OutcomeResponded     Outcome = "responded"
	OutcomeProviderError Outcome = "provider_error"
	OutcomeUnknown       Outcome = "outcome_unknown"
)

// Result is the result of an input.
type Result struct {
	Run      event.RunID
	Input    event.InputID
	Session  event.SessionID
	Provider string

	Outcome     Outcome
	Text        string           // all messages of the turn, in wire order; each message begins a line
	Content     []provider.Block // the parts of the messages that are not text; Runner.Content has their data
	StopReason  string           // as the agent wrote it
	Usage       json.RawMessage
	OfSession   bool // Usage counts the agent's session so far and not the turn
	Cost        *fact.Cost
	Duration    time.Duration
	Permissions fact.Permissions
	Unasked     []fact.UnaskedTool
	Blocked     int
	Calls       int // made for this input by this run or by the replayed one: 0 or 1
	Err         *provider.Error
	Stopped     *Stop  // the reason for a stop of the turn, or nil
	Replayed    bool   // the input was called before, and this is its recorded result
	Pruned      bool   // payloads of the run were removed from the log
	Damage      string // the row of the first damaged event that was read
	Warnings    []string
}

// Freed counts the tools that ran without a question because a person had said yes for good.
func (r Result) Freed() (n int) {
	for _, u := range r.Unasked {
		if u.FreedBy != "" {
			n++
		}
	}
	return n
}

// Tokens returns the numbers of the usage in the form that agents use. ok is false without such numbers.
func (r Result) Tokens() (in, out int64, ok bool) {
	var u struct {
		In  *int64 `json:"inputTokens"`
		Out *int64 `json:"outputTokens"`
	}
	if json.Unmarshal(r.Usage, &u) != nil || u.In == nil || u.Out == nil {
		return 0, 0, false
	}
	return *u.In, *u.Out, true
}

// ErrInputRunning says that another process calls the agent for this input.
var ErrInputRunning = errors.New("a call for this input is under way")

// A StoppedError says that the turn was stopped before its input was accepted.
type StoppedError struct{ Stop Stop }

func (e *StoppedError) Error() string { return "stopped: " + e.Stop.Why }

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
