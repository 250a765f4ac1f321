package web

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/perlica/perlica/service/team"
)

// TestTeamAway: a hub that cannot be reached is said to who asks for its copies, and is not called for each of them.
func TestTeamAway(t *testing.T) {
	var calls atomic.Int32
	w := newWorld(t, 1, func(o *Options) {
		o.Team = func(context.Context) (*team.Team, error) {
			calls.Add(1)
			return nil, errors.New("connection refused")
		}
	})
	for range 3 {
		w.do("GET", "/v1/runs?project=team", nil).want(http.StatusServiceUnavailable).problem(logFailed)
	}
	if n := calls.Load(); n != 1 {
		t.Errorf("the hub was called %d times", n)
	}
}

// TestTeamHangs: a hub that says nothing holds up nothing of this machine's.
func TestTeamHangs(t *testing.T) {
	hangs := make(chan struct{})
	w := newWorld(t, 1, func(o *Options) {
		o.Team = func(ctx context.Context) (*team.Team, error) {
			close(hangs)
			<-ctx.Done()
			return nil, ctx.Err()
		}
	})
	w.ask(w.dirs[0], "@say one")
	over := make(chan struct{})
	go func() { // takes as long as one may wait for a log
		defer close(over)
		w.do("GET", "/v1/questions?project=team", nil).want(http.StatusServiceUnavailable)
	}()
	<-hangs
	if runs := items(w.do("GET", "/v1/runs", nil).want(http.StatusOK).object(), "runs"); len(runs) != 1 {
		t.Errorf("%v", runs)
	}
	select {
	case <-over:
		t.Error("the hub had answered: nothing was held up")
	default:
	}
	<-over
}

// TestNoTeam: without a team its copies are not there.
func TestNoTeam(t *testing.T) {
	w := newWorld(t, 1)
	w.do("GET", "/v1/sessions?project=team", nil).problem(notFound)
	if w.do("GET", "/v1/self", nil).want(http.StatusOK).object()["team"] != false {
		t.Error("there is a team")
	}
}
