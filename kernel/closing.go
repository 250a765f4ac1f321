package kernel

import (
	"context"
	"time"

	"github.com/perlica/perlica/eventlog"
)

// beginClose asks the agent to free its session, if it offers that. The answer also tells
// that nothing more of the turn is on its way: an agent writes its lines in order.
func (run *run) beginClose() {
	if run.session == nil || run.conn.Err() != nil || run.caps.SessionCapabilities.Close == nil || run.closing != nil {
		return
	}
	run.closing = make(chan struct{})
	go func() { // endAgent waits for it
		defer close(run.closing)
		ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
		defer cancel()
		run.closeErr = run.session.Close(ctx)
	}()
}

// endAgent frees the agent's session and ends the process. What fails here spoils
// nothing: the outcome is on disk.
func (run *run) endAgent(ctx context.Context) {
	run.beginClose()
	if run.closing != nil {
		<-run.closing
	}
	if run.closeErr != nil {
		run.client.warnLate("session_not_closed", run.closeErr.Error())
	}
	if err := run.conn.End(ctx); err != nil {
		run.r.opt.Trail.Warn("ending the agent", "provider", run.t.Agent.ID, "error", err.Error())
	}
	if run.session != nil && !run.closeNoted {
		_ = run.r.log.Record(run.closedFact()) // Close of the log tells
	}
}

// closedInTime reports whether the agent has answered session/close already. The fact then
// goes on record with the outcome, in one commit.
func (run *run) closedInTime() bool {
	if run.closing == nil {
		return false
	}
	select {
	case <-run.closing:
		run.closeNoted = true
		return true
	default:
		return false
	}
}

// closedFact says how the agent's session ended. The closing, if any, is over.
func (run *run) closedFact() eventlog.Event {
	closed := sessionClosed{Requested: run.closing != nil}
	if run.closeErr != nil {
		closed.Error = run.closeErr.Error()
	}
	return eventlog.NewFact(eventlog.SessionClosed, "perlica", run.client.refs(), closed)
}

// closeTimeout is how long an agent may take to free a session that is over.
const closeTimeout = 3 * time.Second
