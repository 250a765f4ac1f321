package kernel

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/perlica/perlica/eventlog"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/kernel/budget"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/kernel/filelock"
	"github.com/perlica/perlica/kernel/record"
	"github.com/perlica/perlica/provider"
)

// cancelGrace is the time that an agent has to confirm a cancellation.
const cancelGrace = 15 * time.Second

// Run answers one input with at most one call. It uses an agent process that lives only for this call. If the input's
// id was called before, Run makes no call and returns the recorded result. If that call had another text or other
// attachments, the error is an *InputConflictError.
//
// Any other error means that the input was not accepted, or that the log could not be written before the prompt. In
// both cases nothing was sent. Later events are in the Result and on the log. If ctx is cancelled, Run ends the agent
// and still records the outcome.
func (r *Runner) Run(ctx context.Context, t Turn) (record.Result, error) {
	if err := r.repairLog(ctx); err != nil {
		return record.Result{}, err
	}
	return r.answerInput(ctx, &t, freshAgent{r})
}

// An agentSource provides the agent of a run. freshAgent starts an agent for each run. A Conversation keeps one alive.
// An Attached has an agent that an editor drives.
type agentSource interface {
	// acceptRun returns a new run that has taken its locks. The caller must call releaseRun.
	acceptRun(context.Context, *Turn) (*run, error)
	// provideAgent sets run.agent. If the error is nil, the agent can be prompted.
	provideAgent(context.Context, *run) error
	// takeBackAgent ends the run's use of the agent, after the outcome.
	takeBackAgent(context.Context, *run)
	// releaseRun releases the locks.
	releaseRun(*run)
}

// answerInput answers one input, with any kind of agent. The circled numbers are the durable points in ARCHITECTURE.md,
// section 2. recordAnswer and failEarly record the outcome.
func (r *Runner) answerInput(ctx context.Context, t *Turn, source agentSource) (record.Result, error) {
	if err := t.Input.CheckID(); err != nil {
		return record.Result{}, err
	}
	// An id is called at most once, so a repeated input gets the recorded result.
	if t.Input.ID == "" {
		t.Input.ID = event.InputID(uuid.Must(uuid.NewV7()).String())
	} else if res, ok, err := r.replayInput(ctx, t.Input); ok || err != nil {
		return res, err
	}

	// The session's lock excludes other runs. When the run's own lock becomes free without an outcome, other processes
	// know that this process crashed.
	run, err := source.acceptRun(ctx, t)
	if err != nil {
		return record.Result{}, err
	}
	defer source.releaseRun(run)
	defer run.client.closeTurn()

	// The input goes to disk while the agent starts. If the process dies here, nothing was sent.
	if err := run.recordInput(); err != nil {
		return record.Result{}, err
	}
	afterTurn := r.observeTree(run)
	defer afterTurn()
	// A budget that is used up refuses the call before the agent is started. Step ① checks the budgets again. This check
	// needs the lock, too, because many processes would otherwise wait too long for SQLite's lock of the view.
	_, release, err := run.reserveCall(ctx)
	switch {
	case err == nil:
		release()
	case run.stopped == nil:
		return record.Result{}, err
	}
	err = source.provideAgent(ctx, run) // a stopped run fails there

	// ① The intent is synced, in the log and in the .intents file. If the process dies after that, recovery finds an
	// intent without an outcome.
	if err == nil {
		err = run.recordIntent(ctx)
	}
	var res record.Result
	if err == nil {
		// The connection records the prompt and then writes it. Until the agent answers, the goroutines of the
		// connection and of the client record all events. They record ② each line and ④ each question before it is
		// shown. They record ③ each decision and ⑤ each answer before it is sent.
		answer, promptErr := run.promptAgent(ctx)
		// ⑥ The outcome is synced. In a fresh run the checkpoint is synced with it. From now on the input has its
		// result.
		res = run.recordAnswer(answer, promptErr)
	} else {
		res, err = run.failEarly(ctx, err)
	}
	// ⑦ The agent's process ends, unless it is kept. The checkpoint is appended to the anchor.
	source.takeBackAgent(ctx, run)

	var conflict *eventlog.ConflictError
	if errors.As(err, &conflict) && conflict.Type == event.Requested {
		return r.otherResult(ctx, t.Input)
	}
	if err == nil {
		res.Warnings = run.client.sums.listWarnings()
	}
	return res, err
}

// otherResult returns the result of an input that another process has just called.
func (r *Runner) otherResult(ctx context.Context, in Input) (record.Result, error) {
	res, ok, err := r.replayInput(ctx, in)
	if err == nil && !ok {
		err = ErrInputRunning
	}
	return res, err
}

