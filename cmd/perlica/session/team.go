package session

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"strconv"
	"time"

	"github.com/perlica/perlica/cmd/perlica/frame"
	"github.com/perlica/perlica/kernel/sessions"
	"github.com/perlica/perlica/service/team"
	"github.com/perlica/perlica/service/team/hub"
)

// workersSession is a session on a copy of a worker's log.
type workersSession struct {
	Worker string `json:"worker"`
	sessions.Session
}

// sessionsOfTeam lists the sessions on the copies of all workers' logs. The session that was used last comes first.
func (a *app) sessionsOfTeam(ctx context.Context, asJSON bool) error {
	p, err := a.Locate(nil)
	if err != nil {
		return err
	}
	list, missing := []workersSession{}, false
	err = team.Use(ctx, p, a.Version, func(t *team.Team) error {
		logs, err := t.Logs(ctx)
		if err != nil {
			return err
		}
		for _, l := range logs {
			own, err := sessionsOf(ctx, l)
			if errors.Is(err, hub.ErrEdited) {
				a.Note("left out: " + l.Worker + ": " + err.Error())
				missing = true
				continue
			}
			if err != nil {
				return fmt.Errorf("the copy of %s: %w", l.Worker, err)
			}
			for _, s := range own {
				list = append(list, workersSession{l.Worker, s})
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	sort.SliceStable(list, func(i, j int) bool { return list[i].Used.After(list[j].Used) })
	err = a.printWorkers(list, asJSON)
	if err == nil && missing {
		err = frame.ExitFailure.With(nil)
	}
	return err
}

func (a *app) printWorkers(list []workersSession, asJSON bool) error {
	if asJSON {
		return a.PrintJSON(list)
	}
	if len(list) == 0 {
		a.Note("no worker's copy has a session")
		return nil
	}
	now := time.Now()
	g := frame.Grid{Head: []string{"WORKER", "SESSION", "PROVIDER", "TURNS", "LAST USED", "TITLE"}}
	for _, s := range list {
		g.Add(s.Worker, frame.SessionName(s.Session, frame.ShortID(s.ID)), s.Provider, strconv.Itoa(s.Turns),
			frame.FormatAge(s.Used, now), s.Title)
	}
	return a.Table(g)
}

func sessionsOf(ctx context.Context, l *hub.CopyReader) (list []sessions.Session, err error) {
	path, err := l.View("sessions.db")
	if err != nil {
		return nil, err
	}
	err = frame.ViewSessionsAt(ctx, l, path, nil, func(view *sessions.View) (err error) {
		list, err = view.List(ctx, true)
		return err
	})
	return list, err
}
