package service_test

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/service"
	"github.com/perlica/perlica/service/access"
	"github.com/perlica/perlica/service/local"
	"github.com/perlica/perlica/service/team"
	"github.com/perlica/perlica/service/team/hub"
	"github.com/perlica/perlica/service/team/hub/hubtest"
)

func init() { afterTests = hubtest.Remove }

// crew is a team. build is its admin and worker, and alice is the machine of a bridge.
type crew struct {
	t        *testing.T
	s        *hubtest.Server
	db       string
	build    *team.Team
	home     string // the home of alice
	url      string // the address at which alice reaches the hub
	untilNow context.Context
}

// newCrew makes a team in which alice has the given rights. The worker works until the test ends. The test runs in
// parallel.
func newCrew(t *testing.T, url func(*hubtest.Server, string) string, rights ...access.Right) *crew {
	t.Helper()
	// These tests run in parallel, because they mostly wait.
	t.Parallel()
	s, db := hubtest.Shared(t)
	c := &crew{t: t, s: s, db: db, home: t.TempDir(), url: url(s, db)}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	t.Cleanup(cancel)
	c.untilNow = ctx
	there := t.TempDir()
	for _, home := range []string{there, c.home} {
		if err := os.Mkdir(teamOptions("", home).Dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	opt := teamOptions(s.URL(hubtest.Lead, db), there)
	if _, _, err := team.Init(ctx, opt, "team"); err != nil {
		t.Fatal(err)
	}
	c.build = c.join(opt, "build")
	alice := c.join(teamOptions(s.URL(hubtest.Lead, db), c.home), "alice")
	if err := c.build.Confirm(ctx, "alice", alice.Key, rights); err != nil {
		t.Fatal(err)
	}
	w, err := team.NewWorker(ctx, c.build, team.WorkerOptions{Slots: 4, Projects: map[string]string{"website": opt.Dir},
		Note: func(s string) { t.Log("build:", s) }})
	if err != nil {
		t.Fatal(err)
	}
	drain, stop := context.WithCancel(context.Background())
	hard, end := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.Run(drain, hard) }()
	t.Cleanup(func() {
		stop()
		end()
		<-done // the remaining turns do not matter
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func direct(s *hubtest.Server, db string) string { return s.URL(hubtest.Lead, db) }

func (c *crew) join(opt team.Options, name string) *team.Team {
	c.t.Helper()
	j, _, err := team.Join(c.untilNow, opt, name)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() {
		if err := j.Close(); err != nil {
			c.t.Error(err)
		}
	})
	return j
}

// link returns alice's link to the team, which lives until the test ends. The test must make its
// bridges after it.
func (c *crew) link() *team.Link {
	l := linkTo(teamOptions(c.url, c.home))
	c.t.Cleanup(func() {
		if err := l.Close(); err != nil {
			c.t.Error(err)
		}
	})
	return l
}

// serve runs a bridge on alice.
func (c *crew) serve(w *world, change ...func(*service.Options)) *serving {
	l := c.link()
	return w.serve(local.DefaultLimits(), append(change, func(o *service.Options) { o.Team = l })...)
}

// submit submits an input that lets the worker ask.
func (c *crew) submit(id, text string) {
	c.t.Helper()
	if _, err := c.build.Submit(c.untilNow, []team.Draft{{ID: id, Text: text, Project: "website"}}); err != nil {
		c.t.Fatal(err)
	}
}

// allowed returns the number of yeses of an ended run.
func (c *crew) allowed(id string) int {
	c.t.Helper()
	l, err := c.build.Live(c.untilNow)
	if err != nil {
		c.t.Fatal(err)
	}
	l.Look = func(hub.Status, []hub.Question) {}
	s, err := l.Wait(c.untilNow, id)
	if err != nil {
		c.t.Fatalf("%s: %v", id, err)
	}
	r, err := team.ResultOf(s)
	if err != nil || s.State != "responded" {
		c.t.Fatalf("%s: %s, %v", id, s.State, err)
	}
	return r.Permissions.Allowed
}

// questions waits until the worker has this many open questions.
func (c *crew) questions(n int) []team.OpenQuestion {
	c.t.Helper()
	for {
		list, err := team.OpenQuestions(c.untilNow, c.build, "")
		if err != nil {
			c.t.Fatal(err)
		}
		if len(list) == n {
			return list
		}
		pause(20 * time.Millisecond)
	}
}

// given reads alice's log. It lists the people that answered questions of the team at alice, and their front ends.
func (c *crew) given() (list []string) {
	c.t.Helper()
	t, err := team.Open(c.untilNow, teamOptions(c.s.URL(hubtest.Lead, c.db), c.home))
	if err != nil {
		c.t.Fatal(err)
	}
	defer t.Close()
	for e, err := range t.Log().Events(c.untilNow, event.Query{Types: []event.Type{event.TeamAnswered}}) {
		var f struct{ By, Where, Option string }
		if err != nil || e.Decode(&f) != nil {
			c.t.Fatal(err)
		}
		list = append(list, f.By+" "+f.Where)
	}
	return list
}

// everything returns the rights to answer every question.
func everything() []access.Right { return []access.Right{access.Ask, access.Approve, access.Admin} }
