package channel

import (
	"context"
	"errors"
	"sync"
)

// ErrClosed is the error of a Poll that Close has ended, and of each later one.
var ErrClosed = errors.New("the channel is closed")

// A Lifetime ends the Poll and the goroutines of a channel with the channel. Its methods may be called from several
// goroutines.
type Lifetime struct {
	ctx    context.Context // ends with Close
	cancel context.CancelFunc

	mu sync.Mutex // held at the beginning of a Poll and of Close, so that no Poll begins after Close
	wg sync.WaitGroup
}

// NewLifetime returns a lifetime that has begun.
func NewLifetime() *Lifetime {
	l := &Lifetime{}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	return l
}

// Context returns a context that ends with Close.
func (l *Lifetime) Context() context.Context { return l.ctx }

// Poll calls the function "once" with a context that ends with ctx and with Close. After Close it returns ErrClosed.
func (l *Lifetime) Poll(ctx context.Context, cursor string,
	once func(ctx context.Context, cursor string) ([]Inbound, string, error)) (list []Inbound, next string, err error) {
	l.mu.Lock()
	if l.ctx.Err() != nil {
		l.mu.Unlock()
		return nil, cursor, ErrClosed
	}
	l.wg.Add(1)
	l.mu.Unlock()
	defer l.wg.Done()
	either, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(l.ctx, cancel)()
	list, next, err = once(either, cursor)
	if err != nil && ctx.Err() == nil && either.Err() != nil {
		return nil, cursor, ErrClosed
	}
	return list, next, err
}

// Go starts a goroutine. Only the function of Poll and other goroutines of this lifetime may call Go.
func (l *Lifetime) Go(f func()) { l.wg.Go(f) }

// Close ends the context and waits for Poll and the goroutines. Later calls do nothing.
func (l *Lifetime) Close() {
	l.mu.Lock()
	l.cancel()
	l.mu.Unlock()
	l.wg.Wait()
}
