package door

import (
	"context"
	"errors"
	"testing"

	"github.com/perlica/perlica/interaction"
	"github.com/perlica/perlica/service/team"
)

// TestLink: a hub that cannot be reached is not called by each that asks, holds up nobody for longer than wanted, and is
// said once.
func TestLink(t *testing.T) {
	calls := 0
	l := NewLink(func(context.Context) (*team.Team, error) {
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
	said := 0
	l.Watch(ctx, nil, func(error) { said++; cancel() })
	if said != 1 {
		t.Errorf("said %d times", said)
	}
	l.turn <- struct{}{} // somebody opens it
	if _, err := l.Get(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("one who does not wait any more: %v", err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if _, err := NewLink(nil).Get(t.Context()); !errors.Is(err, team.ErrNoHub) {
		t.Errorf("no hub: %v", err)
	}
}
