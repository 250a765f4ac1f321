package flow

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os/exec"
	"reflect"
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

// readMermaid is a program for node. It prints the parts of the drawing on its standard input as mermaid's own parser
// reads them. Exit code 3 means that a package is not installed.
const readMermaid = `
import { createRequire } from 'node:module'
import { pathToFileURL } from 'node:url'
const load = (name) => {
  try {
    return import(pathToFileURL(createRequire(import.meta.url).resolve(name)))
  } catch {
    process.exit(3)
  }
}
const { JSDOM } = await load('jsdom')
globalThis.window = new JSDOM('').window
globalThis.document = window.document
const { default: mermaid } = await load('mermaid')
mermaid.initialize({})
let text = ''
for await (const chunk of process.stdin) text += chunk
const { db } = await mermaid.mermaidAPI.getDiagramFromText(text)
const steps = [...db.getVertices().values()]
console.log(JSON.stringify({
  steps: steps.map((v) => [v.id, v.type, v.text, ...v.styles].join(' ')),
  edges: db.getEdges().map((e) => e.start + ' ' + e.end),
}))
`

// TestMermaidIsDrawn gives the graph to mermaid's own parser. Each step must be a node with its id, phase, shape and
// colour, and each need must be an edge. The packages mermaid and jsdom may lie in a folder of NODE_PATH. The test
// fails if a node has the id of its step, because "end" is a word of the language.
func TestMermaidIsDrawn(t *testing.T) {
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("NOT TESTED: mermaid reads the graph of a flow: node is not installed")
	}
	s := oddState(t)
	var in, faults bytes.Buffer
	if err := s.WriteMermaid(&in); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), node, "--input-type=module", "-e", readMermaid)
	cmd.Stdin, cmd.Stderr = &in, &faults
	out, err := cmd.Output()
	if cmd.ProcessState != nil && cmd.ProcessState.ExitCode() == 3 {
		t.Skip("NOT TESTED: mermaid reads the graph of a flow: the packages mermaid and jsdom are not installed for node")
	}
	if err != nil {
		t.Fatalf("mermaid: %v: %s", err, faults.String())
	}
	var got, want struct{ Steps, Edges []string }
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for i, st := range s.Steps {
		shape := "square"
		if st.Ask != "" {
			shape = "diamond"
		}
		want.Steps = append(want.Steps,
			fmt.Sprintf("s%d %s %s<br>%s fill:%s color:#111111", i, shape, st.ID, st.Phase, colors[st.Phase]))
		if i > 0 {
			want.Edges = append(want.Edges, fmt.Sprintf("s%d s%d", i-1, i))
		}
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%q, want\n%q", got, want)
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
