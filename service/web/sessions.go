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
	"github.com/perlica/perlica/eventlog/message"
	"github.com/perlica/perlica/kernel/project"
	"github.com/perlica/perlica/kernel/report"
	"github.com/perlica/perlica/kernel/sessions"
)

// contextShown is a context of a project.
type contextShown struct {
	place
	Log       string `json:"log"`
	Origin    string `json:"origin,omitempty"`
	Gone      bool   `json:"gone"`
	Error     string `json:"error,omitempty"`
	Events    int64  `json:"events"`
	OpenRuns  int    `json:"open_runs"`
	Questions int    `json:"questions"`
}

func (s *Server) contexts(w http.ResponseWriter, r *request) error {
	if err := r.checkParameters("project", "context"); err != nil {
		return err
	}
	list, err := s.logs.list(r.Context(), r.where())
	if err != nil {
		return err
	}
	of, bad := together(r.Context(), list, func(ctx context.Context, l *eventLog, log logReader) (c contextShown,
		err error) {
		last, _, err := log.Last(ctx, event.Query{})
		if err != nil {
			return c, err
		}
		c.Events = int64(last.Seq)
		if c.Origin, err = log.Origin(ctx); err != nil {
			return c, err
		}
		living, err := l.living(ctx, log)
		if err != nil {
			return c, err
		}
		questions, err := l.pending(ctx, log)
		c.OpenRuns, c.Questions = len(living), len(questions)
		return c, err
	})
	shown := []contextShown{}
	for _, l := range list {
		c := of[l]
		l.mu.Lock()
		c.place, c.Log, c.Gone = l.place, l.used.Log, l.used.Gone
		c.Origin = cmp.Or(c.Origin, l.used.Origin)
		l.mu.Unlock()
		for _, b := range bad {
			if b.place == l.place {
				c.Error = b.Error
			}
		}
		shown = append(shown, c)
	}
	return reply(w, http.StatusOK, map[string]any{"contexts": shown})
}

// living returns the runs with a live process, oldest first. This includes a new run with an agent that is still
// starting.
func (l *eventLog) living(ctx context.Context, log logReader) ([]event.RunID, error) {
	open, err := log.OpenRuns(ctx)
	if c := l.copied(); err != nil || c != nil {
		if c != nil && !c.lives {
			open = nil
		}
		return open, err
	}
	for e, err := range log.Events(ctx, event.Query{Types: []event.Type{event.MessageReceived}, Newest: true, Limit: 20}) {
		if err != nil {
			return nil, err
		}
		if !slices.Contains(open, e.Run) {
			open = append(open, e.Run)
		}
	}
	var living []event.RunID
	for _, run := range open {
		held, err := l.isRunning(run)
		if err != nil {
			return nil, err
		}
		if held {
			living = append(living, run)
		}
	}
	return living, nil
}

func (s *Server) providers(w http.ResponseWriter, r *request) error {
	if err := r.checkParameters("project", "context"); err != nil {
		return err
	}
	l, err := s.named(r)
	if err != nil {
		return err
	}
	p, err := l.findProject()
	if err != nil {
		return err
	}
	type shown struct {
		ID      string  `json:"id"`
		Name    string  `json:"name"`
		State   string  `json:"state"`
		Why     string  `json:"why,omitempty"`
		Default bool    `json:"default"`
		Offers  *offers `json:"offers,omitempty"`
		message.Coded
	}
	list := []shown{}
	for _, a := range p.Resolver().List() {
		why := say(r.Context()).Read(a.Why, a.Coded)
		list = append(list, shown{a.ID, a.Name, string(a.State), why, a.Default,
			s.offered(sessionKey{at: l.place}, a.ID), a.Coded})
	}
	return reply(w, http.StatusOK, map[string]any{"providers": list})
}

// session is a session with its place.
type session struct {
	place
	sessions.Session
}

// sessionPage says where a page of sessions starts: after the session with this time of use and this id.
type sessionPage struct {
	Used int64
	ID   event.SessionID
}

func (p sessionPage) before(s session) bool {
	return cmp.Or(cmp.Compare(s.Used.UnixNano(), p.Used), strings.Compare(string(s.ID), string(p.ID))) < 0
}

func (s *Server) sessions(w http.ResponseWriter, r *request) error {
	if err := r.checkParameters("project", "context", "all", "limit", "page"); err != nil {
		return err
	}
	var from sessionPage
	n, err := r.limit(100)
	all, aerr := r.flag("all", true)
	if err := cmp.Or(err, aerr, r.page(&from)); err != nil {
		return err
	}
	list, err := s.logs.list(r.Context(), r.where())
	if err != nil {
		return err
	}
	of, bad := together(r.Context(), list, func(ctx context.Context, l *eventLog, log logReader) ([]session, error) {
		return l.sessions(ctx, log, all)
	})
	found := []session{}
	for _, of := range of {
		for _, one := range of {
			if from == (sessionPage{}) || from.before(one) {
				found = append(found, one)
			}
		}
	}
	sort.Slice(found, func(i, j int) bool {
		a, b := &found[i], &found[j]
		return cmp.Or(b.Used.Compare(a.Used), cmp.Compare(b.ID, a.ID)) < 0
	})
	answer := struct {
		Sessions   []session    `json:"sessions"`
		Unreadable []unreadable `json:"unreadable"`
		Next       string       `json:"next,omitempty"`
	}{found, bad, ""}
	if len(found) > n {
		answer.Sessions = found[:n]
		last := answer.Sessions[n-1]
		answer.Next = nextPage(sessionPage{last.Used.UnixNano(), last.ID})
	}
	return reply(w, http.StatusOK, answer)
}

