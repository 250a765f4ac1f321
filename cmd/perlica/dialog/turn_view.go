package dialog

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/coder/acp-go-sdk"
	"github.com/dustin/go-humanize"

	"github.com/perlica/perlica/cmd/perlica/cli"
	"github.com/perlica/perlica/cmd/perlica/markdown"
	"github.com/perlica/perlica/cmd/perlica/printing"
	"github.com/perlica/perlica/cmd/perlica/term"
	"github.com/perlica/perlica/interaction/card"
	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/provider"
	"github.com/perlica/perlica/provider/registry"
)

// TurnView shows a turn of a conversation, in the chat and to those who watch: the answer as
// Markdown where the terminal can, the rest as run does, and plans, diffs and usage beside it.
type TurnView struct {
	A      *cli.App
	Say    *Printer
	stream *markdown.Stream // nil: the answer goes out as it comes
	open   bool             // the answer so far does not end with a newline
	quick  bool             // there is a status line

	thought strings.Builder
	diffs   map[acp.ToolCallId]string
	named   map[acp.ToolCallId]bool // tools whose beginning was shown
	plan    string                  // its entries, as last shown
	step    string
	used    *acp.UsageUpdate
}

// NewTurnView returns the view of one turn, which prints through say.
func NewTurnView(a *cli.App, say *Printer) *TurnView {
	v := &TurnView{A: a, Say: say, diffs: map[acp.ToolCallId]string{}, named: map[acp.ToolCallId]bool{}}
	say.beside = true
	v.quick = term.StatusWidth(a.Stderr, a.Getenv) != nil
	if term.IsTerminal(a.Stdout) && !cli.IsDumb(a) {
		v.stream = markdown.NewStream(say.Status.Through(say.raw), term.NewStyles(a.Getenv, true), func() int { return term.Width(a.Stdout) })
		say.out, say.Answer = v.stream, nil
	}
	return v
}

// Update shows what the agent said.
func (v *TurnView) Update(n kernel.Updated) {
	if n.Kind != provider.AgentThoughtChunk {
		v.endThought()
	}
	switch {
	case n.Kind == provider.AgentMessageChunk && n.Block != nil:
		v.Flush()
		v.Say.Line(v.Say.Styles.Dim("+ ") + v.Say.row(n.Block.String(), 2))
	case n.Kind == provider.AgentMessageChunk:
		if n.Text != "" {
			v.open = !strings.HasSuffix(n.Text, "\n")
		}
		v.Say.update(n)
		v.tail()
	case n.Kind == provider.AgentThoughtChunk:
		if v.Say.thoughts {
			v.Flush()
			v.thought.WriteString(n.Text)
			all := v.thought.String()
			if i := strings.LastIndexByte(all, '\n'); i >= 0 {
				v.thought.Reset()
				v.thought.WriteString(all[i+1:])
				v.thoughtLines(all[:i])
			}
		}
		v.Say.SetStatus("thinking")
	case n.Tool != nil:
		v.Flush()
		v.tool(*n.Tool)
	case n.Kind == provider.PlanChanged:
		v.Flush()
		v.showPlan(n.Plan)
	case n.Usage != nil:
		v.used = n.Usage
	default:
		v.Say.saying(n.Update)
	}
}

// tail shows the end of what is not finished yet in the status line.
func (v *TurnView) tail() {
	if v.stream == nil || !v.quick {
		return
	}
	room := max(term.Width(v.A.Stderr)-16, 16)
	text := []rune(printing.OneLine(v.stream.Tail(4 * room)))
	if len(text) > room {
		text = text[len(text)-room:]
	}
	for len(text) > 0 && term.Columns(string(text)) > room {
		text = text[1:]
	}
	if len(text) == 0 {
		v.Say.SetStatus("working")
		return
	}
	v.Say.SetStatus("… " + strings.TrimSpace(string(text)))
}

// Flush shows what came before something else.
func (v *TurnView) Flush() {
	if v.stream != nil && !v.Say.Closed {
		if err := v.stream.Flush(); err != nil {
			v.Say.outputFailed(err)
		}
	}
}

func (v *TurnView) endThought() {
	if v.thought.Len() > 0 {
		v.thoughtLines(v.thought.String())
		v.thought.Reset()
	}
}

func (v *TurnView) thoughtLines(text string) {
	for line := range strings.SplitSeq(text, "\n") {
		if strings.TrimSpace(line) != "" {
			v.Say.Line(v.Say.Styles.Dim(card.Marked("  "+printing.OneLine(line), term.Width(v.A.Stderr))))
		}
	}
}

