package fact

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/perlica/perlica/eventlog/event"
)

// same decodes a payload as a T and returns what is written of it.
func same[T any](payload []byte) ([]byte, error) {
	var v T
	if err := json.Unmarshal(payload, &v); err != nil {
		return nil, err
	}
	return json.Marshal(v)
}

var payloads = map[string]func([]byte) ([]byte, error){
	"fact.MessageReceived": same[MessageReceived], "fact.MessageQueued": same[MessageQueued], "fact.SessionConfigured": same[SessionConfigured], "fact.MessageWithdrawn": same[MessageWithdrawn], "fact.Truncated": same[Truncated], "fact.Requested": same[Requested],
	"fact.Responded": same[Responded], "fact.Failed": same[Failed], "fact.Enforced": same[Enforced], "fact.Resolved": same[Resolved],
	"fact.ToolBlocked": same[ToolBlocked], "fact.ToolResult": same[ToolResult], "fact.OversizedLine": same[OversizedLine],
	"fact.RequestTimeout": same[RequestTimeout], "fact.SessionStarted": same[SessionStarted], "fact.SessionClosed": same[SessionClosed],
	"fact.ReplySent": same[ReplySent], "fact.PolicyDecided": same[PolicyDecided], "fact.UnaskedTool": same[UnaskedTool],
	"fact.SessionCreated": same[SessionCreated], "fact.SessionRenamed": same[SessionRenamed], "fact.Rejected": same[Rejected], "fact.Voucher": same[Voucher],
	"fact.Login": same[Login], "fact.LoginEnded": same[LoginEnded],
}

// TestGoldenPayloads: what is on record is read whole and written again as the same bytes. Lines
// may be added to the file; none may change.
func TestGoldenPayloads(t *testing.T) {
	text, err := os.ReadFile("testdata/golden.txt")
	if err != nil {
		t.Fatal(err)
	}
	golden := map[event.Type]bool{}
	rows := map[event.Type]string{}
	for _, r := range event.Known() {
		rows[r.Type] = r.Payload
	}
	for line := range strings.Lines(string(text)) {
		name, payload, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		typ := event.Type(name)
		golden[typ] = true
		write := payloads[rows[typ]]
		if write == nil {
			continue
		}
		if got, err := write([]byte(payload)); err != nil || !bytes.Equal(got, []byte(payload)) {
			t.Errorf("%s:\n%s, want\n%s: %v", typ, got, payload, err)
		}
	}
	for typ, payload := range rows {
		if strings.HasPrefix(payload, "fact.") && (payloads[payload] == nil || !golden[typ]) {
			t.Errorf("%s: no golden payload of %s", typ, payload)
		}
	}
}
