package provider_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/acp-go-sdk"

	"github.com/perlica/perlica/provider"
	"github.com/perlica/perlica/provider/predictable"
)

func init() {
	testChildren["ok"] = childOK
	testChildren["liar"] = childLiar
}

// childOK is the predictable agent. It behaves well unless the scenario in its first argument says otherwise.
func childOK(args []string) {
	self := []string{os.Args[0]}
	if len(args) == 2 && args[0] == "--scenario" { // @spawn starts it with these arguments
		args = args[1:]
	}
	opt := predictable.Options{Self: self}
	if len(args) > 0 {
		opt.Scenario = args[0]
	}
	if err := predictable.Serve(context.Background(), os.Stdin, os.Stdout, os.Stderr, opt); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// childLiar writes the text of its arguments and ignores the requests:
//
//	<         read a line
//	<N        read N lines
//	peek      wait for the first byte of a line and leave it in the pipe
//	>TEXT     write TEXT and a line feed
//	=TEXT     write TEXT
//	*N TEXT   write TEXT and a line feed N times; # in it is the count
//	echo N    read N lines and write each back as a notification
//	deaf      close standard input
//	close     close standard output
//	stderr T  write a line to standard error
//	exit N    exit with code N
//	hang      neither read nor write, and do not exit
//
// After the last argument it reads until its input ends.
func childLiar(args []string) {
	in := bufio.NewReader(os.Stdin)
	read := func() string {
		line, err := in.ReadString('\n')
		if err != nil {
			os.Exit(0)
		}
		return strings.TrimSuffix(line, "\n")
	}
	for _, arg := range args {
		verb, rest, _ := strings.Cut(arg, " ")
		n, _ := strconv.Atoi(rest)
		switch {
		case arg == "<":
			read()
		case arg == "peek":
			must(in.Peek(1))
		case arg[0] == '<':
			for range must(strconv.Atoi(arg[1:])) {
				read()
			}
		case arg[0] == '>':
			fmt.Println(arg[1:])
		case arg[0] == '=':
			fmt.Print(arg[1:])
		case arg[0] == '*':
			for i := range must(strconv.Atoi(verb[1:])) {
				fmt.Println(strings.ReplaceAll(rest, "#", strconv.Itoa(i)))
			}
		case verb == "echo":
			for range n {
				fmt.Printf(`{"jsonrpc":"2.0","method":"_echo","params":%s}`+"\n", read())
			}
		case verb == "deaf":
			os.Stdin.Close()
		case verb == "close":
			os.Stdout.Close()
		case verb == "stderr":
			fmt.Fprintln(os.Stderr, rest)
		case verb == "exit":
			os.Exit(n)
		case verb == "hang":
			time.Sleep(time.Hour)
		default:
			panic("no such lie: " + arg)
		}
	}
	for {
		read()
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// child returns an agent that is this test binary as the test child with this name.
func child(name string, args ...string) provider.Agent {
	return provider.Agent{
		ID:      name,
		Command: append([]string{must(os.Executable())}, args...),
		Asking:  provider.Asking{Env: []string{testChild + "=" + name, "GORACE=atexit_sleep_ms=0"}},
	}
}

// lies returns a liar that answers initialize and session/new and reads a prompt with the id 2, before it
// writes the rest. Its session is "s".
func lies(args ...string) provider.Agent {
	return child("liar", append([]string{
		"<", `>{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1}}`,
		"<", `>{"jsonrpc":"2.0","id":1,"result":{"sessionId":"s"}}`, "<",
	}, args...)...)
}

const (
	lieEnd  = `>{"jsonrpc":"2.0","id":2,"result":{"stopReason":"end_turn"}}`
	lieText = `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"%s"}}}}`
)

func lieSay(text string) string { return ">" + fmt.Sprintf(lieText, text) }

// crossed is a line and its direction.
type crossed struct {
	provider.Frame
	sent bool
}

// watcher is a Recorder and a Client that stores everything. Its function fields are called before it stores
// an event, by the goroutine that called the watcher.
type watcher struct {
	sent, received func(provider.Frame) error
	update         func(provider.Update)
	ask            func(*provider.PermissionRequest)
	drained        func()
	forgetful      bool // keep no frames and no updates

	mu          sync.Mutex
	changed     chan struct{}
	wire        []crossed
	updates     []provider.Update
	text        strings.Builder
	permissions []*provider.PermissionRequest
	blocked     []provider.BlockedRequest
	refused     []string // tool call ids
	warnings    []provider.Warning
	noHTTP      error // the result of SendHTTP
}

func (w *watcher) note(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f()
	if w.changed != nil {
		close(w.changed)
		w.changed = nil
	}
}

func (w *watcher) Sent(f provider.Frame) error {
	if w.sent != nil {
		if err := w.sent(f); err != nil {
			return err
		}
	}
	w.note(func() { w.wire = append(w.wire, crossed{f, true}) })
	return nil
}

func (w *watcher) Received(f provider.Frame) error {
	if w.received != nil {
		if err := w.received(f); err != nil {
			return err
		}
	}
	if !w.forgetful {
		w.note(func() { w.wire = append(w.wire, crossed{f, false}) })
	}
	return nil
}

func (w *watcher) Update(u provider.Update) {
	if w.update != nil {
		w.update(u)
	}
	if w.forgetful {
		return
	}
	w.note(func() {
		w.updates = append(w.updates, u)
		if u.Kind == provider.AgentMessageChunk {
			w.text.WriteString(u.Text)
		}
	})
}

func (w *watcher) RequestPermission(p *provider.PermissionRequest) {
	if w.ask != nil {
		w.ask(p)
	}
	w.note(func() { w.permissions = append(w.permissions, p) })
}

func (w *watcher) RefusedPermission(t provider.ToolCall) {
	w.note(func() { w.refused = append(w.refused, string(t.ID)) })
}
func (w *watcher) Blocked(b provider.BlockedRequest) {
	w.note(func() { w.blocked = append(w.blocked, b) })
}
func (w *watcher) SendHTTP() error            { return w.noHTTP }
func (w *watcher) Warning(v provider.Warning) { w.note(func() { w.warnings = append(w.warnings, v) }) }

func (w *watcher) Drained() {
	if w.drained != nil {
		w.drained()
	}
}

// waitFor waits until the function "ready" returns true. This function is called with the watcher locked.
func (w *watcher) waitFor(t *testing.T, what string, ready func() bool) {
	t.Helper()
	late := time.After(time.Minute)
	for {
		w.mu.Lock()
		ok := ready()
		if w.changed == nil {
			w.changed = make(chan struct{})
		}
		changed := w.changed
		w.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-changed:
		case <-late:
			t.Fatalf("waited a minute for %s", what)
		}
	}
}

func (w *watcher) said() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.String()
}

// lines returns the lines of one direction.
func (w *watcher) lines(sent bool) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var lines []string
	for _, f := range w.wire {
		if f.sent == sent {
			lines = append(lines, string(f.Line))
		}
	}
	return lines
}

