package service

import (
	"testing"
	"time"
)

// TestPhoneWaitsForTheAnswer checks that the answer to the last message gets its full time, however long the person
// typed.
func TestPhoneWaitsForTheAnswer(t *testing.T) {
	const wait = 50 * time.Millisecond
	h := &handset{last: time.Now().Add(-time.Hour)}
	begun := time.Now()
	h.waitForQuiet(t.Context(), wait)
	if took := time.Since(begun); took < wait {
		t.Errorf("it left after %s", took)
	}
}
