package bridge

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
	text, err := os.ReadFile("../testdata/golden.txt")
	if err != nil {
		t.Fatal(err)
	}
	payloads := map[event.Type]any{
		event.ServiceStarted: &Started{}, event.ServiceStopped: &Stopped{}, event.ChannelFailed: &Channel{},
		event.ChannelRestored: &Channel{}, event.CursorMoved: &Cursor{}, event.PairingOpened: &Pairing{},
		event.PairingAttempted: &Attempt{}, event.ContactPaired: &Paired{}, event.ContactUnpaired: &Unpaired{},
		event.ContactSession: &Peer{}, event.StrangerIgnored: &Stranger{}, event.BridgeReceived: &Received{},
		event.BridgeFinished: &Finished{}, event.BridgeQueued: &Queued{}, event.SendStarted: &Send{},
		event.BridgeSent: &Send{}, event.SendFailed: &Send{}, event.CardClosed: &CardClosed{},
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
