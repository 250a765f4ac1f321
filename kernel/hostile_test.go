package kernel

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/coder/acp-go-sdk"
	"github.com/jmoiron/sqlx"

	"github.com/perlica/perlica/eventlog"
	"github.com/perlica/perlica/eventlog/disk"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/store/storetest"
	"github.com/perlica/perlica/interaction"
	"github.com/perlica/perlica/kernel/agents"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/kernel/filelock"
	"github.com/perlica/perlica/kernel/record"
	"github.com/perlica/perlica/policy"
	"github.com/perlica/perlica/provider"
)

// TestLocksLieInTheirFolder checks that no id of a run or session from a foreign log leads to a lock file outside
// the folder of locks. Perlica removes lock files, so it could remove another file.
func TestLocksLieInTheirFolder(t *testing.T) {
	r := openRunner(t)
	victim := filepath.Join(filepath.Dir(r.opt.Paths.Locks), "Cargo.lock")
	if err := os.WriteFile(victim, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"x/../../Cargo", "../run-x/../Cargo", `x\..\Cargo`, "", "/", "x\x00y"} {
		for _, path := range []string{filelock.Run(r.opt.Paths.Locks, id), filelock.Session(r.opt.Paths.Locks, id)} {
			if filepath.Dir(path) != r.opt.Paths.Locks {
				t.Errorf("%q: %s", id, path)
			}
		}
	}
	append1(t, r, intentFact("x/../../Cargo"))
	if got, err := r.Recover(t.Context()); err != nil || len(got) != 1 {
		t.Errorf("recovered %v, %v", got, err)
	}
	if b, err := os.ReadFile(victim); string(b) != "precious" {
		t.Errorf("the file of others: %q, %v", b, err)
	}
}

// TestRecoveryOfARunWithoutEvents checks a run without events, which a hostile file lists as open. Recovery must
// write nothing about this run. Otherwise the log would be damaged.
func TestRecoveryOfARunWithoutEvents(t *testing.T) {
	r := openRunner(t)
	append1(t, r, intentFact("done"), event.NewFact(event.Responded, "agent", event.Refs{Run: "done"}, fact.Responded{}))
	tamper(t, r, `INSERT INTO open_runs (run_id, seq) VALUES ('nothing', 7), ('other', 1), ('done', 1)`)
	for _, recover := range []func(context.Context) ([]record.Result, error){r.Recover, r.RecoverUnlisted} {
		if got, err := recover(t.Context()); err != nil || len(got) > 0 {
			t.Errorf("recovered %v, %v", got, err)
		}
	}
	if ended, err := r.recoverRun(t.Context(), "nothing", died); err != nil || ended {
		t.Errorf("by its name: %t, %v", ended, err)
	}
	if list, err := record.ListUnfinished(t.Context(), &r.log.Reader, r.opt.Paths.Locks); err != nil || len(list) > 0 {
		t.Errorf("listed: %+v, %v", list, err)
	}
	if size, _, err := r.log.Head(t.Context()); err != nil || size != 2 {
		t.Errorf("%d events, %v", size, err)
	}
	if done, err := r.log.Prune(t.Context(), event.Pruning{Until: 2, Run: "done"}); err != nil || done.Events != 2 {
		t.Errorf("pruned %+v, %v", done, err)
	}
	tamper(t, r, `DELETE FROM open_runs`)
}

