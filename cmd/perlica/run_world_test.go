//go:build linux

package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// patience is the longest time that a test waits for something that must happen. A busy machine may stop a process
// for a while. A test that passes never waits so long.
const patience = 2 * time.Minute

// world is a home and a project. A test runs perlica in it as a user would.
type world struct {
	t             *testing.T
	home, project string
	env           []string
}

// newWorld makes a world. At the end of the test, no process of the world may run, and its log must be undamaged.
func newWorld(t *testing.T) *world {
	t.Helper()
	t.Parallel()
	return otherWorld(t)
}

// otherWorld makes a further world, such as that of another user.
func otherWorld(t *testing.T) *world {
	t.Helper()
	dir := t.TempDir()
	w := &world{t: t, home: filepath.Join(dir, "home"), project: filepath.Join(dir, "project")}
	for _, d := range []string{w.home, w.project, filepath.Dir(w.offered())} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(w.offered(), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	w.env = []string{
		"GORACE=atexit_sleep_ms=0", // Without this, each process of a race build waits a second at its end.
		"HOME=" + w.home, "PERLICA_HOME=" + filepath.Join(w.home, ".perlica"), "PATH=" + os.Getenv("PATH"),
		"TERM=xterm", "PERLICA_MODEL_DEFAULT_PROVIDER=predictable",
	}
	return w
}

// offered is the file that remembers that the chat offered a sandbox.
func (w *world) offered() string {
	return filepath.Join(w.home, ".perlica", "state", "sandbox-offered")
}

// audit checks that the log is undamaged and that no process runs. Tests that damage the log on purpose do not call
// it.
func (w *world) audit() {
	w.t.Helper()
	w.gone()
	if err := auditLog(logFile(w.project)); err != nil {
		w.t.Error(err)
	}
}

// gone waits until every process of the world has ended. After a kill of perlica, the others end a moment later.
func (w *world) gone() {
	w.t.Helper()
	w.eventually("no process is left", func() error {
		if left := leftBehind(w.home); len(left) > 0 {
			return fmt.Errorf("processes are left: %q", left)
		}
		return nil
	})
}

// eventually waits until f returns nil.
func (w *world) eventually(what string, f func() error) {
	w.t.Helper()
	deadline := time.Now().Add(patience)
	for {
		err := f()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			w.t.Fatalf("waited in vain until %s: %v", what, err)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// count returns the number of events of a type with all parts in their payload.
func (w *world) count(typ string, parts ...string) int {
	w.t.Helper()
	events, err := readLog(logFile(w.project))
	if err != nil {
		w.t.Fatal(err)
	}
	return countEvents(events, typ, parts...)
}

// logged fails unless the log has n events of this type with all parts in their payload.
func (w *world) logged(n int, typ string, parts ...string) {
	w.t.Helper()
	events, err := readLog(logFile(w.project))
	if err != nil {
		w.t.Fatal(err)
	}
	if got := countEvents(events, typ, parts...); got != n {
		w.t.Errorf("the log has %d %s %q, want %d", got, typ, parts, n)
		for _, e := range events {
			w.t.Logf("%d %s %.300s", e.Seq, e.Type, e.Payload)
		}
	}
}

// until waits until the log has n events of this type with all parts in their payload.
func (w *world) until(n int, typ string, parts ...string) {
	w.t.Helper()
	w.eventually(fmt.Sprint(n, " ", typ, " ", parts), func() error {
		events, err := readLog(logFile(w.project))
		if err == nil && countEvents(events, typ, parts...) < n {
			err = errors.New("not yet")
		}
		return err
	})
}

// prompts returns the number of prompts that were sent.
func (w *world) prompts() int {
	w.t.Helper()
	return w.count("acp.request.sent", `"method":"session/prompt"`)
}

// script writes the lines of a prompt to a file and returns the flag with which perlica reads the file.
func (w *world) script(lines ...string) string {
	w.t.Helper()
	path := filepath.Join(w.t.TempDir(), "prompt")
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
		w.t.Fatal(err)
	}
	return "--file=" + path
}

// config writes the user's configuration.
func (w *world) config(toml string) {
	w.t.Helper()
	dir := filepath.Join(w.home, ".perlica", "config")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "config.toml"), []byte(toml), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) command(args ...string) *exec.Cmd {
	cmd := exec.Command("perlica", args...)
	cmd.Dir, cmd.Env = w.project, w.env
	return cmd
}

// job is a process of perlica.
type job struct {
	w              *world
	cmd            *exec.Cmd
	stdout, stderr output
	done           chan struct{}
}

// output is the text that a job has written so far.
type output struct {
	mu  sync.Mutex // guards buf
	buf bytes.Buffer
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(b)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

// start runs perlica in the background without a terminal.
func (w *world) start(args ...string) *job {
	w.t.Helper()
	return w.startCmd(w.command(args...))
}

func (w *world) startCmd(cmd *exec.Cmd) *job {
	w.t.Helper()
	j := &job{w: w, cmd: cmd, done: make(chan struct{})}
	if cmd.Stdout == nil {
		cmd.Stdout = &j.stdout
	}
	if cmd.Stderr == nil {
		cmd.Stderr = &j.stderr
	}
	cmd.WaitDelay = patience
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	go func() {
		defer close(j.done)
		_ = cmd.Wait() // The result is in cmd.ProcessState.
	}()
	w.t.Cleanup(func() {
		_ = cmd.Process.Kill() // The process has ended, unless the test failed.
		<-j.done
	})
	return j
}

func (j *job) signal(sig syscall.Signal) {
	j.w.t.Helper()
	if err := j.cmd.Process.Signal(sig); err != nil {
		j.w.t.Fatal(err)
	}
}

// wait waits for the end of the job and returns its exit code, or -1 if a signal ended the job.
func (j *job) wait() int {
	j.w.t.Helper()
	select {
	case <-j.done:
	case <-time.After(patience):
		j.w.t.Fatalf("perlica does not end; stdout %.500q, stderr %.500q", j.stdout.String(), j.stderr.String())
	}
	return j.cmd.ProcessState.ExitCode()
}

// worked returns the processor time of the job. A process that only waits uses no processor time.
func (j *job) worked() time.Duration {
	j.w.t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", j.cmd.Process.Pid))
	if err != nil {
		j.w.t.Fatal(err)
	}
	// The fields stand after the name of the program.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	var user, system time.Duration
	if _, err := fmt.Sscan(fields[11]+" "+fields[12], &user, &system); err != nil {
		j.w.t.Fatal(err)
	}
	return (user + system) * 10 * time.Millisecond
}

// over reports whether the job has ended.
func (j *job) over() bool {
	select {
	case <-j.done:
		return true
	default:
		return false
	}
}

// exits waits for the end of the job and checks its exit code.
func (j *job) exits(code int) {
	j.w.t.Helper()
	if got := j.wait(); got != code {
		j.w.t.Errorf("%.200q: exit code %d, want %d; stdout %.500q, stderr %.1000q", j.cmd.Args, got, code, j.stdout.String(),
			j.stderr.String())
	}
}

// expect waits until standard error contains the text. It fails if perlica ends before.
func (j *job) expect(text string) {
	j.w.t.Helper()
	j.w.eventually(fmt.Sprintf("perlica says %q", text), func() error {
		over := j.over()
		if s := j.stderr.String(); !strings.Contains(s, text) {
			if over {
				j.w.t.Fatalf("perlica has ended and did not say %q: %q", text, s)
			}
			return fmt.Errorf("it says %q", s)
		}
		return nil
	})
}

// opensLog waits until the job has the event log open.
func (j *job) opensLog() {
	j.w.t.Helper()
	log, err := filepath.EvalSymlinks(logFile(j.w.project))
	if err != nil {
		j.w.t.Fatal(err)
	}
	j.w.eventually("the log is open", func() error {
		links, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", j.cmd.Process.Pid)) // Glob fails only for an invalid pattern.
		for _, l := range links {
			if to, err := os.Readlink(l); err == nil && to == log {
				return nil
			}
		}
		return errors.New("it is not")
	})
}

// says fails if standard error so far does not contain the text.
func (j *job) says(text string) {
	j.w.t.Helper()
	if !strings.Contains(j.stderr.String(), text) {
		j.w.t.Errorf("standard error does not say %q: %q", text, j.stderr.String())
	}
}

// run runs perlica to its end.
func (w *world) run(args ...string) *job {
	w.t.Helper()
	j := w.start(args...)
	j.wait()
	return j
}
