package record

import (
	"strings"

	"github.com/perlica/perlica/provider"
)

// Messages collects the agent's messages of one turn. Each message begins on a new line. If the two halves of a
// character came in two updates, Messages joins them. The zero value has no message.
type Messages struct {
	Blocks []provider.Block // the parts that are not text; their data is only in the recorded lines

	text   strings.Builder
	last   string // the id of the newest message with text, or ""
	open   bool   // true if the text so far does not end with a line break
	halves provider.Halves
}

// Text returns the text of all messages.
func (m *Messages) Text() string { return m.text.String() }

// Add adds an update. It completes the update's text: it inserts a line break before a new message, and the first half
// of a divided character. It also completes thoughts. It does not change other updates.
func (m *Messages) Add(u *provider.Update) {
	alone := m.halves.Join(u)
	if u.Kind == provider.AgentMessageChunk && u.Text != "" {
		if (m.open || alone != "") && u.Message != "" && m.last != "" && u.Message != m.last {
			u.Text = "\n" + u.Text
		}
		m.open = !strings.HasSuffix(u.Text, "\n")
		if u.Message != "" {
			m.last = u.Message
		}
	}
	u.Text = alone + u.Text
	if u.Kind != provider.AgentMessageChunk {
		return
	}
	m.text.WriteString(u.Text)
	if u.Block != nil {
		b := *u.Block
		b.Data = nil
		m.Blocks = append(m.Blocks, b)
	}
}

// End returns an update for half a character without its other half, which becomes U+FFFD. If nothing is left, the
// update has no kind.
func (m *Messages) End() (u provider.Update) {
	if text := m.halves.Rest(); text != "" {
		u = provider.Update{Kind: provider.AgentMessageChunk, Text: text}
		m.text.WriteString(text)
	}
	return u
}
