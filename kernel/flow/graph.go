package flow

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/perlica/perlica/eventlog/message"
	"github.com/perlica/perlica/kernel/fact"
)

// Depth returns the number of steps before a step in the longest chain in which each step needs the one before. It is
// 0 for a step that needs no other step.
func (s *State) Depth(st *StepState) int {
	depths := map[string]int{}
	var depth func(*Step) int
	depth = func(step *Step) int {
		if d, ok := depths[step.ID]; ok {
			return d
		}
		d := 0
		for _, id := range step.Needs {
			d = max(d, depth(s.Flow.step(id))+1)
		}
		depths[step.ID] = d
		return d
	}
	return depth(st.Step)
}

// Progress describes the items of a loop, such as "45 of 200, 2 failed". It is empty for a single step.
func (st *StepState) Progress() string {
	if !st.loops() || !st.Expanded {
		return ""
	}
	text := fmt.Sprintf("%d of %d", st.counts[Done], len(st.Items))
	for _, p := range []Phase{Failed, Unknown, Running} {
		if n := st.counts[p]; n > 0 {
			text += fmt.Sprintf(", %d %s", n, p)
		}
	}
	return text
}

// Time returns the total time of the step's calls.
func (st *StepState) Time() time.Duration {
	d := st.Took
	for i := range st.Items {
		d += st.Items[i].Took
	}
	return d
}

// Costs returns the reported costs of the step's calls, by currency.
func (st *StepState) Costs() map[string]float64 {
	sums := map[string]float64{}
	add := func(c *fact.Cost) {
		if c != nil {
			sums[c.Currency] += c.Amount
		}
	}
	add(st.Cost)
	for i := range st.Items {
		add(st.Items[i].Cost)
	}
	return sums
}

// Workers returns the names of the team's machines that answered the step's calls, in alphabetical order.
func (st *StepState) Workers() string {
	names := map[string]bool{st.Worker: true}
	for i := range st.Items {
		names[st.Items[i].Worker] = true
	}
	delete(names, "")
	return strings.Join(slices.Sorted(maps.Keys(names)), ", ")
}

// Fault returns the error of the step, or of its first failed item. It returns nil if there is no error.
func (st *StepState) Fault() *message.Text {
	for i := range st.Items {
		if st.Error == "" && st.Items[i].Phase == Failed {
			return whyItem.With(i+1, st.Items[i].Fault())
		}
	}
	return st.Unit.Fault()
}

// label returns the lines of a step in a drawing.
func (st *StepState) label() []string {
	lines := []string{st.ID, string(st.Phase)}
	if p := st.Progress(); p != "" {
		lines = append(lines, p)
	}
	return lines
}

// colors are the colors of the phases in a drawing.
var colors = map[Phase]string{Waiting: "#eeeeee", Running: "#cfe8ff", Asked: "#fff2b3", Unknown: "#ffd9a0",
	Done: "#d0f0c0", Failed: "#ffc9c9", Skipped: "#dddddd"}

// WriteMermaid writes the graph as a Mermaid flowchart.
func (s *State) WriteMermaid(w io.Writer) error {
	var b strings.Builder
	b.WriteString("flowchart TD\n")
	for i, st := range s.Steps {
		open, end := `["`, `"]`
		if st.Ask != "" {
			open, end = `{"`, `"}`
		}
		fmt.Fprintf(&b, "  s%d%s%s%s\n", i, open, strings.Join(st.label(), "<br>"), end)
		fmt.Fprintf(&b, "  style s%d fill:%s,color:#111111\n", i, colors[st.Phase])
	}
	for i, st := range s.Steps {
		for _, id := range st.Needs {
			fmt.Fprintf(&b, "  s%d --> s%d\n", s.Flow.places[id], i)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// WriteDot writes the graph in the language of Graphviz.
func (s *State) WriteDot(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "digraph %q {\n  node [style=filled, fontname=\"sans-serif\"];\n", s.Flow.Name)
	for i, st := range s.Steps {
		shape := "box"
		if st.Ask != "" {
			shape = "diamond"
		}
		fmt.Fprintf(&b, "  s%d [label=%q, shape=%s, fillcolor=%q];\n", i, strings.Join(st.label(), "\n"), shape,
			colors[st.Phase])
	}
	for i, st := range s.Steps {
		for _, id := range st.Needs {
			fmt.Fprintf(&b, "  s%d -> s%d;\n", s.Flow.places[id], i)
		}
	}
	b.WriteString("}\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// shownUnit is a step or an item in JSON.
type shownUnit struct {
	Item    int    `json:"item,omitempty"`
	State   Phase  `json:"state"`
	Attempt int    `json:"attempt,omitempty"`
	Input   string `json:"input_id"`
	Run     string `json:"run_id,omitempty"`
	Answer  string `json:"answer,omitempty"`
	Error   string `json:"error,omitempty"`
	message.Coded
	DurationMS int64      `json:"duration_ms,omitempty"`
	Cost       *fact.Cost `json:"cost,omitempty"`
	Worker     string     `json:"worker,omitempty"`
}

// shownStep is a step in JSON.
type shownStep struct {
	Step  string   `json:"step"`
	Kind  string   `json:"kind"`
	Needs []string `json:"needs"`
	shownUnit
	Items []shownUnit `json:"items,omitempty"`
}

// MarshalJSON returns the state for programs.
func (s *State) MarshalJSON() ([]byte, error) {
	steps := make([]shownStep, 0, len(s.Steps))
	for _, st := range s.Steps {
		shown := shownStep{Step: st.ID, Kind: "call", Needs: append([]string{}, st.Needs...), shownUnit: s.shown(st, 0)}
		switch {
		case st.Ask != "":
			shown.Kind = "question"
		case st.Flow != "":
			shown.Kind = "flow"
		case st.loops():
			shown.Kind = "loop"
		}
		for i := range st.Items {
			shown.Items = append(shown.Items, s.shown(st, i+1))
		}
		steps = append(steps, shown)
	}
	shown := struct {
		ID      string            `json:"id"`
		Name    string            `json:"name"`
		State   string            `json:"state"`
		Started time.Time         `json:"started"`
		Ended   *time.Time        `json:"ended,omitempty"`
		By      string            `json:"by"`
		Digest  string            `json:"digest"`
		Team    string            `json:"team,omitempty"`
		Inputs  map[string]string `json:"inputs"`
		Steps   []shownStep       `json:"steps"`
	}{s.ID, s.Flow.Name, s.Outcome(), s.At, nil, s.Started.By, s.Started.Digest, s.Started.Team,
		s.Started.Inputs, steps}
	if s.Finished != nil {
		shown.Ended = &s.Ended
	}
	return json.Marshal(shown)
}

func (s *State) shown(st *StepState, item int) shownUnit {
	u := st.unit(item)
	return shownUnit{item, u.Phase, u.Attempt, string(s.InputID(st, item)), string(u.Run), u.Answer, u.Error, u.Said,
		u.Took.Milliseconds(), u.Cost, u.Worker}
}
