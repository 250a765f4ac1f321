package team

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/interaction"
	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/kernel/agents"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/kernel/project"
	"github.com/perlica/perlica/service/team/hub"
)

// WorkerOptions configures a worker.
type WorkerOptions struct {
	Slots    int               // number of inputs that the worker answers at a time
	Labels   []string          // properties that inputs may require
	Projects map[string]string // directories of the served projects, by name
	Settings map[string]string // settings that override the settings of the projects
	Note     func(string)      // called with a line about each event, by several goroutines
}

// These are the intervals of a worker. No decision depends on them.
const (
	pollEvery  = 500 * time.Millisecond // interval of looks at the queue, while there is nothing to do
	pulseEvery = time.Second            // interval of looks for answers and stops
	lookEvery  = time.Minute            // interval of looks at the worker's own claims
	backoff    = 5 * time.Second        // after a failed call of the hub
	copyPause  = 200 * time.Millisecond // between two batches of the log's copy
	flushLimit = 10 * time.Second       // time limit of the last reports
)

// served is a project that a worker serves.
type served struct {
	p    *project.Project
	r    *kernel.Runner
	done func() error
}

// Worker takes inputs from the hub and lets the kernel answer them.
type Worker struct {
	t      *Team
	opt    WorkerOptions
	me     hub.Worker
	served map[string]served
	copied *hub.Hub // a separate connection, so that a batch of the copy delays no claim
	sender *hub.CopySender
	outbox *outbox
	tasks  sync.WaitGroup
	freed  chan struct{} // capacity 1: a slot is free

	mu         sync.Mutex // guards the fields below
	free       int
	running    map[string]chan fact.Stop             // by input
	questions  map[event.InteractionID]localQuestion // questions of this process
	remembered map[string]hub.Claim                  // by generation: the claim with the highest position
	said       string                                // the last reported error
	unsigned   map[string]bool                       // running inputs with a reported unsigned request to stop
}

// localQuestion is an open question of this process.
type localQuestion struct {
	r     *kernel.Runner
	q     interaction.Question
	shown string // digest of the question on the hub
}

// NewWorker opens the projects that a worker serves. The caller must Close it.
func NewWorker(ctx context.Context, t *Team, opt WorkerOptions) (w *Worker, err error) {
	w = &Worker{
		t: t, opt: opt, served: map[string]served{}, free: opt.Slots, freed: make(chan struct{}, 1),
		running: map[string]chan fact.Stop{}, questions: map[event.InteractionID]localQuestion{},
		remembered: map[string]hub.Claim{}, unsigned: map[string]bool{},
	}
	w.outbox = newOutbox(w.trouble)
	defer func() {
		if err != nil {
			err = errors.Join(err, w.Close())
		}
	}()
	providers := map[string]bool{}
	for name, dir := range opt.Projects {
		p, err := project.ForTeam(dir, t.opt.Environ, opt.Settings, t.State().Name)
		if err != nil {
			return w, fmt.Errorf("the project %s: %w", name, err)
		}
		r, done, err := p.Open(ctx, t.opt.Version)
		if err != nil {
			return w, fmt.Errorf("the project %s: %w", name, err)
		}
		w.served[name] = served{p, r, done}
		for _, l := range p.Resolver().List() {
			providers[l.ID] = providers[l.ID] || l.State == agents.Installed
		}
	}
	maps.DeleteFunc(providers, func(_ string, installed bool) bool { return !installed })
	origin, err := t.Log().Origin(ctx)
	if err != nil {
		return w, err
	}
	if w.copied, err = hub.Open(t.opt.URL); err != nil {
		return w, err
	}
	w.sender = hub.NewCopySender(w.copied, &t.Log().Reader, t.As)
	w.me = hub.Worker{
		Name: t.As, Origin: origin, Slots: opt.Slots, Projects: slices.Sorted(maps.Keys(w.served)),
		Providers: slices.Sorted(maps.Keys(providers)), Labels: append([]string{}, opt.Labels...),
	}
	return w, w.recallPositions(ctx)
}

