package web

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/kernel"
)

// talks are the sessions in which inputs came: each keeps its agent until no input has come for a
// while. Then it is given up, so that others may go on in it.
type talks struct {
	idle   time.Duration
	agents int // that may live at a time

	opening sync.Mutex // held while one is opened or given up; taken before mu
	mu      sync.Mutex // guards what follows
	open    map[talkKey]*talk
}

type talkKey struct {
	at      place
	session event.SessionID
}

// talk is a session that is held.
type talk struct {
	conv   *kernel.Conversation
	runner *kernel.Runner
	dir    string
	turn   chan struct{} // capacity 1: held by the input that is answered

	// Guarded by the mutex of talks.
	users int
	used  time.Time
	rest  *time.Timer
}

// take returns the talk in a session, or in a new one. The caller must put it back.
func (ts *talks) take(ctx context.Context, l *eventLog, key talkKey, provider, dir string) (*talk, error) {
	ts.opening.Lock()
	defer ts.opening.Unlock()
	if k := ts.use(key); k != nil {
		if dir != "" && dir != k.dir {
			ts.put(k)
			return nil, unfit.is("the session's agent works in another directory")
		}
		if provider != "" && provider != k.conv.Provider() {
			ts.put(k)
			return nil, unfit.is("the session stays with its provider, " + k.conv.Provider())
		}
		return k, nil
	}
	r, p, err := l.work(ctx)
	if err != nil {
		return nil, err
	}
	if key.session != "" {
		if _, ok, err := r.Log().Last(ctx, event.Query{Session: key.session, Class: event.Fact}); err != nil || !ok {
			return nil, errors.Join(notFound.is("there is no such session in this project"), err)
		}
	}
	setup, err := p.Conversation(ctx, r, key.session, provider)
	if err != nil {
		return nil, err
	}
	if provider != "" && setup.Agent.ID != provider {
		return nil, unfit.is("the session stays with its provider, " + setup.Agent.ID)
	}
	if dir != "" {
		setup.Dir = dir
	}
	conv, err := r.Converse(ctx, setup, 0, source)
	if err != nil {
		return nil, err
	}
	key.session = conv.Session()
	k := &talk{conv: conv, runner: r, dir: setup.Dir, turn: make(chan struct{}, 1), users: 1, used: time.Now()}
	k.rest = time.AfterFunc(ts.idle, func() { ts.giveUp(key, k) })
	k.rest.Stop()
	ts.mu.Lock()
	ts.open[key] = k
	ts.mu.Unlock()
	return k, nil
}

// use returns the talk that is open, with one user more; nil: there is none.
func (ts *talks) use(key talkKey) *talk {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	k := ts.open[key]
	if k != nil {
		k.users++
		k.rest.Stop()
	}
	return k
}

// put gives a talk back.
func (ts *talks) put(k *talk) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	k.used = time.Now()
	if k.users--; k.users == 0 {
		k.rest.Reset(ts.idle)
	}
}

// giveUp ends the agent and frees the session, unless an input has come.
func (ts *talks) giveUp(key talkKey, k *talk) {
	ts.opening.Lock()
	defer ts.opening.Unlock()
	ts.mu.Lock()
	mine := ts.open[key] == k && k.users == 0
	if mine {
		delete(ts.open, key)
	}
	ts.mu.Unlock()
	if mine {
		_ = k.conv.Close(context.Background()) // what failed is on record
	}
}

// makeRoom ends the agents that have been idle longest, until there is room for one more.
func (ts *talks) makeRoom(me *talk) {
	for {
		ts.mu.Lock()
		alive := 0
		var oldest *talk
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

// close gives up all of them. No input may be under way.
func (ts *talks) close() {
	ts.opening.Lock()
	defer ts.opening.Unlock()
	ts.mu.Lock()
	all := ts.open
	ts.open = map[talkKey]*talk{}
	ts.mu.Unlock()
	for _, k := range all {
		k.rest.Stop()
		_ = k.conv.Close(context.Background()) // what failed is on record
	}
}