// run is one turn, from its input to its outcome.
type run struct {
	r *Runner
	t Turn
	// refs has the ids for the run's events, such as the ids of the run and the session. The id of the agent's own
	// session comes later.
	refs  event.Refs
	state state
	// own is the run's lock if a conversation has reserved it. If own is nil, takeLock creates the lock.
	own     *filelock.Lock
	locks   []*filelock.Lock
	created bool // true if the session is new and has no earlier turns
	kept    bool // true if the agent's session continues after the run
	started time.Time

	recorded atomic.Bool   // true if at least one event of the run is recorded
	released chan struct{} // closed when the locks are released

	clientPrompt *ClientPrompt // the prompt of the agent's own client, or nil without such a client
	agent        *agentSession
	client       *client
	call         *provider.Call
	promptSent   provider.Prompt // set by recordIntent
	stopped      *fact.Stop
	stopRecorded bool // true if the stop in stopped is recorded
	// remoteStop receives a stop that another process has recorded. Its capacity is 1.
	remoteStop chan fact.Stop
	budget     *budget.Check  // the budgets that the call was checked against; nil without a budget
	overBudget chan fact.Stop // receives a stop by a budget; nil unless a budget may stop the call
	// contextBefore is the number of tokens in the agent's context before the call. It is nil before the first report.
	contextBefore *int
}

func newSessionID() event.SessionID {
	return event.SessionID(uuid.Must(uuid.NewV7()).String())
}

// newRun returns a new run. If reserved is not nil, the run uses the reserved id and lock.
func (r *Runner) newRun(t Turn, reserved *reservation) *run {
	if reserved == nil {
		reserved = &reservation{run: uuid.Must(uuid.NewV7())}
	}
	id := reserved.run
	run := &run{
		own:        reserved.lock,
		remoteStop: make(chan fact.Stop, 1), released: make(chan struct{}),
		r: r, t: t, state: state{phase: phaseAccepted}, started: r.opt.Now(),
		call: provider.NewCall(id.String()),
		refs: event.Refs{
			Session: t.Session,
			Run:     event.RunID(id.String()),
			Trace:   event.TraceID(fmt.Sprintf("%x", id[:])),
			Input:   t.Input.ID,
		},
	}
	run.client = newClient(run)
	r.enterRun(run)
	return run
}

// takeLock takes the run's own lock. From then on, no pruning can start until the run ends.
func (run *run) takeLock(ctx context.Context) error {
	dir := run.r.opt.Paths.Locks
	own, err := run.own, error(nil)
	if own != nil {
		own, err = own.Take()
	} else {
		own, err = filelock.Acquire(filelock.Run(dir, string(run.refs.Run)))
	}
	if err != nil {
		return err
	}
	run.locks = append(run.locks, own)
	return waitForPrune(ctx, dir, run.t.Wait)
}

// releaseLocks releases the locks and removes their files.
func (run *run) releaseLocks() { run.giveUpLocks((*filelock.Lock).Release) }

func (run *run) giveUpLocks(giveUp func(*filelock.Lock)) {
	run.r.leaveRun(run)
	for _, l := range run.locks {
		giveUp(l)
	}
	close(run.released)
}

func (run *run) sweepLocks() {
	for _, l := range run.locks {
		l.Sweep()
	}
}

// recordInput records the input without waiting for the disk. The input goes to disk while the agent starts, or
// together with the intent.
func (run *run) recordInput() error {
	run.recorded.Store(true)
	var events []event.Event
	if run.created && !run.kept { // otherwise the conversation has recorded the session
		events = append(events, newSessionFact(run.refs.Session, fact.SessionCreated{Provider: run.t.Agent.ID,
			Ephemeral: true}))
	}
	in := run.t.Input
	events = append(events, event.NewFact(event.MessageReceived, "user", run.refs, fact.MessageReceived{
		Text: in.Text, Attachments: in.Attachments, Source: in.Source, Sender: in.Sender,
		Dir: run.t.Dir, Provider: run.t.Agent.ID, Rules: run.t.Rules,
	}))
	return run.r.log.Record(events...)
}

