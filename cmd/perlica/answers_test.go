//go:build linux

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// openIDs waits for n open questions. It returns their short ids by their titles.
func (w *world) openIDs(n int) map[string]string {
	w.t.Helper()
	ids := map[string]string{}
	w.eventually(fmt.Sprint(n, " questions wait"), func() error {
		var open []struct {
			Title string
			Short string `json:"short_id"`
		}
		out, err := w.command("pending", "list", "--json").Output()
		if err == nil {
			err = json.Unmarshal(out, &open)
		}
		if err == nil && len(open) != n {
			err = fmt.Errorf("%d wait", len(open))
		}
		for _, q := range open {
			ids[q.Title] = q.Short
		}
		return err
	})
	return ids
}

// TestThreeQuestionsAtOnce answers three open questions in reverse order, with two front ends. Each question must
// get its own answer.
func TestThreeQuestionsAtOnce(t *testing.T) {
	w := newWorld(t)
	ask := func(name string) string {
		return fmt.Sprintf(
			"@ask execute %s id=%s command=make wait=no options=y%s:allow_once:Yes,n%s:reject_once:No,a%s:allow_always:Always",
			name, name, name, name, name)
	}
	run := w.start("run", "--wait-permissions=10m", w.script(ask("A"), ask("B"), ask("C"), "@sleep 10m"))
	ids := w.openIDs(3)
	w.start("pending", "choose", ids["C"], "aC", "--always").exits(0)
	var wg sync.WaitGroup
	for name, choice := range map[string]string{"B": "nB", "A": "yA"} {
		wg.Go(func() { w.start("pending", "choose", ids[name], choice).exits(0) })
	}
	wg.Wait()
	w.until(3, "interaction.resolved")
	for _, option := range []string{"yA", "nB", "aC"} {
		w.logged(1, "acp.reply.sent", `"option":"`+option+`"`)
		w.logged(1, "interaction.resolved", `"option":"`+option+`"`)
	}
	if _, err := w.command("run", "-c", "x").Output(); err == nil {
		t.Error("the session was not busy")
	}
	run.signal(2)
	run.exits(130)
	w.audit()
}

// tapped makes the predictable agent copy its input to the file wire.
func (w *world) tapped() {
	w.t.Helper()
	w.config(`[providers.predictable]
adapter.command = "sh"
adapter.args = ["-c", 'tee -a "$HOME/wire" | perlica agent predictable']
`)
}

// replies returns the lines with which Perlica answered the agent's questions. The agent writes all lines that it gets
// to a file of the name "wire".
func (w *world) replies() (lines []string) {
	w.t.Helper()
	wire, err := os.ReadFile(filepath.Join(w.home, "wire"))
	if err != nil {
		w.t.Fatal(err)
	}
	for line := range strings.Lines(string(wire)) {
		if strings.Contains(line, `"result":{"outcome"`) {
			lines = append(lines, line)
		}
	}
	return lines
}

// TestFiftyAnswers sends fifty answers from three processes to one question of a chat. One answer counts, and the agent
// gets one reply. The other processes learn the giver of the first answer.
func TestFiftyAnswers(t *testing.T) {
	w := newWorld(t)
	w.tapped()
	s := w.chat()
	s.press(question + "\r")
	s.ask("Run it")
	id := pendingID.FindStringSubmatch(s.text())[1]
	path, err := exec.LookPath("answers")
	if err != nil {
		t.Fatal(err)
	}
	type racer struct {
		*job
		begin io.WriteCloser
	}
	var racers []racer
	options := map[string]string{"alice": "allow-once", "bob": "reject-once", "carol": "allow-once"}
	for name, times := range map[string]int{"alice": 17, "bob": 17, "carol": 16} {
		cmd := w.command()
		cmd.Path, cmd.Args = path, []string{"answers", id, options[name], name, fmt.Sprint(times)}
		begin, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		racers = append(racers, racer{w.startCmd(cmd), begin})
	}
	for _, r := range racers {
		w.eventually("it is ready", func() error {
			if !strings.Contains(r.stdout.String(), "ready\n") {
				return errors.New(r.stderr.String())
			}
			return nil
		})
	}
	for _, r := range racers {
		if _, err := io.WriteString(r.begin, "\n"); err != nil {
			t.Error(err)
		}
	}
	var outcomes []string
	winner := ""
	for _, r := range racers {
		r.exits(0)
		for line := range strings.Lines(strings.TrimPrefix(r.stdout.String(), "ready\n")) {
			if line == "accepted\n" {
				winner += r.cmd.Args[3]
			}
			outcomes = append(outcomes, line)
		}
	}
	if options[winner] == "" || len(outcomes) != 50 {
		t.Fatalf("%d outcomes, accepted from %q: %q", len(outcomes), winner, outcomes)
	}
	for _, o := range outcomes {
		if o != "accepted\n" && !strings.Contains(o, winner+" answered first") {
			t.Errorf("the answer that lost against %s is told %q", winner, o)
		}
	}
	s.prompt("")
	s.shows("(" + winner + ", race)")
	s.shows("permission: " + options[winner])
	s.bye()
	w.logged(1, "interaction.answered")
	w.logged(1, "interaction.answered", `"by":"`+winner+`"`)
	w.logged(49, "interaction.answer_rejected")
	w.logged(1, "interaction.resolved")
	w.logged(1, "acp.reply.sent")
	if replies := w.replies(); len(replies) != 1 || !strings.Contains(replies[0], options[winner]) {
		t.Errorf("the agent got %q", replies)
	}
	w.audit()
}

// TestThreeQuestionsAtTerminals asks three questions at once and answers them in reverse order at two terminals.
// Each question must get its own answer.
func TestThreeQuestionsAtTerminals(t *testing.T) {
	w := newWorld(t)
	w.tapped()
	s := w.chat()
	s.press(`@ask execute "Run it" command="make all" count=3` + "\r")
	s.ask("Run it")
	w.until(3, "interaction.requested")
	events, err := readLog(logFile(w.project))
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, e := range events {
		if e.Type == "interaction.requested" {
			ids = append(ids, string(e.Interaction))
		}
	}
	w.terminal(nil, "pending", "choose", ids[2], "reject-once").exits(0)
	s.expect("Reject: Run it")
	w.terminal(nil, "pending", "choose", ids[1], "allow-always", "--always").exits(0)
	s.expect(", with perlica pending)")
	s.press("y") // answers the first question
	s.prompt("")
	for i, option := range []string{"allow-once", "allow-always", "reject-once"} {
		s.shows(fmt.Sprintf("permission call-%d: %s", i+1, option))
	}
	s.bye()
	w.logged(3, "interaction.answered")
	w.logged(1, "interaction.answered", `"where":"chat"`)
	w.logged(2, "interaction.answered", `"where":"pending"`)
	w.logged(3, "acp.reply.sent")
	if replies := w.replies(); len(replies) != 3 || !strings.Contains(replies[0], "reject-once") ||
		!strings.Contains(replies[1], "allow-always") || !strings.Contains(replies[2], "allow-once") {
		t.Errorf("the agent got %q", replies)
	}
	w.audit()
}
