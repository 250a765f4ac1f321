package main

import (
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/creack/pty"

	"github.com/perlica/perlica/eventlog/event"
)

// graphFlow has a loop, a question and a step that goes on until a cancel.
const graphFlow = `name = "graph"
[inputs.items]
[[step]]
id = "review"
for_each = "lines(inputs.items)"
parallel = 8
max_items = 200
text = "@say {{ item }}"
[[step]]
id = "gate"
needs = ["review"]
ask = "Go on?"
options = ["yes", "no"]
[[step]]
id = "holds_on_with_a_long_name"
needs = ["gate"]
text = "@hang"
`

// TestFlowGraph runs a flow on terminals of two sizes. The graph is drawn in place: each step has one row at the end,
// also the one with 20 items. While the question is shown, the graph leaves the screen.
func TestFlowGraph(t *testing.T) {
	for name, c := range map[string]struct {
		columns uint16
		env     string
		bad     string // a pattern that the output must not have
	}{
		"80 columns":               {80, "A=b", `\x1b\[2J`},
		"200 columns, no colours":  {200, "NO_COLOR=1", `\x1b\[[0-9;]*m`},
		"a terminal with no moves": {80, "TERM=dumb", `\x1b`},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.env = append(w.env, "PERLICA_MODEL_DEFAULT_PROVIDER=predictable", c.env)
			file, input := w.flowFile(graphFlow, 20)
			s := w.terminalOf(c.columns, 24, nil, "flow", "run", file, input, "--id", "one")
			s.ask("Go on?")
			if all := s.drawn().All(); c.env != "TERM=dumb" && strings.Contains(all, "✓ review") {
				t.Errorf("the graph stands next to the question:\n%s", all)
			}
			s.press("1")
			if c.env == "TERM=dumb" {
				s.expect("one holds_on_with_a_long_name running\r\n")
			} else {
				s.sees("✓ review                         done     20 of 20")
				s.sees("▸     holds_on_with_a_long_name  running\n")
				s.from = len(sgr.ReplaceAllString(s.text(), ""))
				if err := pty.Setsize(s.pty, &pty.Winsize{Rows: 24, Cols: 30}); err != nil {
					t.Fatal(err)
				}
				s.expect("▸     holds_o…  running")
			}
			w.until(21, "llm.requested") // a call without an intent cannot be cancelled
			w.run("flow", "cancel", "one").exits(0)
			s.expect("one cancelled after ")
			s.exits(1)
			if got := strings.Contains(s.text(), "review 7/20"); got != (c.env == "TERM=dumb") {
				t.Errorf("an item has a line of its own: %v:\n%s", got, s.text())
			}
			if found := regexp.MustCompile(c.bad).FindString(s.text()); found != "" {
				t.Errorf("the terminal got %q: %q", found, s.text())
			}
			w.audit()
		})
	}
}

// openQuestion returns the id of the only question on the log.
func openQuestion(w *world) string {
	w.t.Helper()
	events, err := readLog(logFile(w.project))
	if err != nil {
		w.t.Fatal(err)
	}
	i := slices.IndexFunc(events, func(e event.Event) bool { return e.Type == event.InteractionRequested })
	if i < 0 {
		w.t.Fatal("the log has no question")
	}
	return string(events[i].Interaction)
}

// TestFlowAnsweredElsewhere answers the question of a flow run whose process has ended, in the chat and on a phone. The
// next process takes the answer and makes no call a second time.
func TestFlowAnsweredElsewhere(t *testing.T) {
	const file = "name = \"asks\"\n[inputs.items]\n" +
		"[[step]]\nid = \"gate\"\nask = \"Go on?\"\noptions = [\"yes\", \"no\"]\n" +
		"[[step]]\nid = \"next\"\nneeds = [\"gate\"]\ntext = \"@say {{ steps.gate.answer }}\"\n"
	for name, answer := range map[string]func(w *world){
		"chat": func(w *world) {
			s := w.chat()
			s.press("/flow\r")
			s.expect("asks, asked, ")
			s.press("/flow one\r")
			s.expect("gate asked")
			s.prompt("")
			s.press("/choose " + openQuestion(w) + " yes\r")
			s.finds("answered|Answered")
			s.bye()
		},
		"phone": func(w *world) {
			s := w.service()
			p := w.phone("boss", "ask,approve,admin")
			p.hearsBack("/flow one", "gate asked")
			p.hearsBack("/pending", "Go on?")
			p.hearsBack("/choose "+openQuestion(w)+" yes", "Answered")
			p.signal(syscall.SIGTERM)
			p.wait()
			s.signal(syscall.SIGTERM)
			s.exits(0)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.env = append(w.env, "PERLICA_MODEL_DEFAULT_PROVIDER=predictable")
			path, input := w.flowFile(file, 1)
			w.run("flow", "run", path, input, "--id", "one").exits(5)
			answer(w)
			w.run("flow", "run", path, input, "--id", "one").exits(0)
			w.logged(1, "llm.responded", `"text":"yes"`)
			w.audit()
		})
	}
}
