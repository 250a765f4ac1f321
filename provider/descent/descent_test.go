package descent

import (
	"os"
	"testing"
	"time"
)

func at(second int64) Process { return Process{PID: int(second), Started: time.Unix(second, 0)} }

// TestLine checks the agents that Perlica finds for a process. In the table, the process comes before its ancestors.
func TestLine(t *testing.T) {
	shell := link{Process: at(1)}
	runner := link{Process: at(10), ticks: 10, runner: true, runs: "reads"}
	marked := func(second int64, limit string, marks ...string) link {
		return link{Process: at(second), marks: marks, limit: limit}
	}
	for _, c := range []struct {
		name   string
		links  []link
		agents int
		top    int // the process number of the youngest agent
		limit  string
	}{
		{"a person's", []link{{Process: at(2)}, shell}, 0, 0, "allow"},
		{"Perlica itself", []link{runner, shell}, 0, 0, "allow"},
		{"an agent", []link{marked(20, "reads", "claude:10:10:x"), runner, shell}, 1, 20, "reads"},
		{"its tool", []link{marked(30, "reads", "claude:10:10:x"), marked(20, "reads", "claude:10:10:x"), runner, shell}, 1,
			20, "reads"},
		{"an orphan without an environment", []link{{Process: at(40)}, {Process: at(35)}, runner, shell}, 1, 35, "reads"},
		{"one that says it may more", []link{marked(40, "allow"), runner, shell}, 1, 40, "reads"},
		{"one that says another agent", []link{marked(40, "allow", "x:1:1:x"), marked(20, "reads", "claude:10:10:x"), runner,
			shell}, 2, 40, "reads"},
		{"one whose Perlica is gone", []link{marked(30, "ask", "claude:9:9:x"), marked(25, "ask", "claude:9:9:x"), shell}, 1,
			25, "ask"},
		{"one that was told less since", []link{marked(30, "allow", "claude:9:9:x"), marked(25, "ask", "claude:9:9:x"),
			shell}, 1, 25, "ask"},
		{"one that hides its mode", []link{marked(30, "", "claude:9:9:x"), marked(25, "allow", "claude:9:9:x"), shell}, 1, 25,
			"deny"},
		{"one with a brand alone", []link{{Process: at(40), branded: true, brand: "ask"},
			{Process: at(35), branded: true, brand: "reads"}, shell}, 1, 35, "ask"},
		{"one whose parent calls itself Perlica", []link{
			{Process: at(40), branded: true, brand: "reads"},
			{Process: at(35), runner: true, runs: "allow", branded: true, brand: "reads"}, shell,
		}, 1, 40, "reads"},
		{"a mark that cannot be read", []link{marked(30, "allow", "nonsense"), shell}, 1, 30, "allow"},
		{"an agent of an agent", []link{
			marked(50, "ask", "a:10:10:x", "b:40:40:y"), {Process: at(40), ticks: 40, runner: true, runs: "ask",
				marks: []string{"a:10:10:x"}},
			marked(20, "reads", "a:10:10:x"), runner, shell,
		}, 2, 50, "ask"},
	} {
		l := line(c.links)
		if len(l.Agents) != c.agents {
			t.Errorf("%s: %d agents, not %d: %v", c.name, len(l.Agents), c.agents, l.Agents)
		}
		if a, ok := l.Youngest(); ok != (c.agents > 0) || a.Top.PID != c.top {
			t.Errorf("%s: the youngest is %v", c.name, a)
		}
		if got := l.Limit(); got != c.limit {
			t.Errorf("%s: the limit is %q, not %q", c.name, got, c.limit)
		}
	}
}

// TestOwnEnvironment checks that the mark counts immediately after this process has set it itself.
func TestOwnEnvironment(t *testing.T) {
	before, _ := Self() // also correct on a system that shows nothing
	t.Setenv(Mark, "claude:1:1:x")
	l, _ := Self()
	if len(l.Agents) != len(before.Agents)+1 {
		t.Fatalf("the mark is not seen: %v", l.Agents)
	}
	if l.Processes[0].PID != os.Getpid() {
		t.Fatalf("the first of the line is %v", l.Processes[0])
	}
}
