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

// WorkerOptions say what a worker takes.
type WorkerOptions struct {
	Slots    int               // how many inputs it answers at a time
	Labels   []string          // what it has that inputs may want
	Projects map[string]string // the directories of the projects that it serves, by name
	Note     func(string)      // is told what happens, a line each; by several goroutines
}

// Times of a worker. None of them decides anything.
const (
	pollEvery  = 500 * time.Millisecond // the queue, while there is nothing to do
	pulseEvery = time.Second            // answers, and stops
	lookEvery  = time.Minute            // its own claims
	backoff    = 5 * time.Second        // after the hub could not be reached
	copyPause  = 200 * time.Millisecond // between two stretches of the log's copy
	flushLimit = 10 * time.Second       // for what the hub is to know, at the end
)

// served is a project that a worker serves.
type served struct {
	p    *project.Project
	r    *kernel.Runner
	done func() error
}

// Worker takes inputs from the hub and has them answered.
type Worker struct {
	t      *Team
	opt    WorkerOptions
	me     hub.Worker
	served map[string]served
	copied *hub.Hub // a connection for the log's copy: a stretch of it keeps no claim waiting
	sender *hub.CopySender
	outbox *outbox
	tasks  sync.WaitGroup
	freed  chan struct{} // capacity 1: a slot is free

	mu         sync.Mutex // guards what follows
	free       int
	running    map[string]chan kernel.Stop   // by input
	asked      map[event.InteractionID]asked // questions of this process
	remembered map[string]hub.Claim          // the highest position of each generation
	said       string                        // the last trouble that was told
	unsigned   map[string]bool               // inputs under way of which was told that a wish to stop them is not signed
}

// asked is a question that is open here.
type asked struct {
	r     *kernel.Runner
	q     interaction.Question
	shown string // the digest of what the hub got of it
}

