package eventlog

import (
	"errors"
	"testing"

	"github.com/perlica/perlica/eventlog/disk"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/verify"
)

// TestHeaders checks that Headers finds each change of a header, a leaf, the order or the number of events. It must
// also find the change if it begins in the middle of the log.
func TestHeaders(t *testing.T) {
	leaveToOtherBuild(t)
	passes := map[string]bool{
		// Headers does not read payloads. Readers compare the payloads that they read.
		"payload": true, "payload of one length": true, "payload gone": true, "all payloads": true,
		// Neither Headers nor a reader uses these parts of the file.
		"a negative one": true, "checkpoint of more": true, "checkpoint forged": true, "an impossible hash": true,
		"hashes of events that are not there": true, "another table": true, "no checkpoint": true,
	}
	const n, p = 300, 149
	v := newVictim(t, n)
	for _, after := range []event.Seq{0, 100} {
		if err := verify.Headers(t.Context(), readerOf(t, v.copyLog(t)), after); err != nil {
			t.Fatalf("untouched, after %d: %v", after, err)
		}
		for _, d := range tamperings() {
			if after > 0 && (d.name == "deleted and closed" || d.name == "reversed") {
				continue // the tree's stored hashes contradict the events before it
			}
			t.Run(d.name, func(t *testing.T) {
				path := v.copyLog(t)
				d.applyTo(t, path, n, p)
				err := verify.Headers(t.Context(), readerOf(t, path), after)
				if found := errors.Is(err, disk.ErrCorrupt); found == passes[d.name] {
					t.Errorf("after %d: %v", after, err)
				}
			})
		}
	}
}
