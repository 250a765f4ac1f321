package main

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/perlica/perlica/eventlog"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/kernel/project"
	"github.com/perlica/perlica/kernel/report"
)

func (a *app) logCommand() *cobra.Command {
	return group("log", "Read, search, verify and prune the event log",
		`The event log is the record of everything: who asked what, every line between
Perlica and the agent, every question and who answered it, and how each call ended.
It is append-only: nothing on it is changed or reordered. These commands read it; only
prune takes something away, and says so on the log. See docs/log.md and docs/evidence.md.`,
		a.logTailCommand(), a.logShowCommand(), a.logSearchCommand(), a.logVerifyCommand(),
		a.logCheckpointCommand(), a.logProveCommand(), a.logKeyCommand(), a.logOpenCommand(), a.logResolveCommand(),
		a.logStatsCommand(), a.logExportCommand(), a.logImportCommand(), a.logPruneCommand(), a.logTrustCommand())
}

// logFilter says which events are wanted.
type logFilter struct {
	run, session  string
	types         []string
	since, before string
	facts         bool
	json          bool
}

func (a *app) addLogFilter(cmd *cobra.Command, f *logFilter) {
	a.addReferences(cmd, f)
	fl := cmd.Flags()
	fl.StringArrayVar(&f.types, "type", nil, "only events of this `type`; may be repeated, and a glob such as 'llm.*'")
	fl.BoolVar(&f.facts, "facts", false, "only facts, without the lines of the protocol")
	fl.BoolVar(&f.json, "json", false, "one JSON object a line, with the whole payload")
	completeFlag(cmd, "type", completeTypes)
}

// addReferences adds the flags that say which run, which session and which time.
func (a *app) addReferences(cmd *cobra.Command, f *logFilter) {
	fl := cmd.Flags()
	fl.StringVar(&f.run, "run", "", "only events of this `run`: its id, the beginning or end of it, or its input's id")
	fl.StringVarP(&f.session, "session", "s", "", "only events of this `session`: its id, the beginning or end of it, or its name")
	fl.StringVar(&f.since, "since", "", "only events since then: 7d, 2h, 2026-11-21, or RFC 3339 (a `time`)")
	fl.StringVar(&f.before, "before", "", "only events before then (a `time`)")
	completeFlag(cmd, "run", a.completeRuns)
	completeFlag(cmd, "session", a.completeSessions)
}

// query makes the filter a query on the log.
func (f logFilter) query(ctx context.Context, log *eventlog.Reader, now time.Time) (q event.Query, err error) {
	if q.Types, err = matchTypes(f.types); err != nil {
		return q, err
	}
	if f.facts {
		q.Class = event.Fact
	}
	for _, t := range []struct {
		flag, text string
		to         *time.Time
	}{{"--since", f.since, &q.Since}, {"--before", f.before, &q.Before}} {
		if t.text == "" {
			continue
		}
		if *t.to, err = parseWhen(t.text, now); err != nil {
			return q, usageErr("%s %w", t.flag, err)
		}
	}
	if f.run != "" {
		if q.Run, err = report.FindRun(ctx, log, f.run); err != nil {
			return q, recordErr("run", f.run, err)
		}
	}
	if f.session != "" {
		if q.Session, err = report.FindSession(ctx, log, f.session); err != nil {
			return q, recordErr("session", f.session, err)
		}
	}
	return q, nil
}

// recordErr says in the words of the command line that a reference leads nowhere.
func recordErr(what, ref string, err error) error {
	switch {
	case errors.Is(err, report.ErrNotFound):
		return withHint(fmt.Errorf("there is no %s %q on the log", what, ref),
			"'perlica log tail' and 'perlica session list --all' show what there is; --context chooses another log")
	case errors.Is(err, report.ErrAmbiguousRef):
		return withHint(fmt.Errorf("more than one %s matches %q", what, ref), "give more of the id")
	}
	return err
}

// matchTypes returns the types that the patterns name, and all of them for none.
func matchTypes(patterns []string) ([]event.Type, error) {
	var found []event.Type
	for _, p := range patterns {
		any := false
		for _, t := range event.Types() {
			ok, err := path.Match(p, string(t))
			if err != nil {
				return nil, usageErr("--type %q: %w", p, err)
			}
			any = any || ok
			if ok && !slices.Contains(found, t) {
				found = append(found, t)
			}
		}
		if !any {
			return nil, withHint(usageErr("there is no event type %q", p), "%s", nearestTypes(p))
		}
	}
	return found, nil
}

// nearestTypes suggests what may have been meant by a type that is none.
func nearestTypes(p string) string {
	word := strings.Trim(p, "*.")
	var near []string
	for _, t := range event.Types() {
		if word != "" && strings.Contains(string(t), word) {
			near = append(near, string(t))
		}
	}
	if len(near) == 0 {
		return "docs/log.md lists them; 'llm.*' and the like stand for several"
	}
	return "did you mean " + strings.Join(near, ", ") + "?"
}

func completeTypes(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	var names []string
	groups := map[string]bool{}
	for _, t := range event.Types() {
		head, _, _ := strings.Cut(string(t), ".")
		if !groups[head] {
			groups[head] = true
			names = append(names, head+".*")
		}
		names = append(names, string(t))
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// completeRuns gives shells the newest runs.
func (a *app) completeRuns(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	const newest = 20
	var names []string
	err := a.reading(cmd.Context(), func(log *eventlog.Reader, _ *project.Project) error {
		q := event.Query{Types: []event.Type{event.MessageReceived}, Newest: true, Limit: newest}
		for e, err := range log.Events(cmd.Context(), q) {
			if err != nil {
				return err
			}
			names = append(names, string(e.Run)+"\t"+oneLine(report.Summarize(e)))
		}
		return nil
	})
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return names, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
}

// reading calls f with the context's log, open for reading.
func (a *app) reading(ctx context.Context, f func(log *eventlog.Reader, p *project.Project) error) (err error) {
	p, err := a.locateToRead()
	if err != nil {
		return err
	}
	log, _, err := a.reader(ctx, p)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	return f(log, p)
}
