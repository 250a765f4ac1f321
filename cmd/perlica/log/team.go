package log

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/perlica/perlica/cmd/perlica/frame"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/kernel/report"
	"github.com/perlica/perlica/service/team"
	"github.com/perlica/perlica/service/team/hub"
)

func addTeamFlag(cmd *cobra.Command, inTeam *bool) {
	cmd.Flags().BoolVar(inTeam, "team", false,
		"read the copies of all workers' logs on the team's hub; see docs/team.md")
}

// withCopies calls f with the copies of all workers' logs that the team's hub has.
func (a *app) withCopies(ctx context.Context, f func(logs []*hub.CopyReader) error) error {
	p, err := a.Locate(nil)
	if err != nil {
		return err
	}
	return team.Use(ctx, p, a.Version, func(t *team.Team) error {
		logs, err := t.Logs(ctx)
		if err != nil {
			return err
		}
		if len(logs) == 0 {
			a.Note("there is no copy of a worker's log on the hub")
		}
		return f(logs)
	})
}

// leftOut prints the reason why the command leaves out a copy of a worker's log. The command continues with the
// other copies and fails at its end. If the other copies would fail, too, leftOut returns the error.
func (a *app) leftOut(ctx context.Context, l *hub.CopyReader, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if !errors.Is(err, hub.ErrEdited) {
		return err // Another error concerns the hub, so the other copies would fail, too.
	}
	a.Note("left out: " + l.Worker + ": " + err.Error())
	return nil
}

// leftOutError returns an error if some copies were left out. The error has no message, because leftOut has printed
// the reasons.
func leftOutError(some bool) error {
	if !some {
		return nil
	}
	return frame.ExitFailure.With(nil)
}

// statsOfTeam adds the runs in the copies to stats and prints a note for each copy that cannot be read.
func (a *app) statsOfTeam(ctx context.Context, stats *report.Stats, q report.StatsQuery, by string) error {
	return a.withCopies(ctx, func(logs []*hub.CopyReader) error {
		for _, l := range logs {
			one, err := report.ReadStats(ctx, l, q)
			switch {
			case err != nil:
				if err := a.leftOut(ctx, l, err); err != nil {
					return err
				}
				stats.NotCounted = append(stats.NotCounted, l.Worker)
			case one.Total.Runs > 0 && by == "worker":
				stats.Add(l.Worker, one)
			case one.Total.Runs > 0:
				stats.Add("", one)
			}
		}
		return nil
	})
}

// searchTeam searches the copies of the workers' logs. This machine has a search index for each copy.
func (a *app) searchTeam(ctx context.Context, w report.Wanted, f searchFlags) error {
	return a.withCopies(ctx, func(logs []*hub.CopyReader) error {
		var all []iter.Seq2[searchHit, error]
		missing := false
		for _, l := range logs {
			path, err := l.View("search.db")
			if err != nil {
				return err
			}
			s, remove, err := a.openSearch(ctx, l, path, "of the copy of "+l.Worker)
			if err != nil {
				if err := a.leftOut(ctx, l, err); err != nil {
					return fmt.Errorf("the copy of %s: %w", l.Worker, err)
				}
				missing = true
				continue
			}
			defer func() { _ = s.Close(); remove() }() // A failed close does no harm, because the index can be built again.
			here := w
			if f.session != "" {
				here.Session, err = s.FindSession(ctx, f.session)
				if errors.Is(err, report.ErrNotFound) {
					continue
				}
				if err != nil {
					return fmt.Errorf("the copy of %s: %w", l.Worker, err)
				}
			}
			all = append(all, func(yield func(searchHit, error) bool) {
				for h, err := range inLog(s.Find(ctx, here), l.Worker) {
					if err != nil {
						if err = a.leftOut(ctx, l, err); err == nil {
							missing = true
							return
						}
					}
					if !yield(h, err) {
						return
					}
				}
			})
		}
		if f.session != "" && len(all) == 0 {
			return frame.WithHint(fmt.Errorf("no copy has a session %q", f.session), "'perlica session list --team' lists them")
		}
		err := a.printHits(mergeNewest(all), f)
		return cmp.Or(err, leftOutError(missing)) // The error of printHits comes first, because it may mean a partial result.
	})
}

