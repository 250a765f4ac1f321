package web

import (
	"context"
	"testing"
	"time"
)

// TestOutflow checks that streams wait for the limit only while new events arrive.
func TestOutflow(t *testing.T) {
	o := newOutflow()
	o.began = o.began.Add(-time.Hour)
	free, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	if err := o.reserveBytes(free, 100*perSecond); err != nil {
		t.Errorf("nothing has happened for an hour: %v", err)
	}
	o.noteNews()
	// With this deadline, reserveBytes fails at once if it would have to wait longer.
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if err := o.reserveBytes(ctx, 100*perSecond); err == nil {
		t.Error("something happens, and all is sent at once")
	}
}
