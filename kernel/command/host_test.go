package command

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/store/storetest"
	"github.com/perlica/perlica/interaction"
	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/kernel/agents"
	"github.com/perlica/perlica/kernel/flow"
	"github.com/perlica/perlica/kernel/project"
	"github.com/perlica/perlica/policy"
	"github.com/perlica/perlica/provider"
	"github.com/perlica/perlica/provider/predictable"
)

// agentVar is a variable of the environment. It makes this binary the predictable agent, and its value is the agent's
// scenario.
const agentVar = "COMMAND_TEST_AGENT"

func TestMain(m *testing.M) {
	if os.Getenv(agentVar) == "" {
		os.Exit(m.Run())
	}
	opt := predictable.Options{Scenario: os.Getenv(agentVar)}
	if err := predictable.Serve(context.Background(), os.Stdin, os.Stdout, os.Stderr, opt); err != nil {
		os.Exit(1)
	}
}

// newHost returns a host with a new log and a predictable agent that plays the scenario.
func newHost(t *testing.T, scenario ...string) *Host {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	environ := append(os.Environ(), "PERLICA_HOME="+t.TempDir(), agentVar+"=#\n"+strings.Join(scenario, "\n"))
	p, err := project.Find(dir, environ, nil)
	if err != nil {
		t.Fatal(err)
	}
	r, done, err := p.Open(t.Context(), "test")
	if err != nil {
		t.Fatal(err)
	}
	agent := agents.Agent{Agent: provider.Agent{ID: "test", Command: []string{self}, Env: []string{agentVar}}}
	c, err := r.Converse(t.Context(), kernel.Setup{Agent: agent, Dir: dir}, time.Hour, "test")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(c.Close(context.Background()), done()); err != nil {
			t.Error(err)
		}
	})
	return &Host{Runner: r, Conversation: c, Agents: p.Resolver(), Workspace: p.Workspace, Dirs: p.Dirs, By: "me",
		Flows: flow.Teller(p, r),
		Where: "test",
		Now:   func() time.Time { return time.Now().Add(interaction.ReadTime) }, // so that each question counts as read
	}
}

// does carries out a line and returns the host's answer.
func (h *Host) does(t *testing.T, line string) Output {
	t.Helper()
	l, err := Parse(line)
	if err != nil {
		t.Fatal(err)
	}
	out, err := h.Do(t.Context(), l)
	if err != nil {
		t.Fatalf("%s: got %v; want err == nil", line, err)
	}
	return out
}

// says carries out each line and checks that the host's answer contains the wanted words.
func (h *Host) says(t *testing.T, lines map[string]string) {
	t.Helper()
	for line, want := range lines {
		if out := h.does(t, line); !strings.Contains(out.Text, want) {
			t.Errorf("%s: %q has no %q", line, out.Text, want)
		}
	}
}

// TestHostOnAConversation checks that the host shows a session's recorded turns and its newest settings.
func TestHostOnAConversation(t *testing.T) {
	h := newHost(t)
	h.says(t, map[string]string{"/log": "The log has no events", "/pending": ""})
	// These commands start the agent and wait for it.
	h.says(t, map[string]string{"/mode": "auto", "/config": "", "/model": "", "/status": "the event log"})
	res, err := h.Conversation.Run(t.Context(), kernel.Turn{
		Input: kernel.Input{Text: "@tokens 12 34\n@say done", Source: "test"}, Permissions: policy.ModeDeny,
	})
	if err != nil || res.Text != "done" {
		t.Fatalf(`got %+v, %v; want err == nil && res.Text == "done"`, res, err)
	}
	h.says(t, map[string]string{
		"/log": "llm.responded", "/log 1": "llm.single_call.enforced", "/log verify": "as they were written",
		"/log show " + string(res.Run): "inbound.message.received", "/usage": "12", "/mode": "auto",
		"/session current": string(h.Conversation.Session())[:8],
		"/provider":        "predictable", "/policy": "",
	})
	h.does(t, "/mode auto")
	if out := h.does(t, "/mode"); !strings.Contains(out.Text, "auto") || h.mustMode(t) != "auto" {
		t.Errorf(`got %q; want strings.Contains(out.Text, "auto") && h.mustMode(t) == "auto"`, out.Text)
	}
	for _, line := range []string{"/log 0", "/log 1001", "/log show", "/mode a b", "/config a", "/provider a b"} {
		l, err := Parse(line)
		if err != nil {
			t.Fatal(err)
		}
		var usage *usageError
		if out, err := h.Do(t.Context(), l); !errors.As(err, &usage) {
			t.Errorf("%s: got %+v, %v; want errors.As(err, &usage)", line, out, err)
		}
	}
}

// mustMode returns the mode that the agent reports.
func (h *Host) mustMode(t *testing.T) string {
	t.Helper()
	o, _, ok := h.offers()
	if !ok {
		t.Fatal("the agent offers nothing")
	}
	return o.Mode
}

// TestEffects checks the effect that each command returns for the front end.
func TestEffects(t *testing.T) {
	h := newHost(t)
	for line, want := range map[string]Effect{"/again": Recall, "/discard": Discard, "/clear": Switch,
		"/thoughts": Thoughts, "/exit": Exit, "/provider predictable": Switch} {
		if out := h.does(t, line); out.Effect != want {
			t.Errorf("%s: got %+v; want out.Effect == %v", line, out, want)
		}
	}
	l, _ := Parse("/provider nosuch")
	if out, err := h.Do(t.Context(), l); err == nil || out.Effect != None {
		t.Errorf("a provider that is none: %+v", out)
	}
}

// TestForgedLog checks that /log and /usage return an error if the log was forged.
func TestForgedLog(t *testing.T) {
	h := newHost(t, "@say 100 euro")
	if _, err := h.Conversation.Run(t.Context(), kernel.Turn{Input: kernel.Input{Text: "pay 100 euro", Source: "test"}}); err != nil {
		t.Fatal(err)
	}
	db := sqlx.MustOpen("sqlite", h.Runner.Log().Path()+"?_pragma=busy_timeout(10000)")
	db.MustExec(storetest.Editable + `DROP TRIGGER events_lose_nothing_but_payloads; UPDATE events SET
		payload = CAST(replace(CAST(payload AS TEXT), '100 euro', '900 euro') AS BLOB)`)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"/log", "/log 100", "/usage"} {
		l, err := Parse(line)
		if err != nil {
			t.Fatal(err)
		}
		if out, err := h.Do(t.Context(), l); !errors.As(err, new(*event.DamagedError)) || out.Text != "" {
			t.Errorf(`%s: got %+v, %v; want errors.As(err, new(*event.DamagedError)) && out.Text == ""`, line, out, err)
		}
	}
}
