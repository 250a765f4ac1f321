// Package acp is the front end for editors and other clients of the Agent Client Protocol: an ACP
// agent on standard input and output that stands in front of the real one.
//
// It promises that a line goes on byte for byte as it came, in either direction, in order, with the
// exceptions that docs/acp.md lists; that what the agent says is on disk before the client sees it;
// and that each session/prompt is an input like any other: its intent is on disk before it goes on,
// and the client's answer to it comes when the outcome is on disk. It decides nothing about a
// request, which is the policy's, and draws nothing.
package acp

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/coder/acp-go-sdk"
	"github.com/google/uuid"

	"github.com/perlica/perlica/interaction"
	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/kernel/agents"
	"github.com/perlica/perlica/provider"
)

// Place is an open project. The sessions that the client opens in it share it.
type Place struct {
	Runner *kernel.Runner
	// Setup is how an agent's session in a directory is set up, and Turn how its inputs are answered,
	// but for the input.
	Setup func(dir string) kernel.Setup
	Turn  kernel.Turn
}

// Answers says which questions the client may answer.
type Answers string

// The values of editor.answers. None of them lets a client answer what the refused tier asks.
const (
	AnswersOrdinary Answers = "ordinary" // of the ordinary tier
	AnswersAsked    Answers = "asked"    // all that are asked, but those of the refused tier
	AnswersNone     Answers = "none"     // none: they wait at Perlica's other front ends
)

// Options of Serve.
type Options struct {
	In      io.Reader // the client's lines
	Out     io.Writer // lines to the client
	Agent   agents.Agent
	Dir     string   // the working directory of the agent's process
	Environ []string // what its environment is chosen from
	Version string
	Limit   string // the permission mode that runs which the agent starts do not loosen
	Answers Answers
	// Local says that the client reads and writes files and runs commands for the agent, each judged
	// by the policy like a tool call.
	Local  bool
	Origin *interaction.Origin // of this process
	// Visitor is a client that comes in from outside, as the record names it: it may only tighten (see
	// docs/http.md), and is called by no other name. Empty: the client is a program of the user's here.
	Visitor string
	// Home records what belongs to no session.
	Home *kernel.Runner
	// Open returns the project of a directory. It is called again for each session.
	Open func(ctx context.Context, dir string) (*Place, error)
	// Log tells the operator what happens, a line at a time.
	Log func(format string, args ...any)
}

// Relay is one connection of a client, with its agent.
type relay struct {
	opt  Options
	conn *provider.Conn
	out  *output
	id   string // of the connection
	home *kernel.Attached

	recovered map[*kernel.Runner]bool // the client's reader's

	ctx   context.Context // of the turns
	end   context.CancelCauseFunc
	turns sync.WaitGroup

	mu       sync.Mutex // guards what follows; never held during I/O
	client   string     // its name and version
	agent    acp.InitializeResponse
	sessions map[string]*session
	requests map[string]*request         // of the client and of Perlica, that the agent has not answered; by provider.IDKey
	asked    map[string]*asking          // of the agent, likewise, and the latest questions that are answered
	answered []string                    // the keys of these, the oldest first
	opening  map[string]*kernel.Attached // sessions that are being continued: what records their lines
	failed   error                       // why nothing goes on any more
	foreign  error                       // why the agent gets no request: it speaks another version of the protocol
}

// request is a request of the client, or of Perlica, that waits for its answer.
type request struct {
	id     string // as it was written
	method string
	at     *kernel.Attached // what records its answer
	prompt *prompt          // of session/prompt
	open   *opening         // of what opens a session
	closes *session         // of what closes one
	loaded func()           // of what loads an open session again: ends the telling of its earlier turns; otherwise nil
}

// errClientGone says that the client reads nothing more.
var errClientGone = errors.New("the client closed its side")

// A RecordError says that the log could be written no more: nothing went on after that.
type RecordError struct{ Err error }

func (e *RecordError) Error() string { return "the event log can be written no more: " + e.Err.Error() }

// Unwrap returns what the log says.
func (e *RecordError) Unwrap() error { return e.Err }