// warned returns the subtypes of the warnings so far.
func (w *watcher) warned() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var s []string
	for _, v := range w.warnings {
		s = append(s, v.Subtype)
	}
	return s
}

// start starts an agent. At the end of the test it ends the agent and checks that nothing is left.
func start(t testing.TB, a provider.Agent, w *watcher, opts ...func(*provider.Options)) *provider.Conn {
	t.Helper()
	opt := provider.Options{Recorder: w, Client: w, Dir: t.TempDir(), Environ: os.Environ(), Grace: time.Minute}
	for _, f := range opts {
		f(&opt)
	}
	c, err := provider.Start(a, opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { end(t, c) })
	return c
}

// leaves ends an agent that exits when its input ends. It waits for the exit without a limit.
func leaves(t *testing.T, c *provider.Conn) {
	t.Helper()
	if err := c.End(context.Background()); err != nil {
		t.Errorf("End: got %v; want err == nil", err)
	}
	nothingLeft(t)
}

// end ends an agent after one second, if the agent has not exited earlier.
func end(t testing.TB, c *provider.Conn) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if err := c.End(ctx); err != nil {
		t.Errorf("End: got %v; want err == nil", err)
	}
	nothingLeft(t)
}

// nothingLeft waits until no goroutine of a connection is left.
func nothingLeft(t testing.TB) {
	t.Helper()
	buf := make([]byte, 1<<20)
	var stacks string
	for late := time.Now().Add(time.Minute); time.Now().Before(late); runtime.Gosched() {
		stacks = string(buf[:runtime.Stack(buf, true)])
		if !slices.ContainsFunc([]string{"provider.(*Conn)", "process.(*Process)", "process.(*stderrTail)",
			"process.(*Output)"}, func(s string) bool {
			return strings.Contains(stacks, s)
		}) {
			return
		}
	}
	t.Errorf("goroutines are left:\n%s", stacks)
}

// open sends initialize and opens a session.
func open(t testing.TB, c *provider.Conn) *provider.Session {
	t.Helper()
	if _, err := c.Initialize(t.Context(), "test"); err != nil {
		t.Fatal(err)
	}
	s, err := c.NewSession(t.Context(), filepath.Clean(c.Options().Dir), nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func text(s string) provider.Prompt {
	p, err := provider.NewPrompt([]acp.ContentBlock{acp.TextBlock(s)})
	if err != nil {
		panic(err) // every text can be encoded
	}
	return p
}

// prompted is the result of a prompt.
type prompted struct {
	provider.Answer
	err error
}

func promptAsync(s *provider.Session, call *provider.Call, prompt string) <-chan prompted {
	done := make(chan prompted, 1)
	go func() {
		a, err := s.Prompt(call, text(prompt)).Answer()
		done <- prompted{a, err}
	}()
	return done
}

// run starts an agent and runs a whole turn.
func run(
	t *testing.T, a provider.Agent, w *watcher, prompt string, opts ...func(*provider.Options),
) (*provider.Conn, prompted) {
	t.Helper()
	c := start(t, a, w, opts...)
	answer, err := open(t, c).Prompt(provider.NewCall("run"), text(prompt)).Answer()
	return c, prompted{answer, err}
}
