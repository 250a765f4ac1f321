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

// Get returns the team as it is now; it is the link's to close. While it cannot be opened it is tried now and then, and
// nobody else waits for that. The error is ErrNoHub where there is none, or one of Open's; with the team, why its
// members could not be read again.
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

// Close closes the team. Nobody may be in a method, nor call one later.
func (l *Link) Close() error {
	if l.team == nil {
		return nil
	}
	return l.team.Close()
}

// How often Watch looks, while the hub answers and while it does not.
const (
	watchEvery = 2 * time.Second
	watchAgain = 5 * time.Second
)

// Watch hands see the questions that are open, again and again, until ctx ends. trouble is told once what goes wrong, of that or
// in see, until it goes well again: then nil.
func (l *Link) Watch(ctx context.Context, see func(context.Context, *Team, []OpenQuestion) error, trouble func(error)) {
	ill := false
	for {
		err := l.look(ctx, see)
		if ctx.Err() != nil {
			return
		}
		if ill != (err != nil) {
			trouble(err)
		}
		wait := watchEvery
		if ill = err != nil; ill {
			wait = watchAgain
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return
		}
	}
}

func (l *Link) look(ctx context.Context, see func(context.Context, *Team, []OpenQuestion) error) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	t, err := l.Get(ctx)
	if err != nil {
		return err
	}
	list, err := OpenQuestions(ctx, t, "")
	if err != nil {
		return err
	}
	return see(ctx, t, list)
}
