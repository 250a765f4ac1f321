package discord

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/perlica/perlica/service/channel"
)

// longestWait is the longest pause of a rate limit that a request waits for. If the pause is longer, the request
// fails at once.
const longestWait = 5 * time.Second

// longestLimit is the longest pause that an answer can demand.
const longestLimit = 24 * time.Hour

// rateLimits has the rate limits that Discord's answers have named. A route is a method with a path, without its ids.
// Several routes may share a bucket. Each channel of Discord has a bucket of its own.
type rateLimits struct {
	mu      sync.Mutex
	buckets map[string]string    // by route
	until   map[string]time.Time // the end of an exhausted bucket, by bucket and channel
	global  time.Time            // the end of a pause for all routes
}

// await waits until a request may leave. Its error wraps channel.ErrNotSent.
func (l *rateLimits) await(ctx context.Context, route, chat string) error {
	for {
		pause := l.pause(route, chat)
		switch {
		case pause <= 0:
			return nil
		case pause > longestWait:
			return &channel.RateLimitError{After: pause}
		case !channel.Wait(ctx, pause):
			return fmt.Errorf("%w: %w", channel.ErrNotSent, ctx.Err())
		}
	}
}

func (l *rateLimits) pause(route, chat string) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return max(time.Until(l.global), time.Until(l.until[l.bucket(route)+" "+chat]))
}

// bucket returns the bucket of a route, or the route if Discord has not named its bucket. The caller holds mu.
func (l *rateLimits) bucket(route string) string {
	if name := l.buckets[route]; name != "" {
		return name
	}
	return route
}

// learn reads the limits from an answer. The parameter "after" is the pause that an answer 429 demands, otherwise 0.
func (l *rateLimits) learn(route, chat string, h http.Header, after time.Duration, global bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.buckets == nil {
		l.buckets, l.until = map[string]string{}, map[string]time.Time{}
	}
	if name := h.Get("X-RateLimit-Bucket"); name != "" {
		l.buckets[route] = name
	}
	now := time.Now()
	for key, end := range l.until {
		if now.After(end) {
			delete(l.until, key)
		}
	}
	if global {
		l.global = now.Add(after)
		return
	}
	if h.Get("X-RateLimit-Remaining") == "0" {
		after = max(after, seconds(h.Get("X-RateLimit-Reset-After")))
	}
	if after > 0 {
		l.until[l.bucket(route)+" "+chat] = now.Add(after)
	}
}

// seconds returns a duration from a number of seconds, which may have a fraction. It returns 0 for any other text.
func seconds(text string) time.Duration {
	s, err := strconv.ParseFloat(text, 64)
	if err != nil || !(s > 0) {
		return 0
	}
	return time.Duration(min(s, longestLimit.Seconds()) * float64(time.Second))
}
