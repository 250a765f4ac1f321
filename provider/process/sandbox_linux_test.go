package process

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/perlica/perlica/provider/descent"
	"github.com/perlica/perlica/provider/sandbox"
)

func init() {
	testChildren["box-term"] = func([]string) { // says that it got SIGTERM, and exits
		c := make(chan os.Signal, 1)
		signal.Notify(c, syscall.SIGTERM)
		fmt.Println("ready")
		<-c
		fmt.Println("terminated")
		os.Exit(7)
	}
	testChildren["box-orphan"] = func([]string) { // leaves a grandchild with a session of its own
		procGrandchild([]string{"setsid", "clean"})
		fmt.Println("ready")
	}
	testChildren["box-middle"] = func([]string) { // a Perlica that is going to be killed
		spec := procSpec("proc-stubborn")
		spec.Sandbox = boxSpec()
		p, err := Start(spec)
		if err != nil {
			panic(err)
		}
		line, err := bufio.NewReader(p.stdout).ReadString('\n')
		if err != nil {
			panic(err)
		}
		fmt.Print(line)
		for _, s := range descendants(p.Pid()) {
			fmt.Println(s.pid)
		}
		fmt.Println("end")
		select {}
	}
}

func boxSpec() *sandbox.Spec {
	return &sandbox.Spec{Mode: sandbox.Protect, Home: os.Getenv("HOME"), Show: []string{procSelf()}}
}

// boxStart starts a test child in a sandbox, or skips the test.
func boxStart(t *testing.T, spec Spec) (*Process, *bufio.Reader) {
	t.Helper()
	t.Setenv("HOME", t.TempDir())
	spec.Sandbox = boxSpec()
	box, err := sandbox.New(*spec.Sandbox)
	if err == nil {
		err = box.Explain()
	}
	if err != nil && os.Getenv("PERLICA_REQUIRE_SANDBOX") == "" {
		t.Skip("NOT TESTED: the sandbox:", err)
	}
	return procStart(t, spec)
}

