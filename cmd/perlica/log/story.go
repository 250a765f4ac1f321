package log

import (
	"bufio"
	"cmp"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/perlica/perlica/cmd/perlica/frame"
	"github.com/perlica/perlica/cmd/perlica/screen"
	"github.com/perlica/perlica/interaction/card"
	"github.com/perlica/perlica/kernel/record"
	"github.com/perlica/perlica/kernel/report"
)

// storyWriter writes the steps of a run for people. Its Flush returns the error of an earlier write.
type storyWriter struct {
	w *bufio.Writer
	s screen.Styles

	start time.Time
	begun bool
	ended bool // The outcome of the run was written.
}

// indent is the empty column under the times. Text without a time begins after it.
const indent = "           "

func (n *storyWriter) writeStory(step report.Step) {
	if n.start.IsZero() {
		n.start = step.At
	}
	n.begun = true
	switch w := step.What.(type) {
	case report.StepInput:
		n.writeInput(step.At, w)
	case report.StepSaid:
		what := "the agent says:"
		if w.Thought {
			what = "the agent thinks:"
		}
		n.writeLine(step.At, n.s.Cyan(what))
		n.writeBlock(w.Text, w.Thought)
	case report.StepTool:
		n.writeTool(step, w)
	case report.StepAsked:
		n.writeLine(step.At, n.s.Yellow("? ")+n.s.Bold(frame.QuestionTitle(w.Question))+
			n.s.Dim(fmt.Sprintf("  question %s, event %d", frame.OneLine(frame.ShortID(w.ID)), step.Seq)))
		n.writeStyled(frame.RenderRows(card.Lay(w.Question, frame.DefaultWidth).Rows[1:], n.s))
	case report.StepClosed:
		n.writeLine(step.At, n.writeQuestionEnd(w)+n.s.Dim(fmt.Sprintf(", event %d", step.Seq)))
	case report.StepOutcome:
		n.writeOutcome(step.At, w)
	case report.StepNote:
		style := n.s.Dim
		if w.Bad {
			style = n.s.Red
		}
		n.writeLine(step.At, style(frame.OneLine(w.Words())+": ")+frame.OneLine(w.Text))
		n.writeUnasked(w)
	}
}

// writeLine writes one line of the story. If "at" is zero, the column of the time stays empty.
func (n *storyWriter) writeLine(at time.Time, text string) {
	column := indent
	if !at.IsZero() {
		column = n.s.Dim(fmt.Sprintf("%+9.3fs", at.Sub(n.start).Seconds())) + " "
	}
	_, _ = n.w.WriteString(column + text + "\n") // Flush returns the error.
}

// writeBlock writes a text of several lines, indented.
func (n *storyWriter) writeBlock(text string, dim bool) {
	for line := range strings.SplitSeq(strings.TrimRight(screen.Sanitize(text), "\n"), "\n") {
		if dim {
			line = n.s.Dim(line)
		}
		n.writeLine(time.Time{}, "  "+line)
	}
}

// writeStyled writes lines that are sanitized already and contain styles.
func (n *storyWriter) writeStyled(text string) {
	if text == "" {
		return
	}
	for line := range strings.SplitSeq(strings.TrimRight(text, "\n"), "\n") {
		style := len(line) - len(sgr().ReplaceAllString(line, ""))
		n.writeLine(time.Time{}, line[:style]+strings.TrimPrefix(line[style:], "  "))
	}
}

