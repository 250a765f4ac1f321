package kernel

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/kernel/filelock"
	"github.com/perlica/perlica/kernel/record"
	"github.com/perlica/perlica/kernel/sessions"
)

// pruneRunner opens a runner without the usual verification at the end, because pruning changes its log.
func pruneRunner(t *testing.T) *Runner {
	t.Helper()
	r := openAlone(t)
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// turns writes one answered turn of the session "s" for each run.
func turns(t *testing.T, r *Runner, runs ...string) {
	t.Helper()
	for _, run := range runs {
		refs := event.Refs{Session: "s", Run: event.RunID(run), Input: event.InputID("input " + run)}
		append1(t, r,
			event.NewFact(event.MessageReceived, "user", refs, fact.MessageReceived{Text: "ask " + run, Provider: "p"}),
			event.NewFact(event.Requested, "perlica", refs, fact.Requested{Provider: "p"}),
			event.NewFact(event.Responded, "agent", refs, fact.Responded{Text: "answer " + run}),
			event.NewFact(event.CallEnforced, "perlica", refs, fact.Enforced{Calls: 1}))
	}
}

// TestPruneAndRunsExcludeEachOther checks that a pruning is refused during a run, and that a run waits or is refused
// during a pruning.
func TestPruneAndRunsExcludeEachOther(t *testing.T) {
	r := pruneRunner(t)
	turns(t, r, "a")
	all := event.Pruning{Until: 1000}

	run, err := freshAgent{r}.acceptRun(t.Context(), &Turn{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Prune(t.Context(), all); !errors.Is(err, ErrUnderWay) {
		t.Errorf("pruned under a run: %v", err)
	}
	run.releaseLocks()

	lock, err := filelock.Acquire(pruneLockPath(r.opt.Paths.Locks))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Prune(t.Context(), all); !errors.Is(err, ErrPruning) {
		t.Errorf("pruned twice at once: %v", err)
	}
	if _, err := (freshAgent{r}).acceptRun(t.Context(), &Turn{Setup: Setup{Session: "s"}}); !errors.Is(err, ErrPruning) {
		t.Errorf("a run began while payloads are removed: %v", err)
	}
	if held, err := filepath.Glob(filepath.Join(r.opt.Paths.Locks, "run-*")); err != nil || len(held) > 0 {
		t.Errorf("a refused run left %v, %v", held, err)
	}
	accepted := make(chan error, 1)
	go func() {
		run, err := freshAgent{r}.acceptRun(context.Background(), &Turn{Setup: Setup{Session: "s"}, Wait: true})
		if err == nil {
			run.releaseLocks()
		}
		accepted <- err
	}()
	select {
	case err := <-accepted:
		t.Fatalf("it did not wait: %v", err)
	case <-time.After(3 * filelock.PollEvery / 2): // the run has tried twice
	}
	lock.Release()
	if err := <-accepted; err != nil {
		t.Error(err)
	}
	if done, err := r.Prune(t.Context(), all); err != nil || done.Events != 4 {
		t.Errorf("%+v, %v", done, err)
	}
}

// TestAStopWhileItWaitsForPrune checks that a stop ends a run that waits for a pruning, and that the run leaves no
// event.
func TestAStopWhileItWaitsForPrune(t *testing.T) {
	r := openRunner(t)
	c := converse(t, r, "", "", "")
	lock, err := filelock.Acquire(pruneLockPath(r.opt.Paths.Locks))
	if err != nil {
		t.Fatal(err)
	}
	stop, ended := make(chan fact.Stop, 1), make(chan error, 1)
	go func() {
		_, err := c.Run(context.Background(), Turn{Input: Input{Text: "hello"}, Wait: true, Stop: stop})
		ended <- err
	}()
	select {
	case err := <-ended:
		t.Fatalf("it did not wait: %v", err)
	case <-time.After(filelock.PollEvery / 2):
	}
	stop <- fact.Stop{By: "user", Why: "enough"}
	select {
	case err := <-ended:
		var stopped *StoppedError
		if !errors.As(err, &stopped) || stopped.Stop.Why != "enough" {
			t.Errorf("it ended with %v", err)
		}
		lock.Release()
	case <-time.After(2 * time.Minute):
		t.Error("the stop does not count")
		lock.Release()
		<-ended
	}
	if n, err := r.log.Count(t.Context(), event.Query{Types: []event.Type{event.MessageReceived}}); err != nil || n > 0 {
		t.Errorf("%d inputs are on record, %v", n, err)
	}
	closeConversation(t, c)
}

// TestPruneTakesTheViewsAlong checks that pruning removes the views and that they are built again without the pruned
// words.
func TestPruneTakesTheViewsAlong(t *testing.T) {
	r := pruneRunner(t)
	append1(t, r, newSessionFact("s", fact.SessionCreated{Name: "kept", Provider: "p"}))
	turns(t, r, "a", "b")
	list := func() sessions.Session {
		t.Helper()
		view, err := r.Sessions(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer view.Close()
		s, err := view.Find(t.Context(), "kept")
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	before := list()
	r.approvals() // opens the view of the approvals, too
	for _, path := range r.opt.Paths.Views()[:2] {
		if _, err := os.Stat(path); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := r.Prune(t.Context(), event.Pruning{Until: 1000, Run: "a"}); err != nil {
		t.Fatal(err)
	}
	for _, path := range r.opt.Paths.Views() {
		if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is still there: %v", filepath.Base(path), err)
		}
	}
	after := list()
	if before.Title != "ask a" || after.Title != "ask b" || after.Turns != 2 || !after.Used.Equal(before.Used) {
		t.Errorf("before %+v\nafter  %+v", before, after)
	}
	r.approvals()
}

// TestHistorySaysWhatIsGone checks that the history counts a pruned turn, and has the turns before and after it.
func TestHistorySaysWhatIsGone(t *testing.T) {
	r := pruneRunner(t)
	turns(t, r, "a", "b", "c")
	if _, err := r.Prune(t.Context(), event.Pruning{Until: 1000, Run: "b"}); err != nil {
		t.Fatal(err)
	}
	h, err := r.readHistory(t.Context(), "s", "", 1000)
	if err != nil || len(h.Turns) != 2 || h.Turns[0].Answer != "answer a" || h.Turns[1].Answer != "answer c" ||
		h.Gone != 1 || h.Dropped != 0 {
		t.Errorf("%+v, %v", h, err)
	}
}

func TestRecordedAfterPruning(t *testing.T) {
	r := pruneRunner(t)
	turns(t, r, "a")
	append1(t, r, event.NewFact(event.CancelRequested, "timeout", event.Refs{Run: "a"},
		fact.Stop{By: "timeout", Why: "it took too long"}))
	if _, err := r.Prune(t.Context(), event.Pruning{Until: 1000, Run: "a"}); err != nil {
		t.Fatal(err)
	}
	res, ok, err := r.Recorded(t.Context(), "input a")
	if err != nil || !ok || res.Outcome != record.OutcomeResponded || !res.Pruned || !res.Replayed || res.Calls != 1 ||
		res.Session != "s" ||
		res.Stopped == nil || res.Stopped.By != "timeout" {
		t.Errorf("%+v, %t, %v", res, ok, err)
	}
}

func TestResolve(t *testing.T) {
	r := pruneRunner(t)
	run := abandon(t, r, 4)
	turns(t, r, "fine")
	append1(t, r, inputOnly("early"))
	judge := func(id event.RunID) error {
		return r.Resolve(t.Context(), id, fact.Resolved{Sent: true, Note: "n", By: "alice"})
	}

	lock, err := filelock.Acquire(filelock.Run(r.opt.Paths.Locks, string(run)))
	if err != nil {
		t.Fatal(err)
	}
	if err := judge(run); !errors.Is(err, ErrUnderWay) {
		t.Errorf("of a living run: %v", err)
	}
	lock.Release()
	for id, want := range map[event.RunID]error{run: ErrNoOutcome, "fine": ErrOutcomeKnown, "early": ErrNoCall} {
		if err := judge(id); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", id, err, want)
		}
	}
	if _, err := r.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := judge(run); err != nil {
			t.Error(err)
		}
	}
	e, ok, err := r.log.Last(t.Context(), event.Query{Run: run, Types: []event.Type{event.RunResolved}})
	if err != nil || !ok || e.Session != "s" || e.Trace != "t" || e.Input != "i" {
		t.Errorf("%+v, %v", e.Refs, err)
	}
}

func inputOnly(run string) event.Event {
	return event.NewFact(event.MessageReceived, "user", event.Refs{Run: event.RunID(run)}, fact.MessageReceived{Text: "x"})
}

// TestIdleConversationHoldsNoRunLock checks that payloads can be pruned while a conversation is idle. It also checks
// that Close leaves no lock file.
func TestIdleConversationHoldsNoRunLock(t *testing.T) {
	r := openRunner(t)
	c := converse(t, r, "", "", "")
	for range 3 {
		res := say(t, c, "hello")
		c.after.Wait()
		if c.next == nil {
			t.Fatal("no lock is reserved")
		}
		if _, err := r.Prune(t.Context(), event.Pruning{Run: res.Run, By: "test"}); err != nil {
			t.Errorf("pruning beside an idle conversation: %v", err)
		}
		if held, _, err := filelock.Count(r.opt.Paths.Locks); held != 0 || err != nil {
			t.Errorf("%d locks of runs are held, %v", held, err)
		}
	}
	closeConversation(t, c)
	if left, err := filepath.Glob(filepath.Join(r.opt.Paths.Locks, "*.lock")); len(left) > 0 || err != nil {
		t.Errorf("left: %q, %v", left, err)
	}
}
