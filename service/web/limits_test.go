package web

import (
	"context"
	"testing"
	"time"
)

// TestOutflow: while something happens streams wait for their turn, and otherwise they do not.
func TestOutflow(t *testing.T) {
	o := newOutflow()
	o.began = o.began.Add(-time.Hour)
	free, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := o.wait(free, 100*perSecond); err != nil {
		t.Errorf("nothing has happened for an hour: %v", err)
	}
	o.happens()
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond) // a wait that would be longer fails at once
	defer cancel()
	if err := o.wait(ctx, 100*perSecond); err == nil {
		t.Error("something happens, and all is sent at once")
	}
}