// rememberClaim keeps the newest claim of a generation. The caller holds mu or is the only user.
func (w *Worker) rememberClaim(c hub.Claim) {
	if c.Position >= w.remembered[c.Generation].Position {
		w.remembered[c.Generation] = c
	}
}

// recallClaims is the number of newest claims that recallPositions reads. Positions rise with each
// claim.
const recallClaims = 100

// recallPositions reads the newest claims from this worker's log.
func (w *Worker) recallPositions(ctx context.Context) error {
	for e, err := range w.t.Log().Events(ctx, event.Query{Types: []event.Type{event.TeamClaimed}, Newest: true,
		Limit: recallClaims}) {
		if err != nil {
			return err
		}
		var c fact.TeamClaimed
		if err := e.Decode(&c); err != nil {
			return err
		}
		w.rememberClaim(hub.Claim{Input: hub.Input{ID: string(e.Input), Generation: c.Generation}, Position: c.Position})
	}
	return nil
}

// Close closes the projects. Run must have returned.
func (w *Worker) Close() (err error) {
	for _, s := range w.served {
		err = errors.Join(err, s.done())
	}
	w.served = nil
	if w.copied != nil {
		err = errors.Join(err, w.copied.Close())
		w.copied = nil
	}
	return err
}

// Run takes inputs until the context "drain" ends, and returns when the taken inputs have ended. When the context
// "hard" ends, their agents end at once. Most errors of the hub do not end Run. A *hub.ForgottenError means that the
// hub has forgotten claims of this worker. A *hub.ForkError or hub.ErrOtherLog means that the hub's copy belongs to
// another log. After these errors Run takes no further inputs. errGone means that an admin has ended this machine's
// membership. The team then learns nothing further about this machine's inputs without an outcome.
func (w *Worker) Run(drain, hard context.Context) error {
	if _, err := w.t.r.Recover(hard); err != nil {
		return err
	}
	if err := w.enrolLog(drain); err != nil {
		return err
	}
	drain, stop := context.WithCancelCause(drain)
	defer stop(nil)
	looking, drained := context.WithCancel(drain)
	pulsing, over := context.WithCancel(hard)
	var looks, others sync.WaitGroup
	looks.Go(func() {
		w.every(looking, lookEvery, func(ctx context.Context) error { return w.findClaims(ctx, hard, stop) })
	})
	others.Go(func() { w.every(pulsing, pulseEvery, func(ctx context.Context) error { return w.pulseHub(ctx, stop) }) })
	others.Go(func() { w.outbox.sendReports(hard) })
	others.Go(func() { w.copyLog(pulsing, stop) })
	err := w.takeInputs(drain, hard, stop)
	drained()
	looks.Wait() // before tasks.Wait, because a look for claims may start a task
	w.tasks.Wait()
	over()
	w.outbox.closeAfter(flushLimit)
	others.Wait()
	if cause := context.Cause(drain); isOther(cause) || errors.Is(cause, errGone) {
		return cmp.Or(err, cause)
	}
	w.lastCopy()
	return err
}

// every calls the function f at once and then repeatedly. It waits longer after an error.
func (w *Worker) every(ctx context.Context, period time.Duration, f func(context.Context) error) {
	for ctx.Err() == nil {
		wait := period
		if err := f(ctx); err != nil && ctx.Err() == nil {
			w.trouble(err)
			wait = backoff
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
	}
}

// trouble reports an error of the hub once. Called with nil, it reports once that the error has ended.
func (w *Worker) trouble(err error) {
	said := ""
	if err != nil {
		said = err.Error()
	}
	w.mu.Lock()
	again := said == w.said
	w.said = said
	w.mu.Unlock()
	switch {
	case again:
	case err == nil:
		w.opt.Note("the hub answers again")
	default:
		w.opt.Note(said)
	}
}

// takeInputs claims inputs while slots are free, until the context "drain" ends.
func (w *Worker) takeInputs(drain, hard context.Context, stop context.CancelCauseFunc) error {
	for drain.Err() == nil {
		wait := pollEvery
		if free := w.room(); free > 0 {
			n, err := w.claimInputs(drain, hard, free)
			var forgotten *hub.ForgottenError
			switch {
			case errors.As(err, &forgotten):
				// Either the hub lost the claims, or it shows none because this machine is no longer a member.
				// checkMembership tells which.
				return cmp.Or(w.checkMembership(hard, stop), err)
			case err != nil && drain.Err() == nil:
				w.trouble(err)
				wait = backoff
			case err == nil:
				w.trouble(nil)
			}
			if n == free {
				continue
			}
		}
		select {
		case <-drain.Done():
		case <-w.freed:
		case <-time.After(wait):
		}
	}
	return nil
}

func (w *Worker) room() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.free
}

