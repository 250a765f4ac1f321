//go:build linux

package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/perlica/perlica/eventlog/event"
)

// behind is an agent that perlica acp starts, with the prompts that a test needs.
type behind struct {
	Flags    [2]string `json:"-"`     // flags with which perlica starts the agent
	Keep     string    `json:"-"`     // number of seconds for which acpx does not end an idle agent
	Plain    string    `json:"plain"` // a prompt to which the agent answers without a question
	Said     string    `json:"said"`  // a part of the answer to Plain
	Ask      string    `json:"ask"`   // a prompt to which the agent asks one question
	AskAgain string    `json:"askAgain"`
	Slow     string    `json:"slow"`  // a prompt to which the agent never answers
	Begun    string    `json:"begun"` // the first text of the answer to Slow
}

// behindThis returns the predictable agent, which stores its sessions below dir.
func behindThis(dir string) behind {
	return behind{
		Flags: [2]string{"--agent", "perlica agent predictable --state " + filepath.Join(dir, "sessions")},
		Keep:  "1", Plain: "hello", Said: "You said: hello", Ask: question, AskAgain: question, Slow: "@say begun\n@hang",
		Begun: "begun",
	}
}

// real returns the agent claude, codex or opencode. The program in PERLICA_REAL_AGENT starts the agent, with the
// arguments "exec NAME DIR". Its model server follows the instructions in the prompt.
func (w *world) real(name string) behind {
	w.t.Helper()
	dir := w.t.TempDir()
	args, err := json.Marshal(append([]string{"AGENT_HOME=" + dir},
		append(strings.Fields(os.Getenv("PERLICA_REAL_AGENT")), "exec", name, dir)...))
	if err != nil {
		w.t.Fatal(err)
	}
	w.config(fmt.Sprintf("[providers.%s.adapter]\ncommand = \"env\"\nargs = %s\n", name, args))
	return behind{
		Flags: [2]string{"--provider", name},
		Keep:  "15", Plain: "hello", Said: "hello", Ask: "WRITE one.txt hello", AskAgain: "WRITE two.txt hello",
		Slow: "SLOW 600", Begun: "slow10",
	}
}

// TestTypeScriptClient checks turns, questions, cancels and sessions of the predictable agent with a client in the
// TypeScript SDK. The client starts perlica in the root and in the home directory. Only the projects get logs, and
// no other files are made.
func TestTypeScriptClient(t *testing.T) {
	needsClient(t, "@agentclientprotocol/sdk")
	for _, where := range []string{"/", "home"} {
		t.Run(where, func(t *testing.T) {
			w := newWorld(t)
			dir := where
			if dir == "home" {
				dir = w.home
			}
			w.typeScript(dir, behindThis(t.TempDir()))
			for _, dir := range []string{"/.perlica_config", filepath.Join(w.home, ".perlica_config")} {
				if _, err := os.Lstat(dir); err == nil {
					t.Errorf("there is %s", dir)
				}
			}
			if entries, err := os.ReadDir(w.home); err != nil || len(entries) != 1 || entries[0].Name() != ".perlica" {
				t.Errorf("the home has %v (%v)", entries, err)
			}
		})
	}
}

// TestRealAgents checks the same as TestTypeScriptClient, with real agents. It does not run by default, see
// CONTRIBUTING.md.
func TestRealAgents(t *testing.T) {
	if os.Getenv("PERLICA_REAL_AGENT") == "" {
		t.Skip("PERLICA_REAL_AGENT names no program that starts real agents")
	}
	needsClient(t, "@agentclientprotocol/sdk")
	needsClient(t, "acpx")
	for _, name := range strings.Fields(cmp.Or(os.Getenv("PERLICA_REAL_AGENTS"), "claude codex opencode")) {
		t.Run(name+", TypeScript", func(t *testing.T) {
			w := newWorld(t)
			w.typeScript(w.home, w.real(name))
		})
		t.Run(name+", acpx", func(t *testing.T) {
			w := newWorld(t)
			w.turnsOfACPX(w.real(name))
		})
	}
}

// needsClient skips the test if an npm package is not installed.
func needsClient(t *testing.T, name string) {
	t.Helper()
	if _, err := exec.LookPath("node"); err != nil {
		t.Skip("NOT TESTED: perlica acp with foreign clients: node is not installed")
	}
	if _, err := os.Stat(filepath.Join(clientFolder, "node_modules", name)); err != nil {
		t.Skipf("NOT TESTED: perlica acp with %s: run 'npm ci' in %s", name, clientFolder)
	}
}

// typeScript runs acp.test.mjs in a directory and then checks the log.
func (w *world) typeScript(dir string, b behind) {
	w.t.Helper()
	other := filepath.Join(filepath.Dir(w.project), "other")
	if err := os.Mkdir(other, 0o700); err != nil {
		w.t.Fatal(err)
	}
	projects, err := json.Marshal([]string{w.project, other})
	if err != nil {
		w.t.Fatal(err)
	}
	script, err := json.Marshal(b)
	if err != nil {
		w.t.Fatal(err)
	}
	flags, err := json.Marshal(b.Flags)
	if err != nil {
		w.t.Fatal(err)
	}
	cmd := exec.Command("node", "--test", absolute(w.t, filepath.Join(clientFolder, "acp.test.mjs")))
	cmd.Dir, cmd.Env = dir, append(slices.Clone(w.env), "AGENT="+string(flags), "SCRIPT="+string(script),
		"PROJECTS="+string(projects))
	if out, err := cmd.CombinedOutput(); err != nil {
		w.t.Errorf("%v\n%s", err, out)
	}
	w.logged(7, "llm.requested")
	w.logged(7, "llm.responded")
	w.logged(1, "run.cancel_requested")
	w.logged(2, "interaction.answered", `"by":"typescript 1"`)
	w.logged(3, "session.created") // Loading a session does not record that a session was created.
	w.audit()
	w.project = other
	w.logged(1, "llm.responded")
	w.audit()
	if err := auditLog(w.userLog()); err != nil {
		w.t.Error(err)
	}
	events, err := readLog(w.userLog())
	if n := countEvents(events, "llm.responded"); err != nil || n != 1 {
		w.t.Errorf("the user's own log has %d answers, %v", n, err)
	}
}

