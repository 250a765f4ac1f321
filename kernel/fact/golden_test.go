package fact

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/perlica/perlica/eventlog/event"
)

// same decodes a payload as a T and encodes it again.
func same[T any](payload []byte) ([]byte, error) {
	var v T
	if err := json.Unmarshal(payload, &v); err != nil {
		return nil, err
	}
	return json.Marshal(v)
}

// payloads maps the name of each struct that the table of event types mentions to a function. The function decodes and
// encodes a payload.
var payloads = map[string]func([]byte) ([]byte, error){
	"fact.BridgeFinished":      same[BridgeFinished],
	"fact.BridgeQueued":        same[BridgeQueued],
	"fact.BridgeReceived":      same[BridgeReceived],
	"fact.BudgetReached":       same[BudgetReached],
	"fact.CardClosed":          same[CardClosed],
	"fact.ChannelRead":         same[ChannelRead],
	"fact.ChannelState":        same[ChannelState],
	"fact.ContactChanged":      same[ContactChanged],
	"fact.ContactPaired":       same[ContactPaired],
	"fact.ContactUnpaired":     same[ContactUnpaired],
	"fact.CursorMoved":         same[CursorMoved],
	"fact.Delivery":            same[Delivery],
	"fact.DevicePaired":        same[DevicePaired],
	"fact.DeviceRevoked":       same[DeviceRevoked],
	"fact.Enforced":            same[Enforced],
	"fact.Failed":              same[Failed],
	"fact.FilesFetched":        same[FilesFetched],
	"fact.HookFailed":          same[HookFailed],
	"fact.TreeObserved":        same[TreeObserved],
	"fact.FlowDecided":         same[FlowDecided],
	"fact.ContactSession":      same[ContactSession],
	"fact.FlowFinished":        same[FlowFinished],
	"fact.FlowStarted":         same[FlowStarted],
	"fact.Login":               same[Login],
	"fact.LoginEnded":          same[LoginEnded],
	"fact.MessageQueued":       same[MessageQueued],
	"fact.MessageReceived":     same[MessageReceived],
	"fact.MessageRouted":       same[MessageRouted],
	"fact.MessageWithdrawn":    same[MessageWithdrawn],
	"fact.Notified":            same[Notified],
	"fact.OversizedLine":       same[OversizedLine],
	"fact.Pairing":             same[Pairing],
	"fact.PairingAttempted":    same[PairingAttempted],
	"fact.PolicyDecided":       same[PolicyDecided],
	"fact.ProjectChosen":       same[ProjectChosen],
	"fact.ReplySent":           same[ReplySent],
	"fact.RequestTimeout":      same[RequestTimeout],
	"fact.Requested":           same[Requested],
	"fact.Resolved":            same[Resolved],
	"fact.Responded":           same[Responded],
	"fact.ScheduleMissed":      same[ScheduleMissed],
	"fact.SchedulePaused":      same[SchedulePaused],
	"fact.SchedulePlanned":     same[SchedulePlanned],
	"fact.ScheduleResumed":     same[ScheduleResumed],
	"fact.ScheduleStarted":     same[ScheduleStarted],
	"fact.ServedProject":       same[ServedProject],
	"fact.ServiceStarted":      same[ServiceStarted],
	"fact.ServiceStopped":      same[ServiceStopped],
	"fact.SessionClosed":       same[SessionClosed],
	"fact.SessionConfigured":   same[SessionConfigured],
	"fact.SandboxConnected":    same[SandboxConnected],
	"fact.SandboxEntered":      same[SandboxEntered],
	"fact.SessionCreated":      same[SessionCreated],
	"fact.SessionRenamed":      same[SessionRenamed],
	"fact.SessionStarted":      same[SessionStarted],
	"fact.Stop":                same[Stop],
	"fact.StrangerIgnored":     same[StrangerIgnored],
	"fact.TeamAnswered":        same[TeamAnswered],
	"fact.TeamClaimed":         same[TeamClaimed],
	"fact.TeamCosigned":        same[TeamCosigned],
	"fact.TeamJoined":          same[TeamJoined],
	"fact.TeamMember":          same[TeamMember],
	"fact.TeamQuestion":        same[TeamQuestion],
	"fact.TeamRefused":         same[TeamRefused],
	"fact.TeamStopped":         same[TeamStopped],
	"fact.ToolBlocked":         same[ToolBlocked],
	"fact.ToolResult":          same[ToolResult],
	"fact.Truncated":           same[Truncated],
	"fact.UnaskedTool":         same[UnaskedTool],
	"fact.Voucher":             same[Voucher],
	"fact.WebPairingAttempted": same[WebPairingAttempted],
	"fact.WebPairingRequested": same[WebPairingRequested],
	"fact.WebRefused":          same[WebRefused],
}

// TestGoldenPayloads checks that each recorded payload decodes and encodes to the same bytes. Lines may be added to the
// file. No line may change.
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