// recordIntent writes the intent to disk, unless the turn was stopped. From then on the input counts as called. A stop
// during the write still prevents the prompt.
func (run *run) recordIntent(ctx context.Context) error {
	if err := run.checkStop(); err != nil {
		return err
	}
	if run.agent.how != continuedAnew && !run.agent.prompted {
		if err := run.expectReplay(ctx); err != nil {
			return err
		}
	}
	prompt, files, cut, err := run.makePrompt(ctx)
	if err != nil {
		return err
	}
	recorded := []byte(prompt)
	if run.r.opt.RedactLog {
		recorded = run.r.opt.Redactor.Payload(recorded)
	}
	digest := sha256.Sum256(recorded)
	var events []event.Event
	if cut != nil {
		events = append(events, event.NewFact(event.Truncated, "perlica", run.client.refs(), *cut))
	}
	strategy := strategyFresh
	if run.kept {
		strategy = strategyKeep
	}
	events = append(events, event.NewFact(event.Requested, "perlica", run.client.refs(), fact.Requested{
		Provider: run.t.Agent.ID, Agent: run.t.Agent.Command, Digest: hex.EncodeToString(digest[:]), Bytes: len(prompt),
		CallIndex: 1, Strategy: strategy,
		Input: run.r.digest(run.t.Input, files),
	}))
	warned, release, err := run.reserveCall(ctx)
	if err != nil {
		return err
	}
	defer release()
	events = append(events, warned...)
	if err := run.state.advance(event.Requested); err != nil {
		return err
	}
	if _, err := run.r.log.Append(ctx, events...); err != nil {
		return err
	}
	release()
	run.warnOfBudgets()
	run.warnOfRepair()
	run.warnOfSounds(files)
	run.promptSent = prompt
	if err := run.checkStop(); err != nil {
		return err
	}
	return context.Cause(ctx)
}

// warnOfRepair warns about calls that the log has lost and the .intents file still names. It also reports lines that
// the .intents file lacked.
func (run *run) warnOfRepair() {
	found := run.r.log.TakeRepair()
	if found.Lost > 0 {
		run.client.warn("intents_lost", intentsLost.With(inputs(found.Lost)))
	}
	if found.Added > 0 {
		run.r.opt.Trail.Warn("the .intents file was not complete; its lines were made from the log",
			"lines", found.Added)
	}
}

// sendPrompt sends the prompt. This uses the run's only call.
func (run *run) sendPrompt() *provider.PromptCall {
	if run.clientPrompt != nil {
		return run.agent.conn.CarryPrompt(run.call, run.clientPrompt.Line)
	}
	return run.agent.session.Prompt(run.call, run.promptSent)
}

// cancelGrace returns a channel that fires if an agent has not confirmed a cancellation in time. If an editor drives
// the agent, it returns nil: such an agent may have other turns, so it is not ended.
func (run *run) cancelGrace() <-chan time.Time {
	if run.clientPrompt != nil {
		return nil
	}
	return time.After(cancelGrace)
}

// promptAgent makes the call, and returns when the agent has answered or has ended.
func (run *run) promptAgent(ctx context.Context) (provider.Answer, error) {
	run.client.startTurn(record.Started{Result: run.result(), Agent: run.agentName(), Mode: run.t.Mode})
	if err := run.state.advance(event.RequestSent); err != nil {
		panic(err) // cannot happen after recordIntent
	}
	run.agent.prompted = true
	call := run.sendPrompt()
	var grace <-chan time.Time
	// answered stays nil until the prompt is written. The method Answered would wait for that moment, and a stop must not
	// wait that long.
	var answered <-chan struct{}
	stop, done, sent := run.t.Stop, ctx.Done(), call.Sent()
	for {
		select {
		case <-sent:
			sent, answered = nil, call.Answered()
			if !run.call.MayHaveLeft() {
				return call.Answer()
			}
			run.client.show.flushQueue()
			run.warnOfSpace() // the check costs no time here, because the agent works
		case <-answered:
			return call.Answer()
		case <-run.agent.conn.Gone():
			return call.Answer()
		case s := <-stop:
			stop = nil
			grace = run.stopTurn(ctx, s)
		case s := <-run.overBudget:
			if run.stopped == nil {
				grace = run.stopTurn(ctx, s)
			}
		case s := <-run.remoteStop:
			if run.stopped == nil && run.state.advance(event.CancelRequested) == nil {
				run.stopped = &s
				grace = run.cancelGrace()
				run.cancelTurn()
			}
		case <-grace:
			run.client.warn("cancel_unconfirmed", cancelUnconfirmed)
			run.agent.conn.Kill()
		case <-done:
			done = nil
			s := fact.NewStop("user", endedAtOnce)
			var cause *StoppedError
			if errors.As(context.Cause(ctx), &cause) {
				s = cause.Stop
			}
			if run.stopped == nil || run.stopped.By != s.By {
				run.stopped = &s
				_ = run.recordStop(ctx, s) // the agent is killed even if this fails
			}
			run.agent.conn.Kill()
		}
	}
}

// stopTurn records a stop and asks the agent to cancel the turn. It returns the channel of cancelGrace.
func (run *run) stopTurn(ctx context.Context, s fact.Stop) <-chan time.Time {
	run.stopped = &s
	grace := run.cancelGrace()
	if err := run.recordStop(ctx, s); err != nil {
		run.agent.conn.Kill() // the stop cannot be recorded
		return grace
	}
	run.cancelTurn()
	return grace
}