// acpx returns a command that runs acpx. perlica is its agent, and perlica starts the agent b.
func (w *world) acpx(b behind, flags []string, args ...string) *exec.Cmd {
	w.t.Helper()
	all := slices.Concat([]string{absolute(w.t, filepath.Join(clientFolder, "node_modules", "acpx", "dist", "cli.js")),
		"--agent", fmt.Sprintf("perlica acp %s '%s'", b.Flags[0], b.Flags[1]), "--cwd", w.project, "--format", "text",
		"--ttl", b.Keep}, flags, args)
	cmd := exec.Command("node", all...)
	cmd.Dir, cmd.Env = w.project, w.env
	return cmd
}

// does runs a command and returns its output. The test fails unless the exit code is one of codes.
func (w *world) does(cmd *exec.Cmd, codes ...int) string {
	w.t.Helper()
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil || !slices.Contains(codes, cmd.ProcessState.ExitCode()) {
		w.t.Errorf("acpx: %v\n%s", err, out)
	}
	return string(out)
}

// turnsOfACPX uses acpx like an editor. It checks a turn, questions, a cancel and a continued session.
func (w *world) turnsOfACPX(b behind) {
	w.t.Helper()
	yes, no := []string{"--approve-all"}, []string{"--deny-all"}
	w.does(w.acpx(b, yes, "sessions", "new"), 0)
	if out := w.does(w.acpx(b, yes, "prompt", b.Plain), 0); !strings.Contains(out, b.Said) {
		w.t.Errorf("acpx shows %q", out)
	}
	// acpx does not end an agent at once, and refuses prompts while the agent ends. The test therefore waits until
	// the agent is gone. The next agent continues the session.
	w.gone()
	w.does(w.acpx(b, yes, "prompt", b.Ask), 0)
	w.gone()
	w.does(w.acpx(b, no, "prompt", b.AskAgain), 0, 5) // Exit code 5 means that every question was denied.
	w.gone()
	slow := w.startCmd(w.acpx(b, yes, "prompt", b.Slow))
	w.until(1, "acp.notification.received", b.Begun)
	w.does(w.acpx(b, yes, "cancel"), 0)
	slow.wait()
	w.does(w.acpx(b, yes, "sessions", "close"), 0)
	w.logged(4, "llm.requested")
	w.logged(4, "llm.responded")
	w.logged(1, "llm.responded", `"stop_reason":"cancelled"`, b.Begun)
	w.until(2, "interaction.answered", `"by":"acpx `, `"where":"editor"`) // Some agents ask the question twice.
	w.audit()
}

// questionOf returns the id of the question that has a title.
func (w *world) questionOf(title string) string {
	w.t.Helper()
	events, err := readLog(logFile(w.project))
	if err != nil {
		w.t.Fatal(err)
	}
	for _, e := range events {
		if e.Type == event.InteractionRequested && strings.Contains(string(e.Payload), title) {
			return string(e.Refs.Interaction)
		}
	}
	w.t.Fatalf("there is no question %q", title)
	return ""
}

func TestACPX(t *testing.T) {
	needsClient(t, "acpx")
	if testing.Short() {
		t.Skip("acpx keeps its agents for seconds")
	}
	w := newWorld(t)
	w.turnsOfACPX(behindThis(t.TempDir()))
	w.logged(1, "session.created")
	w.logged(2, "interaction.answered")
}

// TestEditorAnswers checks the setting editor.answers. acpx with --approve-all says yes to every question. The
// setting limits these answers to some questions and never to the refused tier. All other questions wait for a
// person at another front end.
func TestEditorAnswers(t *testing.T) {
	needsClient(t, "acpx")
	const ordinary, asked, refused = `@ask execute "Build it" command="make all"`,
		`@ask execute "Install it" command="sudo apt install x"`, `@ask execute "Free it" command="rm -rf /"`
	for answers, persons := range map[string][]string{
		"ordinary": {"Install it", "Free it"}, "asked": {"Free it"}, "none": {"Build it", "Install it", "Free it"},
	} {
		t.Run(answers, func(t *testing.T) {
			w := newWorld(t)
			w.env = append(w.env, "PERLICA_EDITOR_ANSWERS="+answers)
			j := w.startCmd(w.acpx(behindThis(t.TempDir()), []string{"--approve-all"}, "exec",
				strings.Join([]string{ordinary, asked, refused}, "\n")))
			for _, title := range persons {
				w.until(1, "interaction.requested", title)
				w.run("pending", "deny", w.questionOf(title)).exits(0)
			}
			j.exits(0)
			w.logged(3-len(persons), "interaction.answered", `"option":"allow-once","by":"acpx 0.`)
			w.logged(len(persons), "interaction.answered", `"option":"reject-once"`)
			w.logged(3, "interaction.answered")
			w.audit()
		})
	}
}
