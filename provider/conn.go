package provider

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/coder/acp-go-sdk"

	"github.com/perlica/perlica/eventlog/message"
	"github.com/perlica/perlica/provider/exception"
	"github.com/perlica/perlica/provider/process"
	"github.com/perlica/perlica/provider/proxy"
	"github.com/perlica/perlica/provider/sandbox"
)

// Options configures Start. Recorder, Client and Dir are required.
type Options struct {
	Recorder Recorder
	Client   Client
	Dir      string   // the agent's working directory, absolute
	Environ  []string // the environment of Perlica, from which Agent.Environ selects the agent's variables
	// Permissions is the permission mode of the run. The agent may run perlica itself. Such a run cannot have a looser
	// mode. Empty means "deny".
	Permissions string

	// Peer is another client. The connection forwards the lines of this client. Nil means that Perlica is the agent's only
	// client.
	Peer Peer
	// IDPrefix begins the ids of Perlica's own requests. It is used only with a Peer. The ids of the Peer must not begin
	// with it.
	IDPrefix string

	// Forms tells the agent that a person can fill in its forms and open its addresses.
	Forms bool
	// Notices tells the agent that a person sees its notices and how it compacts its context.
	Notices bool
	// TerminalLogins tells the agent that a person can log in in a terminal.
	TerminalLogins bool

	MaxLine        int           // bytes; a longer line ends the agent. 0 means 64 MiB
	ConnectTimeout time.Duration // time limit of initialize; 0 means 30 s
	RequestTimeout time.Duration // time limit of all methods except session/prompt and authenticate; 0 means 30 s
	WriteTimeout   time.Duration // how long the agent may leave its input unread; 0 means 30 s
	Grace          time.Duration // the time between the steps of ending the process; 0 means 2 s

	// Launched is the agent's process from Agent.Launch. Start starts a new one if Launched is nil or has
	// other options.
	Launched *process.Launched

	Stderr func([]byte)        // gets the output of the agent's standard error; may be nil
	Redact func([]byte) []byte // masks a line of that output before it is kept or passed to Stderr; may be nil

	Connected func(proxy.Connection) // gets each connection through the proxy of the sandbox; may be nil
}

func (o *Options) setDefaults() {
	for _, d := range []struct {
		field *time.Duration
		value time.Duration
	}{
		{&o.ConnectTimeout, 30 * time.Second},
		{&o.RequestTimeout, 30 * time.Second},
		{&o.WriteTimeout, 30 * time.Second},
		{&o.Grace, 2 * time.Second},
	} {
		if *d.field <= 0 {
			*d.field = d.value
		}
	}
	if o.MaxLine <= 0 {
		o.MaxLine = maxLine
	}
}

// Conn is a running agent and the connection to it. Several goroutines may call its methods. The caller must
// call End, even after an error.
type Conn struct {
	agent Agent
	opt   Options
	proc  *process.Process
	in    *os.File       // the agent's standard input
	wg    sync.WaitGroup // the reader and the writer
	out   chan *sending  // to the writer

	gone  chan struct{} // closed when the connection can no longer be used
	end   sync.Once     // guards the closing of gone
	quiet chan struct{} // closed when the writer has returned: nothing can leave any more

	opening opening      // owned by the goroutine that opens the session
	several severalLines // owned by the reader

	mu                 sync.Mutex // guards the fields below; never held during a blocking call
	err                *Error     // why gone is closed
	nextID             int64
	calls              map[string]*pendingCall       // our waiting requests, by IDKey of the id
	pendingPermissions map[string]*PermissionRequest // the agent's waiting requests, by IDKey of the id
	prompted           map[string]bool               // runs that have had their one session/prompt
	session            string                        // the agent's session id, once it is known
	early              []heldUpdate                  // updates that arrived before the session id was known

	loginVars  []string // names of the variables that the agent's logins need
	nonMessage string   // the last line that contains no message
}

type heldUpdate struct {
	session string
	update  Update
}

// maxEarly is the largest number of updates that the connection holds until a response names their session.
const maxEarly = 1000

// Start starts the agent's process and writes nothing to it. The error is an *Error of TypeStart.
func Start(a Agent, opt Options) (*Conn, error) {
	opt.setDefaults()
	spec, err := a.spec(opt)
	var proc *process.Process
	if err == nil {
		proc, err = process.Start(spec)
	}
	if err != nil {
		return nil, (&Error{Provider: a.ID, Type: TypeStart, cause: err}).Saying(message.Of(err))
	}
	c := &Conn{
		agent: a, opt: opt, proc: proc, in: proc.Stdin(),
		out:                make(chan *sending, 256),
		gone:               make(chan struct{}),
		quiet:              make(chan struct{}),
		calls:              map[string]*pendingCall{},
		pendingPermissions: map[string]*PermissionRequest{},
		prompted:           map[string]bool{},
	}
	c.wg.Go(c.readOutput)
	c.wg.Go(c.writeInput)
	return c, nil
}

