package web

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/perlica/perlica/service/team"
	"github.com/perlica/perlica/service/team/hub/hubtest"
)

func init() { afterTests = hubtest.Remove }

// TestPushOfATeam checks that a question of a team's worker wakes a device once.
func TestPushOfATeam(t *testing.T) {
	t.Parallel()
	s, db := hubtest.Shared(t)
	home := t.TempDir()
	opt := team.Options{
		URL: s.URL(hubtest.Lead, db), Dir: filepath.Join(home, "website"), Version: "test",
		Environ: append(os.Environ(), "PERLICA_HOME="+filepath.Join(home, "perlica"),
			"PERLICA_MODEL_DEFAULT_PROVIDER=predictable"),
	}
	check(t, os.Mkdir(opt.Dir, 0o700))
	_, _, err := team.Init(t.Context(), opt, "team")
	check(t, err)
	alice, _, err := team.Join(t.Context(), opt, "alice")
	check(t, err)
	worker, err := team.NewWorker(t.Context(), alice, team.WorkerOptions{Slots: 2,
		Projects: map[string]string{"website": opt.Dir}, Note: func(s string) { t.Log(s) }})
	check(t, err)
	ctx, end := context.WithCancel(context.Background())
	over := make(chan error, 1)
	go func() { over <- worker.Run(ctx, ctx) }()
	t.Cleanup(func() {
		end()
		<-over // the result does not matter
		check(t, worker.Close())
		check(t, alice.Close())
	})
	push, option := withPush(t)
	w := newWorld(t, 1, option, func(o *Options) {
		o.Team = func(ctx context.Context) (*team.Team, error) { return team.Open(ctx, opt) }
	})
	w.do("POST", "/v1/push/subscribe", push.Subscribe()).want(200)
	for _, id := range []string{"one", "two"} {
		_, err := alice.Submit(t.Context(), []team.Draft{{ID: id, Text: "@ask execute Build command=make",
			Project: "website"}})
		check(t, err)
		woken(t, push)
	}
	stop(t, w.server, w.http)
	if n := len(push.Messages) + len(push.Wrong); n != 0 {
		t.Errorf("%d messages more", n)
	}
}
