package kernel

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/coder/acp-go-sdk"
	"github.com/google/uuid"

	"github.com/perlica/perlica/eventlog"
	"github.com/perlica/perlica/provider"
)

// cancelGrace is how long an agent may take to confirm a cancellation.
const cancelGrace = 15 * time.Second

// Run answers one input with at most one call. If the input's id was called before, no
// call is made and the recorded result is returned.
//
// The error says why the input was not accepted, or that the log could not be written
// before the prompt left; nothing was sent then. Everything that happens after that is in
// the Result, and on the log. When ctx is cancelled the agent is ended; the outcome is on
// record all the same.
func (r *Runner) Run(ctx context.Context, t Turn) (Result, error) {
	if t.Input.ID == "" {
		t.Input.ID = eventlog.InputID(uuid.Must(uuid.NewV7()).String())
	} else if res, ok, err := r.Recorded(ctx, t.Input.ID); ok || err != nil {
		return res, err
	}
	run, err := r.accept(ctx, &t)
	if err != nil {
		return Result{}, err
	}
	defer run.release()
	res, err := run.do(ctx)
	var conflict *eventlog.ConflictError
	if errors.As(err, &conflict) && conflict.Type == eventlog.Requested {
		// Another process was faster with the same input.
		res, ok, err := r.Recorded(ctx, t.Input.ID)
		if err == nil && !ok {
			err = ErrInputRunning
		}
		return res, err
	}
	return res, err
}

// run is one turn on its way.
type run struct {
	r       *Runner
	t       Turn
	refs    eventlog.Refs // without the agent's session
	state   state
	locks   []*fileLock
	created bool // the session is new
	started time.Time

	conn    *provider.Conn
	session *provider.Session
	caps    acp.AgentCapabilities
	client  *client
	call    *provider.Call
	stopped *Stop

	closing    chan struct{} // closed when session/close is over; nil: it was not sent
	closeErr   error         // what came of it, once closing is closed
	closeNoted bool          // it is on record
}

// accept takes the locks of a run: its session's, so that it runs alone there, and its
// own, by whose loss a crash is recognised.
func (r *Runner) accept(ctx context.Context, t *Turn) (*run, error) {
	id := uuid.Must(uuid.NewV7())
	run := &run{r: r, state: state{phase: Accepted}, started: r.opt.Now()}
	if t.Session == "" {
		t.Session = eventlog.SessionID(uuid.Must(uuid.NewV7()).String())
		run.created = true
	}
	run.t = *t
	run.refs = eventlog.Refs{
		Session: t.Session,
		Run:     eventlog.RunID(id.String()),
		Trace:   eventlog.TraceID(fmt.Sprintf("%x", id[:])),
		Input:   t.Input.ID,
	}
	run.call = provider.NewCall(id.String())
	waiting, done := run.untilStopped(ctx)
	lock, err := lockSession(waiting, sessionLockPath(r.opt.Paths.Locks, string(t.Session)), t.Wait)
	done()
	if err != nil {
		if run.stopped != nil {
			err = &StoppedError{*run.stopped}
		}
		return nil, err
	}
	run.locks = append(run.locks, lock)
	lock, err = acquire(runLockPath(r.opt.Paths.Locks, id.String()))
	if err != nil {
		run.release()
		return nil, err
	}
	run.locks = append(run.locks, lock)
	return run, nil
}

func (run *run) release() {
	for _, l := range run.locks {
		l.release()
	}
}

// do is the run, step by step. An error means that nothing was sent.
func (run *run) do(ctx context.Context) (res Result, err error) {
	run.client = newClient(run)
	defer run.client.show.close()
	conn, err := provider.Start(run.t.Agent.Agent, run.connOptions())
	if rerr := run.recordInput(); rerr != nil {
		err = rerr
		if conn != nil {
			conn.Kill()
		}
	}
	if conn != nil {
		run.conn = conn
		run.client.attach(conn)
		defer run.client.detach()
		defer func() {
			run.endAgent(ctx)
			res.Warnings = run.client.takeWarnings()
		}()
	}
	if err == nil {
		err = run.prepare(ctx)
	}
	if err == nil && run.stopped != nil { // a stop that came with the last answer
		err = errStopped(*run.stopped)
	}
	if err == nil {
		err = run.intend(ctx)
	}
	if err != nil {
		return run.failEarly(ctx, err)
	}
	return run.prompt(ctx), nil
}

func (run *run) connOptions() provider.Options {
	a := run.t.Agent
	return provider.Options{
		Recorder: run.client, Client: run.client,
		Dir: run.t.Dir, Environ: run.r.opt.Environ,
		MaxLine: a.MaxLine, ConnectTimeout: a.ConnectTimeout, RequestTimeout: a.RequestTimeout,
		Stderr: func(b []byte) {
			run.r.opt.Trail.Info("agent stderr", "provider", a.ID, "run", string(run.refs.Run), "text", string(b))
		},
	}
}

// recordInput records that the input was accepted. It is written while the agent starts;
// nothing waits for it.
func (run *run) recordInput() error {
	var events []eventlog.Event
	if run.created {
		events = append(events, newSessionFact(run.refs.Session, SessionFacts{Provider: run.t.Agent.ID, Ephemeral: true}))
	}
	in := run.t.Input
	events = append(events, eventlog.NewFact(eventlog.MessageReceived, "user", run.refs, messageReceived{
		Text: in.Text, Attachments: in.Attachments, Source: in.Source, Sender: in.Sender,
		Dir: run.t.Dir, Provider: run.t.Agent.ID,
	}))
	err := run.r.log.Record(events...)
	run.r.log.Hurry()
	return err
}

