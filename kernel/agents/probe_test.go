package agents

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/perlica/perlica/kernel/config"
	"github.com/perlica/perlica/provider"
	"github.com/perlica/perlica/provider/predictable"
)

// scenarioVar is a variable of the environment. It makes the test binary the predictable agent, and its value is the
// agent's scenario.
const scenarioVar = "AGENTS_TEST_SCENARIO"

// TestAgentProcess is not a test. It is the agent process for the tests of this package.
func TestAgentProcess(t *testing.T) {
	scenario, ok := os.LookupEnv(scenarioVar)
	if !ok {
		t.Skip("started by other tests")
	}
	if err := predictable.Serve(context.Background(), os.Stdin, os.Stdout, os.Stderr,
		predictable.Options{Scenario: scenario}); err != nil {
		os.Exit(1)
	}
	os.Exit(0) // ends before the testing package prints
}

// probeTest probes an agent that plays a scenario.
func probeTest(t *testing.T, scenario string, change func(*Agent)) ProbeReport {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	a := Agent{
		Agent: provider.Agent{ID: "test", Command: []string{self, "-test.run=^TestAgentProcess$"},
			Env: []string{scenarioVar, "GORACE"}},
		ConnectTimeout: time.Minute, RequestTimeout: time.Minute,
	}
	if change != nil {
		change(&a)
	}
	// Under the race detector a process sleeps for a second before it ends.
	opt := ProbeOptions{Dir: t.TempDir(), Environ: append(os.Environ(), scenarioVar+"=#\n"+scenario,
		"GORACE=atexit_sleep_ms=0"), Version: "test"}
	r := Probe(t.Context(), a, opt)
	for n := 0; n < 3 && strings.Contains(r.Exit, "SIG"); n++ { // a slow machine may not leave it time to end
		r = Probe(t.Context(), a, opt)
	}
	return r
}

func stepNames(r ProbeReport) string {
	var names []string
	for _, s := range r.Steps {
		if !s.OK {
			names = append(names, "!"+s.Name)
			continue
		}
		names = append(names, s.Name)
	}
	return strings.Join(names, " ")
}

func TestProbeOfAHealthyAgent(t *testing.T) {
	r := probeTest(t, "", func(a *Agent) { a.Asking.Mode = "auto" })
	if r.Err != nil || len(r.Warnings) > 0 {
		t.Fatalf("got %v, %v; want r.Err == nil && len(r.Warnings) <= 0", r.Err, r.Warnings)
	}
	if got := stepNames(r); got != "start initialize session/new select mode session/close end" {
		t.Errorf("steps: %s", got)
	}
	if r.StartMode != "ask" || r.Mode != "auto" || r.Protocol != 1 || r.Agent == nil ||
		r.Exit != "left by itself with code 0" {
		t.Errorf("got %+v", r)
	}
}

// TestProbeNeverPrompts uses an agent that writes "prompted" after a prompt, and checks that this text never comes.
func TestProbeNeverPrompts(t *testing.T) {
	r := probeTest(t, "[session/prompt]\n@stderr prompted\n@exit 9\n[session/close]\n@stderr closed\n", nil)
	if r.Err != nil || !strings.Contains(r.Stderr, "closed") || strings.Contains(r.Stderr, "prompted") ||
		r.Exit != "left by itself with code 0" {
		t.Errorf("%v, %q, %q", r.Err, r.Stderr, r.Exit)
	}
}

func TestProbeSaysWhatFailed(t *testing.T) {
	for _, tt := range []struct {
		name, scenario string
		kind           provider.ErrorType
		steps          string
	}{
		{"dies", "[initialize]\n@exit 3\n", provider.TypeGone, "start !initialize end"},
		{"wants a login", "[session/new]\n@auth\n", provider.TypeAuth, "start initialize !session/new end"},
		{"speaks another version", "[initialize]\n@set protocolVersion 7\n", provider.TypeProtocol, "start !initialize end"},
		{"hangs", "[initialize]\n@hang\n", provider.TypeTimeout, "start !initialize end"},
		{"no session id", "[session/new]\n@result {}\n", provider.TypeProtocol, "start initialize !session/new end"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := probeTest(t, tt.scenario, func(a *Agent) {
				if tt.kind == provider.TypeTimeout {
					a.ConnectTimeout = 100 * time.Millisecond
				}
			})
			if r.Err == nil || r.Err.Type != tt.kind || stepNames(r) != tt.steps || r.Exit == "" {
				t.Errorf("%v, steps %s, exit %q", r.Err, stepNames(r), r.Exit)
			}
		})
	}
}

// TestProbeGoesOnWithoutAClosedSession expects a warning if a session cannot be closed.
func TestProbeGoesOnWithoutAClosedSession(t *testing.T) {
	r := probeTest(t, "[session/close]\n@error -32603 broken\n", nil)
	if r.Err != nil || len(r.Warnings) != 1 || !strings.Contains(r.Warnings[0], "could not be closed") {
		t.Errorf("%v, %v", r.Err, r.Warnings)
	}
}

// TestProbeRefusesWhatIsAskedTooEarly checks that Probe refuses a request that comes without a prompt, because no
// person can answer it.
func TestProbeRefusesWhatIsAskedTooEarly(t *testing.T) {
	r := probeTest(t, "[session/close]\n@read /etc/passwd\n", nil)
	if r.Err != nil || len(r.Warnings) == 0 || !strings.Contains(strings.Join(r.Warnings, "\n"),
		"fs/read_text_file, which was refused") {
		t.Errorf("%v, %v", r.Err, r.Warnings)
	}
}

func TestProbeEndsWithItsContext(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("interrupted"))
	r := Probe(ctx, Agent{
		Agent: provider.Agent{ID: "test", Command: []string{self, "-test.run=^TestAgentProcess$"},
			Env: []string{scenarioVar}},
	}, ProbeOptions{Dir: t.TempDir(), Environ: append(os.Environ(), scenarioVar+"=[initialize]\n@hang\n")})
	if r.Err == nil || r.Err.Type != provider.TypeStopped || r.Exit == "" {
		t.Errorf(`got %v, %q; want r.Err != nil && r.Err.Type == provider.TypeStopped && r.Exit != ""`, r.Err, r.Exit)
	}
}

func TestListing(t *testing.T) {
	self := os.Args[0]
	r := Resolver{Self: self, Config: &config.Config{Providers: map[string]config.Provider{
		"codex": {ID: "codex"}, // not enabled
		"mine":  {ID: "mine", Enabled: true, Command: "no-such-program"},
		"empty": {ID: "empty", Enabled: true},
	}}, LookPath: func(name string) (string, error) {
		if name == "goose" || name == "/bin/goose" || name == self {
			return "/bin/goose", nil
		}
		return "", os.ErrNotExist
	}}
	states := map[string]State{}
	def := ""
	for _, l := range r.List() {
		states[l.ID] = l.State
		if l.Default {
			def += l.ID
		}
	}
	for id, want := range map[string]State{
		"claude": Missing, "goose": Installed, "codex": Disabled, "mine": Missing, "empty": Missing, "predictable": Installed,
	} {
		if states[id] != want {
			t.Errorf("%s is %s, want %s", id, states[id], want)
		}
	}
	if def != "goose" {
		t.Errorf("the default is %q", def)
	}
	if w := r.Warnings(); len(w) != 1 || !strings.Contains(w[0], "providers.empty") {
		t.Errorf("warnings: %q", w)
	}
}
