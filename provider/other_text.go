package provider

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"slices"

	"github.com/coder/acp-go-sdk"
)

// handleMalformed handles a line that is not exactly one message, and does not act on its content. If the line contains
// an answer, the call with this answer fails at once. If the line contains a request, Perlica refuses the request, so
// that the agent does not wait for ever. For example, other text may precede an answer, or the agent may write an
// answer over several lines.
func (c *Conn) handleMalformed(env Message) {
	if len(bytes.TrimSpace(env.Line)) == 0 {
		return
	}
	if c.opt.Peer == nil {
		c.warnClient("malformed_line", clip(string(env.Line), 200))
	}
	text := env.Line
	if whole := c.several.add(env.Line); whole != nil {
		text = whole
	}
	shown := clip(string(bytes.ToValidUTF8(bytes.TrimSpace(text), []byte("\uFFFD"))), 200)
	c.mu.Lock()
	c.nonMessage = shown
	c.mu.Unlock()
	for _, object := range objectsIn(text) {
		m := recognize(object)
		switch {
		case m.answer:
			for _, p := range c.takeCalls(m.ids) {
				e := &Error{Type: TypeProtocol, Subtype: "unreadable_answer", RawShape: shape(object), cause: ErrProtocol}
				p.fault = e.Saying(errUnreadable.With(shown))
				close(p.arrived)
			}
		case m.request && c.opt.Peer == nil: // a peer has already received the line
			for _, id := range m.ids {
				c.refuseRequest(id, -32600, "the request is not one line with one message, each member once")
			}
		}
	}
}

// takeCalls returns the waiting calls that have one of the ids, and removes them. If ids is empty and exactly one call
// waits, takeCalls returns that call.
func (c *Conn) takeCalls(ids []string) (list []*pendingCall) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for key, p := range c.calls {
		named := slices.ContainsFunc(ids, func(id string) bool { return c.callKey(id) == key })
		if named || len(ids) == 0 && len(c.calls) == 1 && c.opt.Peer == nil {
			list = append(list, p)
			delete(c.calls, key)
		}
	}
	return list
}

// callKey is the key of the waiting call that an answer's id names. Some agents write the id 2 as "2". callKey accepts
// that string, because no other id of Perlica has these digits. The caller holds mu.
func (c *Conn) callKey(id string) string {
	key := IDKey(id)
	var digits string
	if id != "" && c.calls[key] == nil && json.Unmarshal([]byte(id), &digits) == nil && c.calls[digits] != nil {
		return digits
	}
	return key
}

// severalLines holds the first lines of a JSON object that the agent writes over several lines.
type severalLines struct {
	text []byte
	deep int // how many brackets are open
}

// maxSeveral is the largest size of an object that is written over several lines, in bytes.
const maxSeveral = 1 << 20

// add takes the next line and returns the object when its last line has come. A brace at the start of a line begins an
// object.
func (s *severalLines) add(line []byte) []byte {
	switch {
	case line[0] == '{', s.text == nil && bytes.TrimSpace(line)[0] == '{':
		*s = severalLines{}
	case s.text == nil:
		return nil
	}
	s.text = append(append(s.text, line...), '\n')
	inString := false
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case c == '"':
			inString = !inString
		case inString && c == '\\':
			i++
		case inString:
		case c == '{', c == '[':
			s.deep++
		case c == '}', c == ']':
			s.deep--
		}
	}
	whole := s.text
	if s.deep <= 0 || inString || len(s.text) > maxSeveral {
		*s = severalLines{}
	}
	if s.text != nil || !json.Valid(whole) {
		return nil
	}
	return whole
}

// maxObjects is the largest number of objects that are examined in a line.
const maxObjects = 16

// objectsIn returns the JSON objects that stand in a text.
func objectsIn(text []byte) (list []json.RawMessage) {
	for n := 0; n < maxObjects; n++ {
		at := bytes.IndexByte(text, '{')
		if at < 0 {
			break
		}
		text = text[at:]
		var object json.RawMessage
		d := json.NewDecoder(bytes.NewReader(text))
		if d.Decode(&object) != nil {
			text = text[1:] // skip this brace: it belongs to the other text
			continue
		}
		text = text[d.InputOffset():]
		list = append(list, object)
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
	e := &Error{Type: TypeProtocol, Subtype: "echo", Method: env.Method, cause: ErrProtocol}
	c.failAndKill(e.Saying(errEcho.With(name)))
	return true
}
