//go:build linux

package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/perlica/perlica/kernel/streamjson"
)

// TestInterrupt checks that perlica waits for the agent's confirmation after the first Ctrl-C.
func TestInterrupt(t *testing.T) {
	w := newWorld(t)
	j := w.start("run", w.script("@say half", "@hang"))
	w.until(1, "acp.notification.received", "half")
	j.signal(syscall.SIGINT)
	j.exits(130)
	if got := j.stdout.String(); got != "half" {
		t.Errorf("stdout %q", got)
	}
	j.says("stopped: interrupted")
	w.logged(1, "run.cancel_requested", `"by":"user"`)
	w.logged(1, "acp.notification.sent", "session/cancel")
	w.logged(1, "llm.responded", `"stop_reason":"cancelled"`, `"text":"half"`)
	w.audit()
}

// TestInterruptTwice checks that the second Ctrl-C ends an agent that does not react, and the agent's children.
func TestInterruptTwice(t *testing.T) {
	w := newWorld(t)
	text := w.script("@ignore cancel", "@ignore term", "@spawn 10m stubborn", "@say half", "@hang")
	j := w.start("run", "--output-format=stream-json", text)
	w.until(1, "acp.notification.received", "half")
	j.signal(syscall.SIGINT)
	w.until(1, "acp.notification.sent", "session/cancel")
	j.signal(syscall.SIGINT)
	j.exits(130)
	lines := strings.Split(strings.TrimSpace(j.stdout.String()), "\n")
	var res streamjson.Result
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &res); err != nil || res.Type != "result" ||
		res.Outcome != "outcome_unknown" || !strings.HasSuffix(res.Text, "half") || *res.N != len(lines) {
		t.Errorf("the last of %d lines is %s (%v)", len(lines), lines[len(lines)-1], err)
	}
	if strings.Contains(j.stdout.String(), "cancel_unconfirmed") {
		t.Error("it took the time that an agent has to confirm")
	}
	w.logged(1, "llm.outcome_unknown", `"text":"spawned:`)
	w.logged(1, "run.cancel_requested")
	w.audit()
	k := w.run("run", "--input-id", res.InputID, text)
	k.exits(130)
	if w.prompts() != 1 {
		t.Errorf("%d calls", w.prompts())
	}
}

// TestTerminate checks that SIGTERM and SIGHUP stop the run like Ctrl-C, but with another exit code.
func TestTerminate(t *testing.T) {
	for name, sig := range map[string]syscall.Signal{"term": syscall.SIGTERM, "hup": syscall.SIGHUP} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			j := w.start("run", "--json", w.script("@say half", "@hang"))
			w.until(1, "acp.notification.received", "half")
			j.signal(sig)
			j.exits(143)
			w.logged(1, "run.cancel_requested", `"by":"terminated"`)
			w.logged(1, "llm.responded", `"stop_reason":"cancelled"`)
			if !strings.Contains(j.stdout.String(), `"type":"result"`) {
				t.Errorf("no result: %s", j.stdout.String())
			}
			w.audit()
		})
	}
}

// TestTerminateTwice checks that the second SIGTERM ends the agent. The exit code is still the code for SIGTERM.
func TestTerminateTwice(t *testing.T) {
	w := newWorld(t)
	j := w.start("run", w.script("@ignore cancel", "@say half", "@hang"))
	w.until(1, "acp.notification.received", "half")
	j.signal(syscall.SIGTERM)
	w.until(1, "acp.notification.sent", "session/cancel")
	j.signal(syscall.SIGTERM)
	j.exits(143)
	if strings.Contains(j.stderr.String(), "did not confirm") {
		t.Error("it took the time that an agent has to confirm")
	}
	w.logged(1, "run.cancel_requested")
	w.logged(1, "llm.outcome_unknown")
	w.audit()
}

// TestInterruptOverridesTimeout sends an interrupt after the timeout. The exit code must be the code for the interrupt.
func TestInterruptOverridesTimeout(t *testing.T) {
	w := newWorld(t)
	script := w.script("@ignore cancel", "@hang")
	cancelled := func(j *job) (yes bool) {
		w.eventually("it is cancelled", func() error {
			over := j.over()
			events, err := readLog(logFile(w.project))
			if yes = countEvents(events, "acp.notification.sent", "session/cancel") > 0; err == nil && !yes && !over {
				err = errors.New("not yet")
			}
			return err
		})
		return yes
	}
	limit := 2 * time.Second
	j := w.start("run", "--timeout="+limit.String(), script)
	for !cancelled(j) { // The start may take so long that the timeout passes before the prompt is sent.
		j.exits(3)
		limit *= 4
		j = w.start("run", "--timeout="+limit.String(), script)
	}
	j.signal(syscall.SIGINT)
	j.exits(130)
	w.logged(1, "llm.outcome_unknown")
	w.audit()
}

