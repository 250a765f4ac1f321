package acp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gofrs/flock"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/kernel/agents"
	"github.com/perlica/perlica/kernel/project"
	"github.com/perlica/perlica/kernel/sessions"
	"github.com/perlica/perlica/provider/predictable"
)

// stateVar names the variable with the folder in which the agent of a separate relay keeps its
// sessions.
const stateVar = "PERLICA_TEST_STATE"

// TestMain runs the predictable agent when a test starts this executable as "agent". "agent tee
// FILE" stores the agent's input in a file.
func TestMain(m *testing.M) {
	if len(os.Args) < 3 || os.Args[1] != "agent" {
		os.Exit(m.Run())
	}
	if os.Args[2] == "serve" {
		var env []string
		if state := os.Getenv(stateVar); state != "" {
			env = append(env, "PERLICA_PREDICTABLE_STATE="+state)
		}
		w := &world{dir: os.Args[3], places: map[string]*Place{}}
		opt, done := w.options(env)
		client := mortal{readPoint(w.path(pointFile)), os.Stdin, os.Stdout}
		opt.In, opt.Out = client, client
		if err := errors.Join(Serve(context.Background(), opt), done()); err != nil {
			panic(err)
		}
		os.Exit(0)
	}
	in := io.Reader(os.Stdin)
	if os.Args[2] == "tee" {
		f, err := os.OpenFile(os.Args[3], os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			panic(err)
		}
		in = io.TeeReader(os.Stdin, witness{readPoint(filepath.Join(filepath.Dir(os.Args[3]), pointFile)), f})
		if ok, err := flock.New(os.Args[3] + ".alive").TryRLock(); !ok {
			panic(err)
		}
	}
	opt := predictable.Options{Scenario: os.Getenv("PERLICA_PREDICTABLE"), State: os.Getenv("PERLICA_PREDICTABLE_STATE")}
	if err := predictable.Serve(context.Background(), in, os.Stdout, os.Stderr, opt); err != nil {
		panic(err)
	}
	os.Exit(0)
}

// world is a relay with an agent. The test is its client.
type world struct {
	t       *testing.T
	dir     string // the folder of all files
	opt     Options
	in      *io.PipeWriter
	lines   chan string
	ended   chan error
	nextID  int
	places  map[string]*Place
	closing []func() error
	done    func() error

	mu   sync.Mutex // guards the fields below and places
	said []string   // lines for the operator
}

const timeout = 2 * time.Minute // for a loaded machine

