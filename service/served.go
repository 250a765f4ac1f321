package service

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/perlica/perlica/service/channel"
)

// Opener opens the bridge of a project. done closes what is below it, behind the bridge; nil: nothing is.
type Opener func(ctx context.Context) (b *Bridge, done func() error, err error)

// served is one of the projects.
type served struct {
	log, name string
	open      Opener        // nil: it is the home
	wanted    chan struct{} // capacity 1: somebody turns to it, and it is not served

	mu     sync.Mutex // guards what follows
	b      *Bridge    // nil: there is none
	err    error      // why it is not served
	closed error      // what went wrong as its bridges were closed
}

// errRemoved says that a message is of a project that the bot does not serve any more, and errOpening that a
// project was not opened yet.
var (
	errRemoved = errors.New("it was removed")
	errOpening = errors.New("it is being opened")
)

// maxReopen is the longest wait before a project that is not served is opened once more.
const maxReopen = time.Minute

// working returns the bridge, or why there is none.
func (s *served) working() (*Bridge, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return nil, s.err
	}
	return s.b, nil
}

// fail takes note that a project is not served, or by that bridge no more.
func (p *Projects) fail(s *served, b *Bridge, err error) {
	s.mu.Lock()
	if s.b != nil && s.b != b {
		s.mu.Unlock()
		return // another bridge serves it now
	}
	known := s.err != nil && (s.b != nil || s.err.Error() == err.Error())
	if s.b == nil || s.err == nil {
		s.err = err
	}
	s.mu.Unlock()
	if !known {
		p.list[0].b.warn("a project is not served", "project", s.name, "error", err.Error())
	}
	if b != nil {
		b.fail(err)
	}
}

// want has a project that is not served be opened soon.
func (s *served) want() {
	if b, _ := s.working(); b == nil {
		select {
		case s.wanted <- struct{}{}:
		default:
		}
	}
}

// serve serves a project until ctx ends. Where that fails it begins anew, after a while or when somebody turns to the
// project: who repairs it need not start the bot anew. tried is called when it is served or has failed once.
func (p *Projects) serve(ctx context.Context, s *served, tried func()) {
	least := p.list[0].b.opt.Backoff
	for wait := least; ; wait = min(4*wait, maxReopen) {
		if p.serveOnce(ctx, s, tried) {
			wait = least
		}
		tried()
		// However often somebody turns to it, it is opened no more often than this.
		if !channel.Wait(ctx, least) {
			return
		}
		select {
		case <-s.wanted:
		case <-time.After(wait - least):
		case <-ctx.Done():
			return
		}
	}
}

// serveOnce opens a project and serves it until ctx ends or it fails. It reports whether it was served.
func (p *Projects) serveOnce(ctx context.Context, s *served, tried func()) (was bool) {
	b, done, err := s.open(ctx)
	if err != nil {
		p.fail(s, nil, err)
		return false
	}
	b.projects, b.served = p, s
	b.opt.Serving = func() {
		was = true
		s.mu.Lock()
		again := s.err != errOpening
		s.b, s.err = b, nil
		s.mu.Unlock()
		if again {
			p.list[0].b.info("a project is served again", "project", s.name)
		}
		tried()
	}
	if err := b.Run(ctx); err != nil {
		p.fail(s, b, err)
	}
	err = b.Close(context.WithoutCancel(ctx))
	if done != nil {
		err = errors.Join(err, done())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.b = nil; ctx.Err() != nil { // what failed before is known
		s.err, s.closed = cmp.Or(s.err, ErrClosed), err
	}
	return was
}
