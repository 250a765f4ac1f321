package main

import (
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestFlowDetached starts a detached flow run at a terminal and closes the terminal. The process of the flow run
// must have neither the terminal nor another descriptor of its starter. It must wait for a person's answer, and end
// the flow run.
//
// The test fails if the process stays in the terminal's session, inherits a descriptor, or does not wait for the
// answer.
func TestFlowDetached(t *testing.T) {
	w := newWorld(t)
	heard := w.countedAgent("")
	path, _ := w.flowFile("name = \"away\"\n[inputs.word]\n"+
		"[[step]]\nid = \"first\"\ntext = \"@say {{ inputs.word }}\"\n"+
		"[[step]]\nid = \"gate\"\nneeds = [\"first\"]\nask = \"Go on?\"\noptions = [\"yes\", \"no\"]\n"+
		"[[step]]\nid = \"last\"\nneeds = [\"gate\"]\ntext = \"@say step-last\"\n", 0)
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	s := w.terminal(func(cmd *exec.Cmd) { cmd.ExtraFiles = []*os.File{write} }, "flow", "run", path, "--detach",
		"--id=away", "--provider=counted", "--input=word=step-first's $x")
	if err := write.Close(); err != nil {
		t.Fatal(err)
	}
	s.wait()
	s.job.exits(0)
	select {
	case <-s.ended:
	case <-time.After(patience):
		t.Fatal("the detached process holds the terminal")
	}
	if err := read.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(read); err != nil {
		t.Errorf("the detached process holds a descriptor of its starter: %v", err)
	}
	if err := s.pty.Close(); err != nil {
		t.Fatal(err)
	}
	w.until(1, "interaction.requested", "Go on?")
	if state := w.flowShown("away").State; state != "running" {
		t.Errorf("the flow run is %s", state)
	}
	w.run("pending", "choose", w.onlyQuestion(), "yes").exits(0)
	w.until(1, "flow.finished", `"outcome":"done"`)
	for _, text := range []string{"step-first's $x", "step-last"} {
		if n := heard(text); n != 1 {
			t.Errorf("the agent heard %s %d times", text, n)
		}
	}
	w.audit()
}

// TestDetachedFlowKilled kills the process of a detached flow run during a call. The next process must continue the
// flow run from the log, with an answer that came in between, and make no call twice.
func TestDetachedFlowKilled(t *testing.T) {
	w := newWorld(t)
	heard := w.countedAgent("")
	path, _ := w.flowFile("name = \"away\"\n[[step]]\nid = \"slow\"\ntext = \"@say step-slow\\n@sleep 10m\"\n"+
		"[[step]]\nid = \"gate\"\nask = \"Go on?\"\noptions = [\"yes\", \"no\"]\n"+
		"[[step]]\nid = \"last\"\nneeds = [\"gate\"]\ntext = \"@say step-last\"\n", 0)
	args := []string{"flow", "run", path, "--detach", "--id=away", "--provider=counted"}
	w.run(args...).exits(0)
	w.until(1, "llm.requested")
	w.until(1, "interaction.requested")
	killed := 0
	for _, p := range leftBehind(w.home) {
		if pid, err := strconv.Atoi(strings.Fields(p)[0]); err == nil && strings.Contains(p, " --detached ") {
			killed++
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
		}
	}
	if killed != 1 {
		t.Fatalf("%d processes drive the flow run: %q", killed, leftBehind(w.home))
	}
	w.gone()
	w.run("pending", "choose", w.onlyQuestion(), "yes").exits(0)
	w.run(args...).exits(0)
	w.until(1, "llm.responded")
	w.gone() // no step can begin before a person has judged the unknown outcome
	w.run("log", "resolve", w.flowShown("away").Steps[0].Run, "--sent", "--note=killed").exits(0)
	w.run(args...).exits(0)
	w.until(1, "flow.finished", `"outcome":"failed"`)
	w.run(args...).exits(1)
	for _, text := range []string{"step-slow", "step-last"} {
		if n := heard(text); n != 1 {
			t.Errorf("the agent heard %s %d times", text, n)
		}
	}
	w.logged(1, "flow.started")
	w.audit()
}
