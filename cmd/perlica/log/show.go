package log

import (
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

	"github.com/perlica/perlica/cmd/perlica/frame"
	"github.com/perlica/perlica/cmd/perlica/screen"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/store"
	"github.com/perlica/perlica/kernel/project"
	"github.com/perlica/perlica/kernel/report"
)

func (a *app) logShowCommand() *cobra.Command {
	var f frame.EventFilter
	var inTeam bool
	cmd := &cobra.Command{
		Use: "show [RUN | SESSION | QUESTION | SEQ | EVENT-ID]", Annotations: frame.ReadOnly.Annotation(),
		Short: "Show a run, a session, a question or one event in full",
		Long: `Show one run, session, question or event. Without an argument it is the last run.

RUN is a run's id, the beginning or end of the id, or the id of its input. The command tells
the run as a story: the input and its sender, the agent's words and actions, its questions and
their answers, and the outcome. Times count from the input.

SESSION is a session's name, its id, or a part of the id. The command tells the stories of all
its runs. QUESTION is a question's id or a part of it. The command shows the question, its
answer, and the person that answered.

SEQ is the number of an event, and EVENT-ID its whole id. The command shows the event in full:
Perlica's own entries as JSON, and lines of the agent's protocol byte for byte. Only control
characters are made visible.

With --type or --json the command lists the events themselves. With --team it looks in the
copies of all workers' logs on the team's hub: see docs/team.md.`,
		Example: `  perlica log show
  perlica log show 1a2b3c4d
  perlica log show 42
  perlica log show 1a2b3c4d --type 'interaction.*'
  perlica log show my-session --since 2h
  perlica log show 1a2b3c4d --json > run.ndjson`,
		Args: frame.Between(0, "RUN, SESSION, QUESTION, SEQ or EVENT-ID"), ValidArgsFunction: frame.CompleteFirst(
			frame.CompleteRuns(a.App)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if inTeam {
				return frame.IgnoreClosedPipe(a.showOfTeam(cmd.Context(), strings.Join(args, ""), len(args) == 0, f))
			}
			return a.Reading(cmd.Context(), func(log *store.Reader, _ *project.Project) error {
				return frame.IgnoreClosedPipe(a.logShow(cmd.Context(), log, strings.Join(args, ""), len(args) == 0, f))
			})
		},
	}
	frame.AddEventFilterFlags(a.App, cmd, &f)
	addTeamFlag(cmd, &inTeam)
	return cmd
}

func (a *app) logShow(ctx context.Context, log event.Reader, ref string, last bool, f frame.EventFilter) error {
	q, err := f.Query(ctx, log, time.Now())
	if err != nil {
		return err
	}
	var found report.Found
	if last {
		found.Run, err = lastRun(ctx, log, q)
	} else {
		found, err = report.FindRecord(ctx, log, ref)
	}
	if err != nil {
		return frame.ReferenceError("run, session, question or event", ref, err)
	}
	out := a.eventWriter(a.Stdout, f.Json)
	if last && !f.Json && len(f.Types) == 0 {
		if err := a.noteOthers(ctx, log, q, f); err != nil {
			return err
		}
	}
	if !narrowQuery(&q, found) {
		return fmt.Errorf("%q is on the log, and the filters leave it out", ref)
	}
	switch {
	case found.Event != nil && f.Json:
		err = errors.Join(out.writeEvent(*found.Event), outputErr(out.w.Flush()))
	case found.Event != nil:
		_, err = fmt.Fprintln(a.Stdout, eventInFull(*found.Event, out.styles))
		return outputErr(err)
	case f.Json || len(f.Types) > 0:
		return out.writeEvents(ctx, log, q)
	case found.Run != "":
		return a.tellRun(ctx, log, out, found.Run, q)
	default:
		return a.tellSession(ctx, log, out, found.Session, q)
	}
	return err
}

