package kernel

import "context"

// queue is a mutex whose waiters can leave. It has a capacity of one, and is full while
// somebody holds it.
type queue chan struct{}

func (q queue) Lock()   { q <- struct{}{} }
func (q queue) Unlock() { <-q }

func (q queue) TryLock() bool {
	select {
	case q <- struct{}{}:
		return true
	default:
		return false
	}
}

// wait is Lock until ctx is done or stop says so. Without a wait, stop is not looked at: what
// comes of a stop is then for the turn to say.
func (q queue) wait(ctx context.Context, stop <-chan Stop) error {
	if q.TryLock() {
		return nil
	}
	select {
	case q <- struct{}{}:
		return nil
	case s := <-stop:
		return &StoppedError{s}
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
