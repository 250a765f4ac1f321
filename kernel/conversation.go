package kernel

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/kernel/filelock"
)

// Conversation is one Perlica session with an agent that lives on between its inputs: the
// keep strategy. Each input is one session/prompt in the living agent session. The session is
// locked as long as the conversation is open.
//
// Its methods may be called from several goroutines; inputs wait for each other. The caller
// must Close it, before the Runner.
type Conversation struct {
	r       *Runner
	setup   Setup
	idle    time.Duration
	lock    *filelock.Lock
	turnMu  queue // held by a turn, and by what must not meet one
	created bool  // the session is new and not on record yet; guarded by turnMu
	fresh   bool  // the session has no earlier turns; guarded by turnMu
	epoch   int64 // of the Runner, in which the agent was started; guarded by turnMu

	after sync.WaitGroup // what a turn leaves to be done when it has returned
	next  *reservation   // of the next run, if there is one; guarded by turnMu, and written behind

	mu      sync.Mutex // guards what follows
	agent   *keptAgent // the agent's, from the beginning of its start; nil: there is none
	resting *time.Timer
	rested  time.Time // when the last turn ended
	closed  bool
	lost    func(error) // see Lost

	watches sync.WaitGroup // one for each agent that has opened its session
}

// ErrConversationClosed says that the conversation was closed.
var ErrConversationClosed = errors.New("the conversation is closed")

// Converse opens a conversation in the session that setup names, or in a new one. No agent is
// started yet: Warm does that ahead of the first input. An agent that has been idle for the
// given time is ended, and continued with the next input; zero keeps it for ever. by says who
// holds the session to those who are refused ("chat").
//
// It fails with a *filelock.BusyError, which is filelock.ErrBusy, if another process or conversation holds the
// session.
func (r *Runner) Converse(ctx context.Context, setup Setup, idle time.Duration, by string) (*Conversation, error) {
	c := &Conversation{r: r, setup: setup, idle: idle, turnMu: make(queue, 1), epoch: r.epoch.Load()}
	if setup.Session == "" {
		c.setup.Session = newSessionID()
		c.created, c.fresh = true, true
	}
	lock, err := filelock.AcquireSession(ctx, filelock.Session(r.opt.Paths.Locks, string(c.setup.Session)), false)
	if err != nil {
		return nil, err
	}
	lock.Sign(by, r.opt.Now())
	if err := r.questions.Reachable(); err != nil {
		r.opt.Trail.Warn("other processes cannot reach this one", "error", err.Error())
	}
	c.lock = lock
	return c, nil
}

// Session returns the id of the conversation's session.
func (c *Conversation) Session() event.SessionID { return c.setup.Session }

// Provider returns the id of the conversation's agent.
func (c *Conversation) Provider() string { return c.setup.Agent.ID }

// Warm starts the agent and opens its session, in the background. What fails is said by the
// next input.
func (c *Conversation) Warm() {
	if !c.Alive() && c.turnMu.TryLock() {
		defer c.turnMu.Unlock()
		_, _ = c.begin() // the next input says it
	}
}

// Alive reports whether an agent runs, or is being started.
func (c *Conversation) Alive() bool { return c.present() != nil }

// present is the agent that runs or is being started; nil: there is none.
func (c *Conversation) present() *keptAgent {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.agent
}

// Offers returns what the agent offers; ok is false while no agent has opened its session.
// Continued says how the agent came to know the earlier turns: "resume", "load", or "" for a
// transcript.
func (c *Conversation) Offers() (o Offers, continued string, ok bool) {
	l := c.present()
	if l == nil {
		return Offers{}, "", false
	}
	select {
	case <-l.ready:
	default:
		return Offers{}, "", false
	}
	if l.err != nil {
		return Offers{}, "", false
	}
	return l.offers(), string(l.how), true
}

