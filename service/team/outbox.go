package team

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/perlica/perlica/service/team/hub"
)

// outbox hands to the hub what it is to know, in order, and again until it has it. All of it is on the worker's log
// before: what is lost here with the process is told again by what looks at the log.
type outbox struct {
	trouble func(error)

	mu     sync.Mutex // guards what follows
	list   []func(context.Context) error
	change chan struct{} // capacity 1: list or closed changed
	closed bool
	end    context.Context // with closed: how long it may still take
}

func newOutbox(trouble func(error)) *outbox {
	return &outbox{trouble: trouble, change: make(chan struct{}, 1)}
}

// put adds what is to be told.
func (o *outbox) put(f func(context.Context) error) {
	o.mu.Lock()
	o.list = append(o.list, f)
	o.mu.Unlock()
	o.wake()
}

func (o *outbox) wake() {
	select {
	case o.change <- struct{}{}:
	default:
	}
}

// close has run return when all is told, or after a time.
func (o *outbox) close(limit time.Duration) {
	o.mu.Lock()
	o.closed = true
	var cancel context.CancelFunc
	o.end, cancel = context.WithTimeout(context.Background(), limit)
	context.AfterFunc(o.end, cancel)
	o.mu.Unlock()
	o.wake()
}

// next returns what is to be told next, and whether the outbox is closed and empty.
func (o *outbox) next() (f func(context.Context) error, end context.Context, over bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.list) > 0 {
		return o.list[0], o.end, o.end != nil && o.end.Err() != nil
	}
	return nil, o.end, o.closed
}

// run tells until the outbox is closed; ctx ends what is under way when the process is to end at once.
func (o *outbox) run(ctx context.Context) {
	for {
		f, end, over := o.next()
		if over {
			return
		}
		if f == nil {
			<-o.change
			continue
		}
		under := ctx
		if end != nil {
			under = end
		}
		err := f(under)
		if err == nil || errors.Is(err, hub.ErrNoClaim) || errors.Is(err, hub.ErrNotAllowed) {
			// Told; or this hub will never take it: it was restored from before the claim, or this worker has left.
			o.mu.Lock()
			o.list = o.list[1:]
			o.mu.Unlock()
			continue
		}
		o.trouble(err)
		select {
		case <-o.change:
		case <-time.After(pulseEvery):
		}
	}
}
