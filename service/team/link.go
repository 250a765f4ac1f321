package team

import (
	"context"
	"time"
)

// How long it takes until a team that could not be opened is tried again, and until the members are read again.
const (
	openAgain    = 5 * time.Second
	membersEvery = time.Minute
)

// Link is the user's team for a process that lives long: opened when it is first asked for, once. Its methods may be
// called from several goroutines. The caller must Close it.
type Link struct {
	open func(context.Context) (*Team, error)
	turn chan struct{} // capacity 1, and guards what follows: one opens it at a time

	team   *Team
	read   time.Time // when it was opened, or tried to, or the members were read
	failed error     // why it could not be opened
}

// NewLink returns a link to the team that open opens; nil: there is none.
func NewLink(open func(context.Context) (*Team, error)) *Link {
	return &Link{open: open, turn: make(chan struct{}, 1)}
}

// LinkOf is a link to the team that opt names.
func LinkOf(opt Options) *Link {
	return NewLink(func(ctx context.Context) (*Team, error) { return Open(ctx, opt) })
}

// Get returns the team as it is now; it is the link's to close. While it cannot be opened it is tried now and then, and
// nobody else waits for that. The error is ErrNoHub where there is none, or one of Open's; with the team, why its members
// could not be read again.
func (l *Link) Get(ctx context.Context) (*Team, error) {
	if l.open == nil {
		return nil, ErrNoHub
	}
	select {
	case l.turn <- struct{}{}:
		defer func() { <-l.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	since := time.Since(l.read)
	switch {
	case l.failed != nil && since < openAgain:
	case l.team == nil:
		l.team, l.failed = l.open(ctx)
		l.read = time.Now()
	case since > membersEvery:
		l.read = time.Now()
		return l.team, l.team.Refresh(ctx)
	}
	return l.team, l.failed
}

// Close closes the team. Nobody may be in Get, nor come to it later.
func (l *Link) Close() error {
	if l.team == nil {
		return nil
	}
	return l.team.Close()
}
