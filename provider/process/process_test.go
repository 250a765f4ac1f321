//go:build unix

package process

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func init() {
	testChildren["proc-echo"] = func([]string) { io.Copy(os.Stdout, os.Stdin) }
	testChildren["proc-deaf"] = func([]string) { // ignores the end of stdin
		fmt.Println("ready")
		io.Copy(io.Discard, os.Stdin)
		time.Sleep(time.Hour)
	}
	testChildren["proc-stubborn"] = func([]string) { // also ignores SIGTERM
		signal.Ignore(syscall.SIGTERM)
		fmt.Println("ready")
		time.Sleep(time.Hour)
	}
	testChildren["proc-exit"] = func(args []string) { // writes a text and exits with 3
		fmt.Fprint(os.Stderr, strings.Join(args, " "))
		os.Exit(3)
	}
	testChildren["proc-flags"] = func([]string) { // prints whether its pipes block
		for fd := range 3 {
			flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
			fmt.Println(fd, flags&unix.O_NONBLOCK, err)
		}
	}
	testChildren["proc-env"] = func([]string) {
		for _, kv := range os.Environ() {
			fmt.Println(kv)
		}
	}
}

// procSpec returns a Spec that starts this binary as the test child with this name.
func procSpec(child string, args ...string) Spec {
	return Spec{
		Agent: child,
		Argv:  append([]string{procSelf()}, args...),
		Env:   append(procEnv(), testChild+"="+child),
		Grace: time.Minute,
	}
}

// procEnv returns the environment without variables that would turn a child into another program.
func procEnv() []string {
	env, err := Environ(os.Environ(), []string{"GOCOVERDIR"})
	if err != nil {
		panic(err)
	}
	return append(env, "GORACE=atexit_sleep_ms=0") // without this a race build exits a second late
}

func procSelf() string {
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return self
}

func procStart(t *testing.T, spec Spec) (*Process, *bufio.Reader) {
	t.Helper()
	p, err := Start(spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Kill()
		if err := p.End(t.Context()); err != nil {
			t.Errorf("End: got %v; want err == nil", err)
		}
		p.stdout.Close()
	})
	p.stdout.SetReadDeadline(time.Now().Add(2 * time.Minute))
	return p, bufio.NewReader(p.stdout)
}

func procLine(t *testing.T, r *bufio.Reader) string {
	t.Helper()
	line, err := r.ReadString('\n')
	if err != nil {
		t.Fatalf("read a line: %v", err)
	}
	return strings.TrimSuffix(line, "\n")
}

func procEcho(t *testing.T, p *Process, r *bufio.Reader) {
	t.Helper()
	if _, err := io.WriteString(p.Stdin(), "hello\n"); err != nil {
		t.Fatal(err)
	}
	if got := procLine(t, r); got != "hello" {
		t.Fatalf("echo: %q", got)
	}
}

func procEnd(t *testing.T, p *Process) {
	t.Helper()
	if err := p.End(context.Background()); err != nil {
		t.Fatalf("End: got %v; want err == nil", err)
	}
	select {
	case <-p.Exited():
	default:
		t.Fatal("End returned before the agent was waited for")
	}
}

// procEndPolite ends a child that has written its first line and that exits on SIGTERM. On a slow machine the
// child may need more time, so each further attempt has a longer grace. The first attempts are short because
// the same grace precedes SIGTERM.
func procEndPolite(t *testing.T, spec Spec, before func(*Process)) *Process {
	t.Helper()
	for spec.Grace = 100 * time.Millisecond; ; spec.Grace *= 5 {
		p, r := procStart(t, spec)
		procLine(t, r)
		before(p)
		procEnd(t, p)
		if !p.Forced().Kill || spec.Grace > 10*time.Second {
			return p
		}
	}
}

func TestProcessLeavesWhenStdinCloses(t *testing.T) {
	p, r := procStart(t, procSpec("proc-echo"))
	procEcho(t, p, r)
	if _, _, ok := p.ExitState(); ok {
		t.Fatal("it has an exit state while it runs")
	}
	procEnd(t, p)
	procEnd(t, p) // a second End returns the same result
	if code, sig, ok := p.ExitState(); code != 0 || sig != "" || !ok {
		t.Fatalf("exit state %d %q %v", code, sig, ok)
	}
	if f := p.Forced(); f.Term || f.Kill || len(f.Rest) > 0 {
		t.Fatalf("forced: %+v", f)
	}
	if _, err := r.ReadByte(); err != io.EOF {
		t.Fatalf("stdout after the end: %v", err)
	}
}

func TestProcessIgnoresEOF(t *testing.T) {
	p := procEndPolite(t, procSpec("proc-deaf"), func(*Process) {})
	if _, sig, _ := p.ExitState(); sig != "SIGTERM" {
		t.Fatalf("ended by %q", sig)
	}
	if f := p.Forced(); !f.Term || f.Kill {
		t.Fatalf("forced: %+v", f)
	}
}

