package dialog

import (
	"crypto/ed25519"
	"encoding/json"
	"os"

	"github.com/coder/acp-go-sdk"

	"github.com/perlica/perlica/kernel/fact"
)

// Warm does in the background what takes long the first time in a process, some two milliseconds:
// the tables by which Ed25519 signs, what encoding/json learns of a type, and how os finds out by
// what the system names a child. A command calls it before it opens the log for a turn: until the agent
// starts a processor is idle.
func Warm() {
	go func() {
		_ = ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
		// What all of these return is not used.
		for _, answer := range []any{new(acp.InitializeResponse), new(acp.NewSessionResponse), new(acp.PromptResponse)} {
			_ = json.Unmarshal([]byte(`{"agentCapabilities":{}}`), answer)
		}
		for _, v := range []any{acp.InitializeRequest{}, fact.SessionStarted{}, fact.Requested{}, fact.Responded{}, fact.Enforced{}} {
			_, _ = json.Marshal(v)
		}
		_, _ = os.FindProcess(os.Getpid())
	}()
}
