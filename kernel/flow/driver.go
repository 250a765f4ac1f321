package flow

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/perlica/perlica/eventlog"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/message"
	"github.com/perlica/perlica/interaction"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/kernel/filelock"
	"github.com/perlica/perlica/kernel/record"
	"github.com/perlica/perlica/kernel/streamjson"
)

// Call is an input of a step, which an agent must answer.
type Call struct {
	Input   event.InputID
	Text    string
	Step    *Step
	Session event.SessionID // the session to continue; empty means a new one

	// These fields are for a Team. Worker has the session. Generation is the hub's generation in which the input was
	// handed over. Ended is closed when another process has ended the flow run.
	Worker, Generation string
	Ended              <-chan struct{}

	item, attempt int // of the Step
}

// A misfitError means that the call was made, and its answer does not fit the step's schema. The step failed.
type misfitError struct{ Err error }

func (e *misfitError) Error() string { return e.Err.Error() }

// Unwrap returns the fault of the answer.
func (e *misfitError) Unwrap() error { return e.Err }

// Driver drives flow runs on one log.
type Driver struct {
	Log       *eventlog.Log
	Questions *interaction.Coordinator
	Locks     string // the folder of the locks
	By        string // the name of the person
	// Permissions is the mode that the person chose, or empty. The start of a flow run records it.
	Permissions string
	// Limited means that an agent started this process. Such a process cannot continue the flow run of a person.
	Limited bool
	// Answer answers one input. It is called by several goroutines at the same time. An error other than a *misfitError
	// means that nothing was sent; Run then begins no further step and returns the error.
	Answer func(context.Context, Call) (record.Result, error)
	// Team answers the inputs in place of Answer if it is not nil.
	Team Team
	// Show is called for each change of the phase of a step or of an item. It is also called with item -1 when Run begins
	// to drive. It must not keep the state. Inner flows call it from their own goroutines, but never two at the same time.
	Show func(s *State, step *StepState, item int)
	// Asked is called when a question was opened, and Closed when it was answered. Both may be nil.
	Asked, Closed func(interaction.Question)
	// Stop is closed when no further step may begin.
	Stop <-chan struct{}
	// Most limits the calls at the same time.
	Most int
	// Stay lets Run wait for answers to open questions. Otherwise Run returns while only questions are open.
	Stay bool

	slots   chan struct{}
	showing *sync.Mutex
}

// These are errors of Run. They mean that the id belongs to another flow run, or that other machines make its calls.
var (
	ErrOtherFile   = message.New("flow.other-file", "the flow run began with another file")
	ErrOtherInputs = message.New("flow.other-inputs", "the flow run began with other inputs")
	ErrOtherTeam   = message.New("flow.other-team", "the flow run began with another team")
	ErrNeedsTeam   = message.New("flow.needs-team", "a team answers the calls of the flow run")
	ErrNoTeam      = message.New("flow.no-team", "this machine answers the calls of the flow run, and not a team")
	ErrPersons     = message.New("flow.persons", "a person began the flow run, and an agent cannot continue it")
	errDriven      = message.New("flow.driven", "another process drives the flow run, and this one was stopped")
	wrongID        = message.New("flow.wrong-id", "the id %q is not 1 to 128 letters, digits or characters of ._:@+-")
)

