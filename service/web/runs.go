package web

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"sort"
	"strings"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/kernel/filelock"
	"github.com/perlica/perlica/kernel/record"
	"github.com/perlica/perlica/kernel/report"
	"github.com/perlica/perlica/kernel/streamjson"
)

// These are the states of a run. The first two have no outcome.
const (
	running = "running"
	lost    = "lost"
	ended   = "ended"
)

// runShown is a run in a list.
type runShown struct {
	place
	report.TurnSummary
	Session event.SessionID `json:"session_id"`
	State   string          `json:"state"`
}

// run returns a run with its session and its state.
func (l *eventLog) run(t report.TurnSummary, session event.SessionID) (runShown, error) {
	shown := runShown{place: l.place, TurnSummary: t, Session: session, State: ended}
	if t.Outcome != "" {
		return shown, nil
	}
	held, err := l.isRunning(t.Run)
	if shown.State = lost; held {
		shown.State = running
	}
	return shown, err
}

// isRunning reports whether a run without an outcome continues. The process of a local run must be
// alive; for a copy the worker must be alive.
func (l *eventLog) isRunning(run event.RunID) (bool, error) {
	if c := l.copied(); c != nil {
		return c.lives, nil
	}
	return filelock.Held(filelock.Run(l.paths.Locks, string(run)))
}

// runsPage says where a page of runs starts. The runs of a log start before the event Before.
type runsPage []struct {
	place
	Before event.Seq
}

func (p runsPage) of(l *eventLog) event.Seq {
	for _, one := range p {
		if one.place == l.place {
			return one.Before
		}
	}
	return 0
}

func (s *Server) runs(w http.ResponseWriter, r *request) error {
	if err := r.checkParameters("project", "context", "session", "state", "limit", "page"); err != nil {
		return err
	}
	var from runsPage
	n, err := r.limit(50)
	if err := cmp.Or(err, r.page(&from)); err != nil {
		return err
	}
	state, session := r.URL.Query().Get("state"), event.SessionID(r.URL.Query().Get("session"))
	if !slices.Contains([]string{"", "all", "open"}, state) {
		return badRequest.problem(badState)
	}
	list, err := s.logs.list(r.Context(), r.where())
	if err != nil {
		return err
	}
	of, bad := together(r.Context(), list, func(ctx context.Context, l *eventLog, log logReader) ([]runShown, error) {
		if state == "open" {
			return l.openRuns(ctx, log, session)
		}
		return l.newestRuns(ctx, log, session, from.of(l), n+1)
	})
	answer := struct {
		Runs       []runShown   `json:"runs"`
		Unreadable []unreadable `json:"unreadable"`
		Next       string       `json:"next,omitempty"`
	}{[]runShown{}, bad, ""}
	for _, found := range of {
		answer.Runs = append(answer.Runs, found...)
	}
	sort.SliceStable(answer.Runs, func(i, j int) bool {
		a, b := &answer.Runs[i], &answer.Runs[j]
		return cmp.Or(b.At.Compare(a.At), strings.Compare(b.Project, a.Project), strings.Compare(b.Context, a.Context),
			cmp.Compare(b.Seq, a.Seq)) < 0
	})
	if state != "open" && len(answer.Runs) > n {
		answer.Runs = answer.Runs[:n]
		answer.Next = nextPage(afterRuns(from, answer.Runs))
	}
	return reply(w, http.StatusOK, answer)
}

// afterRuns returns the start of the page that follows these runs.
func afterRuns(from runsPage, runs []runShown) runsPage {
	next := slices.Clone(from)
	for _, run := range runs {
		i := slices.IndexFunc(next, func(one struct {
			place
			Before event.Seq
		}) bool {
			return one.place == run.place
		})
		if i < 0 {
			next, i = append(next, struct {
				place
				Before event.Seq
			}{run.place, run.Seq}), len(next)
		}
		next[i].Before = min(next[i].Before, run.Seq)
	}
	return next
}

// newestRuns returns at most n runs, the newest first. Their inputs are older than the event with the number "before".
// 0 means that all inputs count.
func (l *eventLog) newestRuns(ctx context.Context, log logReader, session event.SessionID, before event.Seq,
	n int) (list []runShown, err error) {
	if before == 1 {
		return nil, nil
	}
	q := event.Query{Session: session, Types: []event.Type{event.MessageReceived}, Newest: true, Limit: n,
		Until: max(before-1, 0)}
	for e, err := range log.Events(ctx, q) {
		if err != nil {
			return nil, err
		}
		one, err := l.readRun(ctx, log, e.Run)
		if err != nil {
			return nil, err
		}
		list = append(list, one)
	}
	return list, nil
}

