package web

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
)

// limits are how many requests are taken: by client and by visitor. A page with all
// its tabs stays far below.
type limits struct{ ofClient, ofVisitor *limit }

func newLimits() *limits {
	return &limits{
		ofClient:  &limit{every: rate.Every(2 * time.Millisecond), burst: 2000, of: map[string]*rate.Limiter{}},
		ofVisitor: &limit{every: rate.Every(5 * time.Millisecond), burst: 1000, of: map[string]*rate.Limiter{}},
	}
}

// mostLimited is of how many a limit keeps an account. When there are more, all begin anew.
const mostLimited = 10_000

// limit is one for each name.
type limit struct {
	every rate.Limit
	burst int

	mu sync.Mutex
	of map[string]*rate.Limiter
}

func (l *limit) allow(name string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.of) >= mostLimited {
		clear(l.of)
	}
	one := l.of[name]
	if one == nil {
		one = rate.NewLimiter(l.every, l.burst)
		l.of[name] = one
	}
	return one.Allow()
}

// outflow is what all streams together are sent. While something happens that is limited: the run that they follow
// goes first, and many who follow a flood have it a little later. One or two never wait.
type outflow struct {
	limit *rate.Limiter // in bytes
	began time.Time
	news  atomic.Int64 // when a line came last, in nanoseconds since began
}

// How much is sent in a second, and at once, and for how long nothing must have happened for more.
const (
	perSecond = 16 << 20
	atOnce    = 1 << 20
	calm      = time.Second
)

func newOutflow() *outflow {
	return &outflow{limit: rate.NewLimiter(perSecond, atOnce), began: time.Now()}
}

// happens says that something happens now.
func (o *outflow) happens() { o.news.Store(int64(time.Since(o.began))) }

// wait returns when it is the turn of so many bytes.
func (o *outflow) wait(ctx context.Context, bytes int) error {
	for left := bytes; left > 0; left -= atOnce {
		if time.Since(o.began)-time.Duration(o.news.Load()) > calm {
			return ctx.Err()
		}
		if err := o.limit.WaitN(ctx, min(left, atOnce)); err != nil {
			return err
		}
	}
	return nil
}
