package kernel

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/kernel/record"
	"github.com/perlica/perlica/provider"
)

// soon waits for a value of the channel, for at most 20 seconds.
func soon[T any](t *testing.T, what string, c <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(2 * time.Minute):
		t.Fatalf("%s never came", what)
	}
	return v
}

// notSent checks that a turn was stopped before its prompt. prompts is the number of earlier prompts on the log.
func notSent(t *testing.T, r *Runner, res record.Result, err error, prompts int) {
	t.Helper()
	var stopped *StoppedError
	if err != nil && !errors.As(err, &stopped) {
		t.Error(err)
	}
	if err == nil && (res.Calls != 0 || res.Outcome != record.OutcomeProviderError || res.Stopped == nil ||
		res.Stopped.Why != "too early") {
		t.Errorf("%+v", res)
	}
	if all, _ := sent(t, r, "session/prompt"); all != prompts {
		t.Errorf("%d prompts, want %d", all, prompts)
	}
}

// TestAStopThatIsThereAlready checks that an input is not sent if its stop comes first, with a new agent and with a
// running one.
func TestAStopThatIsThereAlready(t *testing.T) {
	r := openRunner(t)
	stopped := func() <-chan fact.Stop {
		stop := make(chan fact.Stop, 1)
		stop <- fact.Stop{By: "user", Why: "too early"}
		return stop
	}
	for range 5 { // the turn may notice the stop at different moments
		res, err := hostileTurn(t, r, "hello", func(turn *Turn) { turn.Stop = stopped() })
		notSent(t, r, res, err, 0)
	}
	c := converse(t, r, "", "", "")
	for prompts := range 3 {
		for range 5 {
			res, err := c.Run(t.Context(), Turn{Input: Input{Text: "hello", Source: "test"}, Stop: stopped()})
			notSent(t, r, res, err, prompts)
		}
		if res := say(t, c, "@say x"); res.Text != "x" {
			t.Errorf("the next one: %+v", res)
		}
	}
	closeConversation(t, c)
}

// TestAStopDuringTheIntent checks that a stop, or the end of ctx, during the write of the intent prevents the prompt.
// The next prompt must include the system text, which the agent does not know yet.
func TestAStopDuringTheIntent(t *testing.T) {
	for name, end := range map[string]func(chan<- fact.Stop, context.CancelCauseFunc){
		"stopped": func(stop chan<- fact.Stop, _ context.CancelCauseFunc) {
			stop <- fact.Stop{By: "user", Why: "too early"}
		},
		"ended": func(_ chan<- fact.Stop, cancel context.CancelCauseFunc) { cancel(errors.New("too early")) },
	} {
		t.Run(name, func(t *testing.T) {
			r := openRunner(t)
			c := converse(t, r, "", "", "")
			c.setup.System = "be brief"
			c.Warm()
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			<-c.agent.ready
			if err := r.log.Sync(); err != nil { // otherwise the turn would wait for the earlier events
				t.Fatal(err)
			}
			release := holdLog(t, r)
			stop, done := make(chan fact.Stop, 1), make(chan record.Result, 1)
			go func() {
				res, err := c.Run(ctx, Turn{Input: Input{Text: "hello", Source: "test"}, Stop: stop})
				if err != nil {
					t.Error(err)
				}
				done <- res
			}()
			for late := time.After(2 * time.Minute); intending(r) == 0; {
				select {
				case <-late:
					t.Fatal("it never comes to its intent")
				case <-time.After(time.Millisecond):
				}
			}
			end(stop, cancel)
			release()
			res := soon(t, "its end", done)
			if res.Calls != 0 || res.Outcome != record.OutcomeProviderError || !strings.HasSuffix(res.Err.Message, "too early") {
				t.Errorf("%+v", res)
			}
			if all, _ := sent(t, r, "session/prompt"); all != 0 {
				t.Errorf("%d prompts", all)
			}
			say(t, c, "@say x")
			for e, err := range r.log.Events(t.Context(), event.Query{Types: []event.Type{event.RequestSent}}) {
				if err != nil || strings.Contains(string(e.Payload), "session/prompt") &&
					!strings.Contains(string(e.Payload), "be brief") {
					t.Errorf("%s, %v", e.Payload, err)
				}
			}
			closeConversation(t, c)
		})
	}
}

