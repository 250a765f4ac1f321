// Package bot records in the user's own log the facts that belong to no single project of a bot.
// These are the list of projects, the chosen project of each contact, the project of each message,
// and the cursor of each channel.
//
// A message belongs to one project for ever. This is on record before the project gets the message.
//
// A bot is identified by the log of its home, which is the project that the bot belongs to. The state that follows from
// the log is in memory; there is no view.
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

// Place returns the name of a log: its path with resolved links, if the path exists.
func Place(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return path
}

// Projects returns the projects that a log's bot serves in addition to its own, in the order in which they were added.
// The result "ever" is true if the bot has ever had such a project. Since then, this package has the cursors of the
// channels.
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

// Add makes a bot serve a project from its next start on.
func Add(ctx context.Context, own *eventlog.Log, f fact.ServedProject) error {
	return record(ctx, own, event.NewFact(event.ProjectAdded, "user", event.Refs{}, f))
}

// Remove makes a bot stop serving a project from its next start on.
func Remove(ctx context.Context, own *eventlog.Log, f fact.ServedProject) error {
	return record(ctx, own, event.NewFact(event.ProjectRemoved, "user", event.Refs{}, f))
}

func record(ctx context.Context, own *eventlog.Log, events ...event.Event) error {
	_, err := own.Append(context.WithoutCancel(ctx), events...)
	return err
}

// Record is the recorded state of a bot. Only the bridge's process has it. Its methods may be
// called from several goroutines.
type Record struct {
	own  *eventlog.Log
	home string

	mu     sync.Mutex // guards the fields below
	chosen map[fact.Peer]string
	read   map[string]string
	routes channel.Recent[string] // the newest messages' projects, by input id
}

// newest is the number of routes that Record holds in memory, which is the size of a channel.Recent.
const newest = 4096

// Open reads the state of a log's bot from the user's own log.
func Open(ctx context.Context, own *eventlog.Log, home string) (*Record, error) {
	r := &Record{own: own, home: home, chosen: map[fact.Peer]string{}, read: map[string]string{}}
	for e, err := range own.Events(ctx, event.Query{Types: []event.Type{event.ProjectChosen, event.ChannelRead},
		Class: event.Fact}) {
		if err != nil {
			return nil, err
		}
		r.applyEvent(e)
	}
	var routes []event.Event
	for e, err := range own.Events(ctx, event.Query{Types: []event.Type{event.MessageRouted}, Class: event.Fact,
		Newest: true, Limit: newest}) {
		if err != nil {
			return nil, err
		}
		routes = append(routes, e)
	}
	for _, e := range slices.Backward(routes) {
		r.applyEvent(e)
	}
	return r, nil
}

// applyEvent applies an event. The caller holds mu or is the only user. An unreadable event comes
// from a later version.
func (r *Record) applyEvent(e event.Event) {
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

// appendEvents records events, all or none.
func (r *Record) appendEvents(ctx context.Context, events ...event.Event) error {
	if err := record(ctx, r.own, events...); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range events {
		r.applyEvent(e)
	}
	return nil
}

// Home returns the log of the project that the bot belongs to.
func (r *Record) Home() string { return r.home }

// Chosen returns the log of the project that gets a contact's messages. It is empty if the contact
// has none yet.
func (r *Record) Chosen(who fact.Peer) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.chosen[who]
}

// Cursor returns the cursor of a channel. ok is false before its first message.
func (r *Record) Cursor(channel string) (cursor string, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	cursor, ok = r.read[channel]
	return cursor, ok
}

// Read records the cursor of a channel. All messages before the cursor must be on record.
func (r *Record) Read(ctx context.Context, channel, cursor string) error {
	return r.appendEvents(ctx, event.NewFact(event.ChannelRead, "perlica", event.Refs{},
		fact.ChannelRead{Home: r.home, Channel: channel, Cursor: cursor}))
}

// Route records the project of a message. If the chosen project differs from the contact's current
// one, Route also records it as the contact's choice for all later messages.
func (r *Record) Route(ctx context.Context, input event.InputID, who fact.Peer, message, log, chosen string) error {
	f := fact.MessageRouted{Home: r.home, Channel: who.Channel, Message: message, Log: log}
	events := []event.Event{event.NewFact(event.MessageRouted, "perlica", event.Refs{Input: input}, f)}
	if chosen != r.Chosen(who) {
		events = append(events, event.NewFact(event.ProjectChosen, "user", event.Refs{Input: input},
			fact.ProjectChosen{Home: r.home, Peer: who, Log: chosen}))
	}
	return r.appendEvents(ctx, events...)
}

// Routed returns the log of a message's project, if the message is one of the newest.
func (r *Record) Routed(input event.InputID) (log string, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.routes.Get(string(input))
}

// Find returns the log of any message's project. It may read the whole log.
func (r *Record) Find(ctx context.Context, input event.InputID) (log string, ok bool, err error) {
	if log, ok = r.Routed(input); ok {
		return log, true, nil
	}
	for e, err := range r.own.Events(ctx, event.Query{Input: input, Types: []event.Type{event.MessageRouted},
		Class: event.Fact}) {
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
