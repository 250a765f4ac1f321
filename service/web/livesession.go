package web

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/kernel"
)

// liveSessions holds the sessions that received inputs. Each session keeps its agent until it has
// had no input for the idle time. The server then releases the session, so that other processes may
// continue it.
type liveSessions struct {
	idle   time.Duration
	agents int // largest number of live agents

	opening sync.Mutex // held while a session is opened or given up; taken before mu
	// mu guards the fields below.
	mu   sync.Mutex
	open map[sessionKey]*liveSession
}

type sessionKey struct {
	at      place
	session event.SessionID
}

// liveSession is a session that this server holds.
type liveSession struct {
	conv    *kernel.Conversation
	runner  *kernel.Runner
	dir     string
	turnSem chan struct{} // capacity 1: held by the running input

	// The fields below are guarded by liveSessions.mu.
	users int
	used  time.Time
	rest  *time.Timer
}

// acquireSession returns the live session of the key, or opens it. The caller must release it.
func (ts *liveSessions) acquireSession(ctx context.Context, l *eventLog, key sessionKey, provider,
	dir string) (*liveSession, error) {
	ts.opening.Lock()
	defer ts.opening.Unlock()
	if k := ts.useOpen(key); k != nil {
		if dir != "" && dir != k.dir {
			ts.releaseSession(k)
			return nil, unfit.problem(otherDir)
		}
		if provider != "" && provider != k.conv.Provider() {
			ts.releaseSession(k)
			return nil, unfit.problem(otherProvider.With(k.conv.Provider()))
		}
		return k, nil
	}
	r, p, err := l.openRunner(ctx)
	if err != nil {
		return nil, err
	}
	if key.session != "" {
		if _, ok, err := r.Log().Last(ctx, event.Query{Session: key.session, Class: event.Fact}); err != nil || !ok {
			return nil, errors.Join(notFound.problem(noSession), err)
		}
	}
	setup, err := p.Conversation(ctx, r, key.session, provider)
	if err != nil {
		return nil, err
	}
	if provider != "" && setup.Agent.ID != provider {
		return nil, unfit.problem(otherProvider.With(setup.Agent.ID))
	}
	if dir != "" {
		setup.Dir = dir
	}
	conv, err := r.Converse(ctx, setup, 0, source)
	if err != nil {
		return nil, err
	}
	key.session = conv.Session()
	k := &liveSession{conv: conv, runner: r, dir: setup.Dir, turnSem: make(chan struct{}, 1), users: 1, used: time.Now()}
	k.rest = time.AfterFunc(ts.idle, func() { ts.giveUp(key, k) })
	k.rest.Stop()
	ts.mu.Lock()
	ts.open[key] = k
	ts.mu.Unlock()
	return k, nil
}

// useOpen returns the open session and counts one more user. It returns nil if the session is not
// open.
func (ts *liveSessions) useOpen(key sessionKey) *liveSession {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	k := ts.open[key]
	if k != nil {
		k.users++
		k.rest.Stop()
	}
	return k
}

// releaseSession ends one use of a session.
func (ts *liveSessions) releaseSession(k *liveSession) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	k.used = time.Now()
	if k.users--; k.users == 0 {
		k.rest.Reset(ts.idle)
	}
}

// giveUp ends the agent and frees the session unless a new input has come.
func (ts *liveSessions) giveUp(key sessionKey, k *liveSession) {
	ts.opening.Lock()
	defer ts.opening.Unlock()
	ts.mu.Lock()
	mine := ts.open[key] == k && k.users == 0
	if mine {
		delete(ts.open, key)
	}
	ts.mu.Unlock()
	if mine {
		// Close has recorded its error on the log, so the error needs no handling here.
		_ = k.conv.Close(context.Background())
	}
}

// makeRoom ends the agents with the longest idle time until one more agent may live.
func (ts *liveSessions) makeRoom(me *liveSession) {
	for {
		ts.mu.Lock()
		alive := 0
		var oldest *liveSession
		for _, k := range ts.open {
			if k == me || !k.conv.Alive() {
				continue
			}
			if alive++; k.users == 0 && (oldest == nil || k.used.Before(oldest.used)) {
				oldest = k
			}
		}
		ts.mu.Unlock()
		if alive < ts.agents || oldest == nil || !oldest.conv.Rest() {
			return
		}
	}
}

// closeAll gives up all sessions. No input may be running.
func (ts *liveSessions) closeAll() {
	ts.opening.Lock()
	defer ts.opening.Unlock()
	ts.mu.Lock()
	all := ts.open
	ts.open = map[sessionKey]*liveSession{}
	ts.mu.Unlock()
	for _, k := range all {
		k.rest.Stop()
		// Close has recorded its error on the log, so the error needs no handling here.
		_ = k.conv.Close(context.Background())
	}
}
