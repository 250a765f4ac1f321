package team

import (
	"context"
	"time"
)

// openAgain is the pause before a failed opening is repeated. membersEvery is the interval for
// reading the members again.
const (
	openAgain    = 5 * time.Second
	membersEvery = time.Minute
)

// Link is the user's team for a long-lived process. The first use opens the team, and later uses share it. The methods
// may be called from several goroutines. The caller must Close it.
type Link struct {
	open func(context.Context) (*Team, error)
	sem  chan struct{} // capacity 1; guards the fields below: one goroutine opens the team at a time

	team   *Team
	read   time.Time // time of the last opening, attempt, or reading of the members
	failed error     // the error of the last opening
}

// NewLink returns a link to the team that the function "open" opens. If "open" is nil, the user has no team.
func NewLink(open func(context.Context) (*Team, error)) *Link {
	return &Link{open: open, sem: make(chan struct{}, 1)}
}

// Get returns the team in its current state. The caller must not close the team. After a failed opening, Get returns
// the error of this opening for a while before it tries again. The error is ErrNoHub without a team, or an error of
// Open. If Get returns a team and an error, the members could not be read again.
func (l *Link) Get(ctx context.Context) (*Team, error) {
	if l.open == nil {
		return nil, ErrNoHub
	}
	select {
	case l.sem <- struct{}{}:
		defer func() { <-l.sem }()
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

// Close closes the team. No other method may be running or called later.
func (l *Link) Close() error {
	if l.team == nil {
		return nil
	}
	return l.team.Close()
}

// watchEvery and watchAgain are the intervals of Watch while the hub answers and while it does not.
const (
	watchEvery = 2 * time.Second
	watchAgain = 5 * time.Second
)

// Watch calls the function "see" with the open questions repeatedly until ctx ends. When the hub or this function
// fails, Watch calls the function "trouble" once with the error. When the error has ended, it calls "trouble" once with
// nil.
func (l *Link) Watch(ctx context.Context, see func(context.Context, *Team, []OpenQuestion) error, trouble func(error)) {
	ill := false
	for {
		err := l.lookOnce(ctx, see)
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

func (l *Link) lookOnce(ctx context.Context, see func(context.Context, *Team, []OpenQuestion) error) error {
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