// sessions returns the sessions of a log.
func (l *eventLog) sessions(ctx context.Context, log logReader, all bool) (list []session, err error) {
	err = l.viewing(ctx, log, func(v *sessions.View) error {
		found, err := v.List(ctx, all)
		for _, s := range found {
			list = append(list, session{l.place, s})
		}
		return err
	})
	return list, err
}

// viewing opens the view of the log's sessions, calls the function f with it and closes it.
func (l *eventLog) viewing(ctx context.Context, log logReader, f func(*sessions.View) error) error {
	path, err := l.view(l.paths.Sessions, "sessions.db")
	if err != nil {
		return err
	}
	var key []byte
	if l.copied() == nil {
		key = l.opt.Dirs.ViewKey()
	}
	view, remove, err := project.OpenView(path, func(path string) (*sessions.View,
		error) {
		return sessions.Open(ctx, log, path, key)
	})
	if err != nil {
		return err
	}
	defer remove()
	return errors.Join(f(view), view.Close())
}

// view returns the path of a view's file. For a log of this machine, it is the path in the parameter "own". For a copy,
// it is the copy's file with the given name.
func (l *eventLog) view(own, name string) (string, error) {
	if c := l.copied(); c != nil {
		return c.View(name)
	}
	return own, nil
}

// turnsPage is the marker of a page of turns. The page has only inputs before the event Before.
type turnsPage struct{ Before event.Seq }

func (s *Server) session(w http.ResponseWriter, r *request) error {
	if err := r.checkParameters("project", "context", "limit", "page"); err != nil {
		return err
	}
	var from turnsPage
	n, err := r.limit(20)
	if err := cmp.Or(err, r.page(&from)); err != nil {
		return err
	}
	id := event.SessionID(r.PathValue("id"))
	l, log, err := s.holding(r.Context(), r.where(), event.Query{Session: id, Class: event.Fact})
	if err != nil {
		return err
	}
	shown := struct {
		session
		Turns  []runShown      `json:"turn_list"`
		Inputs []event.InputID `json:"inputs"`
		Offers *offers         `json:"offers,omitempty"`
		Next   string          `json:"next,omitempty"`
	}{session: session{place: l.place}, Turns: []runShown{}}
	if shown.Inputs, err = s.waiting(r.Context(), l, log, id); err != nil {
		return err
	}
	err = l.viewing(r.Context(), log, func(v *sessions.View) (err error) {
		shown.Session, err = v.Find(r.Context(), string(id))
		return err
	})
	if err != nil {
		return err
	}
	shown.Offers = s.offered(sessionKey{l.place, id}, shown.Provider)
	turns, err := report.ReadTurns(r.Context(), log, id, from.Before, n)
	if err != nil {
		return err
	}
	for _, t := range turns {
		one, err := l.run(t, id)
		if err != nil {
			return err
		}
		shown.Turns = append(shown.Turns, one)
	}
	if len(turns) == n {
		shown.Next = nextPage(turnsPage{turns[0].Seq})
	}
	return reply(w, http.StatusOK, shown)
}

// of returns the pending inputs of a session that this server has accepted.
func (in *inputs) of(at place, session event.SessionID) []event.InputID {
	in.mu.Lock()
	defer in.mu.Unlock()
	list := []event.InputID{}
	for key, f := range in.pending {
		select {
		case <-f.accepted:
			if key.at == at && f.session == session {
				list = append(list, f.id)
			}
		default:
		}
	}
	slices.Sort(list)
	return list
}

// named returns the log of the project that a request must name.
func (s *Server) named(r *request) (*eventLog, error) {
	return s.oneNamed(r.Context(), r.where())
}

// oneNamed returns the log of a place. The place must have a project.
func (s *Server) oneNamed(ctx context.Context, where place) (*eventLog, error) {
	if where.Project == "" {
		return nil, badRequest.problem(projectMissing)
	}
	return s.logs.oneLog(ctx, where)
}

// holding finds the log that has an event of the query q. It searches the logs that match the place in the parameter
// "where". If none of these logs can be read, holding returns the error of the first one.
func (s *Server) holding(ctx context.Context, where place, q event.Query) (*eventLog, logReader, error) {
	list, err := s.logs.list(ctx, where)
	if err != nil {
		return nil, nil, err
	}
	of, bad := together(ctx, list, func(ctx context.Context, l *eventLog, log logReader) (bool, error) {
		_, ok, err := log.Last(ctx, q)
		return ok, err
	})
	for l, ok := range of {
		if ok {
			log, err := l.openReader(ctx)
			return l, log, err
		}
	}
	if len(bad) > 0 && len(bad) == len(list) {
		p := logFailed.problem(bad[0].text)
		p.Project, p.Context = bad[0].Project, bad[0].Context
		return nil, nil, p
	}
	return nil, nil, notFound.problem(noLogHasIt)
}
