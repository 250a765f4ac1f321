package log

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/perlica/perlica/cmd/perlica/cli"
	"github.com/perlica/perlica/cmd/perlica/printing"
	"github.com/perlica/perlica/cmd/perlica/selection"
	"github.com/perlica/perlica/cmd/perlica/signals"
	"github.com/perlica/perlica/cmd/perlica/term"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/store"
	"github.com/perlica/perlica/interaction/card"
	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/kernel/project"
	"github.com/perlica/perlica/kernel/report"
)

func (a *app) logShowCommand() *cobra.Command {
	var f selection.Filter
	cmd := &cobra.Command{
		Use: "show RUN | SESSION | SEQ | EVENT-ID", Annotations: cli.Reads.On(),
		Short: "Show a run as a story, a session's runs, or one event in full",
		Long: `Show what the log holds about one thing.

A run (its id, the beginning or end of it, or its input's id) is told as a story: who
asked what, what the agent said and did, what it asked and who answered, and how it
ended. Times count from the input. A session (its id, a part of it, or its name) is the
stories of its runs. An event (its seq or its whole id) is shown in full: facts as JSON,
frames byte for byte as they crossed the wire, save that control characters are made
visible.

With --type or --json the events themselves are listed.`,
		Example: `  perlica log show 1a2b3c4d
  perlica log show 42
  perlica log show 1a2b3c4d --type 'interaction.*'
  perlica log show my-session --since 2h
  perlica log show 1a2b3c4d --json > run.ndjson`,
		Args: cli.Exactly("RUN, SESSION, SEQ or EVENT-ID"), ValidArgsFunction: cli.CompleteFirst(selection.CompleteRuns(a.App)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.Reading(cmd.Context(), func(log *store.Reader, _ *project.Project) error {
				return signals.IgnoreClosedPipe(a.logShow(cmd.Context(), log, args[0], f))
			})
		},
	}
	selection.AddFlags(a.App, cmd, &f)
	return cmd
}

func (a *app) logShow(ctx context.Context, log *store.Reader, ref string, f selection.Filter) error {
	q, err := f.Query(ctx, log, time.Now())
	if err != nil {
		return err
	}
	found, err := report.FindRecord(ctx, log, ref)
	if err != nil {
		return selection.NotFound("run, session or event", ref, err)
	}
	out := a.eventWriter(a.Stdout, f.Json)
	if !narrow(&q, found) {
		return fmt.Errorf("%q is on the log, and the filters leave it out", ref)
	}
	switch {
	case found.Event != nil && f.Json:
		err = errors.Join(out.event(*found.Event), outputErr(out.w.Flush()))
	case found.Event != nil:
		_, err = fmt.Fprintln(a.Stdout, eventInFull(*found.Event, out.styles))
		return outputErr(err)
	case f.Json || len(f.Types) > 0:
		return out.events(ctx, log, q)
	case found.Run != "":
		return a.tellRun(ctx, log, out, found.Run, q)
	default:
		return a.tellSession(ctx, log, out, found.Session, q)
	}
	return err
}

// narrow makes q select no more than what was found. It returns false if they exclude each other.
func narrow(q *event.Query, found report.Found) bool {
	if e := found.Event; e != nil {
		return (q.Run == "" || q.Run == e.Run) && (q.Session == "" || q.Session == e.Session) &&
			(q.Class == "" || q.Class == e.Class) && (q.Types == nil || slices.Contains(q.Types, e.Type)) &&
			!e.Time.Before(q.Since) && (q.Before.IsZero() || e.Time.Before(q.Before))
	}
	if found.Run != "" && q.Run != "" && q.Run != found.Run || found.Session != "" && q.Session != "" && q.Session != found.Session {
		return false
	}
	if found.Run != "" {
		q.Run = found.Run
	} else {
		q.Session = found.Session
	}
	return true
}

func (a *app) tellSession(ctx context.Context, log *store.Reader, out *eventWriter, id event.SessionID, q event.Query) error {
	turns, err := report.ReadTurns(ctx, log, id, 0, -1)
	if err != nil {
		return err
	}
	for i, t := range turns {
		if !q.Since.IsZero() && t.At.Before(q.Since) || !q.Before.IsZero() && !t.At.Before(q.Before) || q.Run != "" && q.Run != t.Run {
			continue
		}
		if i > 0 {
			if _, err := out.w.WriteString("\n"); err != nil {
				return outputErr(err)
			}
		}
		if err := a.tellRun(ctx, log, out, t.Run, q); err != nil {
			return err
		}
	}
	if len(turns) == 0 {
		a.Note("the session has had no run yet")
	}
	return nil
}

