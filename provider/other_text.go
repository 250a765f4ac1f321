package provider

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/coder/acp-go-sdk"
)

// handleMalformed handles a line that is not exactly one message. The line counts for nothing. If a message stands
// in the line next to other text, handleMalformed ends the wait for it: Perlica stops waiting for the response, or
// refuses the request so that the agent stops waiting.
func (c *Conn) handleMalformed(env Message) {
	if len(strings.TrimSpace(string(env.Line))) == 0 {
		return
	}
	if c.opt.Peer == nil {
		c.warnClient("malformed_line", clip(string(env.Line), 200))
	}
	c.mu.Lock()
	c.nonMessage = clip(string(bytes.ToValidUTF8(env.Line, []byte("\uFFFD"))), 200)
	c.mu.Unlock()
	for _, m := range messagesIn(env.Line) {
		switch m.Kind {
		case Response:
			c.mu.Lock()
			p := c.calls[m.Key]
			delete(c.calls, m.Key)
			c.mu.Unlock()
			if p == nil {
				continue
			}
			p.fault = &Error{
				Type: TypeProtocol, Subtype: "answer_in_other_text", RawShape: shape(m.Line), cause: ErrProtocol,
				Message: fmt.Sprintf("the agent's answer stands in one line with other text; a line is one message: %q", c.nonMessage),
			}
			close(p.arrived)
		case Request:
			if c.opt.Peer == nil { // otherwise the peer has the line
				c.refuseRequest(m.ID, -32600, "the request stands in one line with other text; a line is one message")
			}
		}
	}
}

// maxObjects is the largest number of objects that are examined in a line.
const maxObjects = 16

// messagesIn returns the messages that stand in a line next to other text.
func messagesIn(line []byte) (list []Message) {
	for n := 0; n < maxObjects; n++ {
		at := bytes.IndexByte(line, '{')
		if at < 0 {
			break
		}
		line = line[at:]
		var object json.RawMessage
		d := json.NewDecoder(bytes.NewReader(line))
		if d.Decode(&object) != nil {
			line = line[1:] // skip this brace: it belongs to the other text
			continue
		}
		line = line[d.InputOffset():]
		if m := ParseMessage(object); m.Kind != Malformed {
			list = append(list, m)
		}
	}
	return list
}

// failOnEcho reports whether the agent sent one of Perlica's own requests back. It then ends the agent, because a
// program that repeats its input does not speak the protocol.
func (c *Conn) failOnEcho(env Message) bool {
	c.mu.Lock()
	p := c.calls[env.Key]
	c.mu.Unlock()
	if p == nil || p.method != env.Method || env.Method != acp.AgentMethodInitialize {
		return false
	}
	name := c.agent.ID
	if len(c.agent.Command) > 0 {
		name = filepath.Base(c.agent.Command[0])
	}
	c.failAndKill(&Error{
		Type: TypeProtocol, Subtype: "echo", Method: env.Method, cause: ErrProtocol,
		Message: name + " sent our own request back: it does not speak ACP",
	})
	return true
}
