package log

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/perlica/perlica/cmd/perlica/frame"
	"github.com/perlica/perlica/cmd/perlica/screen"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/store"
	"github.com/perlica/perlica/kernel/config"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/kernel/project"
	"github.com/perlica/perlica/kernel/report"
)

func (a *app) logStatsCommand() *cobra.Command {
	var f frame.EventFilter
	var q report.StatsQuery
	var by string
	var inTeam bool
	cmd := &cobra.Command{
		Use: "stats", Annotations: frame.ReadOnly.Annotation(),
		Short: "Count runs, questions, tools, tokens and cost by day, person, session or project",
		Long: `Count the runs and calls with their outcomes, the questions with their answerers, the refused
requests, the tools that ran without a question, the tokens and the cost.

The numbers stand by provider and by the day of the input, in local time. --by person, session
or project groups them differently; the projects are those of 'perlica log list'. With --team
the command counts in the copies of all workers' logs on the team's hub, and --by worker groups
the numbers by worker. Tokens and cost come from the agents; many agents do not report them.

The command also shows the number of payloads that 'perlica log prune' removed.`,
		Example: `  perlica log stats --since 30d
  perlica log stats --by person --since tuesday
  perlica log stats --provider claude --json | jq .total`,
		Args: frame.Exactly(), ValidArgsFunction: frame.NoFiles,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.logStats(cmd.Context(), f, q, by, inTeam) },
	}
	fl := cmd.Flags()
	fl.StringVar(&f.Since, "since", "",
		"only inputs since this `time`: 7d, yesterday, tuesday, '2 weeks ago', 2026-11-21")
	fl.StringVar(&f.Before, "before", "", "only inputs before this `time`")
	fl.StringVar(&by, "by", "day",
		"group the numbers by this `kind`: day, person, session, project, or worker with --team")
	fl.StringVar(&q.Provider, "provider", "", "only runs of the provider with this `name`")
	addTeamFlag(cmd, &inTeam)
	fl.BoolVar(&f.Json, "json", false, "print one JSON object")
	frame.CompleteFlag(cmd, "provider", a.CompleteProviders)
	frame.CompleteFlag(cmd, "by", cobra.FixedCompletions([]string{"day", "person", "session", "project", "worker"},
		cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (a *app) logStats(ctx context.Context, f frame.EventFilter, q report.StatsQuery, by string,
	inTeam bool) (err error) {
	q.Zone = time.Local
	if q.Since, q.Before, err = frame.ParseTimeRange(f.Since, f.Before, time.Now()); err != nil {
		return err
	}
	stats := report.Stats{Groups: []report.Group{}, Answers: []report.Answers{}}
	switch by {
	case "day", "project", "worker":
	case "person", "session":
		q.By = by
	default:
		return frame.UsageErrorf("--by is day, person, session, project or worker, not %q", by)
	}
	switch {
	case by == "project" && inTeam:
		return frame.WithHint(frame.UsageErrorf("--by project is about this machine's own logs, without --team"),
			"with --team it is day, person, session or worker")
	case by == "worker" && !inTeam:
		return frame.UsageErrorf("--by worker needs --team")
	case inTeam:
		err = a.statsOfTeam(ctx, &stats, q, by)
	case by == "project":
		err = a.statsOfProjects(ctx, &stats, q)
	default:
		err = a.EmptyIfNoLog(a.Reading(ctx, func(log *store.Reader, _ *project.Project) (err error) {
			stats, err = report.ReadStats(ctx, log, q)
			return err
		}))
	}
	damaged := error(nil)
	if errors.As(err, new(*event.DamagedError)) {
		damaged, err = err, nil
	}
	switch {
	case err != nil:
		return err
	case f.Json:
		err = a.PrintJSON(stats)
	case stats.Total.Runs == 0:
		a.Note("no run matches")
	default:
		err = a.Write(func(w io.Writer) error {
			return writeStats(w, a.Styles(a.Stdout), screen.TerminalWidth(a.Stdout), stats, by)
		})
	}
	return cmp.Or(err, damaged, leftOutError(len(stats.NotCounted) > 0))
}

// statsOfProjects adds the runs in the logs of all known projects to stats. For each log that cannot be read it
// prints a note. The result damaged is an error that names the logs with damaged events.
func (a *app) statsOfProjects(ctx context.Context, stats *report.Stats, q report.StatsQuery) (damaged error) {
	dirs, err := config.UserDirs(a.Getenv)
	if err != nil {
		return err
	}
	list, err := project.List(dirs)
	if err != nil {
		return err
	}
	for _, u := range list {
		if a.ContextFlag != "" && a.ContextFlag != u.Context {
			continue
		}
		one, err := statsOf(ctx, dirs, u.Log, q)
		switch {
		case errors.As(err, new(*event.DamagedError)):
			damaged = errors.Join(damaged, fmt.Errorf("%s: %w", u.Log, err))
			stats.Add(u.Dir, one)
		case err != nil:
			a.Note("not counted: " + u.Log + ": " + err.Error())
		case one.Total.Runs > 0:
			stats.Add(u.Dir, one)
		}
	}
	return damaged
}

func statsOf(ctx context.Context, dirs config.Dirs, path string, q report.StatsQuery) (report.Stats, error) {
	log, err := project.OpenLogToShow(ctx, dirs, path)
	if err != nil {
		return report.Stats{}, err
	}
	stats, err := report.ReadStats(ctx, log, q)
	frame.CloseShown(log, &err)
	return stats, err
}

// statsGrid returns a table of the statistics. If "by" is "day", it has a row for each day and provider. Otherwise it
// has a row for each value of the property with this name.
func statsGrid(stats report.Stats, by string) frame.Grid {
	of := []string{strings.ToUpper(by)}
	if by == "day" {
		of = append(of, "PROVIDER")
	}
	g := frame.Grid{Head: append(of, "RUNS", "CALLS", "OK", "ERROR", "UNKNOWN", "ASKED", "YES", "NO", "NOBODY", "BLOCKED",
		"UNASKED", "TOKENS", "COST")}
	rows := 0
	for _, x := range stats.Shares {
		name := x.Of
		if by == "session" {
			name = cmp.Or(x.Name, frame.ShortID(x.Of))
		}
		g.Add(statsRow(x.Numbers, name)...)
		rows++
	}
	for _, x := range stats.Groups {
		if by == "day" {
			g.Add(statsRow(x.Numbers, x.Day, x.Provider)...)
			rows++
		}
	}
	if rows > 1 {
		g.Add(statsRow(stats.Total, append([]string{"all"}, make([]string, len(of)-1)...)...)...)
	}
	return g
}

func writeStats(w io.Writer, s screen.Styles, width int, stats report.Stats, by string) error {
	g := statsGrid(stats, by)
	if width > 0 { // Only a terminal gets fewer columns, because a script needs every column.
		g.DropEmpty("", "0")
	}
	if err := g.Write(w, s, width); err != nil {
		return err
	}
	var lines []string
	if n := stats.Total.NoOutcome; n > 0 {
		lines = append(lines, fmt.Sprintf("without an outcome: %s", frame.Count(n, "run")))
	}
	for _, x := range stats.Answers {
		how := "answered by " + strings.TrimSpace(x.Kind+" "+x.Who)
		if x.Kind == "nobody" {
			how = "not answered, " + x.Who
		}
		lines = append(lines, how+": "+strconv.Itoa(x.N))
	}
	if stats.Withheld > 0 {
		lines = append(lines, fmt.Sprintf("%s were removed: what they said is not counted",
			frame.Count(stats.Withheld, "payload")))
	}
	for _, line := range lines {
		if _, err := fmt.Fprintln(w, frame.OneLine(line)); err != nil {
			return err
		}
	}
	return nil
}

func statsRow(n report.Numbers, row ...string) []string {
	for _, c := range []int{n.Runs, n.Calls, n.Responded, n.Failed, n.Unknown, n.Asked, n.Allowed, n.Denied, n.Unanswered,
		n.Blocked, n.Unasked} {
		row = append(row, strconv.Itoa(c))
	}
	tokens := ""
	if n.TokensIn+n.TokensOut > 0 {
		tokens = fmt.Sprintf("%d in, %d out", n.TokensIn, n.TokensOut)
	}
	var costs []string
	for currency, amount := range n.Costs {
		costs = append(costs, fact.Cost{Amount: amount, Currency: currency}.String())
	}
	slices.Sort(costs)
	return append(row, tokens, strings.Join(costs, ", "))
}
