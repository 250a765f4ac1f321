package log

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/perlica/perlica/cmd/perlica/frame"
	"github.com/perlica/perlica/cmd/perlica/screen"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/store"
	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/kernel/project"
	"github.com/perlica/perlica/kernel/record"
	"github.com/perlica/perlica/kernel/report"
)

func (a *app) logOpenCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "open", Annotations: frame.PersonOnly.Annotation(),
		Short: "List the runs without an outcome, or with an unknown one",
		Long: `List the running runs, and the runs with an unknown outcome that nobody has judged yet. For
each run, the list says whether its prompt was recorded, and which replies came back. Perlica
records a prompt immediately before it sends the prompt to the agent.

If the process of a run has died, this command first records the outcome "unknown", as the
next 'perlica run' would do. Perlica never sends a prompt again. Only a person can find out
the result of such a run. 'perlica log resolve' records this person's judgement and removes
the run from the list.`,
		Example: `  perlica log open
  perlica log open --json | jq -r '.[] | select(.alive | not) | .run_id'`,
		Args: frame.Exactly(), ValidArgsFunction: frame.NoFiles,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.logOpen(cmd.Context(), asJSON) },
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON array")
	return cmd
}

func (a *app) logOpen(ctx context.Context, asJSON bool) error {
	list := []report.OpenRun{}
	// If there is no log, there is no such run. Writing would create a log, so Reading looks first.
	err := a.Reading(ctx, func(*store.Reader, *project.Project) error { return nil })
	if err == nil {
		err = a.Writing(ctx, func(r *kernel.Runner, p *project.Project) error {
			for _, end := range []func(context.Context) ([]record.Result, error){r.Recover, r.RecoverUnlisted} {
				if _, err := end(ctx); err != nil {
					return err
				}
			}
			paths, err := p.Workspace.Context(p.Config.ContextID)
			if err != nil {
				return err
			}
			found, err := report.OpenRuns(ctx, &r.Log().Reader, paths.Locks)
			list = append(list, found...)
			return err
		})
	}
	if err := a.EmptyIfNoLog(err); err != nil {
		return err
	}
	if asJSON {
		return a.PrintJSON(list)
	}
	if len(list) == 0 {
		a.Note("no run is under way, and no outcome is unknown")
		return nil
	}
	return a.Write(func(w io.Writer) error { return writeOpenRuns(w, a.Styles(a.Stdout), list) })
}

func writeOpenRuns(out io.Writer, s screen.Styles, list []report.OpenRun) error {
	w := bufio.NewWriter(out)
	for i, o := range list {
		if i > 0 {
			fmt.Fprintln(w)
		}
		state := s.Red("outcome unknown")
		if o.Alive {
			state = s.Green("under way")
		} else if o.Outcome == "" {
			state = s.Yellow("no outcome yet")
		}
		fmt.Fprintf(w, "%s  %s\n", s.Bold("run "+frame.OneLine(frame.ShortID(o.Run))), state)
		known := o.Known
		if o.Alive {
			known = ""
		}
		_ = frame.WriteFields(w, s, "  ", 8, [][2]string{ // Flush returns a failed write's error.
			{"when", o.At.Local().Format(time.DateTime)},
			{"session", frame.ShortID(o.Session)},
			{"provider", o.Provider},
			{"input", startOf(o.Text)},
			{"prompt", promptState(o)},
			{"came", replyState(o)},
			{"asked", strings.Join(o.Questions, "; ")},
			{"known", known},
		})
		if !o.Alive {
			fmt.Fprintln(w, s.Dim("  to settle it: perlica log resolve "+frame.ShortID(o.Run)+" --sent|--not-sent --note TEXT"))
		}
	}
	return w.Flush()
}