// prepare brings the agent to the point where it can be prompted.
func (run *run) prepare(ctx context.Context) error {
	ctx, done := run.untilStopped(ctx)
	defer done()
	info, err := run.conn.Initialize(ctx, run.r.opt.Version)
	if err != nil {
		return run.noteTimeout(err)
	}
	run.caps = info.AgentCapabilities
	run.session, err = run.conn.NewSession(ctx, run.t.Dir, run.t.Servers)
	if err != nil {
		return run.noteTimeout(err)
	}
	run.client.setConversation(run.session.ID)
	mode, options, err := run.choose(ctx)
	if err != nil {
		return run.noteTimeout(err)
	}
	return run.r.log.Record(eventlog.NewFact(eventlog.SessionStarted, "perlica", run.client.refs(), sessionStarted{
		Strategy: "fresh", Agent: info.AgentInfo, Capabilities: info.AgentCapabilities, Mode: mode, Options: options,
	}))
}

// untilStopped is ctx, cancelled as well when the turn is stopped; run.stopped then says so.
// It may be read when done, which must be called, has returned.
func (run *run) untilStopped(ctx context.Context) (_ context.Context, done func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if run.stopped != nil {
			cancel(errStopped(*run.stopped))
			return
		}
		select {
		case s := <-run.t.Stop:
			run.stopped = &s
			cancel(errStopped(s))
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		cancel(nil)
		<-ended
	}
}

func errStopped(s Stop) error { return errors.New("stopped before the prompt was sent: " + s.Why) }

func (run *run) noteTimeout(err error) error {
	var e *provider.Error
	if errors.As(err, &e) && e.Type == provider.TypeTimeout {
		fact := eventlog.NewFact(eventlog.RequestTimeout, "perlica", run.client.refs(), requestTimeout{Method: e.Method, After: e.Message})
		return errors.Join(err, run.r.log.Record(fact))
	}
	return err
}

// intend puts the intent on disk. After it the input counts as called.
func (run *run) intend(ctx context.Context) error {
	blocks, cut, err := run.blocks(ctx)
	if err != nil {
		return err
	}
	digest, size := promptDigest(blocks)
	var events []eventlog.Event
	if cut != nil {
		events = append(events, eventlog.NewFact(eventlog.Truncated, "perlica", run.client.refs(), *cut))
	}
	events = append(events, eventlog.NewFact(eventlog.Requested, "perlica", run.client.refs(), requested{
		Provider: run.t.Agent.ID, Agent: run.t.Agent.Command, Digest: digest, Bytes: size, CallIndex: 1,
	}))
	if err := run.state.advance(eventlog.Requested); err != nil {
		return err
	}
	if _, err := run.r.log.Append(ctx, events...); err != nil {
		return err
	}
	run.client.blocks = blocks
	return nil
}

// prompt makes the call and follows it to its outcome.
func (run *run) prompt(ctx context.Context) Result {
	run.client.start(Started{Result: run.result(), Agent: run.agentName(), Mode: run.t.Mode})
	type answer struct {
		provider.Answer
		err error
	}
	answered := make(chan answer, 1)
	if err := run.state.advance(eventlog.RequestSent); err != nil {
		panic(err) // intend has just succeeded
	}
	go func() {
		a, err := run.session.Prompt(run.call, run.client.blocks)
		answered <- answer{a, err}
	}()
	var grace <-chan time.Time
	stop, done := run.t.Stop, ctx.Done()
	for {
		select {
		case a := <-answered:
			return run.finish(a.Answer, a.err)
		case s := <-stop:
			stop = nil
			run.stopped = &s
			grace = time.After(cancelGrace)
			if err := run.cancelTurn(ctx, s); err != nil {
				run.conn.Kill() // a stop that cannot be recorded
			}
		case <-grace:
			run.client.warn("cancel_unconfirmed", "the agent did not confirm the cancellation and was ended")
			run.conn.Kill()
		case <-done:
			done = nil
			s := Stop{By: "user", Why: "ended at once"}
			var cause *StoppedError
			if errors.As(context.Cause(ctx), &cause) {
				s = cause.Stop
			}
			if run.stopped == nil || run.stopped.By != s.By {
				run.stopped = &s
				_ = run.recordStop(ctx, s) // the agent is killed whether this is recorded or not
			}
			run.conn.Kill()
		}
	}
}

// cancelTurn records the stop, asks the agent to cancel, and closes its questions.
func (run *run) cancelTurn(ctx context.Context, s Stop) error {
	if err := run.recordStop(ctx, s); err != nil {
		return err
	}
	run.client.cancel()
	// A deaf agent must not keep us from ending it; the end of the connection ends this.
	run.client.asking.Go(func() { _ = run.session.Cancel() })
	return nil
}

func (run *run) recordStop(ctx context.Context, s Stop) error {
	if err := run.state.advance(eventlog.CancelRequested); err != nil {
		return err
	}
	_, err := run.r.log.Append(context.WithoutCancel(ctx), eventlog.NewFact(eventlog.CancelRequested, s.By, run.client.refs(), s))
	return err
}
