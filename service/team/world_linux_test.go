package team

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/policy"
	"github.com/perlica/perlica/provider/predictable"
	"github.com/perlica/perlica/service/access"
	"github.com/perlica/perlica/service/team/hub"
	"github.com/perlica/perlica/service/team/hub/hubtest"
)

// TestMain runs the built-in agent when the registry starts the test binary as one.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "agent" {
		if err := predictable.Serve(context.Background(), &promptReader{r: os.Stdin}, os.Stdout, os.Stderr,
			predictable.Options{}); err != nil {
			log.Fatal(err)
		}
		return
	}
	if len(os.Args) == 5 && os.Args[1] == "work" {
		if err := workerProcess(os.Args[2], os.Args[3], os.Args[4]); err != nil {
			log.Fatal(err)
		}
		return
	}
	code := m.Run()
	hubtest.Remove()
	os.Exit(code)
}

// promptReader writes each prompt to a file of the working directory before the agent reads it.
type promptReader struct {
	r    io.Reader
	line []byte
}

// promptFile is the file in which an agent counts its prompts.
const promptFile = "prompts.ndjson"

func (p *promptReader) Read(b []byte) (int, error) {
	n, err := p.r.Read(b)
	for _, c := range b[:n] {
		p.line = append(p.line, c)
		if c != '\n' {
			continue
		}
		if bytes.Contains(p.line, []byte(`"session/prompt"`)) {
			f, err := os.OpenFile(promptFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
			if err == nil {
				_, err = f.Write(p.line)
				err = errors.Join(err, f.Close())
			}
			if err != nil {
				return 0, err
			}
		}
		p.line = p.line[:0]
	}
	return n, err
}

// machine is a machine with its user's own folders and a project.
type machine struct {
	opt Options
	dir string
}

// newMachine returns a machine with its hub at url.
func newMachine(t testing.TB, url string) machine {
	t.Helper()
	home := t.TempDir()
	dir := filepath.Join(home, "website")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	environ := append(os.Environ(), "PERLICA_HOME="+filepath.Join(home, "perlica"),
		"PERLICA_MODEL_DEFAULT_PROVIDER=predictable")
	return machine{Options{URL: url, Dir: dir, Environ: environ, Version: "test"}, dir}
}

// founded makes a team on a server and returns its first member.
func founded(t testing.TB, s *hubtest.Server, db string) (machine, *Team) {
	t.Helper()
	m := newMachine(t, s.URL("owner", db))
	if _, made, err := Init(t.Context(), m.opt, "team"); err != nil || !made {
		t.Fatal(made, err)
	}
	return m, m.join(t, "alice", true)
}

// join joins under a name and returns the team, which ends with the test.
func (m machine) join(t testing.TB, name string, confirmed bool) *Team {
	t.Helper()
	j, ok, err := Join(t.Context(), m.opt, name)
	if err != nil || ok != confirmed {
		t.Fatal(ok, err)
	}
	t.Cleanup(func() {
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	})
	return j
}

// roles counts the database roles that all tests have made. All tests share the server, and so its roles.
var roles atomic.Int64

// member adds another machine under a name. The member "admin" confirms it with the rights. If url is the owner's, the
// machine gets a separate role, because row security does not apply to the owner.
func member(t testing.TB, admin *Team, url, name string, rights ...access.Right) (machine, *Team) {
	t.Helper()
	if strings.Contains(url, "&user=owner") {
		role := fmt.Sprint(name, "_", roles.Add(1))
		grant := map[bool]string{true: ", perlica_admin"}[slices.Contains(rights, access.Admin)]
		if err := admin.Hub.Do(t.Context(), func(ctx context.Context, c *hub.Conn) error {
			_, err := c.Exec(ctx, "CREATE ROLE "+role+" LOGIN IN ROLE perlica_member"+grant)
			return err
		}); err != nil {
			t.Fatal(err)
		}
		url = strings.Replace(url, "&user=owner", "&user="+role, 1)
	}
	m := newMachine(t, url)
	j := m.join(t, name, false)
	if err := admin.Confirm(t.Context(), name, j.Key, rights); err != nil {
		t.Fatal(err)
	}
	if err := j.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	return m, j
}

// work runs a worker of the machine until the function "drain" is called or the test ends.
func (m machine) work(t testing.TB, j *Team, slots int, labels ...string) (drain func()) {
	t.Helper()
	return m.serve(t, j, WorkerOptions{Slots: slots, Labels: labels, Projects: map[string]string{"website": m.dir}})
}

// serve runs a worker until it is drained.
func (m machine) serve(t testing.TB, j *Team, opt WorkerOptions) (drain func()) {
	t.Helper()
	opt.Note = func(s string) { t.Log(j.As, s) }
	w, err := NewWorker(t.Context(), j, opt)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx, context.Background()) }()
	drain = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(drain)
	return drain
}

// limit is the time limit of every wait.
const limit = 2 * time.Minute

func asks(id, text string) Draft { return Draft{ID: id, Text: text, Project: "website"} }

func submit(t testing.TB, j *Team, drafts ...Draft) {
	t.Helper()
	came, err := j.Submit(t.Context(), drafts)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range drafts {
		if came[d.ID] != hub.New {
			t.Fatalf("%s: %s", d.ID, came[d.ID])
		}
	}
}

// ended waits for an input's end. The function "look" may be nil.
func ended(t testing.TB, j *Team, id string, look func(hub.Status, []hub.Question)) hub.Status {
	t.Helper()
	if look == nil {
		look = func(hub.Status, []hub.Question) {}
	}
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	l, err := j.Live(ctx)
	if err != nil {
		t.Fatal(err)
	}
	l.Look = look
	s, err := l.Wait(ctx, id)
	if err != nil {
		t.Fatalf("%s: %v", id, err)
	}
	return s
}

// calls counts the intents for an input on a worker's log.
func calls(t testing.TB, j *Team, id string) int {
	t.Helper()
	n, err := j.Log().Count(t.Context(), event.Query{Types: []event.Type{event.Requested}, Input: event.InputID(id)})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func policyMode(s string) policy.Mode { return policy.Mode(s) }
