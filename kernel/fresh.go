package kernel

import (
	"context"

	"github.com/perlica/perlica/eventlog/message"
	"github.com/perlica/perlica/kernel/filelock"
)

// freshAgent implements the fresh strategy: each run starts an agent process and ends it.
type freshAgent struct{ r *Runner }

// acceptRun creates the run. It locks the session, so that no other run uses it, and the run itself.
func (f freshAgent) acceptRun(ctx context.Context, t *Turn) (*run, error) {
	created := t.Session == ""
	if created {
		t.Session = newSessionID()
	}
	run := f.r.newRun(*t, nil)
	run.created = created
	err := run.unlessStopped(ctx, func(ctx context.Context) error {
		lock, err := filelock.AcquireSession(ctx, filelock.Session(f.r.opt.Paths.Locks, string(t.Session)), t.Wait)
		if err != nil {
			return err
		}
		run.locks = append(run.locks, lock)
		return run.takeLock(ctx)
	})
	if err != nil {
		run.releaseLocks()
		return nil, err
	}
	return run, nil
}

// provideAgent starts the agent and opens its session. At the same time the log writes the input to disk.
func (f freshAgent) provideAgent(ctx context.Context, run *run) error {
	run.agent = newAgentSession(f.r, run.t.limited(), run.refs, run.client)
	run.agent.launched = run.t.launched
	run.agent.anew = run.created
	err := run.agent.startProcess()
	f.r.log.StartFlush()
	if run.agent.conn != nil {
		run.client.lifecycle.attachConn(run.agent.conn)
	}
	if err != nil {
		return err
	}
	ctx, done := run.untilStopped(ctx)
	defer done()
	return run.agent.prepareSession(ctx, strategyFresh)
}

// takeBackAgent closes the agent's session and ends the process. A failure here does not change the turn's outcome,
// which is already on disk.
func (f freshAgent) takeBackAgent(ctx context.Context, run *run) {
	if run.agent.conn != nil {
		run.agent.beginClose()
		if err := run.agent.endProcess(ctx); err != nil {
			run.client.warnLate("session_not_closed", message.Of(err))
		}
		if run.agent.orphans != "" {
			run.client.warnLate("processes_left", processesLeft.With(run.agent.orphans))
		}
	}
	run.client.joinGoroutines()
	if run.state.is(phaseEnded) {
		run.warnOfAnchor()
	}
}

func (f freshAgent) releaseRun(run *run) { run.releaseLocks() }
