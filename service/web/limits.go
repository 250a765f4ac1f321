package web

import (
	"sync"
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
