package frame

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/store"
	"github.com/perlica/perlica/kernel/project"
	"github.com/perlica/perlica/kernel/report"
)

// EventFilter selects events of a log.
type EventFilter struct {
	Run, Session  string
	Types         []string
	Since, Before string
	facts         bool
	Json          bool
}

// AddEventFilterFlags adds every flag of the filter.
func AddEventFilterFlags(a *App, cmd *cobra.Command, f *EventFilter) {
	AddReferenceFlags(a, cmd, f)
	fl := cmd.Flags()
	fl.StringArrayVar(&f.Types, "type", nil,
		"only events of this `type`, or of a pattern such as 'llm.*'; may be repeated")
	fl.BoolVar(&f.facts, "facts", false, "only Perlica's own entries, without the lines of the agent's protocol")
	fl.BoolVar(&f.Json, "json", false, "print one JSON object per line, with the whole payload")
	CompleteFlag(cmd, "type", completeTypes)
}

// AddReferenceFlags adds the flags for a run, a session and a time.
func AddReferenceFlags(a *App, cmd *cobra.Command, f *EventFilter) {
	fl := cmd.Flags()
	fl.StringVar(&f.Run, "run", "",
		"only events of this `run`: its id, the beginning or end of its id, or its input's id")
	fl.StringVarP(&f.Session, "session", "s", "",
		"only events of this `session`: its name, its id, or the beginning or end of its id")
	fl.StringVar(&f.Since, "since", "",
		"only events since this `time`: 7d, yesterday, tuesday, '2 weeks ago', 2026-11-21")
	fl.StringVar(&f.Before, "before", "", "only events before this `time`")
	CompleteFlag(cmd, "run", CompleteRuns(a))
	CompleteFlag(cmd, "session", a.CompleteSessions)
}

// Query returns the query that selects the filter's events.
func (f EventFilter) Query(ctx context.Context, log event.Reader, now time.Time) (q event.Query, err error) {
	if q.Types, err = matchTypes(f.Types); err != nil {
		return q, err
	}
	if f.facts {
		q.Class = event.Fact
	}
	if q.Since, q.Before, err = ParseTimeRange(f.Since, f.Before, now); err != nil {
		return q, err
	}
	if f.Run != "" {
		if q.Run, err = report.FindRun(ctx, log, f.Run); err != nil {
			return q, ReferenceError("run", f.Run, err)
		}
	}
	if f.Session != "" {
		if q.Session, err = report.FindSession(ctx, log, f.Session); err != nil {
			return q, ReferenceError("session", f.Session, err)
		}
	}
	return q, nil
}

// ParseTimeRange parses the values of --since and --before. For an empty value it returns the zero time.
func ParseTimeRange(since, before string, now time.Time) (from, to time.Time, err error) {
	for _, t := range []struct {
		flag, text string
		to         *time.Time
	}{{"--since", since, &from}, {"--before", before, &to}} {
		if t.text == "" {
			continue
		}
		if *t.to, err = parseTime(t.text, now); err != nil {
			return from, to, UsageErrorf("%s %w", t.flag, err)
		}
	}
	return from, to, nil
}

// missingError is an error with a text for users. It wraps the error of the search.
type missingError struct {
	text  string
	cause error
}

func (e *missingError) Error() string { return e.text }
func (e *missingError) Unwrap() error { return e.cause }

// ReferenceError returns an error that explains to the user why a run or session was not found. The parameter "what" is
// the text "run" or "session". The parameter ref is the user's text.
func ReferenceError(what, ref string, err error) error {
	switch {
	case errors.Is(err, report.ErrNotFound):
		return WithHint(&missingError{fmt.Sprintf("there is no %s %q on the log", what, ref), err},
			"'perlica log tail' and 'perlica session list --all' show what there is; --context chooses another log")
	case errors.Is(err, report.ErrAmbiguousRef):
		return WithHint(fmt.Errorf("more than one %s matches %q", what, ref), "give more of the id")
	}
	return err
}

// matchTypes returns the event types that match any of the patterns. Without patterns it returns nil, which means all
// types.
func matchTypes(patterns []string) ([]event.Type, error) {
	var found []event.Type
	for _, p := range patterns {
		any := false
		for _, t := range event.Known().Types() {
			ok, err := path.Match(p, string(t))
			if err != nil {
				return nil, UsageErrorf("--type %q: %w", p, err)
			}
			any = any || ok
			if ok && !slices.Contains(found, t) {
				found = append(found, t)
			}
		}
		if !any {
			return nil, WithHint(UsageErrorf("there is no event type %q", p), "%s", nearestTypes(p))
		}
	}
	return found, nil
}

// nearestTypes returns a sentence with event types that are similar to a pattern without a match.
func nearestTypes(p string) string {
	word := strings.Trim(p, "*.")
	var near []string
	for _, t := range event.Known().Types() {
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
	for _, t := range event.Known().Types() {
		head, _, _ := strings.Cut(string(t), ".")
		if !groups[head] {
			groups[head] = true
			names = append(names, head+".*")
		}
		names = append(names, string(t))
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// CompleteRuns lists the newest runs for a shell's completion.
func CompleteRuns(a *App) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		const newest = 20
		var names []string
		err := a.Reading(cmd.Context(), func(log *store.Reader, _ *project.Project) error {
			q := event.Query{Types: []event.Type{event.MessageReceived}, Newest: true, Limit: newest}
			for e, err := range log.Events(cmd.Context(), q) {
				if err != nil {
					return err
				}
				names = append(names, string(e.Run)+"\t"+OneLine(report.Summarize(e, nil)))
			}
			return nil
		})
		return Completed(names, err)
	}
}