func (a *app) tellRun(ctx context.Context, log *store.Reader, out *eventWriter, run event.RunID, q event.Query) error {
	n := &storyteller{w: out.w, s: out.styles}
	for step, err := range report.Story(ctx, log, run, q) {
		if err != nil {
			return errors.Join(err, outputErr(out.w.Flush()))
		}
		n.tell(step)
	}
	if !n.ended && n.begun {
		n.line(time.Time{}, n.s.Yellow("no outcome on record: the run is under way, or its process is gone"))
	}
	return outputErr(out.w.Flush())
}

// eventInFull is one event with all its fields and its payload.
func eventInFull(e event.Event, s term.Styles) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", s.Bold(fmt.Sprintf("event %d  %s", e.Seq, printing.OneLine(string(e.Type)))))
	_ = printing.WriteFields(&b, s, "  ", 12, [][2]string{ // a strings.Builder takes all
		{"event_id", e.ID},
		{"time", e.Time.Local().Format(time.RFC3339Nano)},
		{"class", string(e.Class)},
		{"actor", e.Actor},
		{"writer", e.Writer},
		{"context", e.Context},
		{"session", string(e.Session)},
		{"conversation", string(e.Conversation)},
		{"run", string(e.Run)},
		{"trace", string(e.Trace)},
		{"question", string(e.Interaction)},
		{"input", string(e.Input)},
		{"payload", fmt.Sprintf("%s, sha256 %x", printing.Count(int(e.PayloadLen), "byte"), e.PayloadSHA256)},
		{"leaf", e.LeafHash.String()},
	})
	b.WriteString("\n" + term.Sanitize(payloadInFull(e)))
	return b.String()
}

// payloadInFull shows a fact indented and a frame as it is.
func payloadInFull(e event.Event) string {
	var pretty bytes.Buffer
	switch {
	case e.Payload == nil:
		return "(payload withheld: " + cmp.Or(e.Withheld, "nothing says why") + ")"
	case e.Class == event.Fact && json.Indent(&pretty, e.Payload, "", "  ") == nil:
		return pretty.String()
	}
	return string(e.Payload)
}

// storyteller writes a run's steps for people. Flush returns its writer's error.
type storyteller struct {
	w *bufio.Writer
	s term.Styles

	start time.Time
	begun bool
	ended bool // the outcome was written
}

// indent sets text off from the column of times.
const indent = "           "

func (n *storyteller) tell(step report.Step) {
	if n.start.IsZero() {
		n.start = step.At
	}
	n.begun = true
	switch w := step.What.(type) {
	case report.StepInput:
		n.input(step.At, w)
	case report.StepSaid:
		what := "the agent says:"
		if w.Thought {
			what = "the agent thinks:"
		}
		n.line(step.At, n.s.Cyan(what))
		n.block(w.Text, w.Thought)
	case report.StepTool:
		n.tool(step.At, w)
	case report.StepAsked:
		n.line(step.At, n.s.Yellow("? ")+n.s.Bold(printing.QuestionTitle(w.Question))+n.s.Dim("  question "+printing.OneLine(printing.Short(w.ID))))
		n.raw(printing.Drawn(card.Lay(w.Question, printing.UnknownWidth).Rows[1:], n.s))
	case report.StepClosed:
		n.line(step.At, n.closed(w))
	case report.StepOutcome:
		n.outcome(step.At, w)
	case report.StepNote:
		style := n.s.Dim
		if w.Bad {
			style = n.s.Red
		}
		n.line(step.At, style(printing.OneLine(w.Words())+": ")+printing.OneLine(w.Text))
	}
}

// line writes one line of the story; a zero time leaves the column empty.
func (n *storyteller) line(at time.Time, text string) {
	column := indent
	if !at.IsZero() {
		column = n.s.Dim(fmt.Sprintf("%+9.3fs", at.Sub(n.start).Seconds())) + " "
	}
	_, _ = n.w.WriteString(column + text + "\n") // Flush tells
}

// block writes a text of several lines, set off.
func (n *storyteller) block(text string, dim bool) {
	for line := range strings.SplitSeq(strings.TrimRight(term.Sanitize(text), "\n"), "\n") {
		if dim {
			line = n.s.Dim(line)
		}
		n.line(time.Time{}, "  "+line)
	}
}

