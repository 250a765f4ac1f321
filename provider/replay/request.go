package replay

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/perlica/perlica/provider/agentside"
)

// handleLine handles one line of the current client.
func (p *player) handleLine(line []byte) {
	m, err := agentside.Parse(line)
	switch {
	case err != nil:
		p.conn.Refuse(m.ID, err)
	case m.Method == "":
		if q := p.openQuestions[string(m.ID)]; q != nil && q.answer == nil {
			q.answer = &m
		}
	case m.Method == methodCancel:
		p.cancelTurns(text(member(m.Params, "sessionId")))
	case m.ID == nil: // a notification needs no answer
	case m.Method == methodPrompt:
		p.handlePrompt(m)
	default:
		p.handleRequest(m)
	}
}

// handleRequest plays the next recorded exchange with the method of the request. It handles all requests except
// prompts.
func (p *player) handleRequest(m agentside.Message) {
	had := 0
	for _, x := range p.record.Exchanges {
		if x.Method != m.Method {
			continue
		}
		if !p.given[x] {
			p.startPlay(x, m)
			return
		}
		had++
	}
	text := "the record has no answer to " + m.Method
	if had > 0 {
		text = fmt.Sprintf("the record has %s only as often as it was given: %d", m.Method, had)
	}
	p.refuseRequest(m.ID, agentside.CodeNoMethod, text, nil)
}

// handlePrompt plays the first unplayed turn with the text of the prompt. If no turn has this text, the option InOrder
// selects the next unplayed turn.
func (p *player) handlePrompt(m agentside.Message) {
	prompt := promptText(m.Params)
	turns := p.record.Turns()
	i := slices.IndexFunc(turns, func(x *Exchange) bool { return !p.given[x] && x.Text == prompt })
	if i < 0 && p.opt.InOrder {
		for i = p.latest; i < len(turns) && p.given[turns[i]]; i++ {
		}
	}
	if i >= 0 && i < len(turns) {
		p.latest = i + 1
		p.startPlay(turns[i], m)
		return
	}
	const most = 20
	expected := []string{}
	for _, x := range turns {
		if !p.given[x] && len(expected) < most {
			expected = append(expected, clip(x.Text))
		}
	}
	text := fmt.Sprintf("the record has no turn for the prompt %q; ", clip(prompt))
	if len(expected) > 0 {
		text += fmt.Sprintf("expected is %q", expected[0])
	} else {
		text += fmt.Sprintf("all of its turns (%d) were given", len(turns))
	}
	p.refuseRequest(m.ID, agentside.CodeInvalidParams, text, agentside.Encode(map[string]any{"expected": expected}))
}

// cancelTurns cancels the running turns of a session. If a turn was also cancelled in the record, it continues with the
// lines after the recorded cancel. Otherwise it ends at once.
func (p *player) cancelTurns(session string) {
	for _, y := range slices.Clone(p.plays) {
		if y.Method != methodPrompt || y.session != session || y.id == nil {
			continue
		}
		y.cancelled = true
		if y.Cancelled {
			i := slices.IndexFunc(y.steps, func(s step) bool { return s.kind == cancel })
			y.next = max(y.next, i)
			continue
		}
		// A failed write is an error of the next Flush.
		_ = p.conn.Send(agentside.Message{ID: y.id, Result: json.RawMessage(`{"stopReason":"cancelled"}`)})
		p.dropPlay(y)
	}
}

// clip shortens a long text for an error. It keeps the beginning and the end, because a client may put the same words
// before each prompt.
func clip(s string) string {
	const most = 100
	if len(s) <= 2*most {
		return s
	}
	return strings.ToValidUTF8(s[:most]+"…"+s[len(s)-most:], "")
}