func TestProcessStoppedHearsSIGTERM(t *testing.T) {
	p := procEndPolite(t, procSpec("proc-deaf"), func(p *Process) {
		if err := syscall.Kill(-p.Pid(), syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
	})
	if _, sig, _ := p.ExitState(); sig != "SIGTERM" {
		t.Fatalf("ended by %q", sig)
	}
}

func TestProcessIgnoresSIGTERM(t *testing.T) {
	spec := procSpec("proc-stubborn")
	spec.Grace = 100 * time.Millisecond
	p, r := procStart(t, spec)
	procLine(t, r)
	procEnd(t, p)
	if _, sig, _ := p.ExitState(); sig != "SIGKILL" {
		t.Fatalf("ended by %q", sig)
	}
	if f := p.Forced(); !f.Term || !f.Kill {
		t.Fatalf("forced: %+v", f)
	}
}

func TestProcessEndHurriesWhenContextIsDone(t *testing.T) {
	spec := procSpec("proc-stubborn")
	spec.Grace = time.Hour
	p, r := procStart(t, spec)
	procLine(t, r)
	first := make(chan error)
	go func() { first <- p.End(context.Background()) }()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := p.End(ctx); err != nil { // this also hurries the first call
		t.Fatal(err)
	}
	if err := <-first; err != nil {
		t.Fatal(err)
	}
}

func TestProcessKillGivesNoGrace(t *testing.T) {
	spec := procSpec("proc-stubborn")
	spec.Grace = time.Hour
	p, r := procStart(t, spec)
	procLine(t, r)
	if err := p.Kill(); err != nil {
		t.Fatal(err)
	}
	<-p.Exited()
	if err := p.Kill(); err != nil {
		t.Fatalf("Kill of the dead: %v", err)
	}
	procEnd(t, p)
	if _, err := p.Stdin().Write([]byte("x")); !errors.Is(err, os.ErrClosed) {
		t.Fatalf("write after Kill: %v", err)
	}
}

func TestProcessExitsAtOnce(t *testing.T) {
	spec := procSpec("proc-exit", "bad", "\xff\xfeconfig")
	var lines []string
	spec.Stderr = func(b []byte) { lines = append(lines, string(b)) }
	p, _ := procStart(t, spec)
	<-p.Exited()
	if code, _, ok := p.ExitState(); code != 3 || !ok {
		t.Fatalf("exit state %d %v", code, ok)
	}
	if got := p.StderrTail(); got != "bad \uFFFDconfig" {
		t.Fatalf("tail %q", got)
	}
	procEnd(t, p)
	if len(lines) != 1 || lines[0] != "bad \xff\xfeconfig" {
		t.Fatalf("lines %q", lines)
	}
}

func TestProcessStderrTailIsBounded(t *testing.T) {
	p, _ := procStart(t, procSpec("proc-exit", strings.Repeat("é", 20_000)+"x"))
	<-p.Exited()
	got := p.StderrTail()
	if len(got) > tailSize || len(got) < tailSize-1 || strings.Trim(got, "é") != "x" {
		t.Fatalf("%d bytes, %q", len(got), strings.Trim(got, "é"))
	}
}

func TestProcessPipesBlockInTheChild(t *testing.T) {
	p, r := procStart(t, procSpec("proc-flags"))
	for fd := range 3 {
		if got, want := procLine(t, r), fmt.Sprintf("%d 0 <nil>", fd); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	procEnd(t, p)
}

func TestProcessEnvironment(t *testing.T) {
	t.Setenv(agentMark, "outer:1:1:x")
	spec := procSpec("proc-env")
	spec.Dir = t.TempDir()
	spec.Env = append(spec.Env, agentMark+"=forged")
	p, r := procStart(t, spec)
	all, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	procEnd(t, p)
	for _, want := range []string{"\nPWD=" + spec.Dir + "\n", "\n" + agentMark + "=outer:1:1:x/" + p.mark + "\n"} {
		if !strings.Contains("\n"+string(all), want) {
			t.Errorf("no %q in\n%s", want, all)
		}
	}
	if strings.Contains(string(all), "forged") {
		t.Error("a forged mark was passed on")
	}
}

func TestProcessStartErrors(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	write("plain", "#!/bin/sh\n", 0o644)
	lost := write("lost", "#!/no/such/interpreter\n", 0o755)
	garbage := write("garbage", "\x00\x01\x02\x03", 0o755)
	t.Setenv("PATH", dir)
	for _, tt := range []struct {
		name, command, dir string
		reason             error
		says               string
	}{
		{"empty", "", "", errCommandNotFound, "empty"},
		{"not on PATH", "perlica-no-such-agent", "", errCommandNotFound, "perlica-no-such-agent: no such command on PATH"},
		{"no such file", filepath.Join(dir, "nothing"), "", errCommandNotFound, "no such file"},
		{"not executable on PATH", "plain", "", errNotExecutable, filepath.Join(dir, "plain")},
		{"not executable", filepath.Join(dir, "plain"), "", errNotExecutable, "permission"},
		{"a directory", dir, "", errNotExecutable, "directory"},
		{"no interpreter", lost, "", errNotExecutable, "interpreter"},
		{"no program", garbage, "", errNotExecutable, "format"},
		{"no directory", procSelf(), filepath.Join(dir, "gone"), errNoDirectory, "gone"},
		{"directory is a file", procSelf(), lost, errNoDirectory, "lost"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, err := Start(Spec{Argv: []string{tt.command}, Dir: tt.dir})
			if p != nil {
				p.Kill()
				p.End(t.Context())
				t.Fatal("it started")
			}
			var se *launchError
			if !errors.As(err, &se) || !errors.Is(err, tt.reason) {
				t.Fatalf("got %v; want errors.As(err, &se) && errors.Is(err, tt.reason)", err)
			}
			if !strings.Contains(err.Error(), tt.says) {
				t.Errorf("%q does not say %q", err, tt.says)
			}
		})
	}
}

func TestProcessRefusesTheCurrentDirectoryOnPath(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	t.Setenv("PATH", ".")
	if err := os.Symlink(procSelf(), "here"); err != nil {
		t.Fatal(err)
	}
	if _, err := Start(Spec{Argv: []string{"here"}}); !errors.Is(err, errCommandNotFound) {
		t.Fatalf("here: %v", err)
	}
	// A path with a slash is resolved from where Perlica was started, not from Dir.
	spec := procSpec("proc-echo")
	spec.Argv[0], spec.Dir = "./here", t.TempDir()
	p, r := procStart(t, spec)
	procEcho(t, p, r)
	procEnd(t, p)
}
