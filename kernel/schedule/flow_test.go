package schedule

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/interaction"
	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/kernel/flow"
	"github.com/perlica/perlica/kernel/project"
	"github.com/perlica/perlica/kernel/record"
)

// asking is a flow that only asks a question, so that it needs no agent.
const asking = "name = 'asks'\n[[step]]\nid = 'q'\nask = 'Go on?'\noptions = ['yes']\n"

// place is a project whose files the environment trusts.
type place struct {
	*testing.T
	dir string
}

func newPlace(t *testing.T, schedules ...string) *place {
	w := &place{t, filepath.Join(t.TempDir(), "shop")}
	config := ""
	for _, name := range schedules {
		config += fmt.Sprintf("[[schedule]]\nid = %q\nevery = '1h'\nflow = %q\n", strings.TrimSuffix(name, ".toml"), name)
	}
	w.write(".perlica_config/config.toml", config)
	return w
}

func (w *place) write(name, text string) {
	w.Helper()
	path := filepath.Join(w.dir, filepath.FromSlash(name))
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		w.Fatal(err)
	}
}

func (w *place) project() *project.Project {
	w.Helper()
	home := filepath.Dir(w.dir)
	p, err := project.Find(w.dir, []string{"HOME=" + home, "PERLICA_HOME=" + filepath.Join(home, "home"),
		"PERLICA_TRUST_PROJECT=1"}, nil)
	if err != nil {
		w.Fatal(err)
	}
	return p
}

// keeper returns a keeper of the project that waits for answers to questions, and its Runner.
func (w *place) keeper(ctx context.Context) (*Keeper, *kernel.Runner) {
	w.Helper()
	p := w.project()
	r, done, err := p.Open(ctx, "test")
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() {
		if err := done(); err != nil {
			w.Error(err)
		}
	})
	k, err := Work{
		Runner: r, Load: func() (*project.Project, error) { return w.project(), nil }, Stay: true,
		Answered: func(Call, record.Result, error) {}, Driven: func(Call, *flow.State) {},
	}.Keeper(ctx, p)
	if err != nil {
		w.Fatal(err)
	}
	return k, r
}

// call returns a call of the first schedule.
func (w *place) call(hour int) Call {
	w.Helper()
	list, err := Of(w.project())
	if err != nil {
		w.Fatal(err)
	}
	at := time.Date(2026, 11, 27, hour, 0, 0, 0, time.UTC)
	return Call{Schedule: list[0], Time: at, Input: list[0].Input(at)}
}

// TestMadeUpDoesNotWait checks that a flow run for a missed time returns while its question is open. Otherwise this
// flow run would delay the flow runs of other schedules. A flow run at its own time waits for the answer. If both
// wait, ctx ends and the test fails.
func TestMadeUpDoesNotWait(t *testing.T) {
	w := newPlace(t, "asks.toml")
	w.write("asks.toml", asking)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	k, r := w.keeper(ctx)
	c := w.call(7)
	c.MadeUp = true
	if err := k.Answer(ctx, c); err != nil || ctx.Err() != nil {
		t.Fatalf("a made-up flow run: %v, %v", err, ctx.Err())
	}
	open := func(c Call) []interaction.Question {
		list, err := interaction.Pending(ctx, &r.Log().Reader, []event.RunID{flow.RunID(string(c.Input))})
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	if n := len(open(c)); n != 1 {
		t.Fatalf("the made-up flow run has %d open questions", n)
	}

	c = w.call(8)
	changes, err := r.Log().Changes(ctx)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- k.Answer(ctx, c) }()
	for len(open(c)) == 0 {
		if _, err := changes.Wait(ctx, time.Second); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(changes.Close(), r.Questions().Answer(ctx, open(c)[0].ID,
		interaction.Answer{Option: "yes", By: "me", Where: "test"})); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	e, ok, err := r.Log().Last(ctx, event.Query{Run: flow.RunID(string(c.Input)),
		Types: []event.Type{event.FlowFinished}})
	if err != nil || !ok {
		t.Errorf("the flow run has no end: %+v, %v", e, err)
	}
}

// TestFlowPinned checks that the environment trusts the bytes of a flow at the start of the process, and not those that
// an agent writes later. The test fails if each flow run trusts the present bytes.
func TestFlowPinned(t *testing.T) {
	w := newPlace(t, "asks.toml", "later.toml")
	inner := "name = 'outer'\n[[step]]\nid = 'inside'\nflow = 'inner.toml'\n"
	w.write("asks.toml", inner)
	w.write("inner.toml", asking)
	k, r := w.keeper(t.Context())
	started := func(c Call) bool {
		_, ok, err := r.Log().Last(t.Context(), event.Query{Run: flow.RunID(string(c.Input)),
			Types: []event.Type{event.FlowStarted}})
		if err != nil {
			t.Fatal(err)
		}
		return ok
	}
	refused := func(c Call, what string) {
		t.Helper()
		c.MadeUp = true // such a call does not wait for an answer
		if err := k.Answer(t.Context(), c); err == nil || !strings.Contains(err.Error(), "not trusted") || started(c) {
			t.Errorf("%s: %v", what, err)
		}
	}
	w.write("inner.toml", asking+"# changed\n")
	refused(w.call(7), "a changed inner flow")
	w.write("inner.toml", asking)
	w.write("asks.toml", inner+"# changed\n")
	refused(w.call(8), "a changed flow")
	w.write("later.toml", asking)
	later := w.call(9)
	later.Flow = "later.toml"
	refused(later, "a flow that was not there at the start")
	w.write("asks.toml", inner)
	c := w.call(10)
	c.MadeUp = true
	if err := k.Answer(t.Context(), c); err != nil || !started(c) {
		t.Errorf("the flow of the start: %v", err)
	}
}

// TestFlowFilesGoesOn checks that a flow that is missing or cannot be read hides no later flow. Otherwise a person who
// revokes the trust in a project would leave the later files trusted.
func TestFlowFilesGoesOn(t *testing.T) {
	w := newPlace(t, "missing.toml", "broken.toml", "good.toml", "gone.toml", "last.toml")
	w.write("broken.toml", "name = 'broken'\n")
	w.write("good.toml", asking)
	w.write("last.toml", asking)
	files, err := FlowFiles(w.project())
	if err == nil || !strings.Contains(err.Error(), "schedule broken: ") || strings.Contains(err.Error(), "missing") {
		t.Errorf("the error: %v", err)
	}
	var names []string
	for _, f := range files {
		names = append(names, filepath.Base(f.Path))
	}
	if got := strings.Join(names, " "); got != "good.toml last.toml" {
		t.Errorf("the files are %q", got)
	}
}
