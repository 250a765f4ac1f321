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

	"github.com/perlica/perlica/provider/jsonrpc"
	"github.com/perlica/perlica/provider/process"
)

// Options of Start. Recorder, Client and Dir are required.
type Options struct {
	Recorder Recorder
	Client   Client
	Dir      string   // the agent's working directory, absolute
	Environ  []string // the environment the agent's is chosen from; see Environ
	// Permissions is the permission mode of the run, which a run that the agent starts does not
	// loosen. Empty: "deny".
	Permissions string

	Peer     Peer   // the client whose lines are carried; nil: Perlica is the agent's only client
	IDPrefix string // of the ids of Perlica's own requests; only with a Peer, whose ids it must differ from

	Forms          bool // the agent hears that a person fills in its forms and opens its addresses
	Notices        bool // the agent hears that a person sees its notices and how its context is compacted
	TerminalLogins bool // the agent hears that its client can have it log in in a terminal

	MaxLine        int           // bytes; longer lines end the agent. 0: 64 MiB
	ConnectTimeout time.Duration // of initialize. 0: 30 s
	RequestTimeout time.Duration // of every other method but session/prompt and authenticate. 0: 30 s
	WriteTimeout   time.Duration // how long the agent may leave its input unread. 0: 30 s
	Grace          time.Duration // between the steps of ending the process. 0: 2 s

	Launched *process.Launched // the agent's process, from Agent.Launch; nil, or of other options: Start starts one

	Stderr func([]byte)        // gets what the agent writes to its standard error; may be nil
	Redact func([]byte) []byte // masks a line of it before it is kept or handed on; may be nil
}

func (o *Options) defaults() {
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

// Conn is a running agent and the connection to it. Its methods may be called from
// several goroutines. The caller must End it, whatever else failed.
type Conn struct {
	agent Agent
	opt   Options
	proc  *process.Process
	in    *os.File       // its standard input
	wg    sync.WaitGroup // reader and writer
	out   chan *sending  // to the writer

	gone  chan struct{} // closed when the connection is of no more use
	end   sync.Once     // guards the closing of gone
	quiet chan struct{} // closed when the writer has returned: nothing more leaves

	opening opening // belongs to who opens the session

	mu       sync.Mutex // guards what follows; never held while something blocks
	err      *Error     // why gone is closed
	nextID   int64
	calls    map[string]*pendingCall       // our requests that wait, by the key of their id
	asked    map[string]*PermissionRequest // the agent's requests that wait, likewise
	prompted map[string]bool               // runs whose session/prompt was let through
	session  string                        // the agent's session id, once it is known
	early    []heldUpdate                  // updates that came before it was

	loginVars []string // that the agent's logins ask for
	stray     string   // the last line that holds no message
}

type heldUpdate struct {
	session string
	update  Update
}

// maxEarly is how many updates may precede the response that names their session.
const maxEarly = 1000

// Start starts the agent's process. Nothing is written to it yet. The error is an *Error
// of TypeStart.
func Start(a Agent, opt Options) (*Conn, error) {
	opt.defaults()
	spec, err := a.spec(opt)
	var proc *process.Process
	if err == nil {
		proc, err = process.Start(spec)
	}
	if err != nil {
		return nil, &Error{Provider: a.ID, Type: TypeStart, Message: err.Error(), cause: err}
	}
	c := &Conn{
		agent: a, opt: opt, proc: proc, in: proc.Stdin(),
		out:      make(chan *sending, 256),
		gone:     make(chan struct{}),
		quiet:    make(chan struct{}),
		calls:    map[string]*pendingCall{},
		asked:    map[string]*PermissionRequest{},
		prompted: map[string]bool{},
	}
	c.wg.Go(c.read)
	c.wg.Go(c.write)
	return c, nil
}

// Gone is closed when the agent can be spoken to no more; Err then says why.
func (c *Conn) Gone() <-chan struct{} { return c.gone }

// Err returns why the agent can be spoken to no more, or nil.
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

// StderrTail returns the last 4 KiB that the agent wrote to its standard error.
func (c *Conn) StderrTail() string { return c.proc.StderrTail() }

// End ends the agent in order: its input is closed, after a grace it is asked to go,
// after another it is killed, with all its children. It returns when nothing is left
// and everything the agent said until then has been recorded. Later calls wait for the
// first. When ctx is done the grace is over. The methods of Client and Recorder must not
// call it: it waits for them.
func (c *Conn) End(ctx context.Context) error {
	c.fail(&Error{Type: TypeStopped, Message: "Perlica ended the agent"})
	err := c.proc.End(ctx)
	c.wg.Wait()
	return err
}

// Kill ends the agent and its children at once, without another byte to them.
func (c *Conn) Kill() {
	c.fail(&Error{Type: TypeStopped, Message: "Perlica killed the agent"})
	_ = c.proc.Kill() // End, which must follow, says what could not be killed
}

// fail makes the connection useless and says why to everybody who waits. Only the
// first reason counts.
func (c *Conn) fail(e *Error) {
	c.end.Do(func() {
		e.Provider = c.agent.ID
		c.mu.Lock()
		c.err = e
		c.mu.Unlock()
		close(c.gone)
		_ = c.in.SetWriteDeadline(time.Now()) // a line half written stays half written
	})
}

// broken is fail for faults after which the agent must not run on.
func (c *Conn) broken(e *Error) {
	c.fail(e)
	_ = c.proc.Kill() // End, which must follow, says what could not be killed
}

// parse is jsonrpc.Parse, with the session where there may be several.
func (c *Conn) parse(line []byte) jsonrpc.Message {
	env := jsonrpc.Parse(line)
	if c.opt.Peer != nil && env.Params != nil {
		env.Session = sessionOf(env.Params)
	}
	return env
}

// dispatch acts upon a line of the agent.
func (c *Conn) dispatch(env jsonrpc.Message) {
	peer := c.opt.Peer
	own := peer != nil && c.own(env.ID)
	if own && env.Kind == jsonrpc.Request {
		c.refuse(env.ID, -32600, "the id is of Perlica's own")
		c.warn("foreign_id", "a request with an id of Perlica's own")
		return
	}
	exchange := c.agent.Model && strings.HasPrefix(env.Method, methodsHTTP)
	if peer != nil && env.Kind != jsonrpc.Oversized && !own && !exchange {
		peer.Pass(env.Frame)
	}
	switch env.Kind {
	case jsonrpc.Response:
		c.response(env)
	case jsonrpc.Request:
		c.request(env)
	case jsonrpc.Notification:
		c.notification(env)
	case jsonrpc.Malformed:
		c.malformed(env)
	case jsonrpc.Oversized:
		c.broken(&Error{
			Type: TypeProtocol, Subtype: "oversized_line", cause: ErrProtocol,
			Message: fmt.Sprintf("the agent sent a line of %d bytes; the limit is %d", env.Length, c.opt.MaxLine),
		})
	}
}

func (c *Conn) warn(subtype, detail string) {
	c.opt.Client.Warning(Warning{Subtype: subtype, Detail: strings.ToValidUTF8(detail, "\uFFFD")})
}

// response hands a response to the call that waits for it.
func (c *Conn) response(env jsonrpc.Message) {
	c.mu.Lock()
	p := c.calls[env.Key]
	key := env.Key
	if env.ID == "" && len(c.calls) == 1 && c.opt.Peer == nil {
		// An error without an id means that the agent could not read a request; with
		// one request under way there is no doubt which.
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
		if c.opt.Peer != nil && !c.own(env.ID) {
			return // it is the peer's
		}
		c.warn("unknown_response", "a response to a request that is not under way, id "+env.ID)
		return
	}
	for _, h := range held {
		c.update(h.session, h.update)
	}
	p.answer = env
	close(p.arrived)
}

func (c *Conn) notification(env jsonrpc.Message) {
	switch env.Method {
	case acp.ClientMethodSessionUpdate:
		session, u, ok := parseUpdate(env.Params)
		if !ok {
			c.warn("undecodable_update", clip(string(env.Params), 200))
			return
		}
		c.update(session, u)
	case "$/cancel_request":
		var v struct{ RequestID json.RawMessage }
		if c.opt.Peer == nil && json.Unmarshal(env.Params, &v) == nil { // else the peer has seen it
			c.withdraw(jsonrpc.Key(string(v.RequestID)))
		}
	}
	// Any other notification asks for nothing; its line is on record.
}

// update passes on an update of our session; others are on record and no more.
func (c *Conn) update(session string, u Update) {
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
		c.warn("early_update", fmt.Sprintf("more than %d updates before the session's id", maxEarly))
	case session != ours:
		c.warn("foreign_session", "an update of session "+clip(session, 80))
	default:
		c.opt.Client.Update(u)
	}
}

