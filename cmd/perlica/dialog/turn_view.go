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
	"github.com/perlica/perlica/kernel/record"
	"github.com/perlica/perlica/provider"
)

// TurnView shows a turn of a conversation, in the chat and in watch. If the terminal can, it renders the answer as
// Markdown. It shows everything else as the command run does, and adds plans, diffs and usage.
type TurnView struct {
	A      *frame.App
	Say    *Printer
	stream *screen.MarkdownStream // nil if the answer is printed unchanged
	open   bool                   // The answer so far does not end with a newline.
	quick  bool                   // The terminal has a status line, which shows running tool calls.

	thought strings.Builder
	calls   map[acp.ToolCallId]*shownTool
	folded  func(tool string) string // folded returns a sentence for a folded result: how to see the whole result
	plan    string                   // the entries of the plan as last shown
	step    string
	used    *acp.UsageUpdate
}

// shownTool is a tool call of the turn, with everything that the agent has reported about it.
type shownTool struct {
	provider.ToolCall
	named bool // The start of the call was shown.
	over  bool // The end of the call was shown. The call's result is then removed from memory.
}

// NewTurnView returns the view of one turn. It prints with the Printer in the parameter "say". The function folded
// returns the sentence that tells how to see the whole result of a tool call.
func NewTurnView(a *frame.App, say *Printer, folded func(tool string) string) *TurnView {
	v := &TurnView{A: a, Say: say, calls: map[acp.ToolCallId]*shownTool{}, folded: folded}
	say.usageShownElsewhere = true
	v.quick = screen.StatusWidth(a.Stderr, a.Getenv) != nil
	if screen.IsTerminal(a.Stdout) && !a.HasDumbTerminal() {
		styles := screen.NewStyles(a.Getenv, true)
		if v.quick && sameTerminal(a.Stdout, a.Stderr) {
			v.stream = screen.NewLiveMarkdownStream(say.raw, say.Status, styles,
				func() (int, int) { return screen.TerminalWidth(a.Stdout), screen.TerminalHeight(a.Stdout) })
		} else {
			v.stream = screen.NewMarkdownStream(say.Status.Through(say.raw), styles,
				func() int { return screen.TerminalWidth(a.Stdout) })
		}
		say.out, say.Answer = v.stream, nil
	}
	return v
}

// sameTerminal reports whether two files are the same terminal.
func sameTerminal(a, b *os.File) bool {
	if !screen.IsTerminal(a) || !screen.IsTerminal(b) {
		return false
	}
	return runtime.GOOS == "windows" || sameFile(a, b) // On Windows a process has one console.
}

// Update shows an update of the agent.
func (v *TurnView) Update(n record.Updated) {
	if n.Kind != provider.AgentThoughtChunk {
		v.endThought()
	}
	switch {
	case n.Kind == provider.AgentMessageChunk && n.Block != nil:
		v.Flush()
		v.Say.Line(v.Say.Styles.Dim("+ ") + v.Say.fitRow(n.Block.String(), 2))
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
		v.showTool(*n.Tool)
	case n.Kind == provider.PlanChanged:
		v.Flush()
		v.showPlan(n.Plan)
	case n.Usage != nil:
		v.used = n.Usage
	default:
		v.Say.printSaying(n.Update)
	}
}

// Flush prints the pending part of the answer before something else is shown.
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

// showTool shows a tool call. While the call runs, the status line shows it. When it ends, a line with the result is
// printed. If there is no status line, a line is printed at the start of the call, too.
func (v *TurnView) showTool(t provider.ToolCall) {
	call := v.calls[t.ID]
	if call == nil {
		call = &shownTool{}
		v.calls[t.ID] = call
	}
	if call.over {
		return
	}
	call.Merge(t)
	if !call.Over() {
		if call.Title != "" && !v.quick && !call.named {
			call.named = true
			v.Say.Line("… " + v.Say.fitRow(call.Title, 2))
		}
		v.Say.tool(t)
		return
	}
	if call.Title != "" { // A call may end without a title.
		v.Say.Tools[t.ID] = call.Title
	}
	v.Say.toolOver(call.ToolCall, countChangedLines(call.ToolCall)+commandExitCode(call.ToolCall))
	v.showToolResult(call.ToolCall)
	*call = shownTool{over: true}
}

// showToolResult shows the first rows of a tool call's result.
func (v *TurnView) showToolResult(t provider.ToolCall) {
	width := cmp.Or(screen.TerminalWidth(v.A.Stderr), frame.DefaultWidth)
	rows, more := frame.ToolResultRows(t, width, true)
	text := frame.RenderRows(rows, v.Say.Styles)
	if more > 0 {
		text += "  " + v.Say.Styles.Dim(card.Line("… "+frame.Count(more, "more line")+": "+v.folded(string(t.ID)), width-2)) +
			"\n"
	}
	if text != "" {
		v.Say.Line(strings.TrimSuffix(text, "\n"))
	}
}

// countChangedLines counts the lines that a tool call added and removed.
func countChangedLines(t provider.ToolCall) string {
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

// commandExitCode returns a text with the exit code of a tool call's command, or "" if the agent does not report it.
func commandExitCode(t provider.ToolCall) string {
	if code, ok := t.ExitCode(); ok {
		return fmt.Sprintf(" (exit %d)", code)
	}
	return ""
}

// showPlan shows a plan with new entries. For known entries it shows only the progress.
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
			v.Say.Line("  " + v.planMark(e.Status) + " " + v.Say.fitRow(e.Content, 4))
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

// End ends the answer on the screen and prints the lines that waited for this.
func (v *TurnView) End() {
	v.endThought()
	v.Flush()
	if v.open && v.stream == nil && v.Say.Answer == nil {
		v.Say.printAnswer("\n") // If the output is a file, the next answer follows after a newline.
	}
	if v.plan != "" && v.step != "" && v.quick {
		v.Say.Line(v.Say.Styles.Dim(v.step))
	}
	v.open, v.plan, v.step = false, "", ""
}

// Full returns the percentage of the agent's context that is in use, as text. It returns "" if the agent does not
// report it.
func (v *TurnView) Full() string {
	if u := v.used; u != nil && u.Size > 0 && 100*int64(u.Used) >= int64(u.Size) {
		return fmt.Sprintf("%d%%", 100*int64(u.Used)/int64(u.Size))
	}
	return ""
}

// Usage describes the tokens and the cost of the turn as reported by the agent. Agents that do not count them report
// zero.
func (v *TurnView) Usage(res record.Result) string {
	var parts []string
	if res.Outcome == record.OutcomeResponded && res.Stopped == nil && !res.Pruned && res.Damage == "" &&
		strings.TrimSpace(res.Text) == "" && len(res.Content) == 0 {
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