// TestInterruptBeforePrompt interrupts a run before the prompt. Nothing may be sent, and the same input can be tried
// again.
func TestInterruptBeforePrompt(t *testing.T) {
	w := newWorld(t)
	j := w.start("run", "--input-id=i", "--agent", "perlica agent predictable --scenario $'[session/new]\n@hang'", "hello")
	w.until(1, "acp.request.sent", "session/new")
	j.signal(syscall.SIGINT)
	j.exits(130)
	w.logged(0, "llm.requested")
	w.logged(1, "llm.provider_error", `"error_type":"stopped"`)
	w.run("run", "--input-id=i", "hello").exits(0)
	w.audit()
}

// TestInterruptWhileReading checks that Ctrl-C ends a run that waits for standard input.
func TestInterruptWhileReading(t *testing.T) {
	for name, c := range map[string]struct {
		sig  syscall.Signal
		code int
		args []string
	}{
		"interrupt": {syscall.SIGINT, 130, nil},
		"terminate": {syscall.SIGTERM, 143, nil},
		"timeout":   {0, 3, []string{"--timeout=100ms"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			cmd := w.command(append([]string{"run", "--json", "-"}, c.args...)...)
			in, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			defer in.Close()
			j := w.startCmd(cmd)
			if c.sig != 0 {
				j.expect("reading standard input")
				j.signal(c.sig)
			}
			j.exits(c.code)
			if !strings.Contains(j.stdout.String(), `"type":"result"`) || !strings.Contains(j.stdout.String(), `"calls":0`) {
				t.Errorf("no result: %s", j.stdout.String())
			}
			w.gone()
		})
	}
}

// TestIgnoredSignals checks that perlica ignores signals under nohup and as a shell's background job.
func TestIgnoredSignals(t *testing.T) {
	w := newWorld(t)
	open := w.gated(" whole")
	cmd := w.command()
	cmd.Path, cmd.Args = "/bin/sh", []string{"sh", "-c", `trap "" HUP INT; exec perlica run "$0"`,
		w.script("@say half", "@say  whole")}
	j := w.startCmd(cmd)
	w.until(1, "acp.notification.received", "half")
	j.signal(syscall.SIGHUP)
	j.signal(syscall.SIGINT)
	open(" whole")
	j.exits(0)
	if got := j.stdout.String(); got != "half whole" {
		t.Errorf("stdout %q", got)
	}
	w.audit()
}

// TestClosedPipe checks that the turn ends without an error message when the reader of the answer has closed the
// pipe.
func TestClosedPipe(t *testing.T) {
	for name, args := range map[string][]string{
		"text":        {"run"},
		"stream-json": {"run", "--output-format=stream-json"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			r, wr, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			cmd := w.command(append(args, w.script("@spawn 10m daemon", "@stream 1000000 100"))...)
			cmd.Stdout = wr
			j := w.startCmd(cmd)
			wr.Close()
			if _, err := io.ReadFull(r, make([]byte, 1)); err != nil {
				t.Fatal(err)
			}
			r.Close()
			j.exits(130)
			if j.stderr.String() != "" {
				t.Errorf("stderr %q", j.stderr.String())
			}
			w.logged(1, "run.cancel_requested", "closed_pipe")
			w.logged(1, "llm.responded", `"stop_reason":"cancelled"`)
			w.audit()
		})
	}
}

// TestClosedPipeAtTheEnd checks that it is no error if the reader leaves after the complete answer was written.
func TestClosedPipeAtTheEnd(t *testing.T) {
	w := newWorld(t)
	r, wr, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	cmd := w.command("run", "--json", "hello")
	cmd.Stdout = wr
	j := w.startCmd(cmd)
	wr.Close()
	j.exits(0)
	w.logged(1, "llm.responded", `"stop_reason":"end_turn"`)
	w.audit()
}

