package checkup

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"

	"github.com/perlica/perlica/kernel/project"
	"github.com/perlica/perlica/provider/process"
)

// TestFaultsOfAgents checks the findings about configured agents and about the default agent.
func TestFaultsOfAgents(t *testing.T) {
	configured := func(text string) harm {
		return func(t *testing.T, p *project.Project, c *Checkup) {
			instead(t, p.Dirs.ConfigFile(), text)
			again, err := project.Find(p.Dir, p.Environ, nil)
			try(t, err)
			c.Config, c.Agents = again.Config, again.Resolver()
			c.Agents.LookPath = func(name string) (string, error) {
				if name == "present" || name == os.Args[0] {
					return name, nil
				}
				return "", &exec.Error{Name: name, Err: exec.ErrNotFound}
			}
		}
	}
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	const provider = "[model]\ndefault_provider = \"mine\"\n[providers.mine]\n"
	const model = "[providers.local.model]\napi = \"openai-chat\"\n"
	faults(t, map[string]struct {
		harm harm
		want result
	}{
		"the built-in one answers": {configured("# nothing\n"), result{"default-agent", Warn, "only echoes",
			"choose an agent with --provider"}},
		"it is there": {configured(provider + "adapter.command = \"present\"\n"),
			result{"default-agent", OK, "mine, as the configuration says", ""}},
		"it is not there": {configured(provider + "adapter.command = \"absent\"\n"),
			result{"default-agent", Fail, "mine: its program cannot be started", "see 'perlica provider show mine'"}},
		"it is disabled": {configured(provider + "enabled = false\nadapter.command = \"present\"\n"),
			result{"default-agent", Fail, "disabled by the configuration", "providers.mine.enabled = true"}},
		"one is installed": {configured(provider + "adapter.command = \"present\"\n"),
			result{"agents", OK, "1 agent installed: mine", ""}},
		"none is installed": {configured("# nothing\n"), result{"agents", OK, "none is installed but the built-in one",
			""}},
		"one is missing": {configured(provider + "adapter.command = \"absent\"\n"),
			result{"agents", Warn, "mine cannot be used", "see 'perlica provider show mine'"}},
		"a model on this machine": {configured(model + "name = \"m\"\nbase_url = \"" + server.URL + "/v1\"\n"),
			result{"models", OK, "local: " + server.URL, ""}},
		"a model without a name": {configured(model), result{"models", Warn, "local: its model: none is named",
			"name one with --model, or set providers.local.model.name"}},
	})
}

// TestSurvivingProcesses checks that the checkup lists a process that an agent of an ended Perlica left, and does not
// end it.
func TestSurvivingProcesses(t *testing.T) {
	var mark string
	for _, v := range process.Marked("claude", "") {
		if name, value, _ := strings.Cut(v, "="); strings.Contains(value, "claude:") {
			mark = name
		}
	}
	cmd := exec.Command("cat")
	cmd.Env = append(os.Environ(), mark+"=claude:1:1:gone") // process 1 began at another time than the mark says
	input, err := cmd.StdinPipe()
	try(t, err)
	try(t, cmd.Start())
	look := func() Check {
		p := newProject(t)
		return examined(t, p, nil)["surviving-processes"]
	}
	c := look()
	if want := fmt.Sprintf("%d (cat, of claude)", cmd.Process.Pid); c.Status != Warn ||
		!strings.Contains(c.Detail, want) || !strings.Contains(c.Hint, "end them yourself: kill PID") {
		t.Errorf("got %+v, want %s", c, want)
	}
	try(t, input.Close())
	try(t, cmd.Wait()) // the process ended because its input ended, and not by a signal
	if c := look(); strings.Contains(c.Detail, fmt.Sprint(cmd.Process.Pid)+" (cat") {
		t.Errorf("after its end: %+v", c)
	}
}

const holdVariable = "CHECKUP_TEST_HOLD"

// TestHolder is not a test. It is a process that holds the write lock of a log until its input ends.
func TestHolder(t *testing.T) {
	path := os.Getenv(holdVariable)
	if path == "" {
		t.Skip("TestALockedLog starts it")
	}
	db, err := sqlx.Open("sqlite", path)
	try(t, err)
	db.SetMaxOpenConns(1)
	_, err = db.Exec(`BEGIN IMMEDIATE`)
	try(t, err)
	fmt.Println("held")
	_, err = io.Copy(io.Discard, os.Stdin)
	try(t, err)
	try(t, db.Close())
}

// TestALockedLog expects the id of the process that blocks other writers.
func TestALockedLog(t *testing.T) {
	p := newProject(t)
	cmd := exec.Command(os.Args[0], "-test.run=^TestHolder$", "-test.v")
	cmd.Env = append(os.Environ(), holdVariable+"="+logOf(t, p))
	input, err := cmd.StdinPipe()
	try(t, err)
	output, err := cmd.StdoutPipe()
	try(t, err)
	try(t, cmd.Start())
	for lines := bufio.NewScanner(output); lines.Scan() && lines.Text() != "held"; {
	}
	got := examined(t, p, nil)["log-lock"]
	if want := fmt.Sprintf("process %d keeps the log locked for writing", cmd.Process.Pid); got.Status != Fail ||
		got.Detail != want || !strings.Contains(got.Hint, "a database browser") {
		t.Errorf("got %+v, want %s", got, want)
	}
	try(t, input.Close())
	_, _ = io.Copy(io.Discard, output)
	try(t, cmd.Wait())
	if got := examined(t, p, nil)["log-lock"]; got.Status != OK {
		t.Errorf("after its end: %+v", got)
	}
}
