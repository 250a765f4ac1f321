package provider

import (
	"errors"
	"fmt"
	"strings"

	"github.com/coder/acp-go-sdk"
	"github.com/go-faster/jx"

	"github.com/perlica/perlica/provider/jsonrpc"
)

// Peer is a client of the agent beside Perlica, whose lines a connection carries: an editor. With
// one, a connection has all sessions of the agent, the peer's requests keep their ids, and those of
// Perlica's own requests are strings that begin with Options.IDPrefix.
//
// Its methods are called in wire order by the goroutine that reads the agent's output.
type Peer interface {
	// Pass gets a line of the agent when it is recorded, and before it is acted upon: every line but
	// those with an id of Perlica's own requests and a model agent's HTTP exchange. It acts itself upon a $/cancel_request.
	Pass(jsonrpc.Frame)
	// Local gets a request for files or terminals and reports whether it is the peer's to answer; else
	// it is refused.
	Local(jsonrpc.Frame) bool
	// Client returns who acts upon the updates and questions of a session, or nil for one that it
	// does not know: its updates are only passed on, its questions are refused.
	Client(session string) Client
}

// Carry sends a line that the peer wrote, byte for byte, and returns before it has left. The tap
// refuses a session/prompt: see CarryPrompt. The error says that nothing can be sent any more.
func (c *Conn) Carry(line []byte) error {
	c.post(line)
	return c.Err()
}

// CarryPrompt spends call on a session/prompt that the peer wrote.
func (c *Conn) CarryPrompt(call *Call, line []byte) *Turn {
	env := jsonrpc.Parse(line)
	p := &pendingCall{conn: c, method: acp.AgentMethodSessionPrompt, id: env.ID, arrived: make(chan struct{})}
	c.mu.Lock()
	_, twin := c.calls[env.Key]
	if !twin {
		c.calls[env.Key] = p
	}
	c.mu.Unlock()
	if twin {
		p.out = unsent(&Error{Type: TypeProtocol, Message: fmt.Sprintf("two open requests of the client have the id %s", env.ID), cause: errors.Join(ErrProtocol)})
		return &Turn{p}
	}
	p.out = c.queue(line, call)
	return &Turn{p}
}

// Adopt returns a session that the peer opened, described by the agent's answer to session/new,
// session/load, session/resume or session/fork. What has not the protocol's form is left out.
func (c *Conn) Adopt(id string, answer []byte) *Session {
	var o offer
	_, _ = lenient(answer, &o) // the peer has the line itself
	return c.opened(id, o.Modes, o.ConfigOptions)
}

// clientOf returns who acts upon what the agent says of a session, or nil.
func (c *Conn) clientOf(session string) Client {
	if c.opt.Peer != nil {
		return c.opt.Peer.Client(session)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.session == "" || c.session != session {
		return nil
	}
	return c.opt.Client
}

// own reports whether an id is one of Perlica's own requests.
func (c *Conn) own(id string) bool {
	return c.opt.Peer == nil || strings.HasPrefix(jsonrpc.Key(id), `"`+c.opt.IDPrefix)
}

// sessionOf is the session that a message's parameters name, or "".
func sessionOf(params []byte) (session string) {
	d := jx.GetDecoder()
	defer jx.PutDecoder(d)
	d.ResetBytes(params)
	err := d.ObjBytes(func(d *jx.Decoder, key []byte) (err error) {
		if string(key) != "sessionId" || d.Next() != jx.String {
			return d.Skip()
		}
		session, err = d.Str()
		return err
	})
	if err != nil {
		return ""
	}
	return session
}
