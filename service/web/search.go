package web

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"sort"
	"strings"
	"sync/atomic"
	"time"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/kernel/config"
	"github.com/perlica/perlica/kernel/project"
	"github.com/perlica/perlica/kernel/report"
)

// hit is a text that the search found.
type hit struct {
	place
	Seq      event.Seq       `json:"seq"`
	ID       string          `json:"event_id"`
	Time     time.Time       `json:"ts"`
	Type     event.Type      `json:"type"`
	Kind     report.Kind     `json:"kind"`
	Provider string          `json:"provider"`
	Session  event.SessionID `json:"session_id,omitempty"`
	Run      event.RunID     `json:"run_id,omitempty"`
	Excerpt  []piece         `json:"excerpt"`
}

type piece struct {
	Text  string `json:"text"`
	Match bool   `json:"match"`
}

func (s *Server) search(w http.ResponseWriter, r *request) error {
	err := r.checkParameters("project", "context", "q", "kind", "provider", "session", "since", "before", "limit")
	if err != nil {
		return err
	}
	n, err := r.limit(20)
	if err != nil {
		return err
	}
	want, err := r.wanted()
	if err != nil {
		return err
	}
	list, err := s.logs.list(r.Context(), r.where())
	if err != nil {
		return err
	}
	var wordless atomic.Bool
	of, bad := together(r.Context(), list, func(ctx context.Context, l *eventLog, log logReader) ([]hit, error) {
		hits, err := l.searchTexts(ctx, log, want, n)
		if errors.Is(err, report.ErrNoWords) {
			wordless.Store(true)
		}
		return hits, err
	})
	if wordless.Load() {
		return unfit.wrap(report.ErrNoWords)
	}
	answer := struct {
		Hits       []hit        `json:"hits"`
		Unreadable []unreadable `json:"unreadable"`
	}{[]hit{}, bad}
	for _, found := range of {
		answer.Hits = append(answer.Hits, found...)
	}
	sort.SliceStable(answer.Hits, func(i, j int) bool {
		a, b := &answer.Hits[i], &answer.Hits[j]
		return cmp.Or(b.Time.Compare(a.Time), strings.Compare(a.Project, b.Project), cmp.Compare(b.Seq, a.Seq)) < 0
	})
	answer.Hits = answer.Hits[:min(n, len(answer.Hits))]
	return reply(w, http.StatusOK, answer)
}

// wanted returns the search terms of the request.
func (r *request) wanted() (want report.Wanted, err error) {
	q := r.URL.Query()
	want = report.Wanted{Phrases: q["q"], Provider: q.Get("provider"), Session: event.SessionID(q.Get("session"))}
	if len(want.Phrases) == 0 || len(want.Phrases) > 20 || slices.ContainsFunc(want.Phrases,
		func(p string) bool { return p == "" || len(p) > 2000 }) {
		return want, badRequest.problem(badPhrases)
	}
	for _, kind := range q["kind"] {
		if !slices.Contains(report.Kinds(), report.Kind(kind)) {
			return want, badRequest.problem(noKind)
		}
		want.Kinds = append(want.Kinds, report.Kind(kind))
	}
	if want.Since, err = r.moment("since"); err != nil {
		return want, err
	}
	want.Before, err = r.moment("before")
	return want, err
}

// searchTexts returns the newest matching texts of a log.
func (l *eventLog) searchTexts(ctx context.Context, log logReader, want report.Wanted, n int) (hits []hit, err error) {
	path, err := l.view(l.paths.Search, "search.db")
	if err != nil {
		return nil, err
	}
	view, remove, err := project.OpenView(path, func(path string) (*report.Search, error) {
		return report.OpenSearch(ctx, log, path, nil)
	})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, view.Close()); remove() }()
	for h, err := range view.Find(ctx, want) {
		if err != nil {
			return nil, err
		}
		one := hit{
			place: l.place, Seq: h.Event.Seq, ID: h.Event.ID, Time: h.Event.Time, Type: h.Event.Type, Kind: h.Kind,
			Provider: h.Provider,
			Session:  h.Event.Session, Run: h.Event.Run, Excerpt: []piece{},
		}
		for _, p := range h.Excerpt {
			one.Excerpt = append(one.Excerpt, piece{p.Text, p.Mark})
		}
		if hits = append(hits, one); len(hits) == n {
			break
		}
	}
	return hits, nil
}

func (s *Server) stats(w http.ResponseWriter, r *request) error {
	if err := r.checkParameters("project", "context", "provider", "since", "before", "zone"); err != nil {
		return err
	}
	q := report.StatsQuery{Provider: r.URL.Query().Get("provider"), Zone: time.Local}
	var err error
	if q.Since, err = r.moment("since"); err != nil {
		return err
	}
	if q.Before, err = r.moment("before"); err != nil {
		return err
	}
	if name := r.URL.Query().Get("zone"); name != "" {
		if q.Zone, err = config.Timezone(name); err != nil || name == "Local" {
			return badRequest.problem(noZone)
		}
	}
	list, err := s.logs.list(r.Context(), r.where())
	if err != nil {
		return err
	}
	type counted struct {
		place
		report.Stats
	}
	of, bad := together(r.Context(), list, func(ctx context.Context, l *eventLog, log logReader) (counted, error) {
		stats, err := report.ReadStats(ctx, log, q)
		return counted{l.place, stats}, err
	})
	answer := struct {
		Logs       []counted    `json:"logs"`
		Unreadable []unreadable `json:"unreadable"`
	}{[]counted{}, bad}
	for _, l := range list {
		if stats, ok := of[l]; ok {
			answer.Logs = append(answer.Logs, stats)
		}
	}
	return reply(w, http.StatusOK, answer)
}
