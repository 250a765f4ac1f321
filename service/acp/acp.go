// Package acp is the front end for editors and other clients of the Agent Client Protocol. For the
// client it is an ACP agent on standard input and output. It stands between the client and the real
// agent.
//
// It promises that every line passes byte for byte and in order in both directions, with the
// exceptions that docs/acp.md lists. The agent's output is on disk before the client sees it. Each
// session/prompt is an input like any other: its intent is on disk before it passes, and the
// client's answer follows after the outcome is on disk. The policy decides about requests, not this
// package. The package draws nothing.
//
// # Goroutines and locks
//
//   - Serve's goroutine handles the client's lines in order, one after the other. It owns
//     relay.recovered and session.last. It hands each line to the Conn, which writes it.
//   - readLines reads the client's lines.
//   - The reading goroutine of the Conn calls Pass, Local and the recorder's Received for each
//     line of the agent, in order. The writing goroutine of the Conn calls the recorder's Sent.
//   - Each prompt has a goroutine (prompt.runTurn). A session that opens, closes or changes its
//     mode has one, too. relay.turns counts these goroutines, and Serve waits for them.
//   - writeBatches is the only goroutine that writes to the client.
//
// The locks relay.mu, prompt.mu and output.mu each guard the fields that the structs name. No
// goroutine holds two of them at the same time.
package acp

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"io"
	"strings"
	"sync"

	"github.com/coder/acp-go-sdk"
	"github.com/google/uuid"

	"github.com/perlica/perlica/interaction"
	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/kernel/agents"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/provider"
)

// Place is an open project. All sessions that the client opens in this project share the Place.
type Place struct {
	Runner *kernel.Runner
	// Setup returns the configuration of an agent's session in a directory. Turn configures the
	// answers to the session's inputs. Its Input is empty.
	Setup func(dir string) kernel.Setup
	Turn  kernel.Turn
}

// Answers names the questions that the client may answer.
type Answers string

// These are the values of editor.answers. The policy puts each request into a tier by its danger. A client can never
// answer a question of the refused tier, because no rule and no mode allows such a request.
const (
	AnswersOrdinary Answers = "ordinary" // questions of the ordinary tier
	AnswersAsked    Answers = "asked"    // all questions except questions of the refused tier
	AnswersNone     Answers = "none"     // no question: all wait at Perlica's other front ends
)

// Options configures Serve.
type Options struct {
	In      io.Reader // the client's lines
	Out     io.Writer // lines to the client
	Agent   agents.Agent
	Dir     string   // the working directory of the agent's process
	Environ []string // the environment from which the agent's environment is chosen
	Version string
	// Limit is a permission mode. Runs that the agent starts cannot have a looser mode.
	Limit   string
	Answers Answers
	// Local means that the client reads and writes files and runs commands for the agent. The
	// policy judges each of them like a tool call.
	Local  bool
	Origin *interaction.Origin // the origin of this process
	// Visitor is the record's name for a client from another machine. Such a client may only make permissions stricter
	// (see docs/http.md), and its own name is ignored. Visitor is empty for a program of the user on this machine.
	Visitor string
	// Home records the lines that belong to no session.
	Home *kernel.Runner
	// Open returns the project of a directory. It is called again for each session.
	Open func(ctx context.Context, dir string) (*Place, error)
	// Log writes a line for the operator.
	Log func(format string, args ...any)
}

// relay is a client's connection with its agent.
type relay struct {
	opt  Options
	conn *provider.Conn
	out  *output
	id   string // the id of the connection
	home *kernel.Attached

	recovered map[*kernel.Runner]bool // owned by the goroutine of Serve

	ctx   context.Context // the context of the turns
	end   context.CancelCauseFunc
	turns sync.WaitGroup

	mu       sync.Mutex // guards the fields below; never held during I/O
	client   string     // the client's name and version
	agent    acp.InitializeResponse
	sessions map[string]*session
	// requests holds the unanswered requests of the client and of Perlica, by provider.IDKey.
	requests map[string]*request
	// agentRequests holds the agent's unanswered requests and its latest answered questions, by
	// provider.IDKey.
	agentRequests map[string]*agentRequest
	answered      []string                    // keys of the answered questions, oldest first
	opening       map[string]*kernel.Attached // recorders of the sessions that are being continued
	failed        error                       // the error that ended the connection
	// foreign is set if the agent speaks another version of the protocol. The agent then gets no
	// request.
	foreign error
}