// claimInputs claims inputs and begins them.
func (w *Worker) claimInputs(ctx, hard context.Context, most int) (int, error) {
	w.mu.Lock()
	remembered := maps.Clone(w.remembered)
	w.mu.Unlock()
	claims, err := w.t.Hub.Claim(ctx, w.me, most, remembered)
	if err != nil {
		// The hub may have the claim. If it has, findClaims finds it later.
		return 0, err
	}
	for _, c := range claims {
		w.beginTask(hard, c)
	}
	return len(claims), nil
}

// beginTask starts the work on a claim unless this process already works on it. The task occupies a slot even if no
// slot is free.
func (w *Worker) beginTask(hard context.Context, c hub.Claim) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.rememberClaim(c)
	if w.running[c.ID] != nil {
		return
	}
	stop := make(chan fact.Stop, 1)
	w.running[c.ID] = stop
	w.free--
	w.tasks.Go(func() {
		w.workOn(hard, c, stop)
		w.mu.Lock()
		delete(w.running, c.ID)
		delete(w.unsigned, c.ID)
		w.free++
		w.mu.Unlock()
		select {
		case w.freed <- struct{}{}:
		default:
		}
	})
}

// findClaims continues this worker's claims without an outcome. The claiming process has died, or it did not learn the
// result of its transaction. findClaims also pins members and closes the questions of ended runs.
func (w *Worker) findClaims(ctx, hard context.Context, stop context.CancelCauseFunc) error {
	if err := w.checkMembership(ctx, stop); err != nil {
		return err
	}
	open, err := w.t.r.PendingQuestions(ctx)
	if err != nil {
		return err
	}
	ids := []string{}
	for _, q := range open {
		ids = append(ids, string(q.ID))
	}
	if err := w.t.Hub.CloseOthers(ctx, w.me.Name, ids, w.kept(QuestionEnd{Reason: interaction.Crashed})); err != nil {
		return err
	}
	owned, err := w.t.Hub.Owned(ctx, w.me.Name)
	if err != nil {
		return err
	}
	w.mu.Lock()
	owned = slices.DeleteFunc(owned, func(c hub.Claim) bool { return w.running[c.ID] != nil })
	w.mu.Unlock()
	for _, c := range owned {
		// Wait for a free slot, because a long list of claims must not start more tasks than there are slots.
		for w.room() <= 0 {
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(pollEvery):
			}
		}
		w.beginTask(hard, c)
	}
	return nil
}

// checkMembership pins members. It ends Run if this machine is no longer a member.
func (w *Worker) checkMembership(ctx context.Context, stop context.CancelCauseFunc) error {
	err := w.t.refreshMembership(ctx)
	if errors.Is(err, errGone) {
		stop(err)
	}
	return err
}

// pulseHub reports that this worker is alive. It handles answers and stops of members.
func (w *Worker) pulseHub(ctx context.Context, stop context.CancelCauseFunc) error {
	answers, cancels, err := w.t.Hub.Pulse(ctx, w.me)
	if errors.Is(err, hub.ErrNotAllowed) {
		return cmp.Or(w.checkMembership(ctx, stop), err)
	}
	if err != nil {
		return err
	}
	for _, a := range answers {
		w.takeAnswer(ctx, a)
	}
	for _, c := range cancels {
		w.stopInput(c)
	}
	return nil
}
