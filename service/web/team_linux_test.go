package web

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/kernel/flow"
	"github.com/perlica/perlica/kernel/project"
	"github.com/perlica/perlica/service/team"
	"github.com/perlica/perlica/service/team/hub"
	"github.com/perlica/perlica/service/team/hub/hubtest"
)

func init() { afterTests = hubtest.Remove }

// teamOfOne makes a team with the member alice, and runs her worker. The worker answers as many inputs at the same time
// as it has slots.
func teamOfOne(t *testing.T, slots int) (team.Options, *team.Team) {
	t.Helper()
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
	worker, err := team.NewWorker(t.Context(), alice, team.WorkerOptions{Slots: slots,
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
	return opt, alice
}

// ofTeam lets the page use a team.
func ofTeam(opt team.Options) func(*Options) {
	return func(o *Options) {
		o.Team = func(ctx context.Context) (*team.Team, error) { return team.Open(ctx, opt) }
	}
}

// TestPushOfATeam checks that a question of a team's worker wakes a device once.
func TestPushOfATeam(t *testing.T) {
	t.Parallel()
	opt, alice := teamOfOne(t, 2)
	push, option := withPush(t)
	w := newWorld(t, 1, option, ofTeam(opt))
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

// TestFlowOfATeamCancelled ends a flow run on the page after its driver died. The driver had handed two inputs over to a
// team. A worker answers the first one, and the second one waits for the worker. The page must stop both.
func TestFlowOfATeamCancelled(t *testing.T) {
	t.Parallel()
	opt, alice := teamOfOne(t, 1)
	w := newWorld(t, 1, ofTeam(opt))
	w.flowFile(w.dirs[0], "two.toml",
		"name = \"two\"\n[[step]]\nid = \"first\"\ntext = \"@hang\"\n[[step]]\nid = \"second\"\ntext = \"@hang\"\n")
	file, err := flow.Load(filepath.Join(w.dirs[0], "flows", "two.toml"))
	check(t, err)
	p, err := project.Find(w.dirs[0], w.environ, nil)
	check(t, err)
	runner, done, err := p.Open(t.Context(), "test")
	check(t, err)
	calls := &team.FlowCalls{Team: alice}
	_, err = (&flow.Driver{Log: runner.Log(), By: "me", Team: calls}).Begin(t.Context(), file, "r1", nil)
	check(t, err)
	handOver := func(step *flow.Step) {
		input := "flow:r1/" + step.ID
		_, err := runner.Log().Append(t.Context(), event.NewFact(event.FlowStepDecided, "perlica",
			event.Refs{Run: flow.RunID("r1"), Interaction: event.InteractionID(input + "/" + fact.FlowHanded)},
			fact.FlowDecided{Step: step.ID, Decision: fact.FlowHanded, Generation: calls.Generation()}))
		check(t, err)
		_, err = alice.Submit(t.Context(), []team.Draft{{ID: input, Text: step.Text, Project: "website"}})
		check(t, err)
	}
	live, err := alice.Live(t.Context())
	check(t, err)
	claimed, ended := make(chan struct{}), make(chan error, 1)
	var once sync.Once
	live.Look = func(s hub.Status, _ []hub.Question) {
		if s.State != hub.Queued {
			once.Do(func() { close(claimed) })
		}
	}
	handOver(file.Steps[0])
	go func() {
		_, err := live.Wait(t.Context(), "flow:r1/first")
		ended <- err
	}()
	<-claimed
	handOver(file.Steps[1])
	check(t, done())

	if run := w.do("GET", "/v1/flow-runs/r1", nil).want(200).object(); run["team"] != calls.ID() {
		t.Errorf("%v", run)
	}
	w.do("POST", "/v1/flow-runs/r1/cancel", object{}).want(200)
	if run := w.do("GET", "/v1/flow-runs/r1", nil).want(200).object(); run["state"] != fact.FlowCancelled {
		t.Errorf("%v", run)
	}
	s, ok, err := alice.Status(t.Context(), "flow:r1/second")
	if err != nil || !ok || s.State != hub.Withdrawn {
		t.Errorf("the waiting input is %s (%v)", s.State, err)
	}
	check(t, <-ended) // the test ends with its time limit if the worker goes on
}