// noteOthers prints how many runs match the filters if there are several, because the command shows only the last
// run.
func (a *app) noteOthers(ctx context.Context, log event.Reader, q event.Query, f frame.EventFilter) error {
	counter, ok := log.(interface {
		Count(ctx context.Context, q event.Query) (int, error)
	})
	if !ok || f.Since == "" && f.Before == "" && f.Session == "" {
		return nil
	}
	n, err := counter.Count(ctx, event.Query{Types: []event.Type{event.MessageReceived}, Session: q.Session, Run: q.Run,
		Since: q.Since, Before: q.Before})
	if err == nil && n > 1 {
		command := "perlica log runs"
		for _, flag := range [][2]string{{"--session", f.Session}, {"--since", f.Since}, {"--before", f.Before}} {
			if flag[1] != "" {
				command += " " + flag[0] + " '" + flag[1] + "'"
			}
		}
		a.Note(fmt.Sprintf("this is the last of %d runs that match; '%s' lists them", n,
			strings.ReplaceAll(command, "'", "\"")))
	}
	return err
}

// lastRun returns the run that began last, of the runs that q selects.
func lastRun(ctx context.Context, log event.Reader, q event.Query) (event.RunID, error) {
	e, ok, err := log.Last(ctx, event.Query{Types: []event.Type{event.MessageReceived}, Session: q.Session, Run: q.Run,
		Since: q.Since, Before: q.Before})
	if err == nil && !ok {
		err = errors.New("there is no such run on the log yet")
	}
	return e.Run, err
}

// narrowQuery restricts q to the run, session or question that was found. It does not change q for a found event. It
// returns false if q excludes the found thing, for example because q names another run.
func narrowQuery(q *event.Query, found report.Found) bool {
	if e := found.Event; e != nil {
		return (q.Run == "" || q.Run == e.Run) && (q.Session == "" || q.Session == e.Session) &&
			(q.Class == "" || q.Class == e.Class) && (q.Types == nil || slices.Contains(q.Types, e.Type)) &&
			!e.Time.Before(q.Since) && (q.Before.IsZero() || e.Time.Before(q.Before))
	}
	if found.Run != "" && q.Run != "" && q.Run != found.Run || found.Session != "" && q.Session != "" &&
		q.Session != found.Session {
		return false
	}
	q.Interaction = found.Question
	if found.Run != "" {
		q.Run = found.Run
	} else {
		q.Session = found.Session
	}
	return true
}

func (a *app) tellSession(ctx context.Context, log event.Reader, out *eventWriter, id event.SessionID,
	q event.Query) error {
	turns, err := report.ReadTurns(ctx, log, id, 0, -1)
	if err != nil {
		return err
	}
	for i, t := range turns {
		if !q.Since.IsZero() && t.At.Before(q.Since) || !q.Before.IsZero() && !t.At.Before(q.Before) || q.Run != "" &&
			q.Run != t.Run {
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

func (a *app) tellRun(ctx context.Context, log event.Reader, out *eventWriter, run event.RunID, q event.Query) error {
	n := &storyWriter{w: out.w, s: out.styles}
	for step, err := range report.Story(ctx, log, run, q) {
		if err != nil {
			return errors.Join(err, outputErr(out.w.Flush()))
		}
		n.writeStory(step)
	}
	if !n.ended && n.begun && q.Interaction == "" {
		n.writeLine(time.Time{}, n.s.Yellow("no outcome on record: the run is under way, or its process is gone"))
	}
	return outputErr(out.w.Flush())
}

// eventInFull returns an event as text, with all its fields and its payload.
func eventInFull(e event.Event, s screen.Styles) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", s.Bold(fmt.Sprintf("event %d  %s", e.Seq, frame.OneLine(string(e.Type)))))
	_ = frame.WriteFields(&b, s, "  ", 12, [][2]string{ // Writing to a strings.Builder never fails.
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
		{"payload", fmt.Sprintf("%s, sha256 %x", frame.Count(int(e.PayloadLen), "byte"), e.PayloadSHA256)},
		{"leaf", e.LeafHash.String()},
	})
	b.WriteString("\n" + screen.Sanitize(payloadInFull(e)))
	return b.String()
}

// payloadInFull returns the payload of an event as text. It indents the JSON of a fact, and leaves a frame, which
// is a line of a protocol, unchanged.
func payloadInFull(e event.Event) string {
	var pretty bytes.Buffer
	switch {
	case e.Damage() != nil:
		return e.Damage().Row().Text
	case e.Payload == nil:
		return "(payload withheld: " + cmp.Or(e.Withheld, "nothing says why") + ")"
	case e.Class == event.Fact && json.Indent(&pretty, e.Payload, "", "  ") == nil:
		return pretty.String()
	}
	return string(e.Payload)
}