// The longest id of a schedule's flow run has 104 characters.
var validID = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:@+-]{0,127}$`)
})

// CheckID returns an error if id cannot be the id of a flow run.
func CheckID(id string) error {
	if !validID().MatchString(id) {
		return wrongID.With(id)
	}
	return nil
}

// Run drives a flow run until all steps are decided, or until no step can begin. A flow run with this id continues from
// its last state. If another process drives it, Run shows the changes and drives it after that process.
func (d *Driver) Run(ctx context.Context, f *Flow, id string, inputs map[string]string) (*State, error) {
	if d.slots == nil {
		d.slots, d.showing = make(chan struct{}, max(d.Most, 1)), &sync.Mutex{}
	}
	lock, err := d.takeLock(ctx, f, id)
	if err != nil {
		return nil, err
	}
	defer lock.Release()
	s, err := d.Begin(ctx, f, id, inputs)
	if err != nil {
		return nil, err
	}
	r := &drive{Driver: d, state: s, elements: map[string][]any{}, busy: map[string]int{},
		tickets: map[string]*interaction.Ticket{}, results: make(chan result), answered: make(chan string),
		ended: make(chan struct{})}
	r.values = values{ctx, &d.Log.Reader, s, &cache{texts: map[event.RunID]string{}}, d.Team}
	d.show(s, nil, -1)
	err = r.drive(ctx)
	cause := context.Cause(ctx)
	if cause != nil && s.Finished == nil && (err == nil || errors.Is(err, context.Canceled)) {
		err = cause
	}
	return s, err
}

// takeLock takes the lock of the flow run. While another process has it, takeLock shows the changes.
func (d *Driver) takeLock(ctx context.Context, f *Flow, id string) (*filelock.Lock, error) {
	path := filelock.Run(d.Locks, string(RunID(id)))
	lock, err := filelock.Acquire(path)
	if !errors.Is(err, filelock.ErrHeld) {
		return lock, err
	}
	changes, err := d.Log.Changes(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = changes.Close() }() // nothing was written, so the error does not matter
	shown := map[string]Phase{}
	var s *State
	for {
		if s == nil {
			s, err = read(ctx, &d.Log.Reader, id, f)
		} else {
			err = s.update(ctx, &d.Log.Reader)
		}
		if err == nil {
			s.Alive = true
			for _, st := range s.Steps {
				if shown[st.ID] != st.Phase {
					shown[st.ID] = st.Phase
					d.show(s, st, 0)
				}
			}
		}
		lock, err := filelock.Acquire(path)
		if !errors.Is(err, filelock.ErrHeld) {
			return lock, err
		}
		select {
		case <-d.Stop:
			return nil, errDriven
		default:
		}
		if _, err := changes.Wait(ctx, time.Second); err != nil {
			return nil, err
		}
	}
}

func (d *Driver) show(s *State, st *StepState, item int) {
	if d.Show == nil {
		return
	}
	d.showing.Lock()
	defer d.showing.Unlock()
	d.Show(s, st, item)
}

// Begin records the start of a flow run, or reads the flow run with this id. It begins no step.
func (d *Driver) Begin(ctx context.Context, f *Flow, id string, inputs map[string]string) (*State, error) {
	all, err := f.Fill(inputs)
	if err != nil {
		return nil, err
	}
	run := RunID(id)
	e := event.NewFact(event.FlowStarted, "user", event.Refs{Run: run, Interaction: event.Flows}, fact.FlowStarted{
		Name: f.Name, Digest: f.Digest, File: f.Text, Inputs: all, By: d.By, Permissions: d.Permissions, Team: d.teamID(),
		Limited: d.Limited,
	})
	_, err = d.Log.AppendUnless(ctx, event.Query{Run: run, Types: []event.Type{event.FlowStarted}}, e)
	var conflict *eventlog.ConflictError
	if err != nil && !errors.As(err, &conflict) {
		return nil, err
	}
	s, err := d.Recorded(ctx, f, id, all)
	if err == nil {
		s.Alive = true
	}
	return s, err
}

// Recorded returns the recorded state of the flow run with this id. The file, the inputs and the team must be those
// with which it began. The inputs include the defaults.
func (d *Driver) Recorded(ctx context.Context, f *Flow, id string, inputs map[string]string) (*State, error) {
	s, err := read(ctx, &d.Log.Reader, id, f)
	if err != nil {
		return nil, err
	}
	if d.Limited && !s.Started.Limited {
		return nil, ErrPersons
	}
	if err := d.checkTeam(s); err != nil {
		return nil, err
	}
	if kept := d.kept(inputs); !maps.Equal(s.Started.Inputs, kept) {
		return nil, fmt.Errorf("%w: %s", ErrOtherInputs, strings.Join(differing(s.Started.Inputs, kept), ", "))
	}
	return s, nil
}

// kept returns the inputs in the form in which the log stores them. If the log is masked, their secrets are masked,
// too.
func (d *Driver) kept(inputs map[string]string) map[string]string {
	e := event.NewFact(event.FlowStarted, "user", event.Refs{}, fact.FlowStarted{Inputs: inputs})
	e.Payload = d.Log.Kept(e.Payload)
	f, err := fact.Decode[fact.FlowStarted](e)
	if err != nil {
		return inputs // the masked payload is no longer valid JSON, and the comparison finds a difference
	}
	return f.Inputs
}

func differing(a, b map[string]string) (names []string) {
	for name := range a {
		if a[name] != b[name] {
			names = append(names, name)
		}
	}
	return names
}

// result is the end of a running step or item.
type result struct {
	step string
	item int
	res  TeamAnswer
	err  error
	// inner is the state of a flow inside of the flow.
	inner *State
}

// drive is one call of Run with the lock of its flow run.
type drive struct {
	*Driver
	state    *State
	values   values
	elements map[string][]any // of each loop
	busy     map[string]int   // the running calls of each step
	running  int
	tickets  map[string]*interaction.Ticket // the open questions, by step
	results  chan result
	answered chan string   // the ids of steps whose question has ended
	ended    chan struct{} // closed when another process has ended the flow run
	stopped  bool
	err      error // the first error; no step begins after it
}

var errStopped = errors.New("stopped before the call")

func (r *drive) drive(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	changed := make(chan error, 1)
	wg.Go(func() {
		err := r.watch(ctx, changed)
		select {
		case changed <- err:
		case <-ctx.Done():
		}
	})
	stop := r.Stop
	for {
		r.advance(ctx, &wg)
		if r.running == 0 && (r.halted() || len(r.tickets) == 0 || !r.Stay) {
			break
		}
		select {
		case res := <-r.results:
			r.take(ctx, res)
		case step := <-r.answered:
			r.takeAnswer(step)
		case err := <-changed:
			if err == nil {
				err = r.update(ctx)
			}
			if err != nil && ctx.Err() == nil {
				r.fail(err)
			}
		case <-stop:
			stop, r.stopped = nil, true
		}
	}
	return r.finish(ctx)
}

// update applies the new events of the log. It tells the running calls if another process has ended the flow run.
func (r *drive) update(ctx context.Context) error {
	before := r.state.Finished
	err := r.state.update(ctx, &r.Log.Reader)
	if before == nil && r.state.Finished != nil {
		close(r.ended)
	}
	return err
}

// halted reports whether no further step may begin.
func (r *drive) halted() bool { return r.stopped || r.err != nil || r.state.Finished != nil }

// fail keeps the first error. A nil error changes nothing.
func (r *drive) fail(err error) {
	if r.err == nil {
		r.err = err
	}
}

// watch sends a value to the channel "changed" after each commit to the log. It returns at the end of ctx.
func (r *drive) watch(ctx context.Context, changed chan error) error {
	changes, err := r.Log.Changes(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = changes.Close() }() // nothing was written, so the error does not matter
	for {
		new, err := changes.Wait(ctx, 0)
		if err != nil {
			return err
		}
		if new {
			r.Questions.Look(ctx)
			select {
			case changed <- nil:
			default:
			}
		}
	}
}

// finish records the end of a complete flow run. It closes the questions of a cancelled one.
func (r *drive) finish(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx)
	defer func() {
		for _, t := range r.tickets {
			r.Questions.Leave(t)
		}
	}()
	if r.state.Finished != nil {
		for _, t := range r.tickets {
			r.fail(r.Questions.Lapse(ctx, t, interaction.RunEnded))
			r.fail(r.Questions.Resolve(t, interaction.Resolution{Reason: interaction.RunEnded}))
		}
		return r.err
	}
	if r.err != nil || !r.state.complete() {
		return errors.Join(r.err, r.Log.Sync())
	}
	run := RunID(r.state.ID)
	unless := event.Query{Run: run, Types: []event.Type{event.FlowFinished}, After: r.state.retried}
	_, err := r.Log.AppendUnless(ctx, unless, event.NewFact(event.FlowFinished, "perlica",
		event.Refs{Run: run, Interaction: event.Flows}, fact.FlowFinished{Outcome: r.state.outcome()}))
	var conflict *eventlog.ConflictError
	if err != nil && !errors.As(err, &conflict) {
		return err
	}
	return r.state.update(ctx, &r.Log.Reader)
}

// advance makes all decisions that need no call, and begins the steps that are ready.
func (r *drive) advance(ctx context.Context, wg *sync.WaitGroup) {
	for again := true; again; {
		again = false
		for _, st := range r.state.Steps {
			if r.halted() {
				return
			}
			switch {
			case st.Phase.decided(), r.tickets[st.ID] != nil:
			case st.Expanded:
				r.beginItems(ctx, wg, st)
				again = st.Phase.decided() || again
			case st.Phase == Waiting:
				again = r.beginStep(ctx, wg, st) || again
			}
		}
	}
}

// beginStep decides about a step or begins it. It reports whether the step changed.
func (r *drive) beginStep(ctx context.Context, wg *sync.WaitGroup, st *StepState) bool {
	decision, why, ready := r.state.verdict(st)
	if !ready {
		return false
	}
	if decision != "" {
		r.decide(st, 0, because(decision, why))
		return true
	}
	if st.when != nil {
		v, err := st.when.evaluate(r.values.vars())
		yes, ok := v.(bool)
		switch {
		case err != nil:
			r.decide(st, 0, because(fact.FlowFailed, whyWhen.With(err)))
			return true
		case !ok:
			r.decide(st, 0, because(fact.FlowFailed, whyWhen.With(errKind.With(trueFalse, kindOf(v)))))
			return true
		case !yes:
			r.decide(st, 0, because(fact.FlowSkipped, whyWhenFalse))
			return true
		}
	}
	switch {
	case st.loops():
		r.expand(st)
	case st.Ask != "":
		r.ask(ctx, wg, st)
	default:
		r.beginCall(ctx, wg, st, 0)
	}
	return true
}

// expand records the items of a loop.
func (r *drive) expand(st *StepState) {
	list, err := r.values.elements(st)
	d := fact.FlowDecided{Decision: fact.FlowExpanded, Items: make([]string, len(list))}
	for i := 0; i < len(list) && err == nil; i++ {
		d.Items[i], err = digestOf(list[i])
	}
	if err != nil {
		d = because(fact.FlowFailed, err)
	}
	r.elements[st.ID] = list
	r.decide(st, 0, d)
}

// beginItems begins the items of a loop, in their order, at most Step.Parallel at the same time.
func (r *drive) beginItems(ctx context.Context, wg *sync.WaitGroup, st *StepState) {
	if st.Count(Waiting) == 0 {
		return
	}
	if r.elements[st.ID] == nil {
		list, err := r.values.elements(st)
		for i := 0; i < len(list) && err == nil; i++ {
			var digest string
			if digest, err = digestOf(list[i]); err == nil && digest != st.Items[i].Digest {
				err = errNotRecorded.With(i + 1)
			}
		}
		if err != nil {
			r.fail(fmt.Errorf("step %s: %w", st.ID, err))
			return
		}
		r.elements[st.ID] = list
	}
	for ; st.next < len(st.Items) && r.busy[st.ID] < st.Parallel; st.next++ {
		if st.Items[st.next].Phase == Waiting {
			r.beginCall(ctx, wg, st, st.next+1)
		}
	}
}

// beginCall begins the call of a step or of an item, or the flow of a step.
func (r *drive) beginCall(ctx context.Context, wg *sync.WaitGroup, st *StepState, item int) {
	vars := r.values.vars()
	if item > 0 {
		vars["item"], vars["index"] = r.elements[st.ID][item-1], float64(item-1)
	}
	u := st.unit(item)
	c := Call{Input: r.state.InputID(st, item), Step: st.Step, Generation: u.generation, Ended: r.ended,
		item: item, attempt: u.Attempt}
	var err error
	inputs := map[string]string{}
	for name, t := range st.inputs {
		if inputs[name], err = t.render(vars); err != nil {
			break
		}
	}
	if err == nil && st.Flow == "" {
		c.Text, err = st.text.render(vars)
		if err == nil && strings.TrimSpace(c.Text) == "" {
			err = whyEmptyText
		}
	}
	if err == nil && st.Session != "" {
		c.Worker = r.state.step(st.Session).Worker
		c.Session, err = r.sessionOf(ctx, st)
	}
	if err != nil {
		r.decide(st, item, because(fact.FlowFailed, err))
		return
	}
	r.setPhase(st, item, Running)
	r.busy[st.ID]++
	r.running++
	id := st.ID
	wg.Go(func() {
		res := result{step: id, item: item}
		if st.inner != nil {
			inner := *r.Driver
			innerID := strings.TrimPrefix(string(c.Input), event.FlowPrefix)
			res.inner, res.err = inner.Run(ctx, st.inner, innerID, inputs)
		} else {
			res.res, res.err = r.callInSlot(ctx, c)
		}
		r.results <- res
	})
}

// callInSlot answers an input when fewer than Most calls run.
func (r *drive) callInSlot(ctx context.Context, c Call) (res TeamAnswer, err error) {
	select {
	case r.slots <- struct{}{}:
		defer func() { <-r.slots }()
	case <-r.Stop:
		return res, errStopped
	case <-ctx.Done():
		return res, context.Cause(ctx)
	}
	if r.Team != nil {
		return r.answerByTeam(ctx, c)
	}
	res.Result, err = r.Answer(ctx, c)
	return res, err
}

// sessionOf returns the session of the step that st continues.
func (r *drive) sessionOf(ctx context.Context, st *StepState) (event.SessionID, error) {
	of := r.state.step(st.Session)
	if of.Run == "" || of.session != "" {
		return of.session, nil // that step made no call, or a team's worker has its session
	}
	e, ok, err := r.Log.Last(ctx, event.Query{Run: of.Run, Types: []event.Type{event.Requested}})
	if err == nil && !ok {
		err = whyNoCall.With(of.Run)
	}
	return e.Session, err
}

// take updates the state with the result of a call or of an inner flow.
func (r *drive) take(ctx context.Context, res result) {
	st := r.state.step(res.step)
	r.busy[st.ID]--
	r.running--
	var misfit *misfitError
	d := fact.FlowDecided{Decision: fact.FlowDone, Run: res.res.Run, DurationMS: res.res.Duration.Milliseconds(),
		Cost: res.res.Cost, Unanswered: res.res.Permissions.Unanswered, Worker: res.res.Worker}
	if r.Team != nil {
		d.Session = res.res.Session
	}
	failed := func(why error) {
		f := because(fact.FlowFailed, why)
		d.Decision, d.Error, d.Coded = f.Decision, f.Error, f.Coded
	}
	switch {
	case errors.As(res.err, &misfit):
		failed(misfit.Err)
	case res.err != nil:
		r.setPhase(st, res.item, Waiting)
		if res.item > 0 {
			st.next = min(st.next, res.item-1)
		}
		if !errors.Is(res.err, errStopped) {
			r.fail(res.err)
		}
		return
	case res.inner != nil:
		d.Run = RunID(res.inner.ID)
		switch outcome := res.inner.Outcome(); outcome {
		case fact.FlowDone:
		case fact.FlowFailed:
			failed(whyInnerFail.With(res.inner.ID))
		case fact.FlowCancelled:
			failed(whyInnerEnd.With(res.inner.ID))
		default:
			p := Waiting
			if outcome == string(Unknown) || outcome == string(Asked) {
				p = Phase(outcome)
			}
			st.Unit.Run = d.Run
			r.setPhase(st, res.item, p)
			r.stopped = r.stopped || p == Waiting
			return
		}
	case res.res.Outcome == record.OutcomeUnknown:
		judged, err := res.res.Judged, error(nil)
		if r.Team == nil {
			judged, err = r.judgement(ctx, res.res.Run)
		}
		r.fail(err)
		if judged == nil {
			st.unit(res.item).Run, st.unit(res.item).Worker = res.res.Run, res.res.Worker
			r.recordUnknown(st, res)
			r.setPhase(st, res.item, Unknown)
			return
		}
		failed(judged)
		d.ErrorType = string(record.OutcomeUnknown)
	case streamjson.Failed(res.res.Result):
		failed(failure(res.res.Result))
		if res.res.Err != nil {
			d.ErrorType = string(res.res.Err.Type)
		}
	}
	r.decide(st, res.item, d)
}

// judgement looks for a person's decision about a call with an unknown outcome. It returns a sentence about the
// decision, or nil.
func (r *drive) judgement(ctx context.Context, run event.RunID) (*message.Text, error) {
	if run == "" {
		return nil, nil // the log lost the intent, so it has no run that a person could judge
	}
	e, ok, err := r.Log.Last(ctx, event.Query{Run: run, Types: []event.Type{event.RunResolved}})
	if err != nil || !ok {
		return nil, err
	}
	f, err := fact.Decode[fact.Resolved](e)
	if err != nil {
		return nil, err
	}
	if f.Sent {
		return whySent.With(f.By), nil
	}
	return whyNotSent.With(f.By), nil
}

// failure describes a call without a complete answer.
func failure(res record.Result) error {
	switch {
	case res.Err != nil:
		return res.Err
	case res.Stopped != nil:
		return whyStopped.With(res.Stopped.Reason())
	}
	return whyAgentStop.With(res.StopReason)
}

// decide records a decision without waiting for the disk, and applies it.
func (r *drive) decide(st *StepState, item int, d fact.FlowDecided) {
	d.Step, d.Item, d.Attempt = st.ID, item, st.unit(item).Attempt
	key := event.InteractionID(r.state.InputID(st, item))
	if d.Decision == fact.FlowExpanded {
		key += "/items"
	}
	unless := event.Query{Interaction: key, Types: []event.Type{event.FlowStepDecided}}
	refs := event.Refs{Run: RunID(r.state.ID), Interaction: key}
	if err := r.Log.RecordUnless(unless, event.NewFact(event.FlowStepDecided, "perlica", refs, d)); err != nil {
		r.fail(err)
		return
	}
	if err := r.state.decide(d, time.Now()); err != nil {
		r.fail(err)
		return
	}
	r.show(r.state, st, item)
}

func (r *drive) setPhase(st *StepState, item int, p Phase) {
	r.state.setPhase(st, item, p)
	r.show(r.state, st, item)
}
