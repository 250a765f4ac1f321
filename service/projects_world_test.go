package service_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/perlica/perlica/eventlog/verify"
	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/service"
	"github.com/perlica/perlica/service/bot"
	"github.com/perlica/perlica/service/channel"
	"github.com/perlica/perlica/service/local"
)

// botVar is an environment variable of a bridge process that serves two projects. Its value is the folder of the user's
// world.
const botVar = "PERLICA_SERVICE_BOT"

// user has two projects and a log of their own. The bot belongs to the first project.
type user struct {
	own      *world
	projects []*world
}

// reads lets time pass in all worlds, until the user has had the time to read a new question.
func (u *user) reads() {
	for _, w := range u.projects {
		w.reads()
	}
}

var called = []string{"lab", "shop"}

func newUser(t testing.TB) *user {
	t.Helper()
	u := &user{own: newWorld(t)}
	for _, name := range called {
		w := &world{t: t, dir: u.own.path(name)}
		for _, d := range []string{"locks", "files", "run", "agent"} {
			if err := os.MkdirAll(w.path(d), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		u.projects = append(u.projects, w)
	}
	return u
}

// twice is a bot that serves both projects.
type twice struct {
	*service.Projects
	closing []func() error

	mu      sync.Mutex // guards the fields below
	runners [2]*kernel.Runner
	missing error // the reason why the second project cannot be opened
	tries   int   // number of tries to open the second project
}

func (b *twice) close() (err error) {
	for i := range b.closing {
		err = errors.Join(err, b.closing[len(b.closing)-1-i]())
	}
	return err
}

// runner waits until a project is open.
func (b *twice) runner(i int) *kernel.Runner {
	for ; ; pause(5 * time.Millisecond) {
		b.mu.Lock()
		r := b.runners[i]
		b.mu.Unlock()
		if r != nil {
			return r
		}
	}
}

// miss sets the reason why the second project cannot be opened. nil means that it can.
func (b *twice) miss(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.missing = err
}

// open opens the bridge of the first project. The bot opens the second one unless it is missing.
func (u *user) open(ctx context.Context, ch channel.Channel, missing error,
	change ...func(*service.Options)) (b *twice, err error) {
	b = &twice{missing: missing}
	own, err := u.own.openRunner(ctx)
	if err != nil {
		return b, err
	}
	b.closing = append(b.closing, own.Close)
	record, err := bot.Open(ctx, own.Log(), u.projects[0].path("eventlog.db"))
	if err != nil {
		return b, err
	}
	open := func(ctx context.Context, i int) (*service.Bridge, func() error, error) {
		b.mu.Lock()
		missing := b.missing
		b.tries += i
		b.mu.Unlock()
		if i > 0 && missing != nil {
			return nil, nil, missing
		}
		w := u.projects[i]
		r, err := w.openRunner(ctx)
		if err != nil {
			return nil, nil, err
		}
		opt := w.options(r, ch)
		opt.Host.Runner = r
		for _, f := range change {
			f(&opt)
		}
		bridge, err := service.Open(ctx, opt)
		if err != nil {
			return nil, nil, errors.Join(err, r.Close())
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		b.runners[i] = r
		return bridge, r.Close, nil
	}
	home, done, err := open(ctx, 0)
	if err != nil {
		return b, err
	}
	b.Projects = service.NewProjects(record, called[0], u.projects[0].path("eventlog.db"), home)
	b.Add(called[1], u.projects[1].path("eventlog.db"), func(ctx context.Context) (*service.Bridge, func() error,
		error) {
		return open(ctx, 1)
	})
	b.closing = append(b.closing, done, func() error { return b.Projects.Close(context.Background()) })
	return b, nil
}

// serve runs a bot until the test ends or calls the function "stop".
func (u *user) serve(wrap func(channel.Channel) channel.Channel, missing error) (b *twice, stop func()) {
	t := u.own.t
	t.Helper()
	inner, err := local.Listen(u.own.socket(), local.DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	var ch channel.Channel = inner
	if wrap != nil {
		ch = wrap(inner)
	}
	b, err = u.open(t.Context(), ch, missing)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- b.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the bot: %v", err)
		}
		_ = inner.Close() // no longer used
		if err := b.close(); err != nil {
			t.Error(err)
		}
		for _, w := range u.projects {
			r, err := w.openRunner(context.Background())
			if err != nil {
				t.Error(err)
				continue
			}
			if rep, err := verify.Log(context.Background(), &r.Log().Reader, verify.Options{}); err != nil || !rep.OK() {
				t.Errorf("a log: %+v, %v", rep, err)
			}
			_ = r.Close() // the log was only read
		}
	})
	t.Cleanup(stop)
	return b, stop
}

// pair pairs a person in a served project.
func (u *user) pair(b *twice, p *person, i int) {
	u.own.t.Helper()
	code, err := service.OpenPairing(u.own.t.Context(), b.runner(i).Log(), service.DefaultRights(), "test", time.Now())
	if err != nil {
		u.own.t.Fatal(err)
	}
	p.say(code)
	p.expect(called[i] + "\n\nYou are paired")
}

// calls counts the prompts of each project that end with this text.
func (u *user) calls(text string) (n [2]int) {
	for i, w := range u.projects {
		for line := range strings.SplitSeq(w.prompts(), "\n") {
			if strings.Contains(line, `"session/prompt"`) && strings.Contains(line, text) {
				n[i]++
			}
		}
	}
	return n
}
