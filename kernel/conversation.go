package kernel

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/message"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/kernel/filelock"
	"github.com/perlica/perlica/kernel/record"
)

// Conversation is a Perlica session with the keep strategy: one agent process answers all inputs. Each input is one
// session/prompt in the same session of the agent. The Perlica session is locked while the conversation is open.
//
// Several goroutines may call the methods. Inputs run one after another. The caller closes the conversation before the
// Runner.
type Conversation struct {
	r      *Runner
	setup  Setup
	idle   time.Duration
	lock   *filelock.Lock
	turnMu queue // held during a turn and by operations that must not run concurrently with one
	fresh  bool  // true if the session has no earlier turns; guarded by turnMu
	epoch  int64 // the Runner's epoch at the start of the agent; guarded by turnMu

	sessionMu sync.Mutex // held while a new session is recorded; no other lock is taken under it
	created   bool       // true if the session is new and not yet recorded; guarded by sessionMu

	after sync.WaitGroup // the goroutine of releaseRun
	// next is the reservation for the next run, or nil. releaseRun sets it in the background. Other methods call
	// after.Wait before they read it.
	next *reservation

	mu      sync.Mutex // guards the fields below
	agent   *keptAgent // set when the start of the agent begins; nil means that no agent runs or starts
	resting *time.Timer
	rested  time.Time // when the last turn ended
	closed  bool
	lost    func(error) // the function that Lost set

	watches sync.WaitGroup // one goroutine of watchAgent for each agent
}

// ErrConversationClosed means that the conversation was closed.
var ErrConversationClosed = message.New("kernel.conversation-closed", "the conversation is closed")

// Converse opens a conversation in the session that setup names, or in a new session. It does not start the agent: Warm
// or the first input starts it. The agent ends after the time idle without an input. The next input then continues the
// agent's session. If idle is zero, the agent does not end. The parameter "by" is the name of the caller, such as
// "chat". Another process that wants the session gets it in an error.
//
// The error is a *filelock.BusyError, which wraps filelock.ErrBusy, if another process or conversation holds the
// session's lock.
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

// Warm starts the agent and opens the agent's session in the background. If that fails, the next input reports the
// error.
func (c *Conversation) Warm() {
	if !c.Alive() && c.turnMu.TryLock() {
		defer c.turnMu.Unlock()
		_, _ = c.beginAgent() // the next input reports the error
	}
}

// Alive reports whether an agent process runs or starts.
func (c *Conversation) Alive() bool { return c.present() != nil }

// present returns the agent that runs or starts, or nil.
func (c *Conversation) present() *keptAgent {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.agent
}

// Offers returns the agent's offers. ok is false until an agent has opened its session. continued is the way in which
// the agent knows the earlier turns: "resume", "load", or "" for a transcript.
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

// Await waits until the agent has opened its session, so that Offers can return the agent's offers. It starts an agent
// unless a turn is running. The error comes from the agent or from ctx.
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

// RecordSession records the creation of a new session, before any other event of the session. Warm and the first input
// call it, too. A caller that appends another event of the session must call it first.
func (c *Conversation) RecordSession() error {
	c.sessionMu.Lock()
	defer c.sessionMu.Unlock()
	if !c.created {
		return nil
	}
	c.created = false
	return c.r.log.Record(newSessionFact(c.setup.Session, fact.SessionCreated{Provider: c.setup.Agent.ID,
		Ephemeral: true, Conversation: true}))
}

// Run answers one input with at most one call, like Runner.Run, in the conversation's agent session. It ignores
// t.Setup. If ctx ends or the turn is stopped while the input still waits for another turn, nothing is recorded.
func (c *Conversation) Run(ctx context.Context, t Turn) (record.Result, error) {
	if err := c.turnMu.waitForLock(ctx, t.Stop); err != nil {
		return record.Result{}, err
	}
	defer c.turnMu.Unlock()
	if err := errors.Join(c.r.repairLog(ctx), c.forgetAgent(ctx)); err != nil {
		return record.Result{}, err
	}
	t.Setup = c.setup
	return c.r.answerInput(ctx, &t, c)
}

