package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/perlica/perlica/cmd/perlica/term"
	"github.com/perlica/perlica/eventlog"
	"github.com/perlica/perlica/kernel/project"
	"github.com/perlica/perlica/kernel/report"
)

func (a *app) logStatsCommand() *cobra.Command {
	var f logFilter
	var provider string
	cmd := &cobra.Command{
		Use: "stats", Annotations: reads.on(),
		Short: "Count runs, questions, tools, tokens and cost by day and provider",
		Long: `Count what the log holds: runs and calls and how they ended, questions and who answered
them, requests that were refused, tools that ran unasked, tokens and cost, by the day of
the input (in local time) and by provider. Tokens and cost are what agents report; many
report none.

Of payloads that were removed ('perlica log prune') the types are counted, and how many
there are is said.`,
		Example: `  perlica log stats --since 30d
  perlica log stats --provider claude --json | jq .total`,
		Args: exactly(), ValidArgsFunction: noFiles,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.logStats(cmd.Context(), f, provider) },
	}
	fl := cmd.Flags()
	fl.StringVar(&f.since, "since", "", "only inputs since then: 7d, 2h, 2026-11-21, or RFC 3339 (a `time`)")
	fl.StringVar(&f.before, "before", "", "only inputs before then (a `time`)")
	fl.StringVar(&provider, "provider", "", "only runs of this provider, by its `name`")
	fl.BoolVar(&f.json, "json", false, "print one JSON object")
	completeFlag(cmd, "provider", a.completeProviders)
	return cmd
}

func (a *app) logStats(ctx context.Context, f logFilter, provider string) error {
	stats := report.Stats{Groups: []report.Group{}, Answers: []report.Answers{}}
	err := a.reading(ctx, func(log *eventlog.Reader, _ *project.Project) error {
		q, err := f.query(ctx, log, time.Now())
		if err != nil {
			return err
		}
		stats, err = report.ReadStats(ctx, log, report.StatsQuery{Since: q.Since, Before: q.Before, Provider: provider, Zone: time.Local})
		return err
	})
	if err := a.orNone(err); err != nil {
		return err
	}
	switch {
	case f.json:
		return a.printJSON(stats)
	case stats.Total.Runs == 0:
		a.note("no run matches")
		return nil
	}
	return a.write(func(w io.Writer) error { return writeStats(w, a.styles(a.stdout), term.Width(a.stdout), stats) })
}

func writeStats(w io.Writer, s term.Styles, width int, stats report.Stats) error {
	g := grid{head: []string{"DAY", "PROVIDER", "RUNS", "CALLS", "OK", "ERROR", "UNKNOWN", "ASKED", "YES", "NO", "NOBODY", "BLOCKED", "UNASKED", "TOKENS", "COST"}}
	for _, x := range stats.Groups {
		g.add(statsRow(x.Day, x.Provider, x.Numbers)...)
	}
	if len(stats.Groups) > 1 {
		g.add(statsRow("all", "", stats.Total)...)
	}
	if err := g.write(w, s, width); err != nil {
		return err
	}
	var lines []string
	if n := stats.Total.NoOutcome; n > 0 {
		lines = append(lines, fmt.Sprintf("without an outcome: %s", count(n, "run")))
	}
	for _, x := range stats.Answers {
		how := "answered by " + strings.TrimSpace(x.Kind+" "+x.Who)
		if x.Kind == "nobody" {
			how = "not answered, " + x.Who
		}
		lines = append(lines, how+": "+strconv.Itoa(x.N))
	}
	if stats.Withheld > 0 {
		lines = append(lines, fmt.Sprintf("%s were removed: what they said is not counted", count(stats.Withheld, "payload")))
	}
	for _, line := range lines {
		if _, err := fmt.Fprintln(w, oneLine(line)); err != nil {
			return err
		}
	}
	return nil
}

func statsRow(day, provider string, n report.Numbers) []string {
	row := []string{day, provider}
	for _, c := range []int{n.Runs, n.Calls, n.Responded, n.Failed, n.Unknown, n.Asked, n.Allowed, n.Denied, n.Unanswered, n.Blocked, n.Unasked} {
		row = append(row, strconv.Itoa(c))
	}
	tokens := ""
	if n.TokensIn+n.TokensOut > 0 {
		tokens = fmt.Sprintf("%d in, %d out", n.TokensIn, n.TokensOut)
	}
	var costs []string
	for currency, amount := range n.Costs {
		costs = append(costs, fmt.Sprintf("%.4f %s", amount, currency))
	}
	slices.Sort(costs)
	return append(row, tokens, strings.Join(costs, ", "))
}
