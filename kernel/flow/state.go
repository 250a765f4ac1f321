package flow

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/message"
	"github.com/perlica/perlica/interaction"
	"github.com/perlica/perlica/kernel/fact"
)

// RunID returns the event.RunID of the flow run with this id.
func RunID(id string) event.RunID { return event.RunID(event.FlowPrefix + id) }

// Phase is the state of a step or of an item.
type Phase string

// These are the phases.
const (
	Waiting Phase = "waiting" // a step that it needs is not decided
	Running Phase = "running"
	Asked   Phase = "asked"   // a question is open
	Unknown Phase = "unknown" // the outcome of the call is unknown, and no person has judged it
	Done    Phase = "done"
	Failed  Phase = "failed"
	Skipped Phase = "skipped"
)

// decided reports whether the phase is final.
func (p Phase) decided() bool { return p == Done || p == Failed || p == Skipped }

// Unit is a single step or an item of a loop.
type Unit struct {
	Phase   Phase
	Attempt int
	Digest  string // of an item
	Run     event.RunID
	Answer  string
	Error   string
	Said    message.Coded // the code of Error and its inserted values
	// ErrorType and Unanswered have the values of the same fields of fact.FlowDecided.
	ErrorType  string
	Unanswered int
	Took       time.Duration
	Cost       *fact.Cost
	At         time.Time // of the decision
	// Worker is the machine of a team that answered the call.
	Worker string

	session    event.SessionID // of the call, on the log of the worker
	generation string          // in which the input was handed over to a team
	unknown    bool            // the team does not know the outcome
}

// StepState is the state of a step.
type StepState struct {
	*Step
	// Unit is the step itself. The Phase of a loop follows from its items, unless the loop failed or was skipped as a
	// whole.
	Unit
	Expanded bool   // the items of the loop are known
	Items    []Unit // of a loop
	counts   map[Phase]int
	next     int // the place of the first item that the driver has not started
}

// State is the state of a flow run. It follows from the events of the run.
type State struct {
	ID       string
	Flow     *Flow
	Started  fact.FlowStarted
	At       time.Time // of the start
	Steps    []*StepState
	Finished *fact.FlowFinished // nil while the flow run goes on
	Ended    time.Time
	Alive    bool // a process drives the flow run

	last    event.Seq // the last event that Apply has seen
	retried event.Seq // the last retry
}

// ErrNoRun means that the log has no flow run with an id.
var ErrNoRun = message.New("flow.no-run", "there is no such flow run")

// errAmbiguous means that a person named several flow runs.
var errAmbiguous = message.New("flow.ambiguous", "%q begins the ids of several flow runs: %s and %s")

// newState returns the state after flow.started. f may be nil; the text of the file is then in the event.
func newState(e event.Event, f *Flow) (*State, error) {
	started, err := fact.Decode[fact.FlowStarted](e)
	if err != nil {
		return nil, err
	}
	if f != nil && f.Digest != started.Digest {
		return nil, fmt.Errorf("%w: sha256 %s is recorded, %s was given", ErrOtherFile, started.Digest, f.Digest)
	}
	if f == nil {
		if f, err = parseAlone(started.File); err != nil {
			return nil, err
		}
	}
	id := strings.TrimPrefix(string(e.Run), event.FlowPrefix)
	s := &State{ID: id, Flow: f, Started: started, At: e.Time, last: e.Seq}
	for _, step := range f.Steps {
		s.Steps = append(s.Steps, &StepState{Step: step, Unit: Unit{Phase: Waiting}, counts: map[Phase]int{}})
	}
	return s, nil
}

// flowTypes are the types of the events of a flow run.
var flowTypes = []event.Type{event.FlowStarted, event.FlowStepDecided, event.FlowFinished}

// readState returns the state of a flow run, from its events. A call without a decision counts as waiting; see Look.
func readState(ctx context.Context, log event.Reader, id string) (*State, error) {
	return read(ctx, log, id, nil)
}

