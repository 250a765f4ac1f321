package kernel

import (
	"context"
	"errors"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/interaction"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/kernel/record"
	"github.com/perlica/perlica/policy"
)

// twoRunners opens two runners on the same context, as two processes would. Each has its own log handle. If listen is
// true, each also has its own socket.
func twoRunners(t *testing.T, listen bool) (asker, other *Runner) {
	t.Helper()
	first := openRunner(t)
	opt := first.opt
	if listen {
		dir, err := os.MkdirTemp("", "pk") // the path of a socket must be short
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.RemoveAll(dir) })
		opt.Runtime = dir
	}
	open := func() *Runner {
		r, err := Open(t.Context(), opt)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := r.Close(); err != nil {
				t.Error(err)
			}
		})
		return r
	}
	return open(), open()
}

// underWay starts an input in a conversation. It returns channels for the notices and for the result.
func underWay(t *testing.T, c *Conversation, text string) (<-chan record.Notice, <-chan record.Result) {
	t.Helper()
	notices, done := make(chan record.Notice, 100), make(chan record.Result, 1)
	go func() {
		res, err := c.Run(t.Context(), Turn{
			Input: Input{Text: text, Source: "test"}, Permissions: policy.ModeAsk, AnswerIn: time.Hour,
			Show: func(n record.Notice) { notices <- n },
		})
		if err != nil {
			t.Error(err)
		}
		done <- res
	}()
	return notices, done
}

// first waits for the first notice of the type T.
func first[T record.Notice](t *testing.T, notices <-chan record.Notice) T {
	t.Helper()
	for {
		select {
		case n := <-notices:
			if v, ok := n.(T); ok {
				return v
			}
		case <-time.After(2 * time.Minute):
			t.Fatal("it never came")
		}
	}
}

const askOnce = "@ask execute Build command=make options=y:allow_once:Yes,n:reject_once:No"

// blind stops the timer that reads the log. After that, the process reads the log only if another process wakes it.
func blind(r *Runner) {
	for stopped := false; !stopped; runtime.Gosched() { // the timer may be running just now
		r.mu.Lock()
		stopped = r.looking.Stop()
		r.mu.Unlock()
	}
}

// TestAnswerFromElsewhere checks that a process sees an answer of another process: at once if it is woken, and
// otherwise by its timer. The other process may be killed before it can wake this process.
func TestAnswerFromElsewhere(t *testing.T) {
	for name, tc := range map[string]struct {
		listen, look bool
		give         func(t *testing.T, other *Runner, q interaction.Question) error
	}{
		"woken": {true, false, func(t *testing.T, other *Runner, q interaction.Question) error {
			return other.AnswerQuestion(t.Context(), q, interaction.Answer{Option: "y", By: "me"})
		}},
		"killed before it woke": {true, true, func(t *testing.T, other *Runner, q interaction.Question) error {
			_, err := other.log.Append(t.Context(), event.NewFact(event.InteractionAnswered, "user", q.Refs,
				interaction.Answer{Option: "y", By: "me"}))
			return err
		}},
		"cannot wake": {false, true, func(t *testing.T, other *Runner, q interaction.Question) error {
			return other.AnswerQuestion(t.Context(), q, interaction.Answer{Option: "y", By: "me"})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			asker, other := twoRunners(t, tc.listen)
			c := converse(t, asker, "", "", "")
			notices, done := underWay(t, c, askOnce)
			q := first[record.Asked](t, notices).Question
			if !tc.look {
				blind(asker)
			}
			start := time.Now()
			if err := tc.give(t, other, q); err != nil {
				t.Error(err)
			}
			if n := first[record.Closed](t, notices); n.Answer == nil || n.Answer.By != "me" {
				t.Errorf("%+v", n)
			}
			t.Logf("from the answer to the agent: %s", time.Since(start))
			if res := <-done; !strings.Contains(res.Text, "permission: y") {
				t.Errorf("%+v", res)
			}
			closeConversation(t, c)
		})
	}
}

// TestCancelFromElsewhere checks that another process can stop a turn, whether or not the turn's process listens on a
// socket.
func TestCancelFromElsewhere(t *testing.T) {
	for name, listen := range map[string]bool{"woken": true, "by looking": false} {
		t.Run(name, func(t *testing.T) {
			asker, other := twoRunners(t, listen)
			c := converse(t, asker, "", "", "")
			notices, done := underWay(t, c, "@say begun\n@hang")
			run := first[record.Started](t, notices).Run
			first[record.Updated](t, notices)
			start := time.Now()
			if err := other.CancelRun(t.Context(), run, fact.Stop{By: "user", Why: "from elsewhere"}); err != nil {
				t.Fatal(err)
			}
			res := <-done
			t.Logf("from the cancellation to the outcome: %s", time.Since(start))
			if res.StopReason != "cancelled" || res.Stopped == nil || res.Stopped.Why != "from elsewhere" {
				t.Errorf("%+v", res)
			}
			if err := other.CancelRun(t.Context(), run, fact.Stop{By: "user"}); !errors.Is(err, ErrRunGone) {
				t.Errorf("a run that is over: %v", err)
			}
			n, err := other.log.Count(t.Context(), event.Query{Run: run, Types: []event.Type{event.CancelRequested}})
			if err != nil || n != 1 {
				t.Errorf("%d cancellations on record, %v", n, err)
			}
			closeConversation(t, c)
		})
	}
}

// TestCancelledBeforeThePrompt checks that no call is made after a recorded stop.
func TestCancelledBeforeThePrompt(t *testing.T) {
	asker, other := twoRunners(t, true)
	c := converse(t, asker, "", "", "[session/new]\n@hang\n")
	notices, done := underWay(t, c, "hello")
	_ = notices
	var run event.RunID
	for n, err := range record.Follow(t.Context(), &other.log.Reader, other.opt.Paths.Locks, c.Session(), 1) {
		if err != nil {
			t.Fatal(err)
		}
		if r, ok := n.(record.Received); ok {
			run = r.Run
			break
		}
	}
	if err := other.CancelRun(context.Background(), run, fact.Stop{By: "user", Why: "too early"}); err != nil {
		t.Fatal(err)
	}
	if res := <-done; res.Calls != 0 || res.Outcome != record.OutcomeProviderError || res.Stopped == nil {
		t.Errorf("%+v", res)
	}
	if n, err := other.log.Count(t.Context(), event.Query{Run: run, Types: []event.Type{event.Requested}}); n != 0 ||
		err != nil {
		t.Errorf("%d intents, %v", n, err)
	}
	if n, err := other.log.Count(t.Context(), event.Query{Run: run,
		Types: []event.Type{event.CancelRequested}}); n != 1 || err != nil {
		t.Errorf("%d cancellations, %v", n, err)
	}
	closeConversation(t, c)
}