// raw writes lines that are harmless and styled already.
func (n *storyteller) raw(text string) {
	if text == "" {
		return
	}
	for line := range strings.SplitSeq(strings.TrimRight(text, "\n"), "\n") {
		n.line(time.Time{}, strings.TrimPrefix(line, "  "))
	}
}

func (n *storyteller) input(at time.Time, in report.StepInput) {
	_ = printing.WriteFields(n.w, n.s, "", 8, [][2]string{ // Flush tells, here and below
		{"run", string(in.Run)},
		{"session", string(in.Session)},
		{"input", string(in.Input)},
		{"when", at.Local().Format(lineTime)},
		{"provider", in.Provider},
		{"in", in.Dir},
	})
	_, _ = n.w.WriteString("\n")
	if in.Pruned {
		n.line(at, n.s.Dim("what was asked is no longer on record"))
		return
	}
	n.line(at, n.s.Cyan(fmt.Sprintf("%s asks (%s):", printing.OneLine(in.Sender), printing.OneLine(in.Source))))
	n.block(in.Text, false)
	for _, path := range in.Attachments {
		n.line(time.Time{}, "  "+n.s.Dim("attached: ")+printing.OneLine(path))
	}
}

func (n *storyteller) tool(at time.Time, t report.StepTool) {
	title := cmp.Or(t.Title, t.ID)
	mark := "•"
	switch t.Status {
	case "completed":
		mark = n.s.Green("✓")
	case "failed":
		mark = n.s.Red("✗")
	}
	text := mark + " " + printing.OneLine(title)
	if t.Kind != "" {
		text += n.s.Dim(" (" + printing.OneLine(t.Kind) + ")")
	}
	if t.Status != "" {
		text += n.s.Dim(" " + strings.ReplaceAll(printing.OneLine(t.Status), "_", " "))
	}
	n.line(at, text)
}

func (n *storyteller) closed(c report.StepClosed) string {
	which := n.s.Dim("  question " + printing.OneLine(printing.Short(c.Question.ID)))
	if c.Answer == nil {
		return n.s.Red("! no one answered: "+strings.ReplaceAll(printing.OneLine(string(c.Reason)), "_", " ")) + which
	}
	label := printing.OneLine(c.Answer.Option)
	allows := true
	for _, o := range c.Question.Options {
		if o.ID == c.Answer.Option {
			label, allows = card.Label(o, 60), o.Allows()
		}
	}
	mark := n.s.Green("! ")
	if !allows {
		mark = n.s.Red("! ")
	}
	return fmt.Sprintf("%s%s answers from %s: %s, after %s%s",
		mark, printing.OneLine(c.Answer.By), printing.OneLine(c.Answer.Where), n.s.Bold(label), printing.Took(c.Took), which)
}

func (n *storyteller) outcome(at time.Time, o report.StepOutcome) {
	n.ended = true
	if o.Pruned {
		n.line(at, strings.ReplaceAll(string(o.Outcome), "_", " ")+n.s.Dim(": what it said is no longer on record"))
		return
	}
	if o.Outcome == kernel.OutcomeResponded {
		if !o.Shown && o.Text != "" {
			n.line(at, n.s.Cyan("the answer:"))
			n.block(o.Text, false)
		}
		text := n.s.Green("responded") + ": " + printing.OneLine(o.StopReason) + " after " + printing.Took(o.Duration)
		if o.First > 0 {
			text += ", first update after " + printing.Took(o.First)
		}
		if in, out, ok := o.Tokens(); ok {
			text += fmt.Sprintf(", %d tokens in, %d out", in, out)
		}
		if o.Cost != nil {
			text += ", " + printing.OneLine(o.Cost.String())
		}
		n.line(at, text)
		return
	}
	what := "provider error"
	if o.Outcome == kernel.OutcomeUnknown {
		what = "outcome unknown"
	}
	n.line(at, n.s.Red(what)+": "+printing.OneLine(printing.Message(o.Err))+" after "+printing.Took(o.Duration))
	if o.Known != "" {
		n.line(time.Time{}, "  "+printing.OneLine(o.Known))
	}
	if !o.Shown && o.Text != "" {
		n.line(time.Time{}, n.s.Cyan("  what had arrived:"))
		n.block(o.Text, false)
	}
}
