package provider

import (
	"context"
	"os"

	"github.com/coder/acp-go-sdk"
)

// The names below are the seam between this package and its external tests. error_test.go, update_test.go,
// content_test.go, message_test.go, line_test.go and pending_test.go stay in this package, because they test decoders
// and a race through private fields.
const (
	KeptOfOversized = keptOfOversized
	MaxEarly        = maxEarly
	MostPages       = mostPages
	TypeDeaf        = typeDeaf
)

// Offer is the answer to session/new and similar requests.
type Offer = offer

// SendLine sends a line that belongs to no call.
func (c *Conn) SendLine(line string) error { return c.sendLine([]byte(line), nil) }

// CallAgent sends a request and waits for the answer.
func (c *Conn) CallAgent(ctx context.Context, method string, params any) (Message, error) {
	return c.callAgent(ctx, method, params)
}

// SetNextID sets the id of the next request.
func (c *Conn) SetNextID(id int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.nextID = id
}

// Options returns the options in use. A test may change them between two requests.
func (c *Conn) Options() *Options { return &c.opt }

// Exited is closed when the agent's process has ended.
func (c *Conn) Exited() <-chan struct{} { return c.proc.Exited() }

// Input returns the agent's standard input. It becomes invalid after ReplaceInput.
func (c *Conn) Input() *os.File { return c.in }

// ReplaceInput closes the agent's standard input and writes to w from now on.
func (c *Conn) ReplaceInput(w *os.File) {
	c.in.Close()
	c.in = w
}

// OpenedSession returns a session with this id without a request to the agent.
func (c *Conn) OpenedSession(id string) *Session { return &Session{ID: id, conn: c} }

// Unconnected returns a connection without an agent.
func Unconnected(client Client) *Conn { return &Conn{opt: Options{Client: client}} }

// Handshake maps a method to the function that reads its answer. The answers come before a prompt or between two
// prompts.
var Handshake = map[string]func(c *Conn, env Message) (any, error){
	acp.AgentMethodInitialize: func(c *Conn, env Message) (any, error) {
		c.opening.storeOffers(env.Result)
		return c.readIntroduction(env)
	},
	acp.AgentMethodSessionNew: func(c *Conn, env Message) (any, error) {
		var r offer
		err := c.decodeLenient(env, acp.AgentMethodSessionNew, "sessionId", &r)
		return c.openedSession(r.SessionID, r.Modes, r.ConfigOptions), err
	},
	acp.AgentMethodSessionLoad: func(c *Conn, env Message) (any, error) {
		var r offer
		err := c.decodeLenient(env, acp.AgentMethodSessionLoad, "", &r)
		return c.openedSession("s", r.Modes, r.ConfigOptions), err
	},
	acp.AgentMethodSessionSetConfigOption: func(c *Conn, env Message) (any, error) {
		var r offer
		err := c.decodeLenient(env, acp.AgentMethodSessionSetConfigOption, "", &r)
		return r, err
	},
	acp.AgentMethodSessionList: func(c *Conn, env Message) (any, error) {
		var r acp.ListSessionsResponse
		err := c.decodeLenient(env, acp.AgentMethodSessionList, "", &r)
		return r, err
	},
}
