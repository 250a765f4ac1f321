package provider

import (
	"errors"
	"strings"

	"github.com/coder/acp-go-sdk"
	"github.com/go-faster/jx"
)

// Peer is a second client of the agent, for example an editor. The connection forwards the peer's lines. A
// connection with a peer serves all sessions of the agent. The peer's requests keep their ids. The ids of
// Perlica's own requests are strings that begin with Options.IDPrefix.
//
// The goroutine that reads the agent's output calls the methods in wire order.
type Peer interface {
	// Pass gets each line of the agent after it is recorded and before Perlica acts on it. Lines with an id
	// of Perlica's own requests and the HTTP exchange of a model agent are left out. Pass handles
	// $/cancel_request.
	Pass(Frame)
	// Local gets a request for files or terminals and reports whether the peer answers it. If it does not,
	// Perlica refuses the request.
	Local(Frame) bool
	// Client returns the client that handles the updates and questions of a session. It returns nil for an
	// unknown session: the updates are then only forwarded, and the questions are refused.
	Client(session string) Client
}

// Carry sends a line of the peer, byte for byte, and returns before the line has left. It cannot send a
// session/prompt: see CarryPrompt. The error means that nothing can be sent any more.
func (c *Conn) Carry(line []byte) error {
	c.postLine(line)
	return c.Err()
}

// CarryPrompt sends a session/prompt of the peer and uses up call.
func (c *Conn) CarryPrompt(call *Call, line []byte) *PromptCall {
	env := ParseMessage(line)
	p := &pendingCall{conn: c, method: acp.AgentMethodSessionPrompt, id: env.ID, arrived: make(chan struct{})}
	c.mu.Lock()
	_, twin := c.calls[env.Key]
	if !twin {
		c.calls[env.Key] = p
	}
	c.mu.Unlock()
	if twin {
		p.out = unsent((&Error{Type: TypeProtocol, cause: errors.Join(ErrProtocol)}).Saying(errSameID.With(env.ID)))
		return &PromptCall{p}
	}
	p.out = c.queueLine(line, call)
	return &PromptCall{p}
}

// Adopt returns a session that the peer opened. answer is the agent's answer to session/new, session/load,
// session/resume or session/fork. Adopt leaves out the parts that do not have the protocol's form.
func (c *Conn) Adopt(id string, answer []byte) *Session {
	var o offer
	_, _ = lenient(answer, &o) // the peer reads the answer itself, so a wrong part does not matter here
	return c.openedSession(id, o.Modes, o.ConfigOptions)
}

// clientOf returns the client that handles a session, or nil.
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

// isOwnID reports whether id belongs to one of Perlica's own requests.
func (c *Conn) isOwnID(id string) bool {
	return c.opt.Peer == nil || strings.HasPrefix(IDKey(id), `"`+c.opt.IDPrefix)
}

// sessionOf returns the session id in a message's parameters, or "".
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
