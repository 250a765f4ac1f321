package kernel

import (
	"context"
	"path/filepath"
	"slices"
	"strings"

	"github.com/perlica/perlica/eventlog"
)

// A turnText is one earlier turn of a session: what was asked and what was answered.
type turnText struct{ input, answer string }

// history is what of a session's earlier turns goes into a prompt.
type history struct {
	turns   []turnText // oldest first
	dropped int        // older ones that did not fit
	tokens  int        // estimate of what is kept
}

// history reads the answered turns of a session that precede the run, newest first, until
// the budget of tokens is spent. The rest is counted, not read: what is left out is said,
// and the cut is the same for the same log.
func (r *Runner) history(ctx context.Context, s eventlog.SessionID, before eventlog.RunID, budget int) (history, error) {
	var h history
	answers := map[eventlog.RunID]string{}
	q := eventlog.Query{Session: s, Types: []eventlog.Type{eventlog.MessageReceived, eventlog.Responded}, Newest: true}
	for e, err := range r.log.Events(ctx, q) {
		if err != nil {
			return h, err
		}
		switch {
		case e.Run == before || e.Payload == nil:
		case h.dropped > 0:
			if e.Type == eventlog.Responded {
				h.dropped++
			}
		case e.Type == eventlog.Responded:
			a, err := decodePayload[responded](e)
			if err != nil {
				return h, err
			}
			answers[e.Run] = a.Text
		default:
			answer, ok := answers[e.Run]
			if !ok {
				continue // no answer came: the agent never saw its own half
			}
			m, err := decodePayload[messageReceived](e)
			if err != nil {
				return h, err
			}
			t := turnText{m.asked(), answer}
			if h.tokens+t.tokens() > budget {
				h.dropped = 1
				continue
			}
			h.tokens += t.tokens()
			h.turns = append(h.turns, t)
		}
	}
	slices.Reverse(h.turns)
	return h, nil
}

// asked is the input as a later turn repeats it: of attachments only that they were there.
func (m messageReceived) asked() string {
	text := m.Text
	for _, path := range m.Attachments {
		text += "\n[attached then, not repeated: " + filepath.Base(path) + "]"
	}
	return text
}

func (t turnText) tokens() int { return estimateTokens(t.input) + estimateTokens(t.answer) + 8 }

// estimateTokens guesses how many tokens a text is: a token for four bytes of ASCII, and
// one for every other rune. It is meant to err upwards for prose.
func estimateTokens(s string) int {
	ascii, other := 0, 0
	for _, r := range s {
		if r < 0x80 {
			ascii++
		} else {
			other++
		}
	}
	return (ascii+3)/4 + other
}

// transcript is the history as text that goes ahead of an input.
func (h history) transcript() string {
	if len(h.turns) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("This conversation has earlier turns. They are repeated here because this is a new process; do not answer them again.\n")
	if h.dropped > 0 {
		b.WriteString("Older turns were left out.\n")
	}
	for _, t := range h.turns {
		b.WriteString("\nUser:\n" + quoted(t.input) + "\nAgent:\n" + quoted(t.answer))
	}
	b.WriteString("\nThe message to answer now follows.\n")
	return b.String()
}

// quoted marks every line as somebody's earlier words, so that none of them is taken for an
// instruction of its own.
func quoted(text string) string {
	return "> " + strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n> ") + "\n"
}
