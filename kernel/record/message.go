package record

import (
	"strings"

	"github.com/perlica/perlica/provider"
)

// Messages are the agent's messages of one turn. Each message begins a line, and a character that came in two
// halves is whole. The zero value has no message.
type Messages struct {
	Blocks []provider.Block // the parts that are not text, without their data, which is on record once

	text   strings.Builder
	last   string // the id of the newest message with text, or ""
	open   bool   // the text so far does not end a line
	halves provider.Halves
}

// Text returns the text of all messages.
func (m *Messages) Text() string { return m.text.String() }

// Add adds an update, and completes its text: the line break before a new message, and the pending half of a
// character. It completes thoughts, too, and leaves other updates unchanged.
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

// End adds and returns the last update: U+FFFD for a half without its other half. Otherwise the update has no kind.
func (m *Messages) End() (u provider.Update) {
	if text := m.halves.Rest(); text != "" {
		u = provider.Update{Kind: provider.AgentMessageChunk, Text: text}
		m.text.WriteString(text)
	}
	return u
}