// request is a request of the client or of Perlica that waits for its answer.
type request struct {
	id     string // the JSON of the id, as the client or Perlica wrote it
	method string
	at     *kernel.Attached // records the answer
	prompt *prompt          // set for a session/prompt
	open   *opening         // set for a request that opens a session
	closes *session         // set for a request that closes a session
	// loaded is called when the agent has reported the session's earlier turns. It is set if the request loads an open
	// session again.
	loaded func()
}

// errClientGone says that the client no longer reads.
var errClientGone = errors.New("the client closed its side")

// A RecordError says that the log cannot be written. The relay then passes no further line.
type RecordError struct{ Err error }

func (e *RecordError) Error() string { return "the event log cannot be written: " + e.Err.Error() }

// Unwrap returns the log's error.
func (e *RecordError) Unwrap() error { return e.Err }

// Serve passes lines between a client and an agent until one of them ends, and then ends the other. It returns nil if
// the client closed its side. Otherwise it returns the error of the agent or of the log.
func Serve(ctx context.Context, opt Options) error {
	r := &relay{
		opt: opt, id: uuid.Must(uuid.NewV7()).String(), home: opt.Home.Unattached(""),
		sessions: map[string]*session{}, requests: map[string]*request{}, agentRequests: map[string]*agentRequest{},
		opening: map[string]*kernel.Attached{}, recovered: map[*kernel.Runner]bool{}, client: opt.Visitor,
	}
	r.ctx, r.end = context.WithCancelCause(context.WithoutCancel(ctx))
	defer r.end(nil)
	r.out = newOutput(opt.Out, r.failRecord, func() { r.end(errClientGone) })
	defer context.AfterFunc(r.ctx, r.out.liftLimits)()
	conn, err := provider.Start(opt.Agent.Agent, provider.Options{
		Recorder: recorder{r}, Client: passive{r}, Peer: r, IDPrefix: r.prefix(),
		Dir: opt.Dir, Environ: opt.Environ, Permissions: opt.Limit,
		MaxLine: opt.Agent.MaxLine, ConnectTimeout: opt.Agent.ConnectTimeout, RequestTimeout: opt.Agent.RequestTimeout,
		Stderr: func(b []byte) { opt.Log("%s: %s", opt.Agent.ID, b) },
	})
	if err != nil {
		r.out.closeQueue()
		return err
	}
	r.conn = conn
	lines := make(chan []byte)
	go r.readLines(lines)
	if err = r.serveLines(ctx, lines); err == nil || ctx.Err() != nil {
		r.stopAll()
	}
	r.end(&kernel.StoppedError{Stop: fact.Stop{By: "client", Why: "the client closed its side"}})
	r.turns.Wait()
	eerr := conn.End(context.Background())
	// Wait again, because the agent's last lines may have opened a session, which starts a goroutine.
	r.turns.Wait()
	r.closeSessions()
	r.answerAll(err)
	r.out.closeQueue()
	return errors.Join(err, eerr)
}

// serveLines handles the client's lines. It returns nil at the end of the client's input.
func (r *relay) serveLines(ctx context.Context, lines <-chan []byte) error {
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

// readLines reads the client's lines. It ignores an unfinished last line.
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

// isOwn reports whether the id belongs to a request of Perlica.
func (r *relay) isOwn(key string) bool { return strings.HasPrefix(key, `"`+r.prefix()) }

// failRecord stores the log's error and ends the connection.
func (r *relay) failRecord(err error) {
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

// reason returns the error that ended the connection. nil means that the client no longer reads.
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

// closeSessions closes all sessions. No turn is running, and the agent has ended.
func (r *relay) closeSessions() {
	for _, s := range r.allSessions() {
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
		r.sendOwn(r.home, errorLine(id, codeInternal, message))
	}
}

// own reports whether a request is Perlica's. Only requests of the client have a method here.
func (q *request) own() bool { return q.method == "" }

// recordLine records a line of the client that does not pass unchanged, or a line of Perlica to the
// client. A failed record ends the connection.
func (r *relay) recordLine(at *kernel.Attached, sent bool, line []byte) {
	if err := at.ClientLine(sent, line); err != nil {
		r.failRecord(err)
	}
}

// sendOwn sends a line of Perlica to the client.
func (r *relay) sendOwn(at *kernel.Attached, line []byte) {
	r.recordLine(at, true, line)
	durable := at.Durable()
	if r.hasFailed() {
		// The log has failed, so the line is not on disk. The client must still get it.
		durable = nil
	}
	r.out.addLine(line, durable)
}

// refuseRequest answers a request of the client with an error. The agent does not get the request.
func (r *relay) refuseRequest(at *kernel.Attached, line []byte, id string, code int, message string) {
	r.recordLine(at, false, line)
	r.sendOwn(at, errorLine(id, code, message))
}
