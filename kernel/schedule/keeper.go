package schedule

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/perlica/perlica/eventlog"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/message"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/kernel/filelock"
	"github.com/perlica/perlica/kernel/flow"
)

// lookEvery is the longest time between two looks at the clock. One long timer may fire too late, because a sleeping
// computer stops timers and a person can change the clock.
const lookEvery = time.Minute

// Call is a planned input that is to be answered now.
type Call struct {
	Schedule
	Time  time.Time // the planned time
	Input event.InputID
	// MadeUp means that the time was missed, and that the schedule makes up the latest missed time.
	MadeUp bool
	// Continued means that the flow run of this time has begun in an earlier process.
	Continued bool
}

// Keeper keeps the schedules of a project. Several processes may keep the same schedules.
type Keeper struct {
	Log   *eventlog.Log
	Locks string // the folder of the context's locks
	// Schedules returns the schedules that are configured now. The Keeper calls it at each look, so a changed file
	// takes effect at once.
	Schedules func() ([]Schedule, error)
	// Digest returns the digest of a text. The intent of a call has the same digest.
	Digest func(text string) (string, error)
	// Answer answers the input. An error means that nothing was sent. Calls of different schedules are concurrent. When
	// ctx ends, the Keeper ends, and Answer must return soon.
	Answer func(ctx context.Context, c Call) error
	Now    func() time.Time
	// Show is called for each event that the Keeper records and for each error. Its calls are never concurrent. It may
	// be nil.
	Show func(e event.Event, err error)

	showing sync.Mutex
}