// Serve carries lines between a client and an agent until one of them ends, and then ends the other.
// It returns nil if the client closed its side, else why the agent, or the record, came to its end.
func Serve(ctx context.Context, opt Options) error {
	r := &relay{
		opt: opt, id: uuid.Must(uuid.NewV7()).String(), home: opt.Home.Unattached(""),
		sessions: map[string]*session{}, requests: map[string]*request{}, asked: map[string]*asking{},
		opening: map[string]*kernel.Attached{}, recovered: map[*kernel.Runner]bool{}, client: opt.Visitor,
	}
	r.ctx, r.end = context.WithCancelCause(context.WithoutCancel(ctx))
	defer r.end(nil)
	r.out = newOutput(opt.Out, r.fail, func() { r.end(errClientGone) })
	defer context.AfterFunc(r.ctx, r.out.free)()
	conn, err := provider.Start(opt.Agent.Agent, provider.Options{
		Recorder: recorder{r}, Client: passive{r}, Peer: r, IDPrefix: r.prefix(),
		Dir: opt.Dir, Environ: opt.Environ, Permissions: opt.Limit,
		MaxLine: opt.Agent.MaxLine, ConnectTimeout: opt.Agent.ConnectTimeout, RequestTimeout: opt.Agent.RequestTimeout,
		Stderr: func(b []byte) { opt.Log("%s: %s", opt.Agent.ID, b) },
	})
	if err != nil {
		r.out.close()
		return err
	}
	r.conn = conn
	lines := make(chan []byte)
	go r.readLines(lines)
	if err = r.serve(ctx, lines); err == nil || ctx.Err() != nil {
		r.stopAll()
	}
	r.end(&kernel.StoppedError{Stop: kernel.Stop{By: "client", Why: "the client closed its side"}})
	r.turns.Wait()
	eerr := conn.End(context.Background())
	r.turns.Wait() // a session may have been opened by the agent's last words
	r.closeSessions()
	r.answerAll(err)
	r.out.close()
	return errors.Join(err, eerr)
}

// serve hands the client's lines on. It returns nil when there are no more.
func (r *relay) serve(ctx context.Context, lines <-chan []byte) error {
	for {
		select {
		case line, ok := <-lines:
			if !ok {
				return nil
			}
			r.fromClient(line)
		case <-r.conn.Gone():
			return r.reason()
		case <-r.ctx.Done():
			return r.reason()
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// readLines reads the client's lines. What follows the last line feed is no line.
func (r *relay) readLines(lines chan<- []byte) {
	defer close(lines)
	in := bufio.NewReaderSize(r.opt.In, 1<<16)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		select {
		case lines <- line[:len(line)-1]:
		case <-r.ctx.Done():
			return
		}
	}
}

// prefix begins the ids of Perlica's own requests.
func (r *relay) prefix() string { return "perlica-" + r.id + "-" }

// isOwn reports whether an id is one of these.
func (r *relay) isOwn(key string) bool { return strings.HasPrefix(key, `"`+r.prefix()) }

// fail takes in that a log can be written no more.
func (r *relay) fail(err error) {
	r.mu.Lock()
	r.failed = cmp.Or(r.failed, error(&RecordError{err}))
	r.mu.Unlock()
	r.end(err)
}

func (r *relay) hasFailed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failed != nil
}

// reason is why nothing goes on any more; nil: the client reads nothing.
func (r *relay) reason() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	cause := context.Cause(r.ctx)
	switch {
	case r.failed != nil:
		return r.failed
	case errors.Is(cause, errClientGone):
		return nil
	}
	err := cmp.Or(cause, r.conn.Err())
	if e := (*provider.Error)(nil); errors.As(err, &e) && e.Type == provider.TypeRecord {
		return &RecordError{e}
	}
	return err
}

// closeSessions ends what Attach began. No turn is under way, and the agent is gone.
func (r *relay) closeSessions() {
	r.mu.Lock()
	sessions := slices.Collect(maps.Values(r.sessions))
	r.mu.Unlock()
	for _, s := range sessions {
		<-s.ready
		if s.parent == nil && s.at != nil {
			s.at.Close()
		}
	}
}

// answerAll answers every open request of the client with an error.
func (r *relay) answerAll(why error) {
	r.mu.Lock()
	var open []string
	for _, q := range r.requests {
		if q.prompt == nil && !q.own() {
			open = append(open, q.id)
		}
	}
	r.mu.Unlock()
	message := "the agent has ended"
	if why != nil {
		message = why.Error()
	}
	for _, id := range open {
		r.say(r.home, errorLine(id, codeInternal, message))
	}
}

// own reports whether a request is Perlica's.
func (q *request) own() bool { return q.method == "" }

// record records a line of the client that does not go on as it came, or one of Perlica's to it.
// Without a record nothing goes on any more.
func (r *relay) record(at *kernel.Attached, sent bool, line []byte) {
	if err := at.ClientLine(sent, line); err != nil {
		r.fail(err)
	}
}

// say sends a line of Perlica's own to the client.
func (r *relay) say(at *kernel.Attached, line []byte) {
	r.record(at, true, line)
	durable := at.Durable()
	if r.hasFailed() {
		durable = nil // what is left to be said is that
	}
	r.out.add(line, durable)
}

// refuse answers a request of the client with an error; the request does not go on.
func (r *relay) refuse(at *kernel.Attached, line []byte, id string, code int, message string) {
	r.record(at, false, line)
	r.say(at, errorLine(id, code, message))
}