// mergeNewest merges several searches into one sequence with the newest hit first. Each search yields its newest hit
// first.
func mergeNewest(searches []iter.Seq2[searchHit, error]) iter.Seq2[searchHit, error] {
	if len(searches) == 1 {
		return searches[0]
	}
	return func(yield func(searchHit, error) bool) {
		type search struct {
			head searchHit
			next func() (searchHit, error, bool)
		}
		var open []search
		for _, s := range searches {
			next, stop := iter.Pull2(s)
			defer stop()
			open = append(open, search{next: next})
		}
		advance := func(i int) error {
			h, err, ok := open[i].next()
			if open[i].head = h; !ok {
				open = append(open[:i], open[i+1:]...)
			}
			return err
		}
		for i := len(open) - 1; i >= 0; i-- {
			if err := advance(i); err != nil {
				yield(searchHit{}, err)
				return
			}
		}
		for len(open) > 0 {
			first := 0
			for i, s := range open {
				if s.head.Event.Time.After(open[first].head.Event.Time) {
					first = i
				}
			}
			if !yield(open[first].head, nil) {
				return
			}
			if err := advance(first); err != nil {
				yield(searchHit{}, err)
				return
			}
		}
	}
}

// showOfTeam looks in all copies for the run, session, question or event that ref names, and shows it. If "last" is
// true, it shows the newest run.
func (a *app) showOfTeam(ctx context.Context, ref string, last bool, f frame.EventFilter) error {
	if _, err := strconv.ParseInt(ref, 10, 64); err == nil && len(ref) < 8 {
		return frame.WithHint(frame.UsageErrorf("the number of an event counts in one log, and --team is about several"),
			"give the event's whole id")
	}
	return a.withCopies(ctx, func(logs []*hub.CopyReader) error {
		var at *hub.CopyReader
		var newest time.Time
		missing := false
		for _, l := range logs {
			when, err := placeIn(ctx, l, ref, last, f)
			switch {
			case errors.Is(err, report.ErrNotFound):
			case err != nil:
				if err := a.leftOut(ctx, l, err); err != nil {
					return fmt.Errorf("the copy of %s: %w", l.Worker, err)
				}
				missing = true
			case at == nil || last && when.After(newest):
				at, newest = l, when
			case !last:
				return fmt.Errorf("%w: %s, in the copies of %s and %s", report.ErrAmbiguousRef, ref, at.Worker, l.Worker)
			}
		}
		if at == nil {
			return frame.WithHint(fmt.Errorf("no copy has a run, session, question or event %q", ref),
				"'perlica log search --team WORDS' and 'perlica session list --team' show what there is")
		}
		a.Note("from the copy of the log of " + at.Worker)
		return cmp.Or(a.logShow(ctx, at, ref, last, f), leftOutError(missing))
	})
}

// placeIn looks in one copy for the run, session, question or event that ref names. If "last" is true, it looks for
// the last run that the filter selects, and returns the run's start time.
func placeIn(ctx context.Context, l *hub.CopyReader, ref string, last bool, f frame.EventFilter) (time.Time, error) {
	q, err := f.Query(ctx, l, time.Now())
	if err != nil {
		return time.Time{}, err
	}
	if !last {
		_, err := report.FindRecord(ctx, l, ref)
		return time.Time{}, err
	}
	e, ok, err := l.Last(ctx, event.Query{Types: []event.Type{event.MessageReceived}, Session: q.Session, Run: q.Run,
		Since: q.Since, Before: q.Before})
	if err == nil && !ok {
		err = report.ErrNotFound
	}
	return e.Time, err
}