// openRuns returns the runs without an outcome.
func (l *eventLog) openRuns(ctx context.Context, log logReader, session event.SessionID) (list []runShown, err error) {
	open, err := log.OpenRuns(ctx)
	if err != nil {
		return nil, err
	}
	living, err := l.living(ctx, log)
	if err != nil {
		return nil, err
	}
	for _, id := range append(open, living...) {
		if slices.ContainsFunc(list, func(r runShown) bool { return r.Run == id }) {
			continue
		}
		one, err := l.readRun(ctx, log, id)
		if err != nil {
			return nil, err
		}
		if one.Outcome == "" && (session == "" || one.Session == session) {
			list = append(list, one)
		}
	}
	return list, nil
}

// readRun reads a run for a list.
func (l *eventLog) readRun(ctx context.Context, log logReader, id event.RunID) (runShown, error) {
	r, err := readFacts(ctx, log, id)
	if err != nil {
		return runShown{}, err
	}
	return l.recorded(r)
}

// readFacts reads the facts of a run. A list does not need its frames.
func readFacts(ctx context.Context, log logReader, id event.RunID) (*record.Record, error) {
	return record.Read(ctx, log, id, event.Query{Class: event.Fact})
}

// recorded returns a recorded run for a list.
func (l *eventLog) recorded(r *record.Record) (runShown, error) {
	t := report.TurnSummary{
		Run: r.Run, Input: r.Input, At: r.At, Sender: r.Received.Sender, Source: r.Received.Source, Text: r.Received.Text,
		Pruned: r.Pruned, Damage: r.Damage,
		Outcome: r.Outcome, Answer: r.Text, StopReason: r.StopReason, DurationMS: r.Duration.Milliseconds(), Seq: r.First,
	}
	if r.Err != nil {
		t.Error = r.Err.Error()
	}
	return l.run(t, r.Session)
}

func (s *Server) run(w http.ResponseWriter, r *request) error {
	if err := r.checkParameters("project", "context"); err != nil {
		return err
	}
	id := event.RunID(r.PathValue("id"))
	l, log, err := s.holding(r.Context(), r.where(), event.Query{Run: id, Class: event.Fact})
	if err != nil {
		return err
	}
	rec, err := readFacts(r.Context(), log, id)
	if err != nil {
		return err
	}
	one, err := l.recorded(rec)
	if err != nil {
		return err
	}
	shown := struct {
		runShown
		Attachments []string           `json:"attachments"`
		Dir         string             `json:"dir"`
		Provider    string             `json:"provider"`
		Result      *streamjson.Result `json:"result"`
	}{runShown: one, Attachments: append([]string{}, rec.Received.Attachments...), Dir: rec.Received.Dir,
		Provider: cmp.Or(rec.Received.Provider, rec.Provider)}
	if rec.Outcome != "" {
		shown.Result = localizedResult(r.Context(), streamjson.NewResult(rec.Result, nil, ""))
	}
	return reply(w, http.StatusOK, shown)
}

func (s *Server) cancel(w http.ResponseWriter, r *request) error {
	if err := r.checkParameters("project", "context"); err != nil {
		return err
	}
	var body struct {
		Why string `json:"why"`
	}
	if err := r.decode(&body); err != nil {
		return err
	}
	if len(body.Why) > 1000 {
		return badRequest.problem(whyTooLong)
	}
	id := event.RunID(r.PathValue("id"))
	l, log, err := s.holding(r.Context(), r.where(), event.Query{Run: id, Class: event.Fact})
	if err != nil {
		return err
	}
	if err := s.stopRun(r, l, log, id, body.Why); err != nil {
		return err
	}
	return reply(w, http.StatusAccepted, struct {
		place
		Run event.RunID `json:"run_id"`
	}{l.place, id})
}

// stopRun stops a run for the visitor.
func (s *Server) stopRun(r *request, l *eventLog, log logReader, id event.RunID, why string) error {
	if c := l.copied(); c != nil {
		rec, err := readFacts(r.Context(), log, id)
		if err != nil {
			return err
		}
		return c.cancelInput(context.WithoutCancel(r.Context()), rec.Input, r.visitor.Label())
	}
	runner, _, err := l.openRunner(context.WithoutCancel(r.Context()))
	if err != nil {
		return err
	}
	stop := fact.NewStop(streamjson.ByUser, stoppedBy.With(r.visitor.Label()))
	if why != "" {
		stop = fact.NewStop(streamjson.ByUser, stoppedByBecause.With(r.visitor.Label(), why))
	} else {
		stop.Person = r.visitor.Label()
	}
	err = runner.CancelRun(context.WithoutCancel(r.Context()), id, stop)
	if errors.Is(err, kernel.ErrRunGone) {
		return runOver.problem(runNotUnderWay.With(id))
	}
	return err
}
