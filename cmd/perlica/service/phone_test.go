package service

import (
	"testing"
	"time"

	"github.com/perlica/perlica/service/local"
)

// TestPhoneWaitsForTheAnswer: however long somebody wrote, what was said last gets its time.
func TestPhoneWaitsForTheAnswer(t *testing.T) {
	const wait = 50 * time.Millisecond
	h := &handset{last: time.Now().Add(-time.Hour)}
	begun := time.Now()
	if err := h.leave(t.Context(), &local.Phone{}, wait); err != nil {
		t.Error(err)
	}
	if took := time.Since(begun); took < wait {
		t.Errorf("it left after %s", took)
	}
}