// Due makes the inputs that are due now, and returns when they are answered. The error comes from reading or
// writing the log.
func (k *Keeper) Due(ctx context.Context) error {
	list, err := k.Schedules()
	if err != nil {
		return err
	}
	errs, turn := make([]error, len(list)), make(chan struct{}, 1)
	var wg sync.WaitGroup
	for i, s := range list {
		wg.Go(func() {
			var call *planned
			call, err := k.plan(ctx, s)
			if call != nil {
				err = k.answer(ctx, call, turn)
			}
			if !errors.Is(err, errTaken) {
				errs[i] = err
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// Run keeps the schedules until ctx ends. It then plans nothing new, and returns when all calls have ended.
func (k *Keeper) Run(ctx context.Context) {
	var wg sync.WaitGroup
	defer wg.Wait()
	var mu sync.Mutex
	planning := map[string]bool{} // the schedules with a goroutine in plan
	again, turn := make(chan struct{}, 1), make(chan struct{}, 1)
	for {
		list, states, err := k.read(ctx)
		if err = ignoreEnd(ctx, err); err != nil {
			k.show(event.Event{}, err)
		}
		now := k.now()
		wake := now.Add(lookEvery)
		for _, s := range list {
			mu.Lock()
			busy := planning[s.ID]
			mu.Unlock()
			st := states.Of(s.ID)
			if busy {
				continue
			}
			if s.idle(st, now) {
				if _, due, ok := s.Next(st, now); ok && due.Before(wake) {
					wake = due
				}
				continue
			}
			if next, ok := s.After(now); ok && next.Before(wake) {
				wake = next // another process may take the present input, but the next time must still wake this one
			}
			mu.Lock()
			planning[s.ID] = true
			mu.Unlock()
			wg.Go(func() {
				call, err := k.plan(ctx, s)
				mu.Lock()
				delete(planning, s.ID)
				mu.Unlock()
				if err == nil && call.changes() { // look once more
					select {
					case again <- struct{}{}:
					default:
					}
				}
				if call != nil {
					err = k.answer(ctx, call, turn)
				}
				if err != nil && !errors.Is(err, errTaken) {
					k.show(event.Event{}, err)
				}
			})
		}
		timer := time.NewTimer(max(wake.Sub(now), 0))
		select {
		case <-timer.C:
		case <-again:
		case <-ctx.Done():
			timer.Stop()
			return
		}
		timer.Stop()
	}
}

// read returns the configured schedules and their states.
func (k *Keeper) read(ctx context.Context) ([]Schedule, stateSet, error) {
	list, err := k.Schedules()
	if err != nil {
		return nil, stateSet{}, err
	}
	ids := make([]string, len(list))
	for i, s := range list {
		ids[i] = s.ID
	}
	states, err := readStates(ctx, k.Log, ids...)
	if err != nil {
		return nil, states, err
	}
	return list, states, nil
}

// now returns the time of the clock on the wall. A monotonic clock stands still while a computer sleeps.
func (k *Keeper) now() time.Time { return k.Now().Round(0) }

// planned is a planned input together with the lock of its schedule.
type planned struct {
	Call
	lock *filelock.Lock
}

// changes reports whether the schedule's state may have changed, so that the keeper must look at it again at once.
// It returns false for a continued flow run, because this flow run may end at once without any change.
func (p *planned) changes() bool { return p == nil || !p.Continued }

var (
	// errRunning means that an input of the schedule is running and that the next one has to wait.
	errRunning = errors.New("an input of the schedule is running")
	// errTaken means that another process has just planned the due input and is about to call it.
	errTaken = errors.New("another process has planned the input")
)

// plan records the events that follow for a schedule now, and returns the input that is due, or nil. It waits for the
// end of a running input if the schedule says so. The error may be errTaken.
func (k *Keeper) plan(ctx context.Context, s Schedule) (*planned, error) {
	for since := k.now(); ; {
		call, err := k.planAlone(ctx, s, since)
		var conflict *eventlog.ConflictError
		switch {
		case errors.As(err, &conflict): // read the log again: another process has just recorded an event
		case errors.Is(err, errRunning):
			err = filelock.Poll(ctx, true, func() error {
				if held, err := filelock.Held(filelock.Schedule(k.Locks, s.ID)); err != nil || !held {
					return err
				}
				return errRunning
			}, errRunning)
			if err != nil {
				return nil, ignoreEnd(ctx, err)
			}
		default:
			return call, ignoreEnd(ctx, err)
		}
	}
}

// ignoreEnd returns nil if ctx has ended, because the Keeper then stops without an error.
func ignoreEnd(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// planAlone calls tryPlan while no other Keeper plans for this schedule. So if tryPlan finds the schedule's lock held,
// the holder has already planned an input.
func (k *Keeper) planAlone(ctx context.Context, s Schedule, since time.Time) (call *planned, err error) {
	var alone *filelock.Lock
	err = filelock.Poll(ctx, true, func() (err error) {
		alone, err = filelock.Acquire(filelock.SchedulePlan(k.Locks, s.ID))
		return err
	}, filelock.ErrHeld)
	if err != nil {
		return nil, err
	}
	defer alone.Release()
	return k.tryPlan(ctx, s, since)
}

// tryPlan works like plan, but does not wait. If an input of the schedule is running and the schedule waits for its
// end, the error is errRunning. If the log has newer events than tryPlan has read, the error is a
// *eventlog.ConflictError.
func (k *Keeper) tryPlan(ctx context.Context, s Schedule, since time.Time) (*planned, error) {
	states, d, err := k.decide(ctx, s, since)
	open, unfinished := states.Of(s.ID).Open, !s.unfinished(states.Of(s.ID)).IsZero()
	if err != nil || d.Due.IsZero() && open == "" && !unfinished {
		return nil, errors.Join(err, k.record(ctx, states, d))
	}
	lock, err := filelock.Acquire(filelock.Schedule(k.Locks, s.ID))
	switch {
	case errors.Is(err, filelock.ErrHeld) && (open != "" || d == (Decision{})):
		return nil, errTaken
	case errors.Is(err, filelock.ErrHeld) && d.Due.IsZero():
		return nil, k.record(ctx, states, d)
	case errors.Is(err, filelock.ErrHeld) && s.Overlap == "wait":
		return nil, errRunning
	case errors.Is(err, filelock.ErrHeld):
		return nil, k.record(ctx, states, s.leaveOut(d, fact.MissedRunning))
	case err != nil:
		return nil, err
	}
	call, err := k.planLocked(ctx, s, since)
	if call == nil {
		lock.Release()
		return nil, err
	}
	return &planned{*call, lock}, nil
}

// decide reads the states and returns the decision for a schedule.
func (k *Keeper) decide(ctx context.Context, s Schedule, since time.Time) (stateSet, Decision, error) {
	states, err := readStates(ctx, k.Log, s.ID)
	if err != nil {
		return states, Decision{}, err
	}
	return states, s.Decide(states.Of(s.ID), since, k.now()), nil
}

// planLocked decides again and records the plan of the due input. The caller holds the schedule's lock, so that no
// input of the schedule is running. planLocked returns nil if no input is due, or if the due one was called before. If
// the flow run of an earlier time has not ended, planLocked returns that flow run, and the due time overlaps with it.
func (k *Keeper) planLocked(ctx context.Context, s Schedule, since time.Time) (*Call, error) {
	states, d, err := k.decide(ctx, s, since)
	if at := s.unfinished(states.Of(s.ID)); err == nil && !at.IsZero() {
		switch {
		case !d.Due.IsZero() && s.Overlap == "wait":
			d = Decision{} // decide about this time when the flow run has ended
		case !d.Due.IsZero():
			d = s.leaveOut(d, fact.MissedRunning)
		}
		if err = k.record(ctx, states, d); err != nil {
			return nil, err
		}
		return &Call{Schedule: s, Time: at, Input: s.Input(at), Continued: true}, nil
	}
	if err != nil || d.Due.IsZero() {
		return nil, errors.Join(err, k.record(ctx, states, d))
	}
	call := &Call{Schedule: s, Time: d.Due, Input: s.Input(d.Due), MadeUp: d.MadeUp}
	called, err := k.called(ctx, call)
	if called || errors.As(err, new(*eventlog.LostIntentError)) {
		return nil, k.record(ctx, states, s.leaveOut(d, fact.MissedCalled))
	}
	plan := fact.SchedulePlanned{Schedule: s.ID, Time: d.Due.UTC(), Flow: s.Flow, Provider: s.Provider,
		Permissions: s.Permissions, Rule: s.Rule()}
	if err == nil && s.Flow == "" {
		plan.Digest, err = k.Digest(s.Text)
	}
	if err != nil {
		return nil, err
	}
	err = k.record(ctx, states, d, event.NewFact(event.SchedulePlanned, "perlica", event.Refs{Input: call.Input}, plan))
	if err != nil {
		return nil, err
	}
	return call, nil
}

// called reports whether the log has the intent of an input, or the start of a flow run.
func (k *Keeper) called(ctx context.Context, c *Call) (called bool, err error) {
	if c.Flow != "" {
		_, called, err = k.Log.Last(ctx, event.Query{Run: flow.RunID(string(c.Input)),
			Types: []event.Type{event.FlowStarted}})
		return called, err
	}
	_, called, err = k.Log.Intent(ctx, c.Input)
	return called, err
}

// record appends the events of a decision and further events, unless the log has a newer event about a schedule.
func (k *Keeper) record(ctx context.Context, states stateSet, d Decision, further ...event.Event) error {
	var events []event.Event
	if d.Start != nil {
		events = append(events, event.NewFact(event.ScheduleStarted, "perlica", event.Refs{}, d.Start))
	}
	if d.Missed != nil {
		events = append(events, event.NewFact(event.ScheduleMissed, "perlica", event.Refs{}, d.Missed))
	}
	if events = append(events, further...); len(events) == 0 {
		return nil
	}
	_, err := k.Log.AppendUnless(ctx, event.Query{Types: types, After: states.newest}, events...)
	if err == nil {
		for _, e := range events {
			k.show(e, nil)
		}
	}
	return err
}

// answer answers a planned input and releases the lock of its schedule. If Answer refuses the input or a step of its
// flow run, answer records a missed time. The schedule then leaves the input to a person.
//
// The inputs for missed times come one after another: such an input waits until turn accepts a value.
func (k *Keeper) answer(ctx context.Context, p *planned, turn chan struct{}) error {
	defer p.lock.Release()
	if p.MadeUp {
		select {
		case turn <- struct{}{}:
			defer func() { <-turn }()
		case <-ctx.Done(): // the input stays planned, and the next Keeper answers it
			return nil
		}
	}
	refused := k.Answer(ctx, p.Call)
	if refused == nil {
		return nil
	}
	why := fact.MissedRefused
	if p.Flow != "" {
		begun, err := k.called(context.WithoutCancel(ctx), &p.Call)
		if err != nil {
			return errors.Join(refused, err)
		}
		if begun {
			why = fact.MissedStopped
		}
	}
	d := p.leaveOut(Decision{Due: p.Time}, why)
	said := message.Of(refused)
	d.Missed.Error, d.Missed.Coded = said.Text, said.Coded
	e := event.NewFact(event.ScheduleMissed, "perlica", event.Refs{Input: p.Input}, d.Missed)
	if _, err := k.Log.Append(context.WithoutCancel(ctx), e); err != nil {
		return errors.Join(refused, err)
	}
	k.show(e, nil)
	return nil
}

// show passes an event or an error to Show.
func (k *Keeper) show(e event.Event, err error) {
	k.showing.Lock()
	defer k.showing.Unlock()
	if k.Show != nil {
		k.Show(e, err)
	}
}

// RunNow answers an input of the schedule at once, because a person wants it. Its time is the present one, and the
// planned times stay the same. The error is filelock.ErrBusy if an input of the schedule is running. Otherwise it
// comes from Answer.
func (k *Keeper) RunNow(ctx context.Context, s Schedule) error {
	lock, err := filelock.Acquire(filelock.Schedule(k.Locks, s.ID))
	if errors.Is(err, filelock.ErrHeld) {
		return fmt.Errorf("schedule %s: %w", s.ID, filelock.ErrBusy)
	}
	if err != nil {
		return err
	}
	defer lock.Release()
	now := k.now()
	return k.Answer(ctx, Call{Schedule: s, Time: now, Input: s.Input(now)})
}
