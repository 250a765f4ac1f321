package bridge

import (
	"bytes"
	"encoding/json"
	"os"
	"reflect"
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
		event.ContactSession: &Peer{}, event.ContactChanged: &Changed{}, event.StrangerIgnored: &Stranger{}, event.BridgeReceived: &Received{},
		event.FilesFetched: &Fetched{}, event.BridgeFinished: &Finished{}, event.BridgeQueued: &Queued{}, event.SendStarted: &Send{},
		event.BridgeSent: &Send{}, event.SendFailed: &Send{}, event.CardClosed: &CardClosed{}, event.TeamAsked: &TeamQuestion{},
		event.ProjectAdded: &Served{}, event.ProjectRemoved: &Served{}, event.ProjectChosen: &Chosen{}, event.MessageRouted: &Routed{},
		event.ChannelRead: &Read{},
	}
	seen := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		name, payload, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		v := payloads[event.Type(name)]
		if v == nil {
			continue
		}
		seen[name] = true
		v = reflect.New(reflect.TypeOf(v).Elem()).Interface() // nothing of the line before is left in it
		err := json.Unmarshal([]byte(payload), v)
		if got, merr := json.Marshal(v); err != nil || merr != nil || !bytes.Equal(got, []byte(payload)) {
			t.Errorf("%s:\n%s, want\n%s: %v, %v", name, got, payload, err, merr)
		}
	}
	if len(seen) != len(payloads) {
		t.Errorf("%d types have golden payloads", len(seen))
	}
}
