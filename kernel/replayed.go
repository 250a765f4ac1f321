package kernel

import (
	"context"
	"strings"
	"time"

	"github.com/coder/acp-go-sdk"

	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/provider"
)

// Some agents go on to tell of earlier turns after they have answered session/load. The prompt waits until
// nothing has come for settleIdle; at the latest it leaves after settleMost.
const (
	settleIdle = 300 * time.Millisecond
	settleMost = 5 * time.Second
)

// settle waits until an agent that has loaded its session is silent.
func (s *agentSession) settle(ctx context.Context) {
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
			s.Warning(provider.Warning{Subtype: "history_told_late", Detail: "the agent still tells of earlier turns; they may be in the answer"})
		case <-s.conn.Gone():
			idle.Stop()
		case <-ctx.Done():
			idle.Stop()
		}
		return
	}
}

// replayed finds what an agent that has continued its session tells of earlier turns within the turn under way.
// It compares with the record: the agent repeats an earlier input, the recorded answer to it follows in the
// same words, and tools between the two are told again. So are tools with the id of an earlier one between that
// answer and the next new words. An id alone says nothing: some agents count from one again in each process.
type replayed struct {
	turns        []turnText
	tools        map[acp.ToolCallId]bool
	prompt       string // of the turn under way
	on           bool   // an earlier turn is being told
	justReplayed bool   // an earlier turn was told, and no new words came since
	rest         string // of its answer
}

// maxReplayed is how many tokens of earlier turns are compared.
const maxReplayed = 1 << 20

// expectReplay prepares the turn for an agent that has continued its session.
func (run *run) expectReplay(ctx context.Context) error {
	h, err := run.r.history(ctx, run.refs.Session, run.refs.Run, maxReplayed)
	if err != nil {
		return err
	}
	r := &replayed{turns: h.turns, tools: map[acp.ToolCallId]bool{}, prompt: run.t.Input.Text}
	for _, id := range h.tools {
		r.tools[acp.ToolCallId(id)] = true
	}
	run.client.sums.expectReplay(r)
	return nil
}

// has reports whether an update is told of an earlier turn.
func (r *replayed) has(u provider.Update) bool {
	switch {
	case r == nil:
		return false
	case u.Tool != nil:
		return r.on || r.justReplayed && r.tools[u.Tool.ID]
	case u.Kind == provider.UserMessageChunk:
		r.begin(u.Text)
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

// begin takes in what the agent says that the user said.
func (r *replayed) begin(said string) {
	said = strings.TrimSpace(said)
	if r.on = false; said == "" || strings.Contains(r.prompt, said) {
		return
	}
	for _, t := range r.turns {
		if asked := strings.TrimSpace(t.input); asked != "" && (strings.Contains(said, asked) || strings.Contains(asked, said)) {
			r.on, r.justReplayed, r.rest = true, true, t.answer
		}
	}
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