// sgr matches the escape sequences for colours and styles at the start of a line.
var sgr = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(\x1b\[[0-9;]*m)+`) })

func (n *storyWriter) writeInput(at time.Time, in report.StepInput) {
	_ = frame.WriteFields(n.w, n.s, "", 8, [][2]string{ // Flush returns the error of a failed write, here and below.
		{"run", string(in.Run)},
		{"session", string(in.Session)},
		{"input", string(in.Input)},
		{"when", at.Local().Format(storyTime)},
		{"provider", in.Provider},
		{"in", in.Dir},
	})
	_, _ = n.w.WriteString("\n")
	if in.Damage != nil {
		n.writeLine(at, n.s.Red(in.Damage.Text))
		return
	}
	if in.Pruned {
		n.writeLine(at, n.s.Dim("what was asked is no longer on record"))
		return
	}
	n.writeLine(at, n.s.Cyan(fmt.Sprintf("%s asks (%s):", frame.OneLine(in.Sender), frame.OneLine(in.Source))))
	n.writeBlock(in.Text, false)
	for _, path := range in.Attachments {
		n.writeLine(time.Time{}, "  "+n.s.Dim("attached: ")+frame.OneLine(path))
	}
	for _, rule := range in.Rules {
		n.writeLine(time.Time{}, "  "+n.s.Dim("rule of this run: ")+frame.OneLine(rule))
	}
}

func (n *storyWriter) writeTool(step report.Step, t report.StepTool) {
	title := cmp.Or(t.Title, t.ID)
	mark := "•"
	switch {
	case t.Status == "failed", t.Call.Failed():
		mark = n.s.Red("✗")
	case t.Status == "completed":
		mark = n.s.Green("✓")
	}
	text := mark + " " + frame.OneLine(title)
	if t.Kind != "" {
		text += n.s.Dim(" (" + frame.OneLine(t.Kind) + ")")
	}
	if t.Status != "" {
		text += n.s.Dim(" " + strings.ReplaceAll(frame.OneLine(t.Status), "_", " "))
	}
	if code, ok := t.Call.ExitCode(); ok {
		text += n.s.Dim(fmt.Sprintf(", exit code %d", code))
	}
	n.writeLine(step.At, text)
	if !t.Call.Over() {
		return
	}
	rows, more := frame.ToolResultRows(t.Call, frame.DefaultWidth, true)
	n.writeStyled(frame.RenderRows(rows, n.s))
	if more > 0 {
		n.writeLine(time.Time{}, n.s.Dim(fmt.Sprintf("… %s: perlica log show %d", frame.Count(more, "more line"), step.Seq)))
	}
}

// writeUnasked describes a tool call that ran without asking a person: its changes and the rule that allowed it.
func (n *storyWriter) writeUnasked(note report.StepNote) {
	u := note.Unasked
	if u == nil {
		return
	}
	var rows []card.Row
	for _, l := range u.Call.Locations {
		rows = append(rows, card.Text("path", l.Path, frame.DefaultWidth)...)
	}
	changes := frame.ToolChanges(u.Call)
	for _, d := range changes {
		rows = append(rows, card.Diff(d, frame.DefaultWidth)...)
	}
	if input := string(u.Call.RawInput); len(changes) == 0 && input != "" && input != "{}" {
		rows = append(rows, card.Text("input", input, frame.DefaultWidth)...)
	}
	n.writeStyled(frame.RenderRows(rows, n.s))
	if u.Always.ID == "" {
		return
	}
	n.writeLine(time.Time{}, "allowed by an earlier permanent yes to “"+frame.QuestionTitle(u.Always)+"”"+
		n.s.Dim("  question "+frame.OneLine(frame.ShortID(u.Always.ID))))
	if a := u.Yes; a != nil {
		label := frame.OneLine(a.Option)
		for _, o := range u.Always.Options {
			if o.ID == a.Option {
				label = card.Label(o, 60)
			}
		}
		n.writeLine(time.Time{}, fmt.Sprintf("  %s answered from %s at %s: %s", frame.OneLine(a.By), frame.OneLine(a.Where),
			u.YesAt.Local().Format(lineTime), n.s.Bold(label)))
	}
}

func (n *storyWriter) writeQuestionEnd(c report.StepClosed) string {
	which := n.s.Dim("  question " + frame.OneLine(frame.ShortID(c.Question.ID)))
	if c.Answer == nil {
		return n.s.Red("! no one answered: "+strings.ReplaceAll(frame.OneLine(string(c.Reason)), "_", " ")) + which
	}
	label := frame.OneLine(c.Answer.Option)
	allows := true
	for _, o := range c.Question.Options {
		if o.ID == c.Answer.Option {
			label, allows = card.Given(o, *c.Answer, 60), o.Allows()
		}
	}
	mark := n.s.Green("! ")
	if !allows {
		mark = n.s.Red("! ")
	}
	return fmt.Sprintf("%s%s answers from %s: %s, after %s%s",
		mark, frame.OneLine(c.Answer.By), frame.OneLine(c.Answer.Where), n.s.Bold(label), frame.FormatDuration(c.Took), which)
}

func (n *storyWriter) writeOutcome(at time.Time, o report.StepOutcome) {
	n.ended = true
	if o.Damage != nil {
		n.writeLine(at, strings.ReplaceAll(string(o.Outcome), "_", " ")+": "+n.s.Red(o.Damage.Text))
		return
	}
	if o.Pruned {
		n.writeLine(at, strings.ReplaceAll(string(o.Outcome), "_", " ")+n.s.Dim(": what it said is no longer on record"))
		return
	}
	if o.Outcome == record.OutcomeResponded {
		if !o.Shown && o.Text != "" {
			n.writeLine(at, n.s.Cyan("the answer:"))
			n.writeBlock(o.Text, false)
		}
		text := n.s.Green("responded") + ": " + frame.OneLine(o.StopReason) + " after " + frame.FormatDuration(o.Duration)
		if o.First > 0 {
			text += ", first update after " + frame.FormatDuration(o.First)
		}
		if in, out, ok := o.Tokens(); ok {
			text += fmt.Sprintf(", %d tokens in, %d out", in, out)
		}
		if o.Cost != nil {
			text += ", " + frame.OneLine(o.Cost.String())
		}
		n.writeLine(at, text)
		return
	}
	what := "provider error"
	if o.Outcome == record.OutcomeUnknown {
		what = "outcome unknown"
	}
	text := n.s.Red(what) + ": " + frame.OneLine(frame.ProviderMessage(o.Err))
	if o.Duration > 0 { // A duration of 0 means that no process saw the end.
		text += " after " + frame.FormatDuration(o.Duration)
	}
	n.writeLine(at, text)
	if o.Known != "" {
		n.writeLine(time.Time{}, "  "+frame.OneLine(o.Known))
	}
	if !o.Shown && o.Text != "" {
		n.writeLine(time.Time{}, n.s.Cyan("  what had arrived:"))
		n.writeBlock(o.Text, false)
	}
}