// NewWorker opens the projects that a worker serves. The caller must Close it.
func NewWorker(ctx context.Context, t *Team, opt WorkerOptions) (w *Worker, err error) {
	w = &Worker{
		t: t, opt: opt, served: map[string]served{}, free: opt.Slots, freed: make(chan struct{}, 1),
		running: map[string]chan kernel.Stop{}, asked: map[event.InteractionID]asked{}, remembered: map[string]hub.Claim{}, unsigned: map[string]bool{},
	}
	w.outbox = newOutbox(w.trouble)
	defer func() {
		if err != nil {
			err = errors.Join(err, w.Close())
		}
	}()
	providers := map[string]bool{}
	for name, dir := range opt.Projects {
		p, err := project.ForTeam(dir, t.opt.Environ, nil, t.State().Name)
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
	return w, w.recall(ctx)
}

// remember keeps the newest claim of a generation. The caller holds mu, or is alone.
func (w *Worker) remember(c hub.Claim) {
	if c.Position >= w.remembered[c.Generation].Position {
		w.remembered[c.Generation] = c
	}
}

// recallClaims is how many of the newest claims tell the positions that are remembered: they rise with each claim.
const recallClaims = 100

// recall reads what this worker's log has of the hub.
func (w *Worker) recall(ctx context.Context) error {
	for e, err := range w.t.Log().Events(ctx, event.Query{Types: []event.Type{event.TeamClaimed}, Newest: true, Limit: recallClaims}) {
		if err != nil {
			return err
		}
		var c fact.TeamClaimed
		if err := e.Decode(&c); err != nil {
			return err
		}
		w.remember(hub.Claim{Input: hub.Input{ID: string(e.Input), Generation: c.Generation}, Position: c.Position})
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

// Run takes inputs until drain ends, and returns when those that it has taken have ended; with hard their agents
// are ended at once. It goes on whatever happens to the hub, but for a *hub.ForgottenError, of a hub that forgot
// what this worker knows, and a *hub.ForkError or hub.ErrOtherLog, of one that has a copy of another log than
// this worker's: then nothing more is taken. With ErrGone an admin has ended this machine's membership; of what it owned and
// has no outcome on the hub the team hears nothing more.
func (w *Worker) Run(drain, hard context.Context) error {
	if _, err := w.t.r.Recover(hard); err != nil {
		return err
	}
	if err := w.enrol(drain); err != nil {
		return err
	}
	drain, stop := context.WithCancelCause(drain)
	defer stop(nil)
	looking, drained := context.WithCancel(drain)
	pulsing, over := context.WithCancel(hard)
	var looks, others sync.WaitGroup
	looks.Go(func() {
		w.every(looking, lookEvery, func(ctx context.Context) error { return w.look(ctx, hard, stop) })
	})
	others.Go(func() { w.every(pulsing, pulseEvery, func(ctx context.Context) error { return w.pulse(ctx, stop) }) })
	others.Go(func() { w.outbox.run(hard) })
	others.Go(func() { w.copy(pulsing, stop) })
	err := w.take(drain, hard, stop)
	drained()
	looks.Wait() // it begins tasks
	w.tasks.Wait()
	over()
	w.outbox.close(flushLimit)
	others.Wait()
	if cause := context.Cause(drain); isOther(cause) || errors.Is(cause, ErrGone) {
		return cmp.Or(err, cause)
	}
	w.lastCopy()
	return err
}

// every calls f at once and again and again; after an error less often.
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

// trouble says once that the hub cannot be worked with, and with nil that it can again.
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

// take claims inputs while there is room, until drain ends.
func (w *Worker) take(drain, hard context.Context, stop context.CancelCauseFunc) error {
	for drain.Err() == nil {
		wait := pollEvery
		if free := w.room(); free > 0 {
			n, err := w.claim(drain, hard, free)
			var forgotten *hub.ForgottenError
			switch {
			case errors.As(err, &forgotten): // or the claims are not shown to who is no member any more
				return cmp.Or(w.stays(hard, stop), err)
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

// claim takes inputs and begins them.
func (w *Worker) claim(ctx, hard context.Context, most int) (int, error) {
	w.mu.Lock()
	remembered := maps.Clone(w.remembered)
	w.mu.Unlock()
	claims, err := w.t.Hub.Claim(ctx, w.me, most, remembered)
	if err != nil {
		return 0, err // of unknown fate: look finds what was taken
	}
	for _, c := range claims {
		w.begin(hard, c)
	}
	return len(claims), nil
}

// begin has a claim worked on, unless this process does so already. It takes a slot, also where none is free.
func (w *Worker) begin(hard context.Context, c hub.Claim) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.remember(c)
	if w.running[c.ID] != nil {
		return
	}
	stop := make(chan kernel.Stop, 1)
	w.running[c.ID] = stop
	w.free--
	w.tasks.Go(func() {
		w.work(hard, c, stop)
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

// look goes on with claims of this worker that have no outcome: those that were taken by a process that died, or
// by a transaction whose end was not heard of. It also pins members, and closes questions whose run is gone.
func (w *Worker) look(ctx, hard context.Context, stop context.CancelCauseFunc) error {
	if err := w.stays(ctx, stop); err != nil {
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
		for w.room() <= 0 { // not more at once than it may
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(pollEvery):
			}
		}
		w.begin(hard, c)
	}
	return nil
}

// stays pins members, and has Run end where this machine is none any more.
func (w *Worker) stays(ctx context.Context, stop context.CancelCauseFunc) error {
	err := w.t.stays(ctx)
	if errors.Is(err, ErrGone) {
		stop(err)
	}
	return err
}

// pulse says that this worker lives, and acts upon answers and stops of members.
func (w *Worker) pulse(ctx context.Context, stop context.CancelCauseFunc) error {
	answers, cancels, err := w.t.Hub.Pulse(ctx, w.me)
	if errors.Is(err, hub.ErrNotAllowed) {
		return cmp.Or(w.stays(ctx, stop), err)
	}
	if err != nil {
		return err
	}
	for _, a := range answers {
		w.answer(ctx, a)
	}
	for _, c := range cancels {
		w.stop(c)
	}
	return nil
}