// isClosed reports whether Close was called. While the caller holds turnMu, the result does not change.
func (c *Conversation) isClosed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closed
}

// reservation is the id of a future run and its lock, which is already taken.
type reservation struct {
	run  uuid.UUID
	lock *filelock.Lock
}

// acceptRun creates the run and locks it. The conversation already holds the session's lock, and the caller holds
// turnMu.
func (c *Conversation) acceptRun(ctx context.Context, t *Turn) (*run, error) {
	if c.isClosed() {
		return nil, ErrConversationClosed
	}
	c.after.Wait()
	run := c.r.newRun(*t, c.next)
	c.next = nil
	run.kept, run.created = true, c.fresh
	err := run.unlessStopped(ctx, run.takeLock)
	run.recorded.Store(true) // after this, repair waits for the end of the run
	if err == nil && c.epoch != c.r.epoch.Load() {
		err = logFailed
	}
	if err == nil {
		// The checkpoint of the previous turn may not be written yet. anchorFault waits for all recorded events, so it
		// must come before the events of this turn.
		if subtype, fault := c.r.anchorFault(); fault != nil {
			run.client.warn(subtype, message.Of(fault))
		}
		err = c.RecordSession()
	}
	if err != nil {
		run.client.closeTurn()
		c.releaseRun(run)
		return nil, err
	}
	return run, nil
}

// provideAgent gives the run the running agent, or starts one and waits for it.
func (c *Conversation) provideAgent(ctx context.Context, run *run) error {
	c.fresh = false
	c.dropGone(ctx)
	l, err := c.beginAgent()
	if err == nil {
		err = run.awaitAgent(ctx, l)
	}
	if err != nil {
		run.agent = newAgentSession(c.r, c.setup, run.refs, run.client) // a session without a connection
		return err
	}
	run.agent = l.agentSession
	l.beginTurn(run.client)
	run.client.lifecycle.attachConn(l.conn)
	return nil
}

// takeBackAgent ends the agent's part in the turn. It starts the agent's idle time, or ends an agent that cannot be
// used again.
func (c *Conversation) takeBackAgent(ctx context.Context, run *run) {
	if l := c.present(); l != nil {
		l.finishTurn()
		c.afterTurn(ctx, l)
	}
	run.client.joinGoroutines()
}

// releaseRun frees the run's lock. In the background, it also creates and locks the lock file of the next run.
// Otherwise this work would be a tenth of the time from the next input to its prompt. If it fails here, the next run
// does it.
func (c *Conversation) releaseRun(run *run) {
	run.giveUpLocks((*filelock.Lock).Free) // sweepLocks removes the files; no other run uses these lock files
	c.after.Go(func() {
		run.sweepLocks()
		id := uuid.Must(uuid.NewV7())
		if lock, err := filelock.Reserve(filelock.Run(c.r.opt.Paths.Locks, id.String())); err == nil {
			c.next = &reservation{id, lock}
		}
	})
}

// awaitAgent waits until the agent can be prompted or the turn is stopped.
func (run *run) awaitAgent(ctx context.Context, l *keptAgent) error {
	select {
	case <-l.ready:
		return l.err
	default:
	}
	ctx, done := run.untilStopped(ctx)
	defer done()
	run.r.log.StartFlush() // the input goes to disk while the agent starts
	select {
	case <-l.ready:
		return l.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Close frees the agent's session, ends the agent and unlocks the Perlica session. It waits for a running turn. Later
// calls return ErrConversationClosed.
func (c *Conversation) Close(ctx context.Context) error {
	defer c.watches.Wait() // runs after turnMu is unlocked, because watchAgent locks it
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
		c.dropAgent(ctx, l)
	}
	if c.after.Wait(); c.next != nil {
		c.next.lock.Release()
	}
	c.lock.Release()
	return nil
}

// queue is a mutex. A goroutine that waits for it can give up. It is a channel with capacity one, which is full while
// the mutex is locked.
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

// waitForLock locks the queue. It returns an error if ctx ends or the channel "stop" has a value first. If the queue is
// free, waitForLock does not read this channel. The turn reads it later.
func (q queue) waitForLock(ctx context.Context, stop <-chan fact.Stop) error {
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
