package dialog

import (
	"crypto/ed25519"
	"encoding/json"
	"os"

	"github.com/coder/acp-go-sdk"

	"github.com/perlica/perlica/kernel/fact"
)

// PrimeCaches does work in the background that a process otherwise does at the first use. It fills the tables of
// Ed25519, the type caches of encoding/json and the state of os.FindProcess. The work takes about two milliseconds.
// A processor is idle until the agent starts, so a command calls PrimeCaches before it opens the log for a turn.
func PrimeCaches() {
	go func() {
		_ = ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
		// The results of these calls are not used.
		for _, answer := range []any{new(acp.InitializeResponse), new(acp.NewSessionResponse), new(acp.PromptResponse)} {
			_ = json.Unmarshal([]byte(`{"agentCapabilities":{}}`), answer)
		}
		for _, v := range []any{acp.InitializeRequest{}, fact.SessionStarted{}, fact.Requested{}, fact.Responded{},
			fact.Enforced{}} {
			_, _ = json.Marshal(v)
		}
		_, _ = os.FindProcess(os.Getpid())
	}()
}
