package kernel

import (
	"context"
	"strings"
	"time"

	"github.com/coder/acp-go-sdk"

	"github.com/perlica/perlica/kernel/record"
	"github.com/perlica/perlica/provider"
)

// Some agents repeat earlier turns after their answer to session/load. The prompt waits until no line has come for
// settleIdle, but no longer than settleMost.
const (
	settleIdle = 300 * time.Millisecond
	settleMost = 5 * time.Second
)

// awaitSilence waits until an agent that has loaded its session no longer sends lines.
func (s *agentSession) awaitSilence(ctx context.Context) {
	most := time.NewTimer(settleMost)
	defer most.Stop()
	for {
		idle := time.NewTimer(settleIdle)
		select {
		case <-s.heard:
			idle.Stop()
			continue
		case <-idle.C:
		case <-most.C:
			idle.Stop()
			s.Warning(provider.Warning{Subtype: "history_told_late",
				Detail: "the agent still tells of earlier turns; they may be in the answer"})
		case <-s.conn.Gone():
			idle.Stop()
		case <-ctx.Done():
			idle.Stop()
		}
		return
	}
}

// replayed recognizes the updates with which an agent repeats earlier turns of a continued session. It compares the
// updates with the record. A repeated turn begins with an earlier input. The recorded answer follows in the same words,
// with its tool calls in between. Until new words come, a tool call with an earlier id also is a repetition. An id
// alone proves nothing, because some agents count from one in each process.
type replayed struct {
	turns        []record.PastTurn
	tools        map[acp.ToolCallId]bool
	prompt       string // the prompt of the present turn
	on           bool   // true while an earlier turn is being repeated
	justReplayed bool   // true if an earlier turn was repeated and no new words have come since
	rest         string // the rest of the repeated answer
}

// maxReplayed is the maximum size, in tokens, of the earlier turns that are compared.
const maxReplayed = 1 << 20

// expectReplay makes the turn leave out updates that repeat earlier turns. It is called if the agent has continued its
// session.
func (run *run) expectReplay(ctx context.Context) error {
	h, err := run.r.readHistory(ctx, run.refs.Session, run.refs.Run, maxReplayed)
	if err != nil {
		return err
	}
	r := &replayed{turns: h.Turns, tools: map[acp.ToolCallId]bool{}, prompt: run.t.Input.Text}
	for _, id := range h.Tools {
		r.tools[acp.ToolCallId(id)] = true
	}
	run.client.sums.expectReplay(r)
	return nil
}

// isRepeated reports whether an update repeats an earlier turn.
func (r *replayed) isRepeated(u provider.Update) bool {
	switch {
	case r == nil:
		return false
	case u.Tool != nil:
		return r.on || r.justReplayed && r.tools[u.Tool.ID]
	case u.Kind == provider.UserMessageChunk:
		r.beginTurn(u.Text)
		return r.on
	case u.Kind == provider.AgentThoughtChunk:
		return r.on
	case u.Kind == provider.AgentMessageChunk && r.on:
		rest, same := strings.CutPrefix(r.rest, u.Text)
		r.rest, r.on, r.justReplayed = rest, same && rest != "", same
		return same
	case u.Kind == provider.AgentMessageChunk:
		r.justReplayed = false
	}
	return r.on
}

// beginTurn checks whether a message of the user is an earlier input, so that the agent is repeating that input's turn.
func (r *replayed) beginTurn(said string) {
	said = strings.TrimSpace(said)
	if r.on = false; said == "" || strings.Contains(r.prompt, said) {
		return
	}
	for _, t := range r.turns {
		input := strings.TrimSpace(t.Input)
		if input != "" && (strings.Contains(said, input) || strings.Contains(input, said)) {
			r.on, r.justReplayed, r.rest = true, true, t.Answer
		}
	}
}
