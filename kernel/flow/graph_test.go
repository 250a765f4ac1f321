package flow

import (
	"bytes"
	"fmt"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/kernel/fact"
)

// oddNames are ids of steps that are words of a graph language, or that look like its syntax.
var oddNames = []string{"end", "graph", "subgraph", "style", "class", "click", "node", "edge", "strict", "digraph",
	"_x_", "s1", "o", "x", strings.Repeat("a", 64)}

// oddState returns the state of a flow with the odd names: each step needs the one before it, and every phase occurs.
func oddState(t *testing.T) *State {
	t.Helper()
	var b strings.Builder
	b.WriteString("name = \"graph.x-y_z\"\n")
	for i, name := range oddNames {
		fmt.Fprintf(&b, "[[step]]\nid = %q\n", name)
		if i > 0 {
			fmt.Fprintf(&b, "needs = [%q]\n", oddNames[i-1])
		}
		if i%4 == 3 {
			b.WriteString("ask = 'Go on?'\noptions = ['\"yes\"] %% ->']\n")
		} else {
			b.WriteString("text = 'x'\n")
		}
	}
	s, err := newState(event.NewFact(event.FlowStarted, "user", event.Refs{Run: RunID("r")},
		fact.FlowStarted{File: b.String()}), nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, p := range []Phase{Done, Failed, Skipped, Running, Asked, Unknown, Waiting} {
		s.setPhase(s.Steps[i], 0, p)
	}
	return s
}

// TestDotIsDrawn lets Graphviz draw the graph. Each step is a node with its id, and each need is an edge.
func TestDotIsDrawn(t *testing.T) {
	dot, err := exec.LookPath("dot")
	if err != nil {
		t.Skip("NOT TESTED: dot draws the graph of a flow: Graphviz is not installed")
	}
	s := oddState(t)
	var in, faults bytes.Buffer
	if err := s.WriteDot(&in); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), dot, "-Tplain")
	cmd.Stdin, cmd.Stderr = &in, &faults
	out, err := cmd.Output()
	if err != nil || faults.Len() > 0 {
		t.Fatalf("dot: %v: %s", err, faults.String())
	}
	plain := string(out)
	for _, name := range oddNames {
		if !regexp.MustCompile(`(?m)^node .*"` + name + `\\n`).MatchString(plain) {
			t.Errorf("there is no step %s in\n%s", name, plain)
		}
	}
	if got := strings.Count(plain, "\nedge "); got != len(oddNames)-1 {
		t.Errorf("got %d edges, want %d", got, len(oddNames)-1)
	}
}

// TestNamesInAGraph refuses ids of steps that a graph would need to quote.
func TestNamesInAGraph(t *testing.T) {
	for _, name := range []string{`a"b`, "a[b]", "a(b)", "a{b}", "a\\nb", "流程", "a b", "a;b", "a-->b", "<b>", "`a`",
		""} {
		if _, err := parseAlone("name = 'f'\n[[step]]\nid = \"" + strings.ReplaceAll(name, `"`, `\"`) +
			"\"\ntext = 'x'\n"); err == nil {
			t.Errorf("the id %q is accepted", name)
		}
	}
}
