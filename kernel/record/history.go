package record

import (
	"context"
	"path/filepath"
	"slices"
	"strings"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/kernel/fact"
)

// A PastTurn is one earlier turn of a session.
type PastTurn struct{ Input, Answer string }

// History has the earlier turns of a session that go into a prompt.
type History struct {
	Turns   []PastTurn // oldest first
	Tools   []string   // the ids of the answers' tool calls
	Dropped int        // the number of older turns that did not fit
	Gone    int        // the number of turns without payloads, because the payloads were pruned
	Tokens  int        // the estimated tokens of Turns

	Inputs  int // the number of all inputs of the session on the log
	Answers int // the number of all answers of the session on the log
}

// ReadHistory reads the session's answered turns that precede the run, the newest first, until the budget of tokens is
// used up. It counts the omitted turns, so that the caller can report them. It also omits turns with a pruned text. For
// the same log the result is always the same.
func ReadHistory(ctx context.Context, log event.Reader, s event.SessionID, before event.RunID,
	budget int) (History, error) {
	var h History
	full := false
	answers := map[event.RunID]string{}
	q := event.Query{Session: s, Types: []event.Type{event.MessageReceived, event.Responded}, Newest: true}
	for e, err := range log.Events(ctx, q) {
		if err != nil {
			return h, err
		}
		if e.Type == event.Responded {
			h.Answers++
		} else {
			h.Inputs++
		}
		if e.Run == before || full {
			continue
		}
		if e.Payload == nil {
			if _, ok := answers[e.Run]; ok || e.Type == event.Responded {
				h.Gone++
			}
			delete(answers, e.Run)
			continue
		}
		if e.Type == event.Responded {
			a, err := fact.Decode[fact.Responded](e)
			if err != nil {
				return h, err
			}
			answers[e.Run] = a.Text
			h.Tools = append(h.Tools, toolIDs(a)...)
			continue
		}
		answer, ok := answers[e.Run]
		if !ok {
			continue // the turn has no answer
		}
		m, err := fact.Decode[fact.MessageReceived](e)
		if err != nil {
			return h, err
		}
		t := PastTurn{pastInput(m), answer}
		if full = h.Tokens+t.tokens() > budget; full {
			continue
		}
		h.Tokens += t.tokens()
		h.Turns = append(h.Turns, t)
	}
	h.Dropped = h.Answers - len(h.Turns) - h.Gone
	slices.Reverse(h.Turns)
	return h, nil
}

// pastInput returns an earlier input for the transcript. It only names the attachments.
func pastInput(m fact.MessageReceived) string {
	text := m.Text
	for _, path := range m.Attachments {
		text += "\n[attached then, not repeated: " + filepath.Base(path) + "]"
	}
	return text
}

func (t PastTurn) tokens() int { return estimateTokens(t.Input) + estimateTokens(t.Answer) + 8 }

// estimateTokens estimates the number of tokens of a text: one token for four ASCII characters, and one for every other
// character. For prose the estimate is rather too high than too low.
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

// Transcript returns the earlier turns as a text that goes before an input.
func (h History) Transcript() string {
	if len(h.Turns) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("This conversation has earlier turns. They are repeated here because this is a new process; " +
		"do not answer them again.\n")
	if h.Dropped > 0 {
		b.WriteString("Older turns were left out.\n")
	}
	if h.Gone > 0 {
		b.WriteString("Some turns are no longer on record.\n")
	}
	for _, t := range h.Turns {
		b.WriteString("\nUser:\n" + quoted(t.Input) + "\nAgent:\n" + quoted(t.Answer))
	}
	b.WriteString("\nThe message to answer now follows.\n")
	return b.String()
}

// quoted marks every line as a quotation, so that the agent does not take it for an instruction.
func quoted(text string) string {
	return "> " + strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n> ") + "\n"
}

// toolIDs returns the ids of the tool calls of an answer.
func toolIDs(a fact.Responded) (ids []string) {
	for _, t := range a.Tools {
		if t.ID != "" {
			ids = append(ids, t.ID)
		}
	}
	return ids
}
