package service

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/perlica/perlica/eventlog/event"
)

// TestGoldenPayloads: what is on record is read whole and written again as the same bytes.
func TestGoldenPayloads(t *testing.T) {
	text, err := os.ReadFile("../kernel/fact/testdata/golden.txt")
	if err != nil {
		t.Fatal(err)
	}
	payloads := map[event.Type]any{
		event.ServiceStarted: &startedFact{}, event.ServiceStopped: &stoppedFact{}, event.ChannelFailed: &channelFact{},
		event.ChannelRestored: &channelFact{}, event.CursorMoved: &cursorFact{}, event.PairingOpened: &pairingFact{},
		event.PairingAttempted: &attemptFact{}, event.ContactPaired: &pairedFact{}, event.ContactUnpaired: &unpairedFact{},
		event.ContactSession: &contactFact{}, event.StrangerIgnored: &strangerFact{}, event.BridgeReceived: &receivedFact{},
		event.BridgeFinished: &finishedFact{}, event.BridgeQueued: &queuedFact{}, event.SendStarted: &sendFact{},
		event.BridgeSent: &sendFact{}, event.SendFailed: &sendFact{}, event.CardClosed: &cardFact{},
	}
	n := 0
	for line := range strings.Lines(string(text)) {
		name, payload, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		v := payloads[event.Type(name)]
		if v == nil {
			continue
		}
		n++
		err := json.Unmarshal([]byte(payload), v)
		if got, merr := json.Marshal(v); err != nil || merr != nil || !bytes.Equal(got, []byte(payload)) {
			t.Errorf("%s:\n%s, want\n%s: %v, %v", name, got, payload, err, merr)
		}
	}
	if n != len(payloads) {
		t.Errorf("%d golden payloads", n)
	}
}
