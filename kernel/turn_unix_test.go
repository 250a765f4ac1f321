//go:build unix

package kernel

import (
	"context"
	"strings"
	"testing"

	"github.com/perlica/perlica/kernel/record"
	"github.com/perlica/perlica/provider"
)

// hasty is the script of an agent that answers a prompt after its first byte and does not read the rest.
const hasty = `
read x; echo '{"id":0,"result":{"protocolVersion":1}}'
read x; echo '{"id":1,"result":{"sessionId":"s"}}'
dd bs=1 count=1 >/dev/null 2>&1
echo '{"method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"enough"}}}}'
echo '{"id":2,"result":{"stopReason":"end_turn"}}'
exec sleep 600`

// TestAnswerToAnUnreadPrompt checks that the turn ends and the answer counts, although the agent has not read the whole
// prompt.
func TestAnswerToAnUnreadPrompt(t *testing.T) {
	r := openRunner(t)
	setup := testSetup(t, r)
	setup.Agent.Command = []string{"sh", "-c", hasty}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan record.Result, 1)
	go func() {
		res, err := r.Run(ctx, Turn{
			Input: Input{Text: strings.Repeat("x", 4<<20), Source: "test"}, Setup: setup,
			Show: func(n record.Notice) {
				if u, ok := n.(record.Updated); ok && u.Kind == provider.AgentMessageChunk {
					cancel()
				}
			},
		})
		if err != nil {
			t.Error(err)
		}
		done <- res
	}()
	if res := soon(t, "the end", done); res.Outcome != record.OutcomeResponded || res.Text != "enough" ||
		res.StopReason != "end_turn" || res.Calls != 1 || res.Stopped == nil {
		t.Errorf("%+v", res)
	}
}