// Gone is closed when the agent can no longer be reached. Err then returns the reason.
func (c *Conn) Gone() <-chan struct{} { return c.gone }

// Err returns the reason why the agent can no longer be reached, or nil.
func (c *Conn) Err() error {
	if err := c.failure(); err != nil {
		return err
	}
	return nil
}

func (c *Conn) failure() *Error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Sandbox returns the sandbox of the agent's process, or nil.
func (c *Conn) Sandbox() *sandbox.Sandbox { return c.proc.Sandbox() }

// StderrTail returns the last 4 KiB of the agent's standard error.
func (c *Conn) StderrTail() string { return c.proc.StderrTail() }

// End ends the agent in steps. It closes the agent's input, waits for Options.Grace, sends SIGTERM, waits for
// Options.Grace again, and kills the process with all its children. When ctx is done, End no longer waits between the
// steps. End returns after all processes have ended and all output has been recorded. Later calls wait for the first.
// The methods of Client and Recorder must not call End, because End waits for them.
func (c *Conn) End(ctx context.Context) error {
	c.failWith((&Error{Type: TypeStopped}).Saying(errEnded))
	err := c.proc.End(ctx)
	c.wg.Wait()
	return err
}

// Kill ends the agent and its children at once and writes nothing to them.
func (c *Conn) Kill() {
	c.failWith((&Error{Type: TypeStopped}).Saying(errKilled))
	_ = c.proc.Kill() // the caller must call End, which returns this error
}

// failWith makes the connection unusable and gives the reason to all waiting callers. Later reasons are ignored.
func (c *Conn) failWith(e *Error) {
	c.end.Do(func() {
		e.Provider = c.agent.ID
		c.mu.Lock()
		c.err = e
		c.mu.Unlock()
		close(c.gone)
		_ = c.in.SetWriteDeadline(time.Now()) // interrupts a Write, even within a line
	})
}

// failAndKill calls failWith and kills the agent. It is for faults after which the agent must not run.
func (c *Conn) failAndKill(e *Error) {
	c.failWith(e)
	_ = c.proc.Kill() // the caller must call End, which returns this error
}

// parseLine does the same as ParseMessage. With a Peer it also reads the session id, because there may be several
// sessions.
func (c *Conn) parseLine(line []byte) Message {
	env := ParseMessage(line)
	if c.opt.Peer != nil && env.Params != nil {
		env.Session = sessionOf(env.Params)
	}
	return env
}

// dispatchLine acts on a line of the agent.
func (c *Conn) dispatchLine(env Message) {
	peer := c.opt.Peer
	own := peer != nil && c.isOwnID(env.ID)
	if own && env.Kind == Request {
		c.refuseRequest(env.ID, -32600, "the id is of Perlica's own")
		c.warnClient("foreign_id", "a request with an id of Perlica's own")
		return
	}
	exchange := c.agent.Model && exception.Of(exception.Agent, env.Method).Does == exception.DescribesHTTP
	if peer != nil && env.Kind != Oversized && !own && !exchange {
		peer.Pass(env.Frame)
	}
	switch env.Kind {
	case Response:
		c.handleResponse(env)
	case Request:
		c.handleRequest(env)
	case Notification:
		c.handleNotification(env)
	case Malformed:
		c.handleMalformed(env)
	case Oversized:
		e := &Error{Type: TypeProtocol, Subtype: "oversized_line", cause: ErrProtocol}
		c.failAndKill(e.Saying(errLongLine.With(env.Length, c.opt.MaxLine)))
	}
}

func (c *Conn) warnClient(subtype, detail string) {
	c.opt.Client.Warning(Warning{Subtype: subtype, Detail: strings.ToValidUTF8(detail, "\uFFFD")})
}

// handleResponse hands a response to the call that waits for it.
func (c *Conn) handleResponse(env Message) {
	c.mu.Lock()
	key := c.callKey(env.ID)
	p := c.calls[key]
	if env.ID == "" && len(c.calls) == 1 && c.opt.Peer == nil {
		// An error without an id means that the agent could not read a request. If only one request waits,
		// the error belongs to it.
		for key, p = range c.calls {
		}
	}
	delete(c.calls, key)
	var held []heldUpdate
	if p != nil && p.method == acp.AgentMethodSessionNew && c.opt.Peer == nil {
		var v struct{ SessionID string }
		if json.Unmarshal(env.Result, &v) == nil {
			c.session, held, c.early = v.SessionID, c.early, nil
		}
	}
	c.mu.Unlock()
	if p == nil {
		if c.opt.Peer != nil && !c.isOwnID(env.ID) {
			return // the peer handles it
		}
		c.warnClient("unknown_response", "a response to a request that is not under way, id "+env.ID)
		return
	}
	for _, h := range held {
		c.passUpdate(h.session, h.update)
	}
	p.answer = env
	close(p.arrived)
}

