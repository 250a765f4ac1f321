//go:build unix

package kernel

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/perlica/perlica/eventlog"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/kernel/filelock"
	"github.com/perlica/perlica/kernel/record"
)

// breakLog moves the log's file away. Every write then fails until the function repaired moves the file back. Package
// eventlog tests errors of the disk.
func breakLog(t *testing.T, r *Runner) (repaired func()) {
	t.Helper()
	path := r.opt.Paths.EventLog
	move := func(from, to string) {
		if err := os.Rename(from, to); err != nil {
			t.Error(err)
		}
	}
	move(path, path+".away")
	<-time.After(time.Millisecond) // from then on the next write notices the missing file
	return func() { move(path+".away", path) }
}

// failedBefore checks that a turn ended with an error of the log before anything was sent.
func failedBefore(t *testing.T, res record.Result, err error) {
	t.Helper()
	var write *eventlog.WriteError
	if !errors.As(err, &write) || res.Outcome != "" || res.Calls != 0 {
		t.Errorf("%+v, %v", res, err)
	}
}

// TestALogThatFailedIsOpenedAgain checks a process after its log has failed. The process must refuse inputs until the
// log can be written again and has all acknowledged events. Then it records the outcome of the interrupted run.
func TestALogThatFailedIsOpenedAgain(t *testing.T) {
	r := openRunner(t)
	run := func(id event.InputID, script string, show func(record.Notice)) (record.Result, error) {
		return hostileTurn(t, r, script, func(t *Turn) { t.Input.ID, t.Show = id, show })
	}
	if res, err := run("first", "hello", nil); err != nil || res.Outcome != record.OutcomeResponded {
		t.Fatal(res, err)
	}
	repaired := breakLog(t, r)
	for range 2 { // the second run finds a failed log that cannot be opened again
		res, err := run("second", "hello", nil)
		failedBefore(t, res, err)
	}
	repaired()
	if res, err := run("second", "hello", nil); err != nil || res.Outcome != record.OutcomeResponded || res.Replayed {
		t.Errorf("put back: %+v, %v", res, err)
	}
	// Now the log fails during a turn: the prompt was sent, and the answer cannot be recorded.
	repaired = nil
	const stream = "@say begun\n@stream 1000000 20 every=1ms"
	res, err := run("third", stream, func(n record.Notice) {
		if _, ok := n.(record.Updated); ok && repaired == nil {
			repaired = breakLog(t, r)
		}
	})
	if err != nil || res.Outcome != record.OutcomeUnknown || res.Calls != 1 || r.log.Err() == nil {
		t.Fatalf("%+v, %v; the log: %v", res, err, r.log.Err())
	}
	repaired()
	again, err := run("third", stream, nil)
	if err != nil || !again.Replayed || again.Outcome != record.OutcomeUnknown || again.Run != res.Run ||
		again.Err == nil || again.Err.Subtype != "record_failed" {
		t.Errorf("the same input again: %+v, %v", again, err)
	}
	if res, err := run("fourth", "hello", nil); err != nil || res.Outcome != record.OutcomeResponded {
		t.Errorf("another: %+v, %v", res, err)
	}
	if all, _ := sent(t, r, "session/prompt"); all > 4 {
		t.Errorf("%d prompts for four inputs", all)
	}
}

// TestAConversationOutlivesItsLog checks that an agent with unrecorded lines gets no further prompt. A new agent must
// get a transcript instead.
func TestAConversationOutlivesItsLog(t *testing.T) {
	r := openRunner(t)
	c := converse(t, r, "", "", "")
	first := say(t, c, "@show pid")
	repaired := breakLog(t, r)
	res, err := c.Run(t.Context(), Turn{Input: Input{ID: "second", Text: "lost", Source: "test"}})
	failedBefore(t, res, err)
	if res, err := c.Run(t.Context(), Turn{Input: Input{ID: "second", Text: "lost", Source: "test"}}); err == nil {
		t.Errorf("it was accepted: %+v", res)
	}
	repaired()
	third := say(t, c, "@show pid\n@show params")
	if third.Outcome != record.OutcomeResponded || len(third.Warnings) > 0 || strings.HasPrefix(third.Text, first.Text) ||
		!strings.Contains(third.Text, "earlier turns") || !strings.Contains(third.Text, "> pid: ") &&
		!strings.Contains(third.Text, `u003e pid: `) {
		t.Errorf("%+v; the first: %q", third, first.Text)
	}
	if res := say(t, c, "a fourth"); res.Outcome != record.OutcomeResponded {
		t.Errorf("%+v", res)
	}
	closeConversation(t, c)
	if all, noRun := sent(t, r, "initialize"); all < 2 || noRun != all {
		t.Errorf("%d agents were started", all)
	}
	view, err := r.Sessions(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer view.Close()
	if list, err := view.List(t.Context(), true); err != nil || len(list) != 1 {
		t.Errorf("sessions: %+v, %v", list, err)
	}
}

// TestLogIsReopenedBeforeATurn checks a turn that waits for its locks while the log fails and is opened again. The
// conversation's agent may have unrecorded lines, so it must get no prompt.
func TestLogIsReopenedBeforeATurn(t *testing.T) {
	r := openRunner(t)
	c := converse(t, r, "", "", "")
	first := say(t, c, "@show pid")
	prune, err := filelock.Acquire(pruneLockPath(r.opt.Paths.Locks))
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		_, err := c.Run(t.Context(), Turn{Input: Input{Text: "unheard", Source: "test"}, Wait: true})
		ended <- err
	}()
	waits := func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return len(r.live) == 1
	}
	for !waits() {
		<-time.After(time.Millisecond)
	}
	repaired := breakLog(t, r)
	if _, err := r.log.Append(t.Context(), event.NewFact("x", "user", event.Refs{}, struct{}{})); err == nil {
		t.Error("the log lives")
	}
	repaired()
	if err := r.repairLog(t.Context()); err != nil {
		t.Fatal(err)
	}
	prune.Release()
	if err := <-ended; err == nil {
		t.Error("the agent was prompted")
	}
	if res := say(t, c, "@show pid\n@show history"); strings.HasPrefix(res.Text, first.Text) ||
		strings.Contains(res.Text, "unheard") {
		t.Errorf("%q; the first: %q", res.Text, first.Text)
	}
	closeConversation(t, c)
}

// TestANewSessionOutlivesItsLog checks that a new session is recorded again if its creation was lost with the log.
func TestANewSessionOutlivesItsLog(t *testing.T) {
	r := openRunner(t)
	c := converse(t, r, "", "", "")
	repaired := breakLog(t, r)
	if res, err := c.Run(t.Context(), Turn{Input: Input{Text: "lost", Source: "test"}}); err == nil {
		t.Errorf("%+v", res)
	}
	repaired()
	say(t, c, "hello")
	closeConversation(t, c)
	e, ok, err := r.log.Last(t.Context(), event.Query{Session: c.Session(), Types: []event.Type{event.SessionCreated}})
	if err != nil || !ok {
		t.Errorf("the session is not on record: %+v, %v", e, err)
	}
}