// TestRecoveryOfAnUnlistedRun checks a log with an incomplete list of open runs: one run is missing. RecoverUnlisted
// and a question about the run's input must find the run. Its payloads must not be pruned.
func TestRecoveryOfAnUnlistedRun(t *testing.T) {
	for name, recover := range map[string]func(*Runner) ([]record.Result, error){
		"log open": func(r *Runner) ([]record.Result, error) { return r.RecoverUnlisted(t.Context()) },
		"its input": func(r *Runner) ([]record.Result, error) {
			res, ok, err := r.Recorded(t.Context(), "i")
			if !ok {
				err = errors.Join(err, errors.New("it is not on record"))
			}
			return []record.Result{res}, err
		},
	} {
		r := openRunner(t)
		run := abandon(t, r, 4)
		tamper(t, r, `DELETE FROM open_runs`)
		if list, err := record.ListUnfinished(t.Context(), &r.log.Reader, r.opt.Paths.Locks); err != nil || len(list) != 1 ||
			list[0].Run != run {
			t.Errorf("%s: listed %+v, %v", name, list, err)
		}
		if _, err := r.log.Prune(t.Context(), event.Pruning{Until: 4, Run: run}); !errors.Is(err, disk.ErrUnfinished) {
			t.Errorf("%s: pruned: %v", name, err)
		}
		if done, err := r.log.Prune(t.Context(), event.Pruning{Until: 4}); err != nil || done.Events != 0 {
			t.Errorf("%s: pruned with others: %+v, %v", name, done, err)
		}
		lock, err := filelock.Acquire(filelock.Run(r.opt.Paths.Locks, string(run)))
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := r.Recorded(t.Context(), "i"); !errors.Is(err, ErrInputRunning) {
			t.Errorf("%s: while its process lives: %v", name, err)
		}
		lock.Release()
		if got, err := recover(r); err != nil || len(got) != 1 || got[0].Run != run ||
			got[0].Outcome != record.OutcomeUnknown {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
		if list, err := record.ListUnfinished(t.Context(), &r.log.Reader, r.opt.Paths.Locks); err != nil || len(list) > 0 {
			t.Errorf("%s: still listed: %+v, %v", name, list, err)
		}
	}
}

// tamper changes the log's file with another connection.
func tamper(t *testing.T, r *Runner, sql string) {
	t.Helper()
	db, err := sqlx.Open("sqlite", r.opt.Paths.EventLog)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec(storetest.Editable + sql); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestDeadLogIsReported checks that a run before its prompt returns the error of a failed log instead of other errors.
func TestDeadLogIsReported(t *testing.T) {
	r := openRunner(t)
	path := r.opt.Paths.EventLog
	dead, err := eventlog.Open(t.Context(), path+".2", eventlog.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path + ".2"); err != nil {
		t.Skip("this system keeps open files in place")
	}
	if _, err := dead.Append(t.Context(), intentFact("x")); err == nil {
		t.Fatal("the log lives")
	}
	run := &run{r: &Runner{log: dead}}
	var write *eventlog.WriteError
	if _, err := run.failEarly(t.Context(), errors.New("the agent did not start")); !errors.As(err, &write) {
		t.Errorf("%v", err)
	}
	_ = dead.Close() // Close returns the same error
}

// TestRecoveryOfARunThatJustEnded checks that recovery writes nothing if the run has recorded its outcome since it was
// listed as open.
func TestRecoveryOfARunThatJustEnded(t *testing.T) {
	r := openRunner(t)
	run := abandon(t, r, 4)
	append1(t, r, event.NewFact(event.Responded, "agent", event.Refs{Run: run}, fact.Responded{Text: "done"}))
	if ended, err := r.recoverRun(t.Context(), run, died); ended || err != nil {
		t.Errorf("recovered: %t, %v", ended, err)
	}
}

// TestRecoveryWithFactsOfALaterVersion checks that recovery also closes a question that it cannot decode.
func TestRecoveryWithFactsOfALaterVersion(t *testing.T) {
	r := openRunner(t)
	run := abandon(t, r, 4)
	refs := event.Refs{Run: run, Trace: "t", Interaction: "q"}
	append1(t, r, event.NewFact(event.InteractionRequested, "agent", refs, map[string]any{"title": 7, "options": "many"}))
	if got, err := r.Recover(t.Context()); err != nil || len(got) != 1 {
		t.Fatalf("recovered %v, %v", got, err)
	}
	if end, err := interaction.Closed(t.Context(), &r.log.Reader, "q"); err != nil || end == nil ||
		end.Lapsed != interaction.Crashed {
		t.Errorf("the question: %+v, %v", end, err)
	}
}

// TestSessionsWithFactsOfALaterVersion checks that the view still lists the other sessions if an event cannot be
// decoded.
func TestSessionsWithFactsOfALaterVersion(t *testing.T) {
	r := openRunner(t)
	id, err := r.CreateSession(t.Context(), fact.SessionCreated{Name: "mine", Provider: "p"})
	if err != nil {
		t.Fatal(err)
	}
	for _, ty := range []event.Type{event.SessionCreated, event.SessionRenamed, event.MessageReceived} {
		append1(t, r, event.Event{Type: ty, Class: event.Fact, Refs: event.Refs{Session: "s"},
			Payload: []byte(`["not", "ours"]`)})
	}
	view, err := r.Sessions(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer view.Close()
	if s, err := view.Find(t.Context(), "mine"); err != nil || s.ID != id {
		t.Errorf("%+v, %v", s, err)
	}
}

// TestAmbiguousOptionsAreNotOffered checks that a person gets no options that share an id. The person could choose the
// no, and the agent could take it for the yes.
func TestAmbiguousOptionsAreNotOffered(t *testing.T) {
	option := func(id, kind string) acp.PermissionOption {
		return acp.PermissionOption{OptionId: acp.PermissionOptionId(id), Name: id, Kind: acp.PermissionOptionKind(kind)}
	}
	for want, given := range map[string][]acp.PermissionOption{
		"[y n]": {option("y", "allow_once"), option("n", "reject_once")},
		"[z]":   {option("x", "reject_once"), option("z", "allow_once"), option("x", "allow_once")},
		"[n]":   {option(offerPrefix+"session", "allow_once"), option("n", "reject_once")},
		"[]":    {option("", "reject_once"), option("", "allow_always")},
	} {
		ids := []acp.PermissionOptionId{}
		for _, o := range unambiguous(given) {
			ids = append(ids, o.OptionId)
		}
		if got := fmt.Sprint(ids); got != want {
			t.Errorf("%v: %s, want %s", given, got, want)
		}
	}
}

// hostileTurn runs one turn with the predictable agent and the given script.
func hostileTurn(t *testing.T, r *Runner, script string, change func(*Turn)) (record.Result, error) {
	t.Helper()
	turn := Turn{
		Input: Input{Text: script, Source: "test"},
		Setup: testSetup(t, r), Permissions: policy.ModeAsk, AnswerIn: time.Hour,
	}
	if change != nil {
		change(&turn)
	}
	return r.Run(t.Context(), turn)
}

// testSetup returns the predictable agent in a new folder.
func testSetup(t *testing.T, r *Runner) Setup {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// Under the race detector a process sleeps for a second before it ends.
	r.opt.Environ = append(os.Environ(), scenarioVar+"=#", "GORACE=atexit_sleep_ms=0")
	return Setup{
		Agent: agents.Agent{
			Agent: provider.Agent{ID: "test", Command: []string{self, "-test.run=^TestAgentProcess$"},
				Env: []string{scenarioVar, "GORACE"}},
			ConnectTimeout: time.Minute, RequestTimeout: time.Minute,
		},
		Dir: t.TempDir(),
	}
}

// TestANoThatIsAYesIsNotSent checks that the agent gets "cancelled" if the options yes and no have the same id.
func TestANoThatIsAYesIsNotSent(t *testing.T) {
	for _, mode := range []policy.Mode{policy.ModeDeny, policy.ModeAllow} {
		r := openRunner(t)
		res, err := hostileTurn(t, r, `@ask execute T command="make" options="x:reject_once:No,x:allow_once:Yes"`,
			func(t *Turn) { t.Permissions, t.AnswerIn = mode, 0 })
		if err != nil || res.Text != "permission: cancelled\n" || res.Permissions.Allowed > 0 {
			t.Errorf("%s: %+v, %v", mode, res, err)
		}
	}
}

// TestAnAnswerThatIsNoOption checks that an invalid answer on the log, from another program, does not end the process.
func TestAnAnswerThatIsNoOption(t *testing.T) {
	r := openRunner(t)
	for in := 300 * time.Millisecond; ; in *= 10 {
		late := false
		res, err := hostileTurn(t, r, `@ask execute T command="make"`, func(turn *Turn) {
			turn.Show = func(n record.Notice) {
				if q, ok := n.(record.Asked); ok {
					refs := q.Refs
					refs.Interaction = q.ID
					e := event.NewFact(event.InteractionAnswered, "user", refs, map[string]any{"option": 1})
					if _, err := r.log.Append(t.Context(), e); err != nil {
						late = true // the question had expired before it was shown
						return
					}
					if err := r.questions.Answer(t.Context(), q.ID, interaction.Answer{Option: "allow-once", By: "t"}); err == nil {
						t.Error("a second answer counts")
					}
					turn.Permissions = ""
				}
			}
			turn.AnswerIn = in
		})
		if late && in < time.Minute {
			continue
		}
		if late || err != nil || res.Text != "permission: cancelled\n" || res.Outcome != record.OutcomeResponded ||
			res.Permissions.Allowed > 0 {
			t.Errorf("late %t: %+v, %v", late, res, err)
		}
		return
	}
}

// TestAnswersRaceWithTheirEnds lets an answer, the question's timeout, a stop and the agent's end happen at the same
// moment. In every case there must be one outcome and one end of the question. The agent may get a yes only if the
// answer is on the log.
func TestAnswersRaceWithTheirEnds(t *testing.T) {
	r := openRunner(t)
	for i := range 40 {
		stop := make(chan fact.Stop, 1)
		answered := make(chan error, 1)
		after := time.Duration(i%8) * 500 * time.Microsecond
		script := `@ask execute T command="make"`
		if i%4 == 3 {
			script = "@ask execute T command=\"make\" wait=no\n@sleep " + after.String()
		}
		res, err := hostileTurn(t, r, script, func(turn *Turn) {
			turn.Stop = stop
			if i%4 == 1 {
				turn.AnswerIn = after + time.Millisecond
			}
			turn.Show = func(n record.Notice) {
				q, ok := n.(record.Asked)
				if !ok {
					return
				}
				go func() {
					answered <- r.questions.Answer(t.Context(), q.ID, interaction.Answer{Option: "allow-once", By: "t"})
				}()
				if i%4 == 2 {
					stop <- fact.Stop{By: "user", Why: "test"}
				}
			}
		})
		if err != nil || res.Outcome != record.OutcomeResponded {
			t.Fatalf("turn %d: %+v, %v", i, res, err)
		}
		aerr := <-answered
		var taken *interaction.TakenError
		if aerr != nil && !errors.As(aerr, &taken) {
			t.Fatalf("turn %d: the answer: %v", i, aerr)
		}
		var ends, yes []event.Event
		for e, err := range r.log.Events(t.Context(), event.Query{Run: res.Run, Class: event.Fact}) {
			switch {
			case err != nil:
				t.Fatal(err)
			case e.Type == event.InteractionAnswered, e.Type == event.InteractionLapsed:
				ends = append(ends, e)
			case e.Type == event.ReplySent:
				if s, err := fact.Decode[fact.ReplySent](e); err != nil || s.Option == "allow-once" {
					yes = append(yes, e)
				}
			}
		}
		if len(ends) != 1 || (ends[0].Type == event.InteractionAnswered) != (aerr == nil) || len(yes) > 0 &&
			(aerr != nil || yes[0].Seq < ends[0].Seq) {
			t.Fatalf("turn %d: ends %v, yes %v, answer %v", i, ends, yes, aerr)
		}
	}
}

// TestLateQuestionsDoNotRace has questions after the agent's answer, while the outcome is written. The race detector
// checks the access to the tools.
func TestLateQuestionsDoNotRace(t *testing.T) {
	r := openRunner(t)
	res, err := hostileTurn(t, r,
		"@ask execute T command=\"make\" count=40 wait=no\n@tool edit E path=a\n@answer\n@ask execute T command=\"make\" "+
			"count=40 wait=no", func(turn *Turn) {
			turn.AnswerIn = 0
		})
	if err != nil || res.Outcome != record.OutcomeResponded {
		t.Errorf("%+v, %v", res, err)
	}
	open, err := r.log.OpenRuns(t.Context())
	if err != nil || slices.Contains(open, res.Run) {
		t.Errorf("open: %v, %v", open, err)
	}
}

// TestManyTools checks that adding a tool call does not take longer if there are many.
func TestManyTools(t *testing.T) {
	c := newClient(&run{r: &Runner{opt: Options{Now: time.Now}}})
	defer c.show.closeQueue()
	best := time.Hour
	for range 4 { // a slow machine may delay some of the rounds
		began := time.Now()
		for i := range 100_000 {
			c.sums.mergeTool(provider.ToolCall{ID: acp.ToolCallId(fmt.Sprint("tool-", i))})
		}
		best = min(best, time.Since(began))
	}
	if len(c.sums.tools) != 100_000 || best > 2500*time.Millisecond {
		t.Errorf("%d tools took %s", len(c.sums.tools), best)
	}
}
