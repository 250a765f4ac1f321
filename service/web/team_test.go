package web

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/perlica/perlica/service/team"
)

// TestTeamAway checks that an unreachable hub is reported to a client that asks for the copies. The
// server does not call the hub for each copy.
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

// TestTeamHangs checks that a silent hub delays nothing of this machine.
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
	// This request takes the whole time limit of a log.
	go func() {
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

// TestNoTeam checks that a server without a team lists no copies of workers' logs.
func TestNoTeam(t *testing.T) {
	w := newWorld(t, 1)
	w.do("GET", "/v1/sessions?project=team", nil).problem(notFound)
	if w.do("GET", "/v1/self", nil).want(http.StatusOK).object()["team"] != false {
		t.Error("there is a team")
	}
}
