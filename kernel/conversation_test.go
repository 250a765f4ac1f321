package kernel

import (
	"context"
	"errors"
	"os"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/kernel/filelock"
	"github.com/perlica/perlica/kernel/record"
	"github.com/perlica/perlica/policy"
)

// converse opens a conversation with the predictable agent. state is the folder in which the agent stores its sessions.
// If it is empty, the agent stores none.
func converse(t *testing.T, r *Runner, session event.SessionID, state, scenario string) *Conversation {
	t.Helper()
	setup := testSetup(t, r)
	setup.Session, setup.Budget = session, 10_000
	setup.Agent.Env = append(setup.Agent.Env, stateVar)
	r.opt.Environ = append(os.Environ(), scenarioVar+"=#\n"+scenario, stateVar+"="+state, "GORACE=atexit_sleep_ms=0")
	c, err := r.Converse(t.Context(), setup, 0, "test")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// say runs one input in a conversation.
func say(t *testing.T, c *Conversation, text string) record.Result {
	t.Helper()
	res, err := c.Run(t.Context(), Turn{Input: Input{Text: text, Source: "test"}, Permissions: policy.ModeDeny})
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func closeConversation(t *testing.T, c *Conversation) {
	t.Helper()
	if err := c.Close(context.Background()); err != nil {
		t.Error(err)
	}
	if err := c.Close(context.Background()); !errors.Is(err, ErrConversationClosed) {
		t.Errorf("second Close: %v", err)
	}
}

// sent returns the number of all recorded requests of a method, and the number of requests without a run.
func sent(t *testing.T, r *Runner, method string) (all, noRun int) {
	t.Helper()
	if err := r.log.Sync(); err != nil {
		t.Fatal(err)
	}
	for e, err := range r.log.Events(t.Context(), event.Query{Types: []event.Type{event.RequestSent}}) {
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(e.Payload), `"method":"`+method+`"`) {
			all++
			if e.Run == "" {
				noRun++
			}
		}
	}
	return all, noRun
}

// TestOneAgentSessionForManyInputs checks that all inputs of a conversation use the same agent process and the same
// agent session.
func TestOneAgentSessionForManyInputs(t *testing.T) {
	r := openRunner(t)
	c := converse(t, r, "", "", "")
	c.Warm()
	first := say(t, c, "@show pid")
	second := say(t, c, "@show history\n@show pid")
	closeConversation(t, c)
	if first.Outcome != record.OutcomeResponded || second.Outcome != record.OutcomeResponded || first.Run == second.Run ||
		first.Session != c.Session() {
		t.Fatalf("%+v\n%+v", first, second)
	}
	if !strings.HasSuffix(second.Text, first.Text) || !strings.Contains(second.Text, "@show pid") {
		t.Errorf("the second turn: %q; the first: %q", second.Text, first.Text)
	}
	for method, want := range map[string][2]int{
		"initialize": {1, 1}, "session/new": {1, 1}, "session/prompt": {2, 0}, "session/close": {1, 1},
	} {
		if all, noRun := sent(t, r, method); all != want[0] || noRun != want[1] {
			t.Errorf("%s was sent %d times, %d of them outside a run; want %v", method, all, noRun, want)
		}
	}
	if n, err := r.log.Count(t.Context(), event.Query{Types: []event.Type{event.SessionCreated}}); err != nil || n != 1 {
		t.Errorf("the session began %d times, %v", n, err)
	}
	view, err := r.Sessions(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer view.Close()
	list, err := view.List(t.Context(), true)
	if err != nil || len(list) != 1 || list[0].Turns != 2 || list[0].Ephemeral {
		t.Errorf("sessions: %+v, %v", list, err)
	}
}

// TestAConversationContinues checks the ways to continue a session: session/resume, otherwise session/load, otherwise a
// transcript before the first prompt.
func TestAConversationContinues(t *testing.T) {
	const noResume = "[initialize]\n@unset agentCapabilities.sessionCapabilities.resume\n"
	const noLoad = noResume + "@unset agentCapabilities.loadSession\n"
	for name, tc := range map[string]struct{ scenario, continued string }{
		"resume":                 {"", "resume"},
		"load":                   {noResume, "load"},
		"transcript":             {noLoad, ""},
		"resume is refused":      {"[session/resume]\n@error -32002 unknown\n", "load"},
		"all of it is refused":   {"[session/resume]\n@error -32002 unknown\n[session/load]\n@error -32002 unknown\n", ""},
		"what is said in a load": {noResume + "[session/load]\n@ask execute Sneaky command=rm\n", "load"},
	} {
		t.Run(name, func(t *testing.T) {
			r := openRunner(t)
			state := t.TempDir()
			c := converse(t, r, "", state, "")
			say(t, c, "the first")
			closeConversation(t, c)
			c = converse(t, r, c.Session(), state, tc.scenario)
			shown := 0
			res, err := c.Run(t.Context(), Turn{
				Input: Input{Text: "@show params\n@show history", Source: "test"},
				Show: func(n record.Notice) {
					if _, ok := n.(record.Updated); ok {
						shown++
					}
				},
			})
			_, continued, ok := c.Offers()
			if err != nil || !ok || continued != tc.continued || res.Outcome != record.OutcomeResponded {
				t.Fatalf("continued %q, %v: %+v, %v", continued, ok, res, err)
			}
			if transcript := strings.Contains(res.Text, "earlier turns"); transcript != (tc.continued == "") {
				t.Errorf("a transcript went ahead: %t", transcript)
			}
			if !strings.Contains(res.Text, "the first") || shown > 20 {
				t.Errorf("%d updates were shown: %q", shown, res.Text)
			}
			say(t, c, "a third")
			closeConversation(t, c)
			e, ok, err := r.log.Last(t.Context(), event.Query{Types: []event.Type{event.SessionStarted}})
			if err != nil || !ok {
				t.Fatal(err)
			}
			f, err := fact.Decode[fact.SessionStarted](e)
			if err != nil || f.Strategy != strategyKeep || f.Continued != tc.continued {
				t.Errorf("on record: %+v, %v", f, err)
			}
		})
	}
}

// TestAFreshTurnInBetween checks that a turn with the fresh strategy continues the agent's session, and that the
// session then has the new turn, too.
func TestAFreshTurnInBetween(t *testing.T) {
	r := openRunner(t)
	state := t.TempDir()
	c := converse(t, r, "", state, "")
	say(t, c, "the first")
	closeConversation(t, c)
	setup := c.setup
	if _, err := r.Run(t.Context(), Turn{Input: Input{Text: "the second", Source: "test"}, Setup: setup}); err != nil {
		t.Fatal(err)
	}
	c = converse(t, r, c.Session(), state, "")
	res := say(t, c, "@show params\n@show history")
	if _, how, _ := c.Offers(); how != "resume" || strings.Contains(res.Text, "earlier turns") ||
		!strings.Contains(res.Text, "the first") || !strings.Contains(res.Text, "the second") {
		t.Errorf("continued %q: %q", how, res.Text)
	}
	closeConversation(t, c)
}

// TestTheSessionIsHeld checks that a second conversation or run gets an error with the name of the session's holder.
func TestTheSessionIsHeld(t *testing.T) {
	r := openRunner(t)
	c := converse(t, r, "", "", "")
	setup := c.setup
	_, err := r.Converse(t.Context(), setup, 0, "test")
	var busy *filelock.BusyError
	if !errors.As(err, &busy) || !errors.Is(err, filelock.ErrBusy) || busy.By != "test" || busy.PID == 0 {
		t.Errorf("%v", err)
	}
	if _, err := r.Run(t.Context(), Turn{Input: Input{Text: "x"}, Setup: setup}); !errors.Is(err, filelock.ErrBusy) {
		t.Errorf("a run: %v", err)
	}
	closeConversation(t, c)
	if _, err := c.Run(t.Context(), Turn{Input: Input{Text: "x"}}); !errors.Is(err, ErrConversationClosed) {
		t.Errorf("after Close: %v", err)
	}
	if n, _ := sent(t, r, "initialize"); n != 0 {
		t.Errorf("%d agents were started", n)
	}
}

// TestTheAgentDiesBetweenInputs checks that the next input starts a new agent if the agent has died.
func TestTheAgentDiesBetweenInputs(t *testing.T) {
	r := openRunner(t)
	c := converse(t, r, "", "", "")
	if res := say(t, c, "@say half\n@exit 3"); res.Outcome != record.OutcomeUnknown {
		t.Errorf("the first: %+v", res)
	}
	if res := say(t, c, "hello"); res.Outcome != record.OutcomeResponded || res.Text != "You said: hello" {
		t.Errorf("the second: %+v", res)
	}
	closeConversation(t, c)
	if all, _ := sent(t, r, "session/prompt"); all != 2 {
		t.Errorf("%d prompts", all)
	}
}

// TestAStopComesBeforeItsQuestionsEnd checks the order of a stop: the agent gets the cancellation first, and then its
// questions end. Otherwise the agent could continue and end the turn as usual. If the agent does not read, the
// questions end after cancelFirst.
func TestAStopComesBeforeItsQuestionsEnd(t *testing.T) {
	r := openRunner(t)
	synctest.Test(t, func(t *testing.T) {
		over := make(chan struct{})
		defer close(over)
		for name, read := range map[string]func(){"read": func() { <-time.After(cancelFirst / 2) },
			"deaf": func() { <-over }} {
			run := &run{r: r, agent: &agentSession{}}
			run.client = newClient(run)
			ended := func() bool {
				select {
				case <-run.client.lifecycle.cancelled:
					return true
				default:
					return false
				}
			}
			run.clientPrompt = &ClientPrompt{Cancel: func() error {
				read()
				if name == "read" && ended() {
					t.Error("the questions ended before the agent had read that its turn is cancelled")
				}
				return nil
			}}
			begin := time.Now()
			run.cancelTurn()
			if took := time.Since(begin); !ended() || took > cancelFirst {
				t.Errorf("%s: after %s: %v", name, took, ended())
			}
		}
	})
}

// TestAStopLeavesTheAgent checks that the agent's process survives the cancellation of a turn.
func TestAStopLeavesTheAgent(t *testing.T) {
	r := openRunner(t)
	c := converse(t, r, "", "", "")
	stop := make(chan fact.Stop, 1)
	res, err := c.Run(t.Context(), Turn{
		Input: Input{Text: "@show pid\n@hang", Source: "test"}, Stop: stop,
		Show: func(n record.Notice) {
			if _, ok := n.(record.Updated); ok {
				stop <- fact.Stop{By: "user", Why: "test"}
			}
		},
	})
	if err != nil || res.StopReason != "cancelled" {
		t.Fatalf("%+v, %v", res, err)
	}
	if again := say(t, c, "@show pid"); again.Text != res.Text {
		t.Errorf("another process: %q, %q", again.Text, res.Text)
	}
	closeConversation(t, c)
}

// TestWhatComesBetweenTurns checks that a question between two turns belongs to no run and gets no permission.
func TestWhatComesBetweenTurns(t *testing.T) {
	r := openRunner(t)
	c := converse(t, r, "", "", "")
	res := say(t, c, "@answer\n@ask execute Late command=make wait=no\n@read /etc/passwd")
	if res.Outcome != record.OutcomeResponded || res.Permissions.Allowed > 0 {
		t.Errorf("%+v", res)
	}
	if res = say(t, c, "hello"); res.Outcome != record.OutcomeResponded {
		t.Errorf("%+v", res)
	}
	closeConversation(t, c)
}

// TestAnIdleAgentIsEnded checks that an idle agent ends, and that the next input continues the agent's session.
func TestAnIdleAgentIsEnded(t *testing.T) {
	r := openRunner(t)
	c := converse(t, r, "", t.TempDir(), "")
	c.idle = time.Nanosecond
	c.Lost(func(err error) { t.Errorf("an idle agent is lost: %v", err) })
	say(t, c, "the first")
	for c.Alive() { // the timer's goroutine is about to end the agent
		runtime.Gosched()
	}
	c.turnMu.Lock()
	c.idle = 0
	c.turnMu.Unlock()
	res := say(t, c, "@show history")
	if _, how, _ := c.Offers(); how != "resume" || !strings.Contains(res.Text, "the first") {
		t.Errorf("continued %q: %q", how, res.Text)
	}
	closeConversation(t, c)
	if all, _ := sent(t, r, "session/close"); all != 1 {
		t.Errorf("session/close was sent %d times: an idle agent's session is not closed", all)
	}
}

// TestAnAgentThatDiedAtRest checks that the next input continues the session of an agent that died while it
// was idle.
func TestAnAgentThatDiedAtRest(t *testing.T) {
	r := openRunner(t)
	c := converse(t, r, "", t.TempDir(), "")
	say(t, c, "the first")
	c.mu.Lock()
	l := c.agent
	c.mu.Unlock()
	l.conn.Kill()
	<-l.conn.Gone()
	if res := say(t, c, "@show history"); res.Outcome != record.OutcomeResponded ||
		!strings.Contains(res.Text, "the first") {
		t.Errorf("%+v", res)
	}

	// At the agent's death, the function of Lost is called at once, and the conversation has no agent any more.
	lost := make(chan error, 2)
	c.Lost(func(err error) { lost <- err })
	c.mu.Lock()
	l = c.agent
	c.mu.Unlock()
	l.conn.Kill()
	select {
	case err := <-lost:
		if !errors.Is(err, l.conn.Err()) {
			t.Errorf("lost: %v", err)
		}
	case <-time.After(2 * time.Minute):
		t.Fatal("Lost is not called")
	}
	if c.Alive() {
		t.Error("the dead one is kept")
	}
	say(t, c, "the last")
	closeConversation(t, c)
	if len(lost) > 0 {
		t.Errorf("an agent that was ended is lost: %v", <-lost)
	}
}