// tool shows a tool call: in the status line while it runs, as a line when it is over. Where
// there is no status line, its beginning is a line, too.
func (v *TurnView) tool(t provider.ToolCall) {
	added, removed := 0, 0
	for _, c := range t.Content {
		if c.Type != "diff" {
			continue
		}
		count := map[string]int{}
		for line := range strings.Lines(c.OldText) {
			count[line]++
			removed++
		}
		for line := range strings.Lines(c.NewText) {
			if count[line] > 0 {
				count[line]--
				removed--
			} else {
				added++
			}
		}
	}
	if added+removed > 0 {
		v.diffs[t.ID] = fmt.Sprintf(" (+%d −%d)", added, removed)
	}
	if t.Status == acp.ToolCallStatusFailed {
		delete(v.diffs, t.ID) // nothing was changed
	}
	over := t.Status == acp.ToolCallStatusCompleted || t.Status == acp.ToolCallStatusFailed
	if t.Title != "" && !over && !v.quick && !v.named[t.ID] {
		v.named[t.ID] = true
		v.Say.Line("… " + v.Say.row(t.Title, 2))
	}
	if title, ok := v.Say.Tools[t.ID]; ok && over {
		v.Say.Tools[t.ID] = title + v.diffs[t.ID]
	} else if !ok && over && t.Title != "" {
		v.Say.Tools[t.ID] = t.Title + v.diffs[t.ID] // it was never said to run
	}
	v.Say.tool(t)
}

// showPlan shows a plan when its entries are new, and then only how far it is.
func (v *TurnView) showPlan(entries []acp.PlanEntry) {
	var names strings.Builder
	done, now := 0, ""
	for _, e := range entries {
		names.WriteString(e.Content + "\n")
		switch e.Status {
		case acp.PlanEntryStatusCompleted:
			done++
		case acp.PlanEntryStatusInProgress:
			now = cmp.Or(now, e.Content)
		}
	}
	if names.String() != v.plan {
		v.plan = names.String()
		for _, e := range entries {
			v.Say.Line("  " + v.planMark(e.Status) + " " + v.Say.row(e.Content, 4))
		}
	}
	step := fmt.Sprintf("plan %d/%d", done, len(entries))
	if now != "" {
		step += ": " + printing.OneLine(now)
	}
	if !v.quick && step != v.step && v.step != "" {
		v.Say.Line(step)
	}
	v.step = step
	v.Say.SetStatus(step)
}

func (v *TurnView) planMark(s acp.PlanEntryStatus) string {
	switch s {
	case acp.PlanEntryStatusCompleted:
		return v.Say.Styles.Green("✓")
	case acp.PlanEntryStatusInProgress:
		return v.Say.Styles.Yellow("▸")
	}
	return v.Say.Styles.Dim("·")
}

// End ends the answer on the screen, and what stands beside it.
func (v *TurnView) End() {
	v.endThought()
	v.Flush()
	if v.open && v.stream == nil && v.Say.Answer == nil {
		v.Say.text("\n") // in a file the next answer follows
	}
	if v.plan != "" && v.step != "" && v.quick {
		v.Say.Line(v.Say.Styles.Dim(v.step))
	}
	v.open, v.plan, v.step = false, "", ""
}

// Usage is what the turn took, as far as the agent says. Agents that count nothing say zero.
func (v *TurnView) Usage(res kernel.Result) string {
	var parts []string
	if res.Outcome == kernel.OutcomeResponded && res.Stopped == nil && !res.Pruned && strings.TrimSpace(res.Text) == "" && len(res.Content) == 0 {
		parts = append(parts, "nothing was said")
	}
	if in, out, ok := res.Tokens(); ok && in+out > 0 {
		text := humanize.Comma(in) + " tokens in, " + humanize.Comma(out) + " out"
		if registry.CountsSession(res.Provider) {
			text += " so far"
		}
		parts = append(parts, text)
	}
	if u := v.used; u != nil && u.Size > 0 && 100*int64(u.Used) >= int64(u.Size) {
		parts = append(parts, fmt.Sprintf("context %d%%", 100*int64(u.Used)/int64(u.Size)))
	}
	if res.Cost != nil && res.Cost.Amount >= 0.005 {
		parts = append(parts, printing.OneLine(res.Cost.String())+" so far")
	}
	if res.Duration >= 2*time.Second {
		parts = append(parts, res.Duration.Round(time.Second).String())
	}
	return strings.Join(parts, " · ")
}
