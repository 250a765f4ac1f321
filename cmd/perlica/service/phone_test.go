package service

import (
	"testing"
	"time"
)

// TestPhoneWaitsForTheAnswer: however long somebody wrote, what was said last gets its time.
func TestPhoneWaitsForTheAnswer(t *testing.T) {
	const wait = 50 * time.Millisecond
	h := &handset{last: time.Now().Add(-time.Hour)}
	begun := time.Now()
	h.leave(t.Context(), wait)
	if took := time.Since(begun); took < wait {
		t.Errorf("it left after %s", took)
	}
}
