package notify

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/interaction"
	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/kernel/project"
)

// world is a project with a log. The test writes the events of the log.
type world struct {
	*testing.T
	dir     string
	environ []string
	r       *kernel.Runner
	project *project.Project
}

const signingKey = "a secret of 20 bytes"

// newWorld returns a project with these tables in its configuration.
func newWorld(t *testing.T, tables string) *world {
	dir := t.TempDir()
	w := &world{T: t, dir: filepath.Join(dir, "shop")}
	w.environ = []string{"HOME=" + dir, "XDG_CONFIG_HOME=" + filepath.Join(dir, "config"),
		"XDG_STATE_HOME=" + filepath.Join(dir, "state"), "SIGNING=" + signingKey, "TERM=xterm"}
	w.write(filepath.Join(dir, "config", "perlica", "config.toml"), tables)
	w.write(filepath.Join(w.dir, ".perlica_config", "config.toml"), "")
	var err error
	if w.project, err = project.Find(w.dir, w.environ, nil); err != nil {
		t.Fatal(err)
	}
	r, done, err := w.project.Open(t.Context(), "test")
	if err != nil {
		t.Fatal(err)
	}
	w.r = r
	t.Cleanup(func() {
		if err := done(); err != nil {
			t.Error(err)
		}
	})
	return w
}

func (w *world) write(path, text string) {
	w.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		w.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		w.Fatal(err)
	}
}

// add writes one event and returns its number.
func (w *world) add(typ event.Type, refs event.Refs, payload any) event.Seq {
	w.Helper()
	seq, err := w.r.Log().Append(w.Context(), event.NewFact(typ, "perlica", refs, payload))
	if err != nil {
		w.Fatal(err)
	}
	return seq
}

// finish writes the end of a turn that ran for a time, and returns the number of its event.
func (w *world) finish(text string, ran time.Duration) event.Seq {
	w.Helper()
	n, _, err := w.r.Log().Last(w.Context(), event.Query{})
	if err != nil {
		w.Fatal(err)
	}
	run := event.RunID(fmt.Sprintf("run-%d", n.Seq+1))
	return w.add(event.Responded, event.Refs{Run: run, Session: "session-1"},
		fact.Responded{Text: text, DurationMS: ran.Milliseconds()})
}

// ask writes a question and returns its id.
func (w *world) ask(title string, commands ...string) event.InteractionID {
	w.Helper()
	n, _, err := w.r.Log().Last(w.Context(), event.Query{})
	if err != nil {
		w.Fatal(err)
	}
	id := event.InteractionID(fmt.Sprintf("question-%d", n.Seq+1))
	w.add(event.InteractionRequested, event.Refs{Run: "run-1", Session: "session-1", Interaction: id},
		interaction.Question{ID: id, Title: title, Subject: interaction.Subject{Commands: commands},
			Expires: time.Now().Add(24 * time.Hour)})
	return id
}

// delivery returns the delivery to the only target of the configuration, with a clock that the test moves.
func (w *world) delivery(opt Options, clock *time.Time) *delivery {
	w.Helper()
	targets, errs := Targets(w.Context(), w.project, opt)
	if len(errs) > 0 || len(targets) != 1 {
		w.Fatalf("targets %v, errors %v", targets, errs)
	}
	teller, err := tellerOf(w.project, opt.Team)
	if err != nil {
		w.Fatal(err)
	}
	t := targets[0]
	return &delivery{target: t, log: w.r.Log(), lock: filepath.Join(w.TempDir(), "lock"),
		ledger: ledger{target: t.Digest, rules: t.Rules}, teller: teller, now: func() time.Time { return *clock }}
}

// deliver delivers the due notifications, and returns the events about notifications so far as one line.
func (w *world) deliver(ctx context.Context, d *delivery) string {
	w.Helper()
	if err := d.deliverDue(ctx); err != nil {
		w.Fatal(err)
	}
	return w.history()
}

// history returns the events about notifications as one line.
func (w *world) history() string {
	w.Helper()
	var words []string
	for e, err := range w.r.Log().Events(w.Context(), event.Query{
		Types: []event.Type{event.NotifyStarted, event.NotifySent, event.NotifyFailed}}) {
		if err != nil {
			w.Fatal(err)
		}
		f, err := fact.Decode[fact.Notified](e)
		if err != nil {
			w.Fatal(err)
		}
		word := strings.TrimPrefix(string(e.Type), "notify.")
		if f.Unknown {
			word += " unknown"
		}
		if f.Final {
			word += " final"
		}
		words = append(words, word)
	}
	return strings.Join(words, ", ")
}

// request is one received request.
type request struct {
	host, path string
	header     http.Header
	body       string
}

// receiver is a real HTTP server that stands for each host.
type receiver struct {
	server *httptest.Server
	client *http.Client

	mu  sync.Mutex // guards got
	got []request
}

// newReceiver returns a server. The function "reply" answers its requests, which have the numbers 1, 2 and so on.
func newReceiver(t *testing.T, reply func(n int, w http.ResponseWriter, r *http.Request)) *receiver {
	rc := &receiver{}
	rc.server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body) // a broken body is compared below
		rc.mu.Lock()
		rc.got = append(rc.got, request{r.Host, r.URL.RequestURI(), r.Header.Clone(), string(body)})
		n := len(rc.got)
		rc.mu.Unlock()
		reply(n, w, r)
	}))
	t.Cleanup(rc.server.Close)
	rc.client = &http.Client{Transport: &http.Transport{
		DialTLSContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			dialer := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}} // every name leads to the test's server
			return dialer.DialContext(ctx, network, rc.server.Listener.Addr().String())
		}}}
	return rc
}

// requests returns the received requests.
func (rc *receiver) requests() []request {
	rc.mu.Lock()
	defer rc.mu.Unlock()
	return slices.Clone(rc.got)
}

func (r request) decode(t *testing.T) map[string]any {
	t.Helper()
	m := map[string]any{}
	if err := json.NewDecoder(bytes.NewBufferString(r.body)).Decode(&m); err != nil {
		t.Fatalf("%v in %q", err, r.body)
	}
	return m
}
