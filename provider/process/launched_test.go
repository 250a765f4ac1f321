//go:build unix

package process

import (
	"bufio"
	"errors"
	"strings"
	"syscall"
	"testing"
)

// TestLaunch checks that Start with the same spec returns the launched process and its earlier stderr. End then does
// nothing.
func TestLaunch(t *testing.T) {
	spec := procSpec("proc-exit", "early", "words")
	l := Launch(spec)
	spec.Launched = l
	said := make(chan string, 9)
	spec.Stderr = func(line []byte) { said <- string(line) }
	p, _ := procStart(t, spec)
	if p != l.p {
		t.Error("another process was started")
	}
	if got := <-said; got != "early words" {
		t.Errorf("stderr: %q", got)
	}

	spec = procSpec("proc-echo")
	l = Launch(spec)
	spec.Launched = l
	p, r := procStart(t, spec)
	if err := l.End(); err != nil {
		t.Fatal(err)
	}
	procEcho(t, p, r)
	if another, _ := procStart(t, spec); another == p {
		t.Error("it was taken twice")
	}
	procEnd(t, p)
}

// TestLaunchOther checks that a process launched with another spec is not taken. End ends such a process without grace,
// although it ignores SIGTERM and Grace is a minute.
func TestLaunchOther(t *testing.T) {
	launched := procSpec("proc-stubborn")
	for name, change := range map[string]func(*Spec){
		"limit":       func(s *Spec) { s.Limit = "allow" },
		"folder":      func(s *Spec) { s.Dir = t.TempDir() },
		"environment": func(s *Spec) { s.Env = append(s.Env, "MORE=1") },
		"arguments":   func(s *Spec) { s.Argv = append(s.Argv, "more") },
		"agent":       func(s *Spec) { s.Agent = "other" },
	} {
		l := Launch(launched)
		spec := launched
		spec.Env, spec.Argv = spec.Env[:len(spec.Env):len(spec.Env)], spec.Argv[:len(spec.Argv):len(spec.Argv)]
		change(&spec)
		spec.Launched = l
		p, r := procStart(t, spec)
		procLine(t, r)
		<-l.ready
		if p == l.p {
			t.Errorf("%s: it was taken", name)
		}
		procLine(t, bufio.NewReader(l.p.stdout)) // from here on the process ignores SIGTERM
		if err := l.End(); err != nil {
			t.Errorf("%s: got %v; want err == nil", name, err)
		}
		if err := syscall.Kill(l.p.Pid(), 0); !errors.Is(err, syscall.ESRCH) {
			t.Errorf("%s: the process is there: %v", name, err)
		}
		spec.Launched = l
		if _, _, ok := l.takeProcess(launched); ok {
			t.Errorf("%s: it was taken when it had been ended", name)
		}
	}
}

// TestLaunchFails checks that Start returns the error of the failed launch, and End returns nil.
func TestLaunchFails(t *testing.T) {
	spec := procSpec("proc-echo")
	spec.Argv = []string{"no-such-program-anywhere"}
	l := Launch(spec)
	spec.Launched = l
	_, err := Start(spec)
	var failed *launchError
	if !errors.As(err, &failed) || !errors.Is(err, errCommandNotFound) || !strings.Contains(err.Error(), spec.Argv[0]) {
		t.Errorf("%v", err)
	}
	if err := l.End(); err != nil {
		t.Error(err)
	}
}
