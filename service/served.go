package service

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/perlica/perlica/service/channel"
)

// Opener opens the bridge of a project. The caller calls done after closing the bridge, to close
// the resources below it. done may be nil.
type Opener func(ctx context.Context) (b *Bridge, done func() error, err error)

// served is one of the projects.
type served struct {
	log, name string
	open      Opener        // nil means the home
	wanted    chan struct{} // capacity 1: a message needs this project, which is not served

	mu     sync.Mutex // guards the fields below
	b      *Bridge    // nil means not open
	err    error      // the reason why the project is not served
	closed error      // errors of closed bridges
}

// errRemoved says that the bot no longer serves a message's project. errOpening says that a project
// is not open yet.
var (
	errRemoved = errors.New("it was removed")
	errOpening = errors.New("it is being opened")
)

// maxReopen is the longest wait before an unserved project is opened again.
const maxReopen = time.Minute

// working returns the bridge, or the reason why it does not run.
func (s *served) working() (*Bridge, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return nil, s.err
	}
	return s.b, nil
}

// markFailed records that a project is not served. If another bridge than b serves the project now, nothing changes.
func (p *Projects) markFailed(s *served, b *Bridge, err error) {
	s.mu.Lock()
	if s.b != nil && s.b != b {
		s.mu.Unlock()
		return // another bridge serves the project now
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

// requestOpen asks for an unserved project to be opened soon.
func (s *served) requestOpen() {
	if b, _ := s.working(); b == nil {
		select {
		case s.wanted <- struct{}{}:
		default:
		}
	}
}

// serveProject serves a project until ctx ends. After a failure it opens the project again, after a while or at the
// next message for it. A repaired project therefore needs no restart of the bot. serveProject calls the function
// "tried" when the project is served or has failed once.
func (p *Projects) serveProject(ctx context.Context, s *served, tried func()) {
	least := p.list[0].b.opt.Backoff
	for wait := least; ; wait = min(4*wait, maxReopen) {
		if p.serveOnce(ctx, s, tried) {
			wait = least
		}
		tried()
		// Wait at least this long, so that many messages do not open the project too often.
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

// serveOnce opens a project and serves it until ctx ends or the project fails. It reports whether
// the project was served.
func (p *Projects) serveOnce(ctx context.Context, s *served, tried func()) (was bool) {
	b, done, err := s.open(ctx)
	if err != nil {
		p.markFailed(s, nil, err)
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
		p.markFailed(s, b, err)
	}
	err = b.Close(context.WithoutCancel(ctx))
	if done != nil {
		err = errors.Join(err, done())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.b = nil; ctx.Err() != nil { // an earlier failure is already recorded
		s.err, s.closed = cmp.Or(s.err, errClosed), err
	}
	return was
}
