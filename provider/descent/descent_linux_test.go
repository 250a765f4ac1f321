package descent

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestAnnounce checks that other processes see that a process runs agents, and the strictest of its modes.
func TestAnnounce(t *testing.T) {
	p := openProc()
	defer p.closeFD()
	for _, c := range []struct{ mode, want string }{{"allow", "allow"}, {"ask", "ask"}, {"reads", "ask"}, {"", "deny"},
		{"allow", "deny"}} {
		if err := Announce(c.mode); err != nil {
			t.Fatal(err)
		}
		l, _, err := p.readStat(os.Getpid())
		if err != nil || !l.runner || l.runs != c.want {
			t.Fatalf("after %q: %v, a runner: %v, its mode: %q, not %q", c.mode, err, l.runner, l.runs, c.want)
		}
	}
}

// TestStartAndBirth checks that the start of a process and the creation of a file can be compared.
func TestStartAndBirth(t *testing.T) {
	l, err := Self()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	born, ok := Born(path)
	start := l.Processes[0].Started
	// The start is counted in clock ticks, usually of 10 ms. The file's time is the last tick of another
	// clock.
	const ticks = 20 * time.Millisecond
	if now := time.Now(); !ok || start.After(born.Add(ticks)) || born.After(now) || now.Sub(start) > time.Hour {
		t.Fatalf("started %v, the file was born %v, now it is %v", start, born, now)
	}
	if parent := l.Processes[1].Started; parent.After(start) {
		t.Fatalf("the parent was started %v, behind its child %v", parent, start)
	}
}

// TestAncestorIsNotForeign checks that foreignAgent names no agent for the parent. A process descends from all agents
// of its ancestors, so none of them is foreign to it.
func TestAncestorIsNotForeign(t *testing.T) {
	if _, ok, err := foreignAgent(os.Getppid()); ok || err != nil {
		t.Errorf("the parent is foreign: %v, %v", ok, err)
	}
}