// promptState describes in words whether the prompt was sent to the agent.
func promptState(o report.OpenRun) string {
	switch {
	case o.Sent:
		return "recorded as sent; the agent may or may not have read it"
	case o.Damage != "":
		return o.Damage
	case o.Pruned:
		return "not known any more: payloads were removed"
	case o.Alive:
		return "not on record yet"
	}
	// A prompt is recorded before it is sent, but the record reaches the disk a little later.
	return "not on record; it can have left all the same, a tenth of a second before the end"
}

// replyState describes the lines that the agent sent after the prompt.
func replyState(o report.OpenRun) string {
	if !o.Sent {
		return ""
	}
	text := frame.Count(o.Lines, "line")
	if o.Answered {
		text += ", among them an answer"
	}
	if o.Arrived != "" {
		text += "; the text so far: " + startOf(o.Arrived)
	}
	return text
}

// startOf returns the beginning of a text, short enough for one line.
func startOf(text string) string {
	const most = 100
	r := []rune(strings.Join(strings.Fields(text), " "))
	if len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return string(r)
}

func (a *app) logResolveCommand() *cobra.Command {
	var sent, notSent bool
	var note string
	cmd := &cobra.Command{
		Use: "resolve RUN --sent | --not-sent --note TEXT", Annotations: frame.PersonOnly.Annotation(),
		Short: "Record your judgement of a run with an unknown outcome",
		Long: `Record your judgement of a run with an unknown outcome: whether the prompt reached the agent,
and how you know. The command sends nothing, and the input's id stays used. A later judgement
replaces an earlier one; both stay on the log. RUN is the run's id, the beginning or end of
its id, or its input's id.`,
		Example: `  perlica log resolve 1a2b3c4d --sent --note "the commit it made is there"
  perlica log resolve job-17 --not-sent --note "the provider's list of requests has none"`,
		Args: frame.Exactly("RUN"), ValidArgsFunction: frame.CompleteFirst(frame.CompleteRuns(a.App)),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case sent == notSent:
				return frame.WithHint(frame.UsageErrorf("either --sent or --not-sent"), "%s", cmd.UseLine())
			case strings.TrimSpace(note) == "":
				return frame.WithHint(frame.UsageErrorf("--note says how it was found out"), "%s", cmd.UseLine())
			}
			return a.logResolve(cmd.Context(), args[0], fact.Resolved{Sent: sent, Note: note, By: frame.UserName(a.Getenv)})
		},
	}
	cmd.Flags().BoolVar(&sent, "sent", false, "the prompt reached the agent")
	cmd.Flags().BoolVar(&notSent, "not-sent", false, "the prompt did not reach the agent")
	cmd.Flags().StringVar(&note, "note", "", "how you know it, a `text` for the record")
	return cmd
}

func (a *app) logResolve(ctx context.Context, ref string, f fact.Resolved) error {
	var run event.RunID
	err := a.Reading(ctx, func(log *store.Reader, _ *project.Project) (err error) {
		run, err = report.FindRun(ctx, log, ref)
		return frame.ReferenceError("run", ref, err)
	})
	if err != nil {
		return err
	}
	err = a.Writing(ctx, func(r *kernel.Runner, _ *project.Project) error { return r.Resolve(ctx, run, f) })
	switch {
	case errors.Is(err, kernel.ErrOutcomeKnown), errors.Is(err, kernel.ErrNoCall):
		return frame.WithHint(err, "only an unknown outcome is judged; perlica log show %s", frame.ShortID(run))
	case errors.Is(err, kernel.ErrUnderWay):
		return frame.WithHint(err, "its outcome is yet to come")
	case errors.Is(err, kernel.ErrNoOutcome):
		return frame.WithHint(err, "its process is gone: 'perlica log open' puts the outcome on record, that it is unknown")
	case err != nil:
		return err
	}
	verdict := "was not sent"
	if f.Sent {
		verdict = "was sent"
	}
	return a.Say("on record: %s says that the prompt of run %s %s", f.By, frame.ShortID(run), verdict)
}