// call sends one request and waits for its response.
func (c *Conn) call(ctx context.Context, method string, params any) (jsonrpc.Message, error) {
	return c.begin(method, params, nil).wait(ctx)
}

// begin sends one request; right is only set for session/prompt. It does not wait until it has
// left.
func (c *Conn) begin(method string, params any, right *Call) *pendingCall {
	c.mu.Lock()
	p := &pendingCall{conn: c, method: method, id: strconv.FormatInt(c.nextID, 10), arrived: make(chan struct{})}
	if c.opt.Peer != nil {
		p.id = strconv.Quote(c.opt.IDPrefix + p.id)
	}
	c.nextID++
	c.calls[jsonrpc.Key(p.id)] = p
	c.mu.Unlock()
	line, err := request(p.id, method, params)
	if err != nil {
		p.out = unsent(&Error{Type: TypeProtocol, Message: err.Error(), cause: err})
		return p
	}
	p.out = c.queue(line, right)
	return p
}

func (c *Conn) timeout(method string) time.Duration {
	if method == acp.AgentMethodInitialize {
		return c.opt.ConnectTimeout
	}
	return c.opt.RequestTimeout
}

// judge tells an answer from an error.
func (c *Conn) judge(env jsonrpc.Message, method, id string) (jsonrpc.Message, error) {
	if env.Error != nil && string(env.Error) != "null" {
		return jsonrpc.Message{}, c.failed(method, id, agentError(method, id, env.Error))
	}
	return env, nil
}

// decode decodes the result of a response. No result is the same as null: it sets nothing.
func (c *Conn) decode(env jsonrpc.Message, method string, result any) error {
	if env.Result == nil {
		return nil
	}
	err := json.Unmarshal(env.Result, result)
	if err == nil {
		return nil
	}
	return c.failed(method, env.ID, &Error{
		Type: TypeProtocol, Subtype: "undecodable_result", RawShape: shape(env.Result), cause: errors.Join(ErrProtocol, err),
		Message: "an answer that is not of the protocol's form: " + malformed(err),
	})
}

// malformed says what is wrong with JSON that could not be decoded, without the names of Go's types.
func malformed(err error) string {
	var kind *json.UnmarshalTypeError
	if errors.As(err, &kind) {
		return cmp.Or(kind.Field, "all of it") + " is of the type " + kind.Value
	}
	return clip(err.Error(), 200)
}

// failed completes an error with what the call knows.
func (c *Conn) failed(method, id string, err error) error {
	var e *Error
	if !errors.As(err, &e) {
		e = &Error{Type: TypeProtocol, Message: err.Error(), cause: err}
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