// newWorld starts a relay. The function "set" changes its options.
func newWorld(t *testing.T, env []string, set func(*Options)) *world {
	t.Helper()
	w := &world{t: t, dir: t.TempDir(), places: map[string]*Place{}}
	for _, name := range []string{"home", "one", "two"} {
		// The folder .perlica_config makes the directory a project.
		if err := os.MkdirAll(w.path(name+"/.perlica_config"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	w.start(env, set)
	t.Cleanup(func() { w.stop() })
	return w
}

func (w *world) path(name string) string { return filepath.Join(w.dir, name) }

// start starts a relay in a world. The world may have had others before.
func (w *world) start(env []string, set func(*Options)) {
	w.t.Helper()
	in, inw := io.Pipe()
	outr, out := io.Pipe()
	w.in, w.lines, w.ended = inw, make(chan string, 1000), make(chan error, 1)
	w.opt, w.done = w.options(env)
	w.opt.In, w.opt.Out = in, out
	if set != nil {
		set(&w.opt)
	}
	said := w.lines
	go func() {
		lines := bufio.NewReaderSize(outr, 1<<16)
		for {
			line, err := lines.ReadString('\n')
			if err != nil {
				close(said)
				return
			}
			said <- strings.TrimSuffix(line, "\n")
		}
	}()
	opt, ended := w.opt, w.ended
	go func() {
		ended <- Serve(context.Background(), opt)
		_ = out.Close()
	}()
}

// options returns the options of a relay in this world. The function "done" closes the logs.
func (w *world) options(env []string) (opt Options, done func() error) {
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	env = append(env, "GORACE=atexit_sleep_ms=0") // otherwise an agent of a race build exits a second later
	environ := append(append(os.Environ(), "HOME="+w.path("home"), "PERLICA_HOME="+w.path("home/.perlica")), env...)
	agent := agents.Agent{ConnectTimeout: timeout, RequestTimeout: timeout}
	agent.ID, agent.Command = "predictable", []string{self, "agent", "tee", w.path("read")}
	for _, kv := range env {
		name, _, _ := strings.Cut(kv, "=")
		agent.Env = append(agent.Env, name)
	}
	agent.Asking.Mode = "ask"
	home := w.open(environ, agent, w.path("home"))
	return Options{
			Agent: agent, Dir: w.dir, Environ: environ, Version: "test", Limit: "ask",
			Answers: AnswersAsked, Home: home.Runner,
			Open: func(_ context.Context, dir string) (*Place, error) { return w.open(environ, agent, dir), nil },
			Log: func(format string, args ...any) {
				w.mu.Lock()
				defer w.mu.Unlock()
				w.said = append(w.said, fmt.Sprintf(format, args...))
			},
		}, func() (err error) {
			for _, done := range w.closing {
				err = errors.Join(err, done())
			}
			w.places, w.closing = map[string]*Place{}, nil
			return err
		}
}

// open opens the project of a directory once.
func (w *world) open(environ []string, agent agents.Agent, dir string) *Place {
	w.mu.Lock()
	defer w.mu.Unlock()
	if p := w.places[dir]; p != nil {
		return p
	}
	p, err := project.Find(dir, environ, nil)
	if err != nil {
		panic(err)
	}
	r, done, err := p.Open(context.Background(), "test")
	if err != nil {
		panic(err)
	}
	place := &Place{Runner: r, Setup: func(dir string) kernel.Setup {
		return p.Setup(project.Choice{Dir: dir}, agent, sessions.Session{})
	}}
	place.Turn.Permissions, place.Turn.AnswerIn = p.Answering(true, 0)
	w.places[dir], w.closing = place, append(w.closing, done)
	return place
}

// hangUp closes the client's side and returns the result of the relay.
func (w *world) hangUp() error {
	w.t.Helper()
	_ = w.in.Close() // as an editor does
	return w.wait()
}

// wait waits for the end of the relay.
func (w *world) wait() error {
	w.t.Helper()
	for {
		select {
		case err := <-w.ended:
			w.ended <- err
			return err
		case _, ok := <-w.lines:
			if !ok {
				w.lines = nil
			}
		case <-time.After(timeout):
			w.t.Fatal("the relay does not end")
		}
	}
}

// stop ends everything. Another start may follow.
func (w *world) stop() {
	w.t.Helper()
	_ = w.hangUp() // other tests check this error
	if err := w.done(); err != nil {
		w.t.Error(err)
	}
}

// send writes a line as the client.
func (w *world) send(line string) {
	w.t.Helper()
	if _, err := io.WriteString(w.in, line+"\n"); err != nil {
		w.t.Fatal(err)
	}
}

// request sends a request and returns its id.
func (w *world) request(method string, params any) string {
	w.t.Helper()
	w.nextID++
	id := fmt.Sprint(w.nextID)
	w.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":%q,"params":%s}`, id, method, js(params)))
	return id
}

func js(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// message is a line with the members that tests read.
type message struct {
	ID     json.RawMessage
	Method string
	Params struct {
		SessionID string
		RequestID json.RawMessage
		Update    struct {
			SessionUpdate, CurrentModeID string
			Content                      struct{ Text string }
			Meta                         map[string]any `json:"_meta"`
		}
		ToolCall struct{ Title string }
		Options  []struct{ OptionID, Kind string }
	}
	Result struct {
		StopReason, SessionID string
		Meta                  map[string]any `json:"_meta"`
	}
	Error *struct {
		Code    int
		Message string
	}
	line string
}

// next returns the client's next line.
func (w *world) next() message {
	w.t.Helper()
	select {
	case line, ok := <-w.lines:
		if !ok {
			w.t.Fatal("the relay has closed its output")
		}
		m := message{line: line}
		_ = json.Unmarshal([]byte(line), &m) // a test may read an invalid line
		return m
	case <-time.After(timeout):
		w.t.Fatalf("nothing comes; the operator got %q", w.log())
	}
	panic("unreachable")
}

func (w *world) log() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]string(nil), w.said...)
}

// until returns the answer to a request and the lines before it.
func (w *world) until(id string) (m message, before []message) {
	w.t.Helper()
	for {
		m = w.next()
		if m.Method == "" && string(m.ID) == id {
			return m, before
		}
		before = append(before, m)
	}
}

// session opens a session in a directory.
func (w *world) session(name string) string {
	w.t.Helper()
	w.until(w.request("initialize", map[string]any{"protocolVersion": 1,
		"clientInfo": map[string]string{"name": "tester", "version": "7"}}))
	return w.another(name)
}

func (w *world) another(name string) string {
	w.t.Helper()
	m, _ := w.until(w.request("session/new", map[string]any{"cwd": w.path(name), "mcpServers": []any{}}))
	if m.Result.SessionID == "" {
		w.t.Fatal(m.line)
	}
	return m.Result.SessionID
}

// prompt sends a text and returns the request's id.
func (w *world) prompt(session, text string) string {
	w.t.Helper()
	return w.request("session/prompt", promptOf(session, text))
}

func promptOf(session, text string) map[string]any {
	return map[string]any{"sessionId": session, "prompt": []any{map[string]string{"type": "text", "text": text}}}
}

// text returns the text of all messages in lines.
func text(lines []message) (all string) {
	for _, m := range lines {
		if m.Params.Update.SessionUpdate == "agent_message_chunk" {
			all += m.Params.Update.Content.Text
		}
	}
	return all
}

// agentRead returns the lines that the agent has read.
func (w *world) agentRead() []string {
	w.t.Helper()
	b, err := os.ReadFile(w.path("read"))
	if err != nil {
		w.t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")
}

// prompts counts the session/prompt requests that the agent has read.
func (w *world) prompts() (n int) {
	for _, line := range w.agentRead() {
		if bytes.Contains([]byte(line), []byte(`"session/prompt"`)) {
			n++
		}
	}
	return n
}

// events returns the events of a directory's log.
func (w *world) events(name string, types ...event.Type) (list []event.Event) {
	w.t.Helper()
	w.mu.Lock()
	place := w.places[w.path(name)]
	w.mu.Unlock()
	for e, err := range place.Runner.Log().Events(context.Background(), event.Query{Types: types}) {
		if err != nil {
			w.t.Fatal(err)
		}
		list = append(list, e)
	}
	return list
}
