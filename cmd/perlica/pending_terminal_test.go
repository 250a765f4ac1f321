//go:build linux

package main

import (
	"fmt"
	"strings"
	"testing"
)

// TestTerminalAnsweredElsewhere checks that the first answer counts. If it comes from another process, the terminal
// closes the question.
func TestTerminalAnsweredElsewhere(t *testing.T) {
	w := newWorld(t)
	s := w.terminal(nil, "run", w.script(question, `@ask execute "Run that" command="make that"`))
	s.ask("Run it")
	id := pendingID.FindStringSubmatch(s.text())
	if id == nil {
		t.Fatalf("no id in %q", s.text())
	}
	w.run("pending", "allow", id[1]).exits(0)
	s.expect("Run it")
	s.ask("Run that")
	s.press("n")
	s.expect("permission: reject-once")
	s.exits(0)
	w.logged(1, "interaction.answered", `"option":"allow-once"`, `"where":"pending"`)
	w.logged(1, "interaction.answered", `"option":"reject-once"`, `"where":"terminal"`)
	w.audit()
}

// TestTerminalThree checks that three questions appear one after the other. Each question must get its own answer.
func TestTerminalThree(t *testing.T) {
	w := newWorld(t)
	s := w.terminal(nil, "run", `@ask execute "Run it" command="make all" count=3`)
	for _, key := range []string{"y", "n", "y"} {
		s.ask("Run it")
		s.press(key)
	}
	s.exits(0)
	for i, option := range []string{"allow-once", "reject-once", "allow-once"} {
		s.shows(fmt.Sprintf("permission call-%d: %s", i+1, option))
	}
	w.audit()
}

// TestPendingAnyOrder checks that a person can answer open questions in any order without a terminal.
func TestPendingAnyOrder(t *testing.T) {
	w := newWorld(t)
	j := w.start("run", "--wait-permissions=5m", `@ask execute "Run it" command="make all" count=3`)
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
	w.run("pending", "allow", ids[2]).exits(0)
	w.run("pending", "deny", ids[0]).exits(0)
	w.run("pending", "allow", ids[0]).exits(1) // The question has an answer already.
	w.run("pending", "allow", ids[1]).exits(0)
	j.exits(0)
	for i, option := range []string{"reject-once", "allow-once", "allow-once"} {
		if want := fmt.Sprintf("permission call-%d: %s", i+1, option); !strings.Contains(j.stdout.String(), want) {
			t.Errorf("stdout %q lacks %q", j.stdout.String(), want)
		}
	}
	w.audit()
}
