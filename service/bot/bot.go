// Package bot keeps on record, in the user's own log, what belongs to none of the projects that one bot serves:
// which ones these are, the project that each contact has chosen, to which one a message goes, and how far
// each channel has been read.
//
// It promises that a message is of one project for ever: that is on record before the project has it.
//
// The one idea: a bot is known by the log of the project that it is the bot of, its home. What follows from the
// log is in memory; there is no view.
package bot

import (
	"context"
	"path/filepath"
	"slices"
	"sync"

	"github.com/perlica/perlica/eventlog"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/store"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/service/channel"
)

// Place is the name of a log: its path, with links followed where it is there.
func Place(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return path
}

// Projects returns the projects that the bot of a log serves beside its own, in the order in which they were
// added. ever says that there was one at some time: since then its channels are read as this package
// has it.
func Projects(ctx context.Context, own *store.Reader, home string) (list []fact.ServedProject, ever bool, err error) {
	types := []event.Type{event.ProjectAdded, event.ProjectRemoved}
	for e, err := range own.Events(ctx, event.Query{Types: types, Class: event.Fact}) {
		if err != nil {
			return nil, false, err
		}
		var f fact.ServedProject
		if e.Decode(&f) != nil || f.Home != home {
			continue
		}
		ever = true
		list = slices.DeleteFunc(list, func(s fact.ServedProject) bool { return s.Project == f.Project })
		if e.Type == event.ProjectAdded {
			list = append(list, f)
		}
	}
	return list, ever, nil
}

// Add has a bot serve a project from its next start on.
func Add(ctx context.Context, own *eventlog.Log, f fact.ServedProject) error {
	return record(ctx, own, event.NewFact(event.ProjectAdded, "user", event.Refs{}, f))
}

// Remove has a bot serve a project no more from its next start on.
func Remove(ctx context.Context, own *eventlog.Log, f fact.ServedProject) error {
	return record(ctx, own, event.NewFact(event.ProjectRemoved, "user", event.Refs{}, f))
}

func record(ctx context.Context, own *eventlog.Log, events ...event.Event) error {
	_, err := own.Append(context.WithoutCancel(ctx), events...)
	return err
}

// Record is what is on record of a bot. One process at a time has it, that of the bridge. Its methods may be
// called from several goroutines.
type Record struct {
	own  *eventlog.Log
	home string

	mu     sync.Mutex // guards what follows
	chosen map[fact.Peer]string
	read   map[string]string
	routes channel.Recent[string] // the newest
}

// newest is how many routes are kept in memory: as many as a channel.Recent takes.
const newest = 4096

// Open reads what the user's own log says of the bot of a log.
func Open(ctx context.Context, own *eventlog.Log, home string) (*Record, error) {
	r := &Record{own: own, home: home, chosen: map[fact.Peer]string{}, read: map[string]string{}}
	for e, err := range own.Events(ctx, event.Query{Types: []event.Type{event.ProjectChosen, event.ChannelRead}, Class: event.Fact}) {
		if err != nil {
			return nil, err
		}
		r.apply(e)
	}
	var routes []event.Event
	for e, err := range own.Events(ctx, event.Query{Types: []event.Type{event.MessageRouted}, Class: event.Fact, Newest: true, Limit: newest}) {
		if err != nil {
			return nil, err
		}
		routes = append(routes, e)
	}
	for _, e := range slices.Backward(routes) {
		r.apply(e)
	}
	return r, nil
}

// apply takes in an event, while no one else has the Record or mu is held. One that cannot be read is of a later version.
func (r *Record) apply(e event.Event) {
	switch e.Type {
	case event.ProjectChosen:
		if f := (fact.ProjectChosen{}); e.Decode(&f) == nil && f.Home == r.home {
			r.chosen[f.Peer] = f.Log
		}
	case event.ChannelRead:
		if f := (fact.ChannelRead{}); e.Decode(&f) == nil && f.Home == r.home {
			r.read[f.Channel] = f.Cursor
		}
	case event.MessageRouted:
		if f := (fact.MessageRouted{}); e.Decode(&f) == nil && f.Home == r.home {
			r.routes.Put(string(e.Input), f.Log)
		}
	}
}

// append puts events on record, all or none.
func (r *Record) append(ctx context.Context, events ...event.Event) error {
	if err := record(ctx, r.own, events...); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range events {
		r.apply(e)
	}
	return nil
}

// Home is the log of the project whose bot it is.
func (r *Record) Home() string { return r.home }

// Chosen is the log of the project to which a contact's messages go; empty: it has none yet.
func (r *Record) Chosen(who fact.Peer) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.chosen[who]
}

// Cursor returns how far a channel has been read; ok is false before its first message.
func (r *Record) Cursor(channel string) (cursor string, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	cursor, ok = r.read[channel]
	return cursor, ok
}

// Read puts on record how far a channel has been read. All that the cursor passes must be on record.
func (r *Record) Read(ctx context.Context, channel, cursor string) error {
	return r.append(ctx, event.NewFact(event.ChannelRead, "perlica", event.Refs{}, fact.ChannelRead{Home: r.home, Channel: channel, Cursor: cursor}))
}

// Route puts on record to which project a message goes, and, if it is not the same, that its contact has chosen
// that one: for all that comes behind it.
func (r *Record) Route(ctx context.Context, input event.InputID, who fact.Peer, message, log, chosen string) error {
	f := fact.MessageRouted{Home: r.home, Channel: who.Channel, Message: message, Log: log}
	events := []event.Event{event.NewFact(event.MessageRouted, "perlica", event.Refs{Input: input}, f)}
	if chosen != r.Chosen(who) {
		events = append(events, event.NewFact(event.ProjectChosen, "user", event.Refs{Input: input}, fact.ProjectChosen{Home: r.home, Peer: who, Log: chosen}))
	}
	return r.append(ctx, events...)
}

// Routed returns the log of the project to which a message went, if it is one of the newest.
func (r *Record) Routed(input event.InputID) (log string, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.routes.Get(string(input))
}

// Find is Routed for all messages. It may read all of the log.
func (r *Record) Find(ctx context.Context, input event.InputID) (log string, ok bool, err error) {
	if log, ok = r.Routed(input); ok {
		return log, true, nil
	}
	for e, err := range r.own.Events(ctx, event.Query{Input: input, Types: []event.Type{event.MessageRouted}, Class: event.Fact}) {
		var f fact.MessageRouted
		if err != nil {
			return "", false, err
		}
		if e.Decode(&f) == nil && f.Home == r.home {
			return f.Log, true, nil
		}
	}
	return "", false, nil
}
