package dialog

import (
	"cmp"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/coder/acp-go-sdk"
	"github.com/dustin/go-humanize"

	"github.com/perlica/perlica/cmd/perlica/frame"
	"github.com/perlica/perlica/cmd/perlica/screen"
	"github.com/perlica/perlica/interaction/card"
	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/provider"
)

// TurnView shows a turn of a conversation, in the chat and to those who watch: the answer as
// Markdown where the terminal can, the rest as run does, and plans, diffs and usage beside it.
type TurnView struct {
	A      *frame.App
	Say    *Printer
	stream *screen.MarkdownStream // nil: the answer goes out as it comes
	open   bool                   // the answer so far does not end with a newline
	quick  bool                   // there is a status line

	thought strings.Builder
	calls   map[acp.ToolCallId]*toolShown
	folded  func(tool string) string // what is said of a result that was folded, and how to see all of it
	plan    string                   // its entries, as last shown
	step    string
	used    *acp.UsageUpdate
}

// toolShown is a tool call of the turn, as far as it was reported.
type toolShown struct {
	provider.ToolCall
	named bool // its beginning was shown
	over  bool // its end was shown, and nothing of it is kept
}

// NewTurnView returns the view of one turn, which prints through say. folded says how all of a tool
// call's result can be seen.
func NewTurnView(a *frame.App, say *Printer, folded func(tool string) string) *TurnView {
	v := &TurnView{A: a, Say: say, calls: map[acp.ToolCallId]*toolShown{}, folded: folded}
	say.beside = true
	v.quick = screen.StatusWidth(a.Stderr, a.Getenv) != nil
	if screen.IsTerminal(a.Stdout) && !a.HasDumbTerminal() {
		styles := screen.NewStyles(a.Getenv, true)
		if v.quick && sameTerminal(a.Stdout, a.Stderr) {
			v.stream = screen.NewLiveMarkdownStream(say.raw, say.Status, styles, func() (int, int) { return screen.TerminalWidth(a.Stdout), screen.TerminalHeight(a.Stdout) })
		} else {
			v.stream = screen.NewMarkdownStream(say.Status.Through(say.raw), styles, func() int { return screen.TerminalWidth(a.Stdout) })
		}
		say.out, say.Answer = v.stream, nil
	}
	return v
}

// sameTerminal reports whether two files are one terminal.
func sameTerminal(a, b *os.File) bool {
	if !screen.IsTerminal(a) || !screen.IsTerminal(b) {
		return false
	}
	return runtime.GOOS == "windows" || sameFile(a, b) // a process has one console on Windows
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
		v.Say.SetStatus("working")
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
			v.Say.Line(v.Say.Styles.Dim(card.Marked("  "+frame.OneLine(line), screen.TerminalWidth(v.A.Stderr))))
		}
	}
}

// tool shows a tool call: in the status line while it runs, as a line with its result when it is over.
// Where there is no status line, its beginning is a line, too.
func (v *TurnView) tool(t provider.ToolCall) {
	call := v.calls[t.ID]
	if call == nil {
		call = &toolShown{}
		v.calls[t.ID] = call
	}
	if call.over {
		return
	}
	call.Merge(t)
	if !call.Over() {
		if call.Title != "" && !v.quick && !call.named {
			call.named = true
			v.Say.Line("… " + v.Say.row(call.Title, 2))
		}
		v.Say.tool(t)
		return
	}
	if call.Title != "" { // it may never have been said to run
		v.Say.Tools[t.ID] = call.Title
	}
	v.Say.toolOver(call.ToolCall, changed(call.ToolCall)+exited(call.ToolCall))
	v.result(call.ToolCall)
	*call = toolShown{over: true}
}

// result shows what a tool call led to, folded.
func (v *TurnView) result(t provider.ToolCall) {
	width := cmp.Or(screen.TerminalWidth(v.A.Stderr), frame.DefaultWidth)
	rows, more := frame.ToolResultRows(t, width, true)
	text := frame.RenderRows(rows, v.Say.Styles)
	if more > 0 {
		text += "  " + v.Say.Styles.Dim(card.Line("… "+frame.Count(more, "more line")+": "+v.folded(string(t.ID)), width-2)) + "\n"
	}
	if text != "" {
		v.Say.Line(strings.TrimSuffix(text, "\n"))
	}
}

// changed counts the lines that a tool call added and removed.
func changed(t provider.ToolCall) string {
	added, removed := 0, 0
	for _, c := range frame.ToolChanges(t) {
		count := map[string]int{}
		for line := range strings.Lines(c.Old) {
			count[line]++
			removed++
		}
		for line := range strings.Lines(c.New) {
			if count[line] > 0 {
				count[line]--
				removed--
			} else {
				added++
			}
		}
	}
	if added+removed == 0 {
		return ""
	}
	return fmt.Sprintf(" (+%d −%d)", added, removed)
}

// exited is the exit code of a tool call's command, if the agent says it.
func exited(t provider.ToolCall) string {
	if code, ok := t.ExitCode(); ok {
		return fmt.Sprintf(" (exit %d)", code)
	}
	return ""
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
		step += ": " + frame.OneLine(now)
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

// Full says how full the agent's context is, as far as the agent said; else it is empty.
func (v *TurnView) Full() string {
	if u := v.used; u != nil && u.Size > 0 && 100*int64(u.Used) >= int64(u.Size) {
		return fmt.Sprintf("%d%%", 100*int64(u.Used)/int64(u.Size))
	}
	return ""
}

// Usage is what the turn took, as far as the agent says. Agents that count nothing say zero.
func (v *TurnView) Usage(res kernel.Result) string {
	var parts []string
	if res.Outcome == kernel.OutcomeResponded && res.Stopped == nil && !res.Pruned && res.Damage == "" && strings.TrimSpace(res.Text) == "" && len(res.Content) == 0 {
		parts = append(parts, "nothing was said")
	}
	if in, out, ok := res.Tokens(); ok && in+out > 0 {
		text := humanize.Comma(in) + " tokens in, " + humanize.Comma(out) + " out"
		if res.OfSession {
			text += " so far"
		}
		parts = append(parts, text)
	}
	if full := v.Full(); full != "" {
		parts = append(parts, "context "+full)
	}
	if res.Cost != nil && res.Cost.Amount >= 0.005 {
		parts = append(parts, frame.OneLine(res.Cost.String())+" so far")
	}
	if res.Duration >= 2*time.Second {
		parts = append(parts, res.Duration.Round(time.Second).String())
	}
	return strings.Join(parts, " · ")
}
