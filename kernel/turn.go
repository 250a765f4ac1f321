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

// Turn is an input and how it is to be answered.
type Turn struct {
	Input Input
	Setup      // a conversation has its own; see Converse
	Wait  bool // wait for a busy session instead of filelock.ErrBusy

	Rules []string // those of Options.Rules that are for this run alone, as a person wrote them: for the record

	Permissions policy.Mode
	AnswerIn    time.Duration // how long a question stays open; 0: there is no person to ask

	// Stop ends the turn: the agent is asked to cancel and the run waits for its answer.
	// To end the agent as well, cancel the context of Run; a StoppedError as its cause says
	// who did.
	Stop <-chan Stop
	// Show is called with what happens, one notice at a time. It may be nil.
	Show func(Notice)

	launched *process.Launched // set by Launch
}

// Launch begins to start the agent's process ahead of Runner.Run, which takes it: while the log is opened.
// Nothing is written to it, and nothing of it read, before Run has a log to record that on. Environ and
// redactor are those of the Runner's Options; Setup, Permissions and AnswerIn must be set. The caller must call
// end when Run has returned, or when there will be none: it ends a process that no Run has taken.
func (t *Turn) Launch(environ []string, redactor *redact.Redactor) (end func() error) {
	setup := t.limited()
	if t.launched = setup.Agent.Launch(setup.process(environ, redactor)); t.launched == nil {
		return func() error { return nil }
	}
	return t.launched.End
}

// limited is the Setup of the fresh strategy, with the limit for runs that the agent starts.
func (t Turn) limited() Setup {
	s := t.Setup
	s.Limit = cmp.Or(s.Limit, t.limit())
	return s
}

// limit is the permission mode for runs that the agent starts. Where no person can be asked, they ask none.
func (t Turn) limit() policy.Mode {
	if t.Permissions == policy.ModeAsk && t.AnswerIn <= 0 {
		return policy.ModeDeny
	}
	return t.Permissions
}

// Stop says who ends a turn and why.
type Stop struct {
	By     string `json:"by"`               // "user", "timeout", "terminated"
	Why    string `json:"why"`              // in words
	Person string `json:"person,omitempty"` // who it was, where Why says no more than that
}

// Outcome is how an intent ended.
type Outcome string

// The three outcomes.
const (
	OutcomeResponded     Outcome = "responded"
	OutcomeProviderError Outcome = "provider_error"
	OutcomeUnknown       Outcome = "outcome_unknown"
)

// Result is what became of an input.
type Result struct {
	Run      event.RunID
	Input    event.InputID
	Session  event.SessionID
	Provider string

	Outcome     Outcome
	Text        string           // all message text of the turn, in wire order; a message begins a line
	Content     []provider.Block // what of the messages is no text; Runner.Content has what they hold
	StopReason  string           // as the agent wrote it
	Usage       json.RawMessage
	OfSession   bool // Usage is that of the agent's session so far, not of the turn
	Cost        *fact.Cost
	Duration    time.Duration
	Permissions fact.Permissions
	Unasked     []fact.UnaskedTool
	Blocked     int
	Calls       int // that were made for this input, by this run or by the one that is replayed: 0 or 1
	Err         *provider.Error
	Stopped     *Stop  // why the turn was stopped, if it was
	Replayed    bool   // the input had been called before; this is what was recorded
	Pruned      bool   // some of that was removed from the log since
	Damage      string // the row of the first damaged event that was read
	Warnings    []string
}

// Freed counts the tools that ran unasked because a person had said yes for good.
func (r Result) Freed() (n int) {
	for _, u := range r.Unasked {
		if u.FreedBy != "" {
			n++
		}
	}
	return n
}

// Tokens reads the numbers of a usage as agents write it. ok is false if there are none.
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

// What keeps a turn from being run.
var (
	ErrInputRunning = errors.New("a call for this input is under way")
)

// A StoppedError says that the turn was stopped before its input was accepted.
type StoppedError struct{ Stop Stop }

func (e *StoppedError) Error() string { return "stopped: " + e.Stop.Why }

// phase is where a run stands.
type phase string

// The life of a run.
const (
	phaseAccepted phase = "accepted" // the input is known
	phaseIntended phase = "intended" // the intent is on disk
	phasePrompted phase = "prompted" // the prompt may have left
	phaseEnded    phase = "ended"    // there is an outcome
)

// next is the whole life of a run: a pair that is absent cannot happen. A provider may
// fail before there is an intent; then no call was made, and the input may be tried
// again.
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

// state is a run's phase. It is changed before the event that changes it is appended.
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