// TestStuckReader checks that a run ends although the reader of its output has stopped reading.
func TestStuckReader(t *testing.T) {
	w := newWorld(t)
	r, wr, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	cmd := w.command("run", w.script("@stream 1000000 1000"))
	cmd.Stdout = wr
	j := w.startCmd(cmd)
	wr.Close()
	if _, err := io.ReadFull(r, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	j.signal(syscall.SIGTERM)
	w.until(1, "run.cancel_requested")
	j.signal(syscall.SIGTERM)
	j.exits(143)
	w.audit()
}

// TestDeafAgent checks that a run ends although the agent has stopped reading its input.
func TestDeafAgent(t *testing.T) {
	w := newWorld(t)
	// A read that began before @ignore stdin still returns one line. The answer to the agent's request is this line,
	// so the agent reads no later line.
	j := w.start("run", w.script("@ignore stdin", "@ignore eof", "@request vendor/x wait=no", "@sleep 50ms", "@say deaf",
		"@hang"))
	w.until(1, "acp.notification.received", "deaf")
	j.signal(syscall.SIGINT)
	w.until(1, "run.cancel_requested")
	j.signal(syscall.SIGINT)
	j.exits(130)
	w.logged(1, "llm.outcome_unknown")
	w.audit()
}

// TestUnconfirmedCancel checks that perlica ends an agent that does not confirm a cancel after a while.
func TestUnconfirmedCancel(t *testing.T) {
	if testing.Short() {
		t.Skip("takes the 15 s that an agent has")
	}
	w := newWorld(t)
	j := w.start("run", w.script("@ignore cancel", "@say x", "@hang"))
	w.until(1, "acp.notification.received", `"x"`)
	j.signal(syscall.SIGTERM)
	j.exits(143)
	j.says("did not confirm the cancellation")
	w.logged(1, "llm.outcome_unknown")
	w.audit()
}

// TestFlood checks that 100,000 updates are on record and on standard output, in order. With -short it sends a
// tenth.
func TestFlood(t *testing.T) {
	updates := 100_000
	if testing.Short() {
		updates /= 10
	}
	w := newWorld(t)
	cmd := w.command("run", fmt.Sprintf("@stream %d 20", updates))
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	j := w.startCmd(cmd)
	scan := bufio.NewScanner(out)
	n := 0
	for ; scan.Scan(); n++ {
		if len(scan.Text()) != 19 || !strings.HasPrefix(scan.Text(), fmt.Sprintf("%09d", n)) {
			t.Fatalf("line %d is %q", n, scan.Text())
		}
	}
	j.exits(0)
	if n != updates {
		t.Errorf("%d lines", n)
	}
	w.logged(updates, "acp.notification.received", "agent_message_chunk")
	w.audit()
}

// TestSameInputAtOnce checks that ten processes with the same input make only one call.
func TestSameInputAtOnce(t *testing.T) {
	w := newWorld(t)
	w.run("run", "--input-id=first", "hello").exits(0)
	var jobs []*job
	text := w.script("@sleep 200ms", "@say done")
	for range 10 {
		jobs = append(jobs, w.start("run", "--input-id=same", text))
	}
	answered := 0
	for _, j := range jobs {
		switch j.wait() {
		case 0:
			answered++
			if got := j.stdout.String(); got != "done" {
				t.Errorf("stdout %q", got)
			}
		case 4:
			j.says("a call for this input is under way")
		default:
			j.exits(0)
		}
	}
	if answered == 0 {
		t.Error("nobody was answered")
	}
	w.logged(2, "llm.requested")
	if n := w.prompts(); n != 2 {
		t.Errorf("%d calls", n)
	}
	w.run("run", "--input-id=same", text).exits(0)
	w.audit()
}

// TestBusySession checks two runs in one session. The second run waits or fails, and it can be stopped while it
// waits.
func TestBusySession(t *testing.T) {
	w := newWorld(t)
	first := w.run("run", "--json", "hello")
	first.exits(0)
	var res streamjson.Result
	if err := json.Unmarshal([]byte(first.stdout.String()), &res); err != nil {
		t.Fatal(err)
	}
	holder := w.start("run", "-s", res.SessionID, w.script("@say holding", "@hang"))
	w.until(1, "acp.notification.received", `"holding"`)
	j := w.run("run", "-s", res.SessionID, "hello")
	j.exits(4)
	j.says("busy with another run")
	j.says("--wait waits")
	w.run("run", "other session").exits(0)

	w.run("run", "--wait", "--timeout=100ms", "-s", res.SessionID, "hello").exits(3)
	j = w.start("run", "--wait", "-s", res.SessionID, "hello")
	j.opensLog()
	j.signal(syscall.SIGINT)
	j.exits(130)

	waits := w.start("run", "--wait", "-s", res.SessionID, "after")
	waits.opensLog()
	holder.signal(syscall.SIGINT)
	holder.exits(130)
	waits.exits(0)
	if n := w.prompts(); n != 4 {
		t.Errorf("%d calls", n)
	}
	w.audit()
}