// TestSandboxSocketVanishes checks that an agent starts although a program removes its socket while bwrap makes the
// sandbox. The socket lies in a folder that is read-only inside, so bwrap cannot cover the missing socket. Start must
// therefore make the sandbox again.
func TestSandboxSocketVanishes(t *testing.T) {
	spec := procSpec("box-orphan")
	boxStart(t, spec)
	spec.Sandbox = boxSpec()
	dir := filepath.Join(os.Getenv("HOME"), ".program")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for range 20 {
		l := listen(t, filepath.Join(dir, "socket"))
		before := len(descendants(os.Getpid()))
		started, removed := make(chan struct{}), make(chan struct{})
		go func() { // the socket vanishes when bwrap begins
			defer close(removed)
			for done := false; !done && len(descendants(os.Getpid())) <= before; {
				select {
				case <-started:
					done = true
				default:
				}
			}
			_ = l.Close() // nothing was read
		}()
		p, r := procStart(t, spec)
		close(started)
		<-removed
		if line, err := r.ReadString('\n'); line != "ready\n" {
			t.Fatalf("%q (%v): %s", line, err, p.StderrTail())
		}
		if err := p.End(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// listen opens a socket. The sandbox of another test, in another process, may cover the socket of the round before.
// Then bwrap can put an empty file in its place for some milliseconds, so listen waits for the path.
func listen(t *testing.T, path string) net.Listener {
	for {
		l, err := net.Listen("unix", path)
		if err == nil {
			return l
		}
		if !errors.Is(err, syscall.EADDRINUSE) || t.Context().Err() != nil {
			t.Fatal(err)
		}
		runtime.Gosched()
	}
}

// TestSandboxTerm checks that an agent in a sandbox gets SIGTERM itself, and has its grace to end.
func TestSandboxTerm(t *testing.T) {
	spec := procSpec("box-term")
	spec.Grace = 200 * time.Millisecond
	p, r := boxStart(t, spec)
	procLine(t, r)
	if err := p.End(context.Background()); err != nil {
		t.Fatal(err)
	}
	if line, err := r.ReadString('\n'); line != "terminated\n" || err != nil {
		t.Errorf(`got %q, %v; want line == "terminated\n" && err == nil`, line, err)
	}
	if code, sig, _ := p.ExitState(); code != 7 || sig != "" || !p.Forced().Term || p.Forced().Kill {
		t.Errorf("code %d, signal %q, forced %+v", code, sig, p.Forced())
	}
}

// TestSandboxKill checks that an agent that ignores SIGTERM is killed, and the signal is known.
func TestSandboxKill(t *testing.T) {
	spec := procSpec("proc-stubborn")
	spec.Grace = 50 * time.Millisecond
	p, r := boxStart(t, spec)
	procLine(t, r)
	if err := p.End(context.Background()); err != nil {
		t.Fatal(err)
	}
	if code, sig, _ := p.ExitState(); code != -1 || sig != "SIGKILL" || len(p.Forced().Rest) != 0 {
		t.Errorf("code %d, signal %q, forced %+v", code, sig, p.Forced())
	}
}

// TestSandboxSignal checks that the signal that ended an agent inside is known outside.
func TestSandboxSignal(t *testing.T) {
	p, r := boxStart(t, procSpec("proc-polite"))
	procLine(t, r)
	if err := p.tree.termGroup(); err != nil {
		t.Fatal(err)
	}
	<-p.Exited()
	if code, sig, _ := p.ExitState(); code != -1 || sig != "SIGTERM" {
		t.Errorf("code %d, signal %q", code, sig)
	}
	procEnd(t, p)
}

// TestSandboxOrphans checks that processes that an agent leaves end with the sandbox, although they have no mark and
// ignore signals, and they delay nothing.
func TestSandboxOrphans(t *testing.T) {
	p, r := boxStart(t, procSpec("box-orphan"))
	procLine(t, r)
	<-p.Exited()
	procEnd(t, p)
	for _, s := range descendants(os.Getpid()) {
		if s.state != 'Z' || s.pgid == p.Pid() {
			t.Errorf("left: %+v", s)
		}
	}
}

// TestSandboxParentDies checks that when Perlica dies, everything in the sandbox dies.
func TestSandboxParentDies(t *testing.T) {
	boxStart(t, procSpec("box-orphan")) // skips
	p, r := procStart(t, procSpec("box-middle"))
	procLine(t, r)
	var inside []int
	for line := procLine(t, r); line != "end"; line = procLine(t, r) {
		inside = append(inside, procWatch(t, line))
	}
	if len(inside) != 2 { // process 1 of the namespace, and the agent
		t.Fatalf("%d processes", len(inside))
	}
	if err := p.Kill(); err != nil {
		t.Fatal(err)
	}
	for _, fd := range inside {
		if !procDead(fd, 10_000) {
			t.Error("a process is alive")
		}
	}
	procEnd(t, p)
}

// TestSandboxDescent checks that a process in a sandbox counts as an agent's, seen from outside.
func TestSandboxDescent(t *testing.T) {
	p, r := boxStart(t, procSpec("proc-echo"))
	procEcho(t, p, r)
	for _, s := range descendants(p.Pid()) {
		line, err := descent.Of(s.pid)
		if err != nil || len(line.Agents) == 0 {
			t.Errorf("process %d: %+v, %v", s.pid, line.Agents, err)
		}
	}
	procEnd(t, p)
}

// TestSandboxFails checks that Start returns an error with a reason and a hint if bwrap is missing.
func TestSandboxFails(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	spec := procSpec("proc-echo")
	spec.Sandbox = boxSpec()
	_, err := Start(spec)
	var unavailable *sandbox.Error
	if !errors.As(err, &unavailable) || !strings.Contains(err.Error(),
		"bwrap") || !strings.Contains(unavailable.Hint(), "bubblewrap") {
		t.Errorf("%v", err)
	}
}

// TestFromShell checks that bwrap's exit codes of signals become signals, and other codes stay.
func TestFromShell(t *testing.T) {
	for code, want := range map[int]string{0: "0", 3: "3", 128: "128", 137: "-1SIGKILL", 143: "-1SIGTERM", 255: "255"} {
		if n, sig := fromShell(code); strconv.Itoa(n)+sig != want {
			t.Errorf("%d: %d %s, want %s", code, n, sig, want)
		}
	}
}
