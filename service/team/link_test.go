package team

import (
	"context"
	"errors"
	"testing"

	"github.com/perlica/perlica/interaction"
)

// TestLink checks that callers do not each call an unreachable hub, and that no caller waits longer
// than its context.
func TestLink(t *testing.T) {
	calls := 0
	l := NewLink(func(context.Context) (*Team, error) {
		calls++
		return nil, errors.New("connection refused")
	})
	for range 3 {
		if _, err := l.Get(t.Context()); err == nil || calls != 1 {
			t.Errorf("%v, %d calls", err, calls)
		}
	}
	if err := l.Answer(t.Context(), "x", "y", interaction.Answer{}); !errors.Is(err, ErrAway) {
		t.Errorf("an answer: %v", err)
	}
	if end := l.Ended(t.Context(), "y"); end != nil {
		t.Errorf("it ended: %v", end)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	l.sem <- struct{}{} // another goroutine opens the team
	if _, err := l.Get(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("one who does not wait any more: %v", err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if _, err := NewLink(nil).Get(t.Context()); !errors.Is(err, ErrNoHub) {
		t.Errorf("no hub: %v", err)
	}
}

// TestWatch checks that an error is reported once until it has ended.
func TestWatch(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	calls, said := 0, 0
	l := NewLink(func(context.Context) (*Team, error) {
		if calls++; calls == 3 {
			cancel()
		}
		return nil, errors.New("connection refused")
	})
	l.Watch(ctx, nil, func(error) { said++ })
	if calls != 3 || said != 1 {
		t.Errorf("called %d times, said %d times", calls, said)
	}
}