// Await waits until the agent has opened its session, so that Offers has what it offers. Where there
// is none it is started, unless a turn is under way. The error says why there is none, or is ctx's.
func (c *Conversation) Await(ctx context.Context) error {
	c.Warm()
	l := c.present()
	if l == nil {
		return ErrConversationClosed
	}
	select {
	case <-l.ready:
		return l.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// record puts a new session on record before anything else of it.
func (c *Conversation) record() error {
	if !c.created {
		return nil
	}
	c.created = false
	return c.r.log.Record(newSessionFact(c.setup.Session, fact.SessionCreated{Provider: c.setup.Agent.ID, Ephemeral: true, Conversation: true}))
}

// Run answers one input with at most one call in the living agent session, as Runner.Run does
// in one of its own. Of the turn's Setup nothing is used. An input that waits for another is
// given up when ctx is done or the turn is stopped; nothing of it is on record then.
func (c *Conversation) Run(ctx context.Context, t Turn) (Result, error) {
	if err := c.turnMu.wait(ctx, t.Stop); err != nil {
		return Result{}, err
	}
	defer c.turnMu.Unlock()
	if err := errors.Join(c.r.repair(ctx), c.forget(ctx)); err != nil {
		return Result{}, err
	}
	t.Setup = c.setup
	return c.r.answer(ctx, &t, c)
}

// isClosed reports whether Close was called. It stays as it is while the caller holds turnMu.
func (c *Conversation) isClosed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closed
}

// reservation is the id and the lock of a run that is yet to come.
type reservation struct {
	run  uuid.UUID
	lock *filelock.Lock
}

// accept takes the run's own lock; the conversation holds that of the session. The caller holds turnMu.
func (c *Conversation) accept(ctx context.Context, t *Turn) (*run, error) {
	if c.isClosed() {
		return nil, ErrConversationClosed
	}
	c.after.Wait()
	run := c.r.newRun(*t, c.next)
	c.next = nil
	run.kept, run.created = true, c.fresh
	err := run.unlessStopped(ctx, run.lock)
	run.recorded.Store(true) // from here on repair waits for the end of the run
	if err == nil && c.epoch != c.r.epoch.Load() {
		err = errors.New("the event log failed while the input waited; nothing was sent")
	}
	if err == nil {
		// The turn before did not wait for its checkpoint. This waits for all events so far, and comes before new ones.
		if subtype, fault := c.r.anchorFault(); fault != nil {
			run.client.warn(subtype, fault.Error())
		}
		err = c.record()
	}
	if err != nil {
		run.client.close()
		c.release(run)
		return nil, err
	}
	return run, nil
}

// provide waits for the living agent, or for a new one.
func (c *Conversation) provide(ctx context.Context, run *run) error {
	c.fresh = false
	c.dropGone(ctx)
	l, err := c.begin()
	if err == nil {
		err = run.await(ctx, l)
	}
	if err != nil {
		run.agent = newAgentSession(c.r, c.setup, run.refs, run.client) // of which nothing came
		return err
	}
	run.agent = l.agentSession
	l.begin(run.client)
	run.client.lifecycle.attach(l.conn)
	return nil
}

// takeBack lets the agent rest, or ends it if it is of no more use.
func (c *Conversation) takeBack(ctx context.Context, run *run) {
	if l := c.present(); l != nil {
		l.finish()
		c.afterTurn(ctx, l)
	}
	run.client.detach()
}

// release frees the run's lock, and prepares that of the next run in the background: it is a tenth of the
// time that a turn takes from its input to its prompt. If it cannot be had, the next run says so.
func (c *Conversation) release(run *run) {
	run.free()
	c.after.Go(func() {
		run.sweep()
		id := uuid.Must(uuid.NewV7())
		if lock, err := filelock.Reserve(filelock.Run(c.r.opt.Paths.Locks, id.String())); err == nil {
			c.next = &reservation{id, lock}
		}
	})
}

// await waits until the agent can be prompted, or the turn is stopped.
func (run *run) await(ctx context.Context, l *keptAgent) error {
	select {
	case <-l.ready:
		return l.err
	default:
	}
	ctx, done := run.untilStopped(ctx)
	defer done()
	run.r.log.StartFlush() // the input is written while the agent starts
	select {
	case <-l.ready:
		return l.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Close frees the agent's session, ends the agent and gives up the session. It waits for a
// turn that is under way. Later calls return ErrConversationClosed.
func (c *Conversation) Close(ctx context.Context) error {
	defer c.watches.Wait() // they wait for turnMu
	c.turnMu.Lock()
	defer c.turnMu.Unlock()
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return ErrConversationClosed
	}
	c.closed = true
	l := c.agent
	if c.resting != nil {
		c.resting.Stop()
	}
	c.mu.Unlock()
	if l != nil {
		l.cancel()
		<-l.ready
		if l.err == nil {
			l.beginClose()
		}
		c.drop(ctx, l)
	}
	if c.after.Wait(); c.next != nil {
		c.next.lock.Release()
	}
	c.lock.Release()
	return nil
}

// queue is a mutex whose waiters can leave. It has a capacity of one, and is full while
// somebody holds it.
type queue chan struct{}

func (q queue) Lock()   { q <- struct{}{} }
func (q queue) Unlock() { <-q }

func (q queue) TryLock() bool {
	select {
	case q <- struct{}{}:
		return true
	default:
		return false
	}
}

// wait is Lock until ctx is done or stop says so. Without a wait, stop is not looked at: what
// comes of a stop is then for the turn to say.
func (q queue) wait(ctx context.Context, stop <-chan Stop) error {
	if q.TryLock() {
		return nil
	}
	select {
	case q <- struct{}{}:
		return nil
	case s := <-stop:
		return &StoppedError{s}
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