// intending returns the number of runs that are writing their intent or have written it.
func intending(r *Runner) (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, run := range r.live {
		if run.state.is(phaseIntended) {
			n++
		}
	}
	return n
}

// holdLog blocks all writes to the log until the function release is called.
func holdLog(t *testing.T, r *Runner) (release func()) {
	t.Helper()
	db, err := sql.Open("sqlite", r.opt.Paths.EventLog+"?_pragma=busy_timeout(5000)")
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	exec := func(statement string) {
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Error(err)
		}
	}
	exec(`BEGIN IMMEDIATE`)
	return func() {
		exec(`ROLLBACK`)
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestStartedIsShownToTheSilent checks that the start of a turn is shown even if the agent sends no update.
func TestStartedIsShownToTheSilent(t *testing.T) {
	r := openRunner(t)
	r.opt.StreamSync = true
	c := converse(t, r, "", "", "")
	for name, run := range map[string]func(Turn) (record.Result, error){
		"fresh": func(turn Turn) (record.Result, error) {
			turn.Setup = testSetup(t, r)
			return r.Run(t.Context(), turn)
		},
		"kept": func(turn Turn) (record.Result, error) { return c.Run(t.Context(), turn) },
	} {
		notices, stop, done := make(chan record.Notice, 10), make(chan fact.Stop, 1), make(chan struct{})
		go func() {
			defer close(done)
			res, err := run(Turn{Input: Input{Text: "@hang", Source: "test"}, Stop: stop,
				Show: func(n record.Notice) { notices <- n }})
			if err != nil || res.StopReason != "cancelled" {
				t.Errorf("%s: %+v, %v", name, res, err)
			}
		}()
		if n, ok := soon(t, name, notices).(record.Started); !ok {
			t.Errorf("%s: %#v", name, n)
		}
		stop <- fact.Stop{By: "user", Why: "seen"}
		soon(t, name, done)
	}
	closeConversation(t, c)
}

// TestStartedComesFirst checks that no update is shown before the start of the turn.
func TestStartedComesFirst(t *testing.T) {
	r := openRunner(t)
	for range 300 {
		var shown []record.Notice
		run := &run{r: r, t: Turn{Show: func(n record.Notice) { shown = append(shown, n) }}}
		c := newClient(run)
		ready, said := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(said)
			close(ready)
			for len(shownText(c)) < 3 {
				c.Update(provider.Update{Kind: provider.AgentMessageChunk, Text: "x"})
			}
		}()
		<-ready
		c.startTurn(record.Started{})
		<-said
		c.closeTurn()
		if _, ok := shown[0].(record.Started); !ok || len(shown) != 4 {
			t.Fatalf("%d notices, the first is %T", len(shown), shown[0])
		}
	}
}

func shownText(c *client) string {
	var res record.Result
	c.sums.fillResult(&res)
	return res.Text
}

// TestAWarningAheadOfADeadLog checks that a turn without an agent can end although the log has failed and a notice is
// in the queue.
func TestAWarningAheadOfADeadLog(t *testing.T) {
	r := openAlone(t)
	r.opt.StreamSync = true
	path := r.opt.Paths.EventLog
	if err := os.Rename(path, path+".away"); err != nil {
		t.Skip("this system keeps open files in place")
	}
	if err := r.log.Record(event.NewFact("x", "user", event.Refs{}, struct{}{})); err != nil {
		t.Fatal(err)
	}
	c := newClient(&run{r: r, t: Turn{Show: func(n record.Notice) { t.Errorf("shown: %#v", n) }}})
	c.warn("test", noStopReason)
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		c.closeTurn()
	}()
	soon(t, "the end of the turn", closed)
	if err := r.Close(); err == nil {
		t.Error("the log was written")
	}
}
