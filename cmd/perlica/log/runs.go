package log

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/perlica/perlica/cmd/perlica/frame"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/store"
	"github.com/perlica/perlica/kernel/project"
	"github.com/perlica/perlica/kernel/record"
	"github.com/perlica/perlica/kernel/report"
)

// runsDefault is the default number of runs in log runs.
const runsDefault = 20

func (a *app) logRunsCommand() *cobra.Command {
	var f frame.EventFilter
	var providerID string
	n := runsDefault
	cmd := &cobra.Command{
		Use: "runs", Annotations: frame.ReadOnly.Annotation(),
		Short: "List the runs: time, person, outcome and first words",
		Long: `List the runs, one line each, the newest last. A line has the input's time, sender and
session, the agent, the outcome, the duration, the numbers of questions and of allowed and
denied ones, the number of tools, the cost, and the first words of the input. Without --since
and --before, the command lists the newest 20 runs.`,
		Example: `  perlica log runs
  perlica log runs --since yesterday
  perlica log runs --provider claude --json | jq -r '.[].run_id'`,
		Args: frame.Exactly(), ValidArgsFunction: frame.NoFiles,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !cmd.Flags().Changed("lines") && (f.Since != "" || f.Before != "") {
				n = -1
			}
			return a.EmptyIfNoLog(a.Reading(cmd.Context(), func(log *store.Reader, _ *project.Project) error {
				return a.logRuns(cmd.Context(), log, f, report.RunsQuery{Provider: providerID, Newest: n})
			}))
		},
	}
	fl := cmd.Flags()
	fl.StringVarP(&f.Session, "session", "s", "",
		"only runs of this `session`: its id, the beginning or end of it, or its name")
	fl.StringVar(&f.Since, "since", "", "only runs since this `time`: 7d, yesterday, tuesday, '2 weeks ago', 2026-11-21")
	fl.StringVar(&f.Before, "before", "", "only runs before this `time`")
	fl.StringVar(&providerID, "provider", "", "only runs of this `provider`")
	fl.IntVarP(&n, "lines", "n", runsDefault, "the number of runs to list; -1 for all")
	fl.BoolVar(&f.Json, "json", false, "print a JSON array")
	frame.CompleteFlag(cmd, "session", a.CompleteSessions)
	frame.CompleteFlag(cmd, "provider", a.CompleteProviders)
	return cmd
}

func (a *app) logRuns(ctx context.Context, log event.Reader, f frame.EventFilter, q report.RunsQuery) error {
	selected, err := f.Query(ctx, log, time.Now())
	if err != nil {
		return err
	}
	q.Session, q.Since, q.Before = selected.Session, selected.Since, selected.Before
	list, more, err := report.ReadRuns(ctx, log, q)
	switch {
	case err != nil:
		return err
	case f.Json:
		err = a.PrintJSON(append([]report.Run{}, list...))
	case len(list) == 0:
		a.Note("no run matches")
	default:
		err = a.Table(runsGrid(list))
	}
	if more {
		a.Note("there are older runs: -n -1 lists all")
	}
	return err
}

// runsGrid returns a table with a row for each run.
func runsGrid(list []report.Run) frame.Grid {
	g := frame.Grid{Head: []string{"WHEN", "RUN", "SESSION", "BY", "PROVIDER", "OUTCOME", "TOOK", "ASKED", "TOOLS", "COST",
		"TEXT"}}
	for _, r := range list {
		took, asked, tools, cost := "", "", "", ""
		if r.DurationMS > 0 {
			took = frame.FormatDuration(time.Duration(r.DurationMS) * time.Millisecond)
		}
		if r.Asked > 0 {
			asked = fmt.Sprintf("%d: %d yes, %d no", r.Asked, r.Allowed, r.Denied)
		}
		if r.Tools > 0 {
			tools = fmt.Sprint(r.Tools)
		}
		if r.Cost != nil {
			cost = r.Cost.String()
		}
		g.Add(r.At.Local().Format(shortTime), frame.ShortID(r.Run), frame.ShortID(r.Session), r.By, r.Provider,
			outcomeWord(r), took, asked, tools, cost, firstWords(r))
	}
	g.DropEmpty("")
	return g
}

// shortTime is the format of a run's local time in a list.
const shortTime = "2006-01-02 15:04 MST"

func outcomeWord(r report.Run) string {
	switch r.Outcome {
	case "":
		if !r.Called {
			return "not sent"
		}
		return "none yet"
	case record.OutcomeResponded:
		return "ok"
	case record.OutcomeProviderError:
		return "error"
	case record.OutcomeUnknown:
		return "unknown"
	}
	return string(r.Outcome)
}

// firstWords returns the beginning of a run's input in one line.
func firstWords(r report.Run) string {
	const most = 60
	text := cmp.Or(r.Damage, strings.Join(strings.Fields(r.Text), " "))
	if r.Pruned && text == "" {
		return "(no longer on record)"
	}
	if list := []rune(text); r.Damage == "" && len(list) > most {
		return string(list[:most-1]) + "…"
	}
	return text
}
