package service

import (
	"testing"
	"time"
)

// TestPhoneWaitsForTheAnswer checks that the phone waits the full time for the answer to the last message. The time
// that the person needed to type does not count.
func TestPhoneWaitsForTheAnswer(t *testing.T) {
	const wait = 50 * time.Millisecond
	h := &handset{last: time.Now().Add(-time.Hour)}
	begun := time.Now()
	h.waitForQuiet(t.Context(), wait)
	if took := time.Since(begun); took < wait {
		t.Errorf("it left after %s", took)
	}
}
