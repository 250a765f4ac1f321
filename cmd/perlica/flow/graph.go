package flow

import (
	"fmt"
	"strings"
	"time"

	"github.com/perlica/perlica/cmd/perlica/screen"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/interaction/card"
	"github.com/perlica/perlica/kernel/flow"
)

// row is a step in the drawing of a flow run.
type row struct {
	name  string
	depth int
	phase flow.Phase
	note  string
	inner string // the id of the flow run inside of the step, or ""
}

// graph is the drawing of a running flow at a terminal: one row for each step. The flow runs inside of it stand below
// their steps. It has copies of the states, because the driver goes on changing them.
type graph struct {
	styles screen.Styles
	outer  string           // the id of the outermost flow run
	runs   map[string][]row // the rows of each flow run
	hidden int              // the number of open questions; the graph is not drawn while one is open
}

// update copies a changed step, or all steps of a flow run that the graph does not know.
func (g *graph) update(s *flow.State, st *flow.StepState) {
	rows := g.runs[s.ID]
	if st == nil || rows == nil {
		rows = make([]row, len(s.Steps))
		for i, each := range s.Steps {
			rows[i] = rowOf(s, each, s.Depth(each))
		}
		g.runs[s.ID] = rows
		return
	}
	for i := range s.Steps {
		if s.Steps[i].ID == st.ID {
			rows[i] = rowOf(s, st, rows[i].depth)
		}
	}
}

func rowOf(s *flow.State, st *flow.StepState, depth int) row {
	r := row{name: st.ID, depth: depth, phase: st.Phase}
	if st.Flow != "" {
		r.inner = strings.TrimPrefix(string(s.InputID(st, 0)), event.FlowPrefix)
	}
	var parts []string
	add := func(text string) {
		if text != "" {
			parts = append(parts, text)
		}
	}
	add(st.Progress())
	switch st.Phase {
	case flow.Waiting:
		if len(st.Needs) > 0 {
			add("needs " + strings.Join(st.Needs, ", "))
		}
	case flow.Done, flow.Failed:
		if d := st.Time(); d > 0 {
			add(d.Round(10 * time.Millisecond).String())
		}
	}
	add(st.Answer)
	add(st.Fault().String())
	r.note = strings.Join(parts, "; ")
	return r
}

// marks has a sign for each phase, so that the phases differ without colours.
var marks = map[flow.Phase]string{flow.Waiting: "·", flow.Running: "▸", flow.Asked: "?", flow.Unknown: "!",
	flow.Done: "✓", flow.Failed: "✗", flow.Skipped: "–"}

// draw returns the rows for a terminal. If they need more room, the rows around the first undecided step are shown, and
// the others are counted.
func (g *graph) draw(columns, room int) []string {
	all := g.list(g.outer, 0)
	if g.hidden > 0 || room < 1 {
		return nil
	}
	if len(all) <= room {
		return g.lay(all, columns)
	}
	if room < 3 {
		return []string{card.Line(counted(all), max(columns-1, 1))}
	}
	first := 0
	for first < len(all) && (all[first].phase == flow.Done || all[first].phase == flow.Skipped) {
		first++
	}
	shown := room - 2
	first = min(max(first-1, 0), len(all)-shown)
	var rows []string
	if first > 0 {
		rows = append(rows, card.Line("… "+counted(all[:first]), max(columns-1, 1)))
	}
	rows = append(rows, g.lay(all[first:first+shown], columns)...)
	if rest := all[first+shown:]; len(rest) > 0 {
		rows = append(rows, card.Line("… "+counted(rest), max(columns-1, 1)))
	}
	return rows
}

// list returns the rows of a flow run and of the flow runs inside of it.
func (g *graph) list(run string, depth int) (list []row) {
	for _, r := range g.runs[run] {
		r.depth += depth
		list = append(list, r)
		if r.inner != "" {
			list = append(list, g.list(r.inner, r.depth+1)...)
		}
	}
	return list
}

// counted describes rows that are not shown.
func counted(rows []row) string {
	counts := map[flow.Phase]int{}
	for _, r := range rows {
		counts[r.phase]++
	}
	parts := []string{}
	for _, p := range []flow.Phase{flow.Failed, flow.Unknown, flow.Asked, flow.Running, flow.Done, flow.Skipped,
		flow.Waiting} {
		if counts[p] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", counts[p], p))
		}
	}
	return fmt.Sprintf("%d steps: %s", len(rows), strings.Join(parts, ", "))
}

// lay lays rows out in columns: the name, the phase and the note. On a narrow terminal the columns at the end are cut.
func (g *graph) lay(list []row, columns int) []string {
	const longest = 40
	width := 0
	for _, r := range list {
		width = max(width, len(indented(r)))
	}
	width = max(min(width, longest, columns*2/5), 1)
	rows := make([]string, 0, len(list))
	for _, r := range list {
		if columns < 4 {
			rows = append(rows, marks[r.phase])
			continue
		}
		name := indented(r)
		if len(name) > width {
			name = name[:width-1] + "…" // a name is ASCII
		}
		rest := fmt.Sprintf("%*s  %-7s", width-screen.TextWidth(name), "", r.phase)
		left := columns - 1 - 2 - width
		switch {
		case left < len("  waiting"):
			rest = ""
		case r.note != "" && left > len("  waiting")+4:
			rest += "  " + card.Line(r.note, left-len("  waiting")-2)
		}
		rows = append(rows, g.colored(r.phase, marks[r.phase]+" "+name)+strings.TrimRight(rest, " "))
	}
	return rows
}

// indented returns the name of a row's step, further to the right than the steps that it needs.
func indented(r row) string { return strings.Repeat("  ", min(r.depth, 8)) + r.name }

func (g *graph) colored(p flow.Phase, text string) string {
	switch p {
	case flow.Done:
		return g.styles.Green(text)
	case flow.Failed:
		return g.styles.Red(text)
	case flow.Running:
		return g.styles.Cyan(text)
	case flow.Asked, flow.Unknown:
		return g.styles.Yellow(text)
	}
	return g.styles.Dim(text)
}