func (c *Conn) handleNotification(env Message) {
	switch env.Method {
	case acp.ClientMethodSessionUpdate:
		session, u, ok := parseUpdate(env.Params)
		if !ok {
			c.warnClient("undecodable_update", clip(string(env.Params), 200))
			return
		}
		c.passUpdate(session, u)
	case "$/cancel_request":
		var v struct{ RequestID json.RawMessage }
		if c.opt.Peer == nil && json.Unmarshal(env.Params, &v) == nil { // a peer was already given the line
			c.withdrawPermission(IDKey(string(v.RequestID)))
		}
	}
	// Other notifications need no action. Their lines are on record.
}

// passUpdate passes an update of our session to the client. Updates of other sessions are only recorded.
func (c *Conn) passUpdate(session string, u Update) {
	if c.opt.Peer != nil {
		if client := c.clientOf(session); client != nil {
			client.Update(u)
		}
		return
	}
	c.mu.Lock()
	ours := c.session
	hold := ours == "" && len(c.early) < maxEarly
	if hold {
		c.early = append(c.early, heldUpdate{session, u})
	}
	c.mu.Unlock()
	switch {
	case hold:
	case ours == "":
		c.warnClient("early_update", fmt.Sprintf("more than %d updates before the session's id", maxEarly))
	case session != ours:
		c.warnClient("foreign_session", "an update of session "+clip(session, 80))
	default:
		c.opt.Client.Update(u)
	}
}

// callAgent sends one request and waits for its response.
func (c *Conn) callAgent(ctx context.Context, method string, params any) (Message, error) {
	return c.beginCall(method, params, nil).waitResponse(ctx)
}

// beginCall sends one request and does not wait until the request has left. The parameter "right" must be set for
// session/prompt and is nil for every other method.
func (c *Conn) beginCall(method string, params any, right *Call) *pendingCall {
	c.mu.Lock()
	p := &pendingCall{conn: c, method: method, id: strconv.FormatInt(c.nextID, 10), arrived: make(chan struct{})}
	if c.opt.Peer != nil {
		p.id = strconv.Quote(c.opt.IDPrefix + p.id)
	}
	c.nextID++
	c.calls[IDKey(p.id)] = p
	c.mu.Unlock()
	line, err := requestLine(p.id, method, params)
	if err != nil {
		p.out = unsent((&Error{Type: TypeProtocol, cause: err}).Saying(message.Of(err)))
		return p
	}
	p.out = c.queueLine(line, right)
	return p
}

func (c *Conn) timeout(method string) time.Duration {
	if method == acp.AgentMethodInitialize {
		return c.opt.ConnectTimeout
	}
	return c.opt.RequestTimeout
}

// checkResponse returns the response, or an error if the response contains one.
func (c *Conn) checkResponse(env Message, method, id string) (Message, error) {
	if env.Error != nil && string(env.Error) != "null" {
		return Message{}, c.completeError(method, id, agentError(method, id, env.Error))
	}
	return env, nil
}

// decodeResult decodes the result of a response. A missing result counts as null and sets nothing.
func (c *Conn) decodeResult(env Message, method string, result any) error {
	if env.Result == nil {
		return nil
	}
	err := json.Unmarshal(env.Result, result)
	if err == nil {
		return nil
	}
	e := &Error{Type: TypeProtocol, Subtype: "undecodable_result", RawShape: shape(env.Result),
		cause: errors.Join(ErrProtocol, err)}
	return c.completeError(method, env.ID, e.Saying(errForm.With(malformed(err))))
}

// malformed describes a JSON decoding error without the names of Go types.
func malformed(err error) string {
	var kind *json.UnmarshalTypeError
	if errors.As(err, &kind) {
		return cmp.Or(kind.Field, "all of it") + " is of the type " + kind.Value
	}
	return clip(err.Error(), 200)
}

// completeError adds the provider, the method and the id of the call to an error.
func (c *Conn) completeError(method, id string, err error) error {
	var e *Error
	if !errors.As(err, &e) {
		e = (&Error{Type: TypeProtocol, cause: err}).Saying(message.Of(err))
	}
	done := *e
	done.Provider, done.Method, done.RequestID = c.agent.ID, method, id
	if done.Type == TypeAuth {
		c.mu.Lock()
		done.LoginVars = c.loginVars
		c.mu.Unlock()
	}
	return &done
}
