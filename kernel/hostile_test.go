package kernel

import (
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
	"github.com/perlica/perlica/interaction"
	"github.com/perlica/perlica/policy"
	"github.com/perlica/perlica/provider"
)

// TestLocksLieInTheirFolder: the ids of runs and sessions are read from a log that may be
// somebody else's, and the file of a lock is removed with it.
func TestLocksLieInTheirFolder(t *testing.T) {
	r := openRunner(t)
	victim := filepath.Join(filepath.Dir(r.opt.Paths.Locks), "Cargo.lock")
	if err := os.WriteFile(victim, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"x/../../Cargo", "../run-x/../Cargo", `x\..\Cargo`, "", "/", "x\x00y"} {
		for _, path := range []string{runLockPath(r.opt.Paths.Locks, id), sessionLockPath(r.opt.Paths.Locks, id)} {
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

// TestRecoveryOfARunWithoutEvents: its row is a hostile file's. It is taken off the list.
func TestRecoveryOfARunWithoutEvents(t *testing.T) {
	r := openRunner(t)
	db, err := sqlx.Open("sqlite", r.opt.Paths.EventLog)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec(`INSERT INTO open_runs (run_id, seq) VALUES ('nothing', 7)`); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if got, err := r.Recover(t.Context()); err != nil || len(got) != 1 {
		t.Errorf("recovered %v, %v", got, err)
	}
	if open, err := r.log.OpenRuns(t.Context()); err != nil || len(open) > 0 {
		t.Errorf("still open: %v, %v", open, err)
	}
}

// TestADeadLogIsWhatIsTold: whatever else failed before the prompt, the record comes first.
func TestADeadLogIsWhatIsTold(t *testing.T) {
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
	_ = dead.Close() // says it again
}

// TestRecoveryOfARunThatJustEnded: it was open when it was listed, and had its outcome when
// its lock was free. Nobody is told that its outcome is unknown.
func TestRecoveryOfARunThatJustEnded(t *testing.T) {
	r := openRunner(t)
	run := abandon(t, r, 4)
	append1(t, r, eventlog.NewFact(eventlog.Responded, "agent", eventlog.Refs{Run: run}, responded{Text: "done"}))
	if ended, err := r.recoverRun(t.Context(), run); ended || err != nil {
		t.Errorf("recovered: %t, %v", ended, err)
	}
}

// TestRecoveryWithFactsOfALaterVersion: a question that cannot be decoded is closed all the
// same, and runs go on.
func TestRecoveryWithFactsOfALaterVersion(t *testing.T) {
	r := openRunner(t)
	run := abandon(t, r, 4)
	refs := eventlog.Refs{Run: run, Trace: "t", Interaction: "q"}
	append1(t, r, eventlog.NewFact(eventlog.InteractionRequested, "agent", refs, map[string]any{"title": 7, "options": "many"}))
	if got, err := r.Recover(t.Context()); err != nil || len(got) != 1 {
		t.Fatalf("recovered %v, %v", got, err)
	}
	if end, err := interaction.Closed(t.Context(), &r.log.Reader, "q"); err != nil || end == nil || end.Lapsed != interaction.Crashed {
		t.Errorf("the question: %+v, %v", end, err)
	}
}

// TestSessionsWithFactsOfALaterVersion: what cannot be decoded hides no other session.
func TestSessionsWithFactsOfALaterVersion(t *testing.T) {
	r := openRunner(t)
	id, err := r.CreateSession(t.Context(), SessionFacts{Name: "mine", Provider: "p"})
	if err != nil {
		t.Fatal(err)
	}
	for _, ty := range []eventlog.Type{eventlog.SessionCreated, eventlog.SessionRenamed, eventlog.MessageReceived} {
		append1(t, r, eventlog.Event{Type: ty, Class: eventlog.Fact, Refs: eventlog.Refs{Session: "s"}, Payload: []byte(`["not", "ours"]`)})
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

// TestAmbiguousOptionsAreNotOffered: an id that stands for a no and for a yes could be
// chosen as the one and be taken for the other.
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

// hostileTurn runs one turn with the predictable agent, as its prompt's lines tell it.
func hostileTurn(t *testing.T, r *Runner, script string, change func(*Turn)) (Result, error) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// Under the race detector a process sleeps for a second before it ends.
	r.opt.Environ = append(os.Environ(), scenarioVar+"=#", "GORACE=atexit_sleep_ms=0")
	turn := Turn{
		Input: Input{Text: script, Source: "test"},
		Agent: Agent{
			Agent:          provider.Agent{ID: "test", Command: []string{self, "-test.run=^TestAgentProcess$"}, Env: []string{scenarioVar, "GORACE"}},
			ConnectTimeout: 10 * time.Second, RequestTimeout: 10 * time.Second,
		},
		Dir: t.TempDir(), Permissions: policy.ModeAsk, AnswerIn: time.Minute,
	}
	if change != nil {
		change(&turn)
	}
	return r.Run(t.Context(), turn)
}

// TestANoThatIsAYesIsNotSent: with one id for both, a question is answered cancelled.
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

// TestAnAnswerThatIsNoOption: somebody else may write the log. That ends no process.
func TestAnAnswerThatIsNoOption(t *testing.T) {
	r := openRunner(t)
	res, err := hostileTurn(t, r, `@ask execute T command="make"`, func(turn *Turn) {
		turn.Show = func(n Notice) {
			if q, ok := n.(Asked); ok {
				refs := q.Refs
				refs.Interaction = q.ID
				append1(t, r, eventlog.NewFact(eventlog.InteractionAnswered, "user", refs, map[string]any{"option": 1}))
				if err := r.questions.Answer(t.Context(), q.ID, interaction.Answer{Option: "allow-once", By: "t"}); err == nil {
					t.Error("a second answer counts")
				}
				turn.Permissions = ""
			}
		}
		turn.AnswerIn = 300 * time.Millisecond
	})
	if err != nil || res.Text != "permission: cancelled\n" || res.Outcome != OutcomeResponded || res.Permissions.Allowed > 0 {
		t.Errorf("%+v, %v", res, err)
	}
}

// TestAnswersRaceWithTheirEnds: an answer, its question's time, a stop and the agent's end
// come at one moment. Whatever wins: one outcome, one end of the question, and a yes to the
// agent only if the answer stands on the log.
func TestAnswersRaceWithTheirEnds(t *testing.T) {
	r := openRunner(t)
	for i := range 40 {
		stop := make(chan Stop, 1)
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
			turn.Show = func(n Notice) {
				q, ok := n.(Asked)
				if !ok {
					return
				}
				go func() {
					answered <- r.questions.Answer(t.Context(), q.ID, interaction.Answer{Option: "allow-once", By: "t"})
				}()
				if i%4 == 2 {
					stop <- Stop{By: "user", Why: "test"}
				}
			}
		})
		if err != nil || res.Outcome != OutcomeResponded {
			t.Fatalf("turn %d: %+v, %v", i, res, err)
		}
		aerr := <-answered
		var taken *interaction.TakenError
		if aerr != nil && !errors.As(aerr, &taken) {
			t.Fatalf("turn %d: the answer: %v", i, aerr)
		}
		var ends, yes []eventlog.Event
		for e, err := range r.log.Events(t.Context(), eventlog.Query{Run: res.Run, Class: eventlog.Fact}) {
			switch {
			case err != nil:
				t.Fatal(err)
			case e.Type == eventlog.InteractionAnswered, e.Type == eventlog.InteractionLapsed:
				ends = append(ends, e)
			case e.Type == eventlog.ReplySent:
				if s, err := decodePayload[replySent](e); err != nil || s.Option == "allow-once" {
					yes = append(yes, e)
				}
			}
		}
		if len(ends) != 1 || (ends[0].Type == eventlog.InteractionAnswered) != (aerr == nil) || len(yes) > 0 && (aerr != nil || yes[0].Seq < ends[0].Seq) {
			t.Fatalf("turn %d: ends %v, yes %v, answer %v", i, ends, yes, aerr)
		}
	}
}

// TestLateQuestionsDoNotRace is for the race detector: questions that come behind the answer
// add to the tools while the outcome is written.
func TestLateQuestionsDoNotRace(t *testing.T) {
	r := openRunner(t)
	res, err := hostileTurn(t, r, "@ask execute T command=\"make\" count=40 wait=no\n@tool edit E path=a\n@answer\n@ask execute T command=\"make\" count=40 wait=no", func(turn *Turn) {
		turn.AnswerIn = 0
	})
	if err != nil || res.Outcome != OutcomeResponded {
		t.Errorf("%+v, %v", res, err)
	}
	open, err := r.log.OpenRuns(t.Context())
	if err != nil || slices.Contains(open, res.Run) {
		t.Errorf("open: %v, %v", open, err)
	}
}

// TestManyTools: what an agent says of its tools costs no more the more it says.
func TestManyTools(t *testing.T) {
	c := newClient(&run{r: &Runner{opt: Options{Now: time.Now}}})
	defer c.show.close()
	began := time.Now()
	for range 2 {
		for i := range 100_000 {
			c.noteTool(provider.ToolCall{ID: acp.ToolCallId(fmt.Sprint("tool-", i))})
		}
	}
	if took := time.Since(began); len(c.tools) != 100_000 || took > 5*time.Second {
		t.Errorf("%d tools took %s", len(c.tools), took)
	}
}