func read(ctx context.Context, log event.Reader, id string, f *Flow) (s *State, err error) {
	q := event.Query{Run: RunID(id), Types: flowTypes, Limit: few}
	n := 0
	for e, err := range log.Events(ctx, q) {
		n++
		switch {
		case err != nil:
			return nil, err
		case s == nil && e.Type != event.FlowStarted:
			continue
		case s == nil:
			s, err = newState(e, f)
		default:
			err = s.applyPart(part{}.with(e))
		}
		if err != nil {
			return nil, err
		}
	}
	if s == nil {
		return nil, fmt.Errorf("%w: %s", ErrNoRun, id)
	}
	if n < few {
		return s, nil
	}
	q.After, q.Limit = s.last, 0
	end, ok, err := log.Last(ctx, q)
	if err == nil && ok {
		err = s.readParts(ctx, log, q, end.Seq)
	}
	return s, err
}

// These are the limits of read. A flow run with fewer than few events is read by one query. For a longer one, the
// log is read in parts: about one part for minPart events of any run, but at most mostParts. With mostParts, one
// part of a flow run of 10,000 items has as many events as one read of the log returns.
const (
	few       = 256
	minPart   = 4096
	mostParts = 48
)

// readParts applies the events of q up to end. It reads and checks two parts of the log at the same time, because
// reading takes most of the time of 'perlica flow show'. BenchmarkShow measures it.
func (s *State) readParts(ctx context.Context, log event.Reader, q event.Query, end event.Seq) error {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	span := end - q.After
	parts := make([]chan part, min(mostParts, 1+span/minPart))
	for i := range parts {
		parts[i] = make(chan part)
	}
	at := func(i int) event.Seq { return q.After + span*event.Seq(i)/event.Seq(len(parts)) }
	for worker := range 2 {
		wg.Go(func() {
			for i := worker; i < len(parts); i += 2 {
				q := q
				q.After, q.Until = at(i), at(i+1)
				select {
				case parts[i] <- readPart(ctx, log, q):
				case <-ctx.Done():
					return
				}
			}
		})
	}
	for _, p := range parts {
		select {
		case p := <-p:
			if err := s.applyPart(p); err != nil {
				return err
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// update applies the events after those that the state knows.
func (s *State) update(ctx context.Context, log event.Reader) error {
	return s.applyPart(readPart(ctx, log, event.Query{Run: RunID(s.ID), Types: flowTypes, After: s.last}))
}

// part has the events of a flow run in one part of the log. If err is set, the later events of the part are missing.
type part struct {
	list []recorded
	err  error
}

// recorded is an event after flow.started. One of decided and finished is set.
type recorded struct {
	seq      event.Seq
	at       time.Time
	decided  *fact.FlowDecided
	finished *fact.FlowFinished
}

func readPart(ctx context.Context, log event.Reader, q event.Query) (p part) {
	for e, err := range log.Events(ctx, q) {
		if p.err = err; err == nil {
			p = p.with(e)
		}
		if p.err != nil {
			break
		}
	}
	return p
}

// with returns the part with the event e. If e cannot be decoded, it returns the part with the error instead.
func (p part) with(e event.Event) part {
	r := recorded{seq: e.Seq, at: e.Time}
	switch e.Type {
	case event.FlowFinished:
		r.finished = new(fact.FlowFinished)
		p.err = e.Decode(r.finished)
	case event.FlowStepDecided:
		r.decided = new(fact.FlowDecided)
		p.err = e.Decode(r.decided)
	}
	if p.err == nil {
		p.list = append(p.list, r)
	}
	return p
}

// applyPart applies the events of a part and returns its error.
func (s *State) applyPart(p part) error {
	for _, r := range p.list {
		if err := s.apply(r); err != nil {
			return err
		}
	}
	return p.err
}

// apply applies one event. Except for a retry, a decision that was already applied changes nothing.
func (s *State) apply(r recorded) error {
	s.last = max(s.last, r.seq)
	switch {
	case r.finished != nil:
		s.Finished, s.Ended = r.finished, r.at
	case r.decided != nil:
		if r.decided.Decision == fact.FlowRetry {
			s.retried = r.seq
		}
		return s.decide(*r.decided, r.at)
	}
	return nil
}

// decide changes the state by a decision.
func (s *State) decide(d fact.FlowDecided, at time.Time) error {
	step := s.step(d.Step)
	if step == nil || d.Item < 0 || d.Item > len(step.Items) && d.Item > 0 {
		return fmt.Errorf("the flow run %s has a decision about the unknown item %d of step %s", s.ID, d.Item, d.Step)
	}
	unit := step.unit(d.Item)
	switch d.Decision {
	case fact.FlowExpanded:
		if step.Expanded {
			return nil
		}
		step.Expanded, step.next, step.Items = true, 0, make([]Unit, len(d.Items))
		for i, digest := range d.Items {
			step.Items[i] = Unit{Phase: Waiting, Digest: digest}
		}
		clear(step.counts)
		step.counts[Waiting] = len(d.Items)
		step.Phase = step.loopPhase()
		step.At = at
		return nil
	case fact.FlowRetry:
		s.retry(step, unit, d.Attempt)
		return nil
	case fact.FlowHanded:
		if d.Attempt == unit.Attempt {
			unit.generation = d.Generation
		}
		return nil
	case fact.FlowUnknown:
		if d.Attempt == unit.Attempt && !unit.Phase.decided() {
			unit.unknown, unit.Run, unit.Worker = true, d.Run, d.Worker
		}
		return nil
	}
	if d.Attempt != unit.Attempt || unit.Phase.decided() {
		return nil
	}
	unit.Answer, unit.Error, unit.Said = d.Answer, d.Error, d.Coded
	unit.Run, unit.ErrorType = d.Run, d.ErrorType
	unit.Unanswered, unit.Took, unit.Cost = d.Unanswered, time.Duration(d.DurationMS)*time.Millisecond, d.Cost
	unit.At, unit.Worker, unit.session = at, d.Worker, d.Session
	s.setPhase(step, d.Item, Phase(d.Decision))
	return nil
}

// setPhase sets the phase of a step or of an item, and the phase of the item's loop.
func (s *State) setPhase(step *StepState, item int, p Phase) {
	unit := step.unit(item)
	if item > 0 {
		step.counts[unit.Phase]--
		step.counts[p]++
	}
	unit.Phase = p
	if item > 0 {
		step.Phase = step.loopPhase()
	}
}

// retry lets a step or an item begin again with a new input. Later steps may depend on the result. So each later step
// that made no call and got no answer is decided again.
func (s *State) retry(step *StepState, unit *Unit, attempt int) {
	s.Finished = nil
	reset := func(st *StepState, u *Unit, attempt int) {
		if u != &st.Unit {
			st.counts[u.Phase]--
			st.counts[Waiting]++
			st.next = 0
		}
		*u = Unit{Phase: Waiting, Attempt: attempt, Digest: u.Digest}
	}
	reset(step, unit, attempt)
	if step.loops() && step.Expanded {
		step.Phase = step.loopPhase()
	}
	for _, later := range s.Steps {
		acted := later.Run != "" || later.Answer != "" || len(later.Items) > 0
		if later.before[step.ID] && later.Phase.decided() && !acted {
			reset(later, &later.Unit, later.Attempt+1)
			later.Expanded, later.Items = false, nil
		}
	}
}

// loopPhase returns the phase of a loop with known items.
func (st *StepState) loopPhase() Phase {
	for _, p := range []Phase{Running, Unknown, Waiting} {
		if st.counts[p] > 0 {
			if p == Waiting && st.counts[Waiting] < len(st.Items) {
				return Running
			}
			return p
		}
	}
	if st.counts[Failed] > 0 {
		return Failed
	}
	return Done
}

// Fault returns the unit's error as a sentence. It returns nil if there is no error.
func (u *Unit) Fault() *message.Text {
	if u.Error == "" {
		return nil
	}
	return &message.Text{Text: u.Error, Coded: u.Said}
}

// unit returns an item, or the step itself if item is 0.
func (st *StepState) unit(item int) *Unit {
	if item == 0 {
		return &st.Unit
	}
	return &st.Items[item-1]
}

// Count returns the number of items in a phase.
func (st *StepState) Count(p Phase) int { return st.counts[p] }

func (s *State) step(id string) *StepState {
	if i, ok := s.Flow.places[id]; ok {
		return s.Steps[i]
	}
	return nil
}

// verdict decides about a step from the steps that it needs, before its own expressions are evaluated. It returns
// fact.FlowFailed or fact.FlowSkipped with the reason, or "". ready is false while a needed step is not decided.
func (s *State) verdict(st *StepState) (decision string, why *message.Text, ready bool) {
	for _, id := range st.Needs {
		need := s.step(id)
		switch {
		case !need.Phase.decided():
			return "", nil, false
		case need.Phase == Failed && need.OnFailure != "continue":
			decision, why = fact.FlowFailed, whyStepFailed.With(id)
		case need.Phase == Skipped && need.OnSkipped != "continue" && decision == "":
			decision, why = fact.FlowSkipped, whyStepSkip.With(id)
		}
	}
	return decision, why, true
}

// complete reports whether every step is decided.
func (s *State) complete() bool {
	return !slices.ContainsFunc(s.Steps, func(st *StepState) bool { return !st.Phase.decided() })
}

// outcome returns the outcome of a complete flow run. It failed if a step failed and on_failure is not "continue".
func (s *State) outcome() string {
	for _, st := range s.Steps {
		if st.Phase == Failed && st.OnFailure != "continue" {
			return fact.FlowFailed
		}
	}
	return fact.FlowDone
}

// Outcome returns the outcome of a finished flow run. For another one it returns "running", "asked", "unknown"
// or "stopped".
func (s *State) Outcome() string {
	if s.Finished != nil {
		return s.Finished.Outcome
	}
	if s.Alive {
		return string(Running)
	}
	for _, p := range []Phase{Unknown, Asked} {
		if slices.ContainsFunc(s.Steps, func(st *StepState) bool { return st.Phase == p || st.counts[p] > 0 }) {
			return string(p)
		}
	}
	return "stopped"
}

// InputID returns the id of the input of a step or of an item. It is the key of the decision, too.
func (s *State) InputID(st *StepState, item int) event.InputID {
	return s.inputOf(st, item, st.unit(item).Attempt)
}

// inputOf returns the id of the input of one attempt.
func (s *State) inputOf(st *StepState, item, attempt int) event.InputID {
	u := st.unit(item)
	id := string(RunID(s.ID)) + "/" + st.ID
	if item > 0 {
		id += fmt.Sprintf("/%d-%s", item, u.Digest)
	}
	if attempt > 0 {
		id += fmt.Sprintf("/retry-%d", attempt)
	}
	return event.InputID(id)
}

// questionID returns the id of a step's newest question, or the id for the first one. The id follows from the id of the
// step's input. If CloseQuestions has closed a question, the step may ask again, so questionID returns the next id.
func (s *State) questionID(ctx context.Context, log event.Reader, st *StepState) (event.InteractionID, error) {
	name := string(s.InputID(st, 0))
	for n := 1; ; n++ {
		id := event.InteractionID(uuid.NewSHA1(uuid.NameSpaceURL, []byte(name)).String())
		end, err := interaction.Closed(ctx, log, id)
		if err != nil || end == nil || end.Lapsed != interaction.RunEnded {
			return id, err
		}
		name = fmt.Sprintf("%s/again-%d", s.InputID(st, 0), n)
	}
}

// digestOf returns a short digest of an item.
func digestOf(item any) (string, error) {
	ev := &evaluation{}
	v, err := toJSON(ev, []any{item})
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256([]byte(v.(string)))
	return hex.EncodeToString(sum[:4]), nil
}
