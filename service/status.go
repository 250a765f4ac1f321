package service

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/perlica/perlica/kernel/fact"
)

// Status is how a bridge is, as far as it is on record.
type Status struct {
	Running  bool            `json:"running"` // as far as is on record; the lock tells whether it lives
	Since    time.Time       `json:"since"`
	Why      string          `json:"why,omitempty"` // it ended
	Channels []ChannelStatus `json:"channels"`
	Contacts []Contact       `json:"contacts"`
	// Unconfirmed are named by the log, and have no rights: see [Records.Unconfirmed].
	Unconfirmed []Contact `json:"unconfirmed,omitempty"`
	Waiting     int       `json:"waiting"`   // messages without an outcome
	Unsent      int       `json:"unsent"`    // messages to contacts
	Unknown     int       `json:"unknown"`   // of these: that the platform may have taken before
	Failed      int       `json:"failed"`    // that were given up
	Ignored     int       `json:"ignored"`   // strangers, as far as is on record
	LastWhy     string    `json:"last_fail"` // why the last attempt to send failed, while it waits
}

// ChannelStatus is how a channel is.
type ChannelStatus struct {
	Name   string    `json:"name"`
	Served bool      `json:"served"`
	Error  string    `json:"error,omitempty"` // it cannot be read
	Since  time.Time `json:"since,omitzero"`
}

// Status reads how the bridge is.
func (r *Records) Status(ctx context.Context) (s Status, err error) {
	if s.Contacts, err = r.Contacts(ctx); err != nil {
		return s, err
	}
	if s.Unconfirmed, err = r.Unconfirmed(ctx); err != nil {
		return s, err
	}
	db := r.view.DB()
	err = db.QueryRowxContext(ctx, `
		SELECT
			(SELECT count(*) FROM inbox WHERE finished = ''),
			(SELECT count(*) FROM outbox WHERE state IN ('queued', 'started')),
			(SELECT count(*) FROM outbox WHERE state IN ('queued', 'started') AND repeated),
			(SELECT count(*) FROM outbox WHERE state = 'failed' AND kind NOT IN ('status', 'status_end')),
			(SELECT coalesce(sum(ignored), 0) FROM strangers),
			(SELECT coalesce((SELECT error FROM outbox WHERE state = 'queued' AND error <> '' ORDER BY seq DESC LIMIT 1), ''))`).
		Scan(&s.Waiting, &s.Unsent, &s.Unknown, &s.Failed, &s.Ignored, &s.LastWhy)
	if err != nil {
		return s, err
	}
	var rows []struct {
		Running       bool
		At            int64
		Channels, Why string
	}
	if err := db.SelectContext(ctx, &rows, `SELECT running, channels, at, why FROM bridge`); err != nil {
		return s, err
	}
	for _, row := range rows {
		s.Running, s.Since, s.Why = row.Running, time.Unix(0, row.At), row.Why
		var served []string
		_ = json.Unmarshal([]byte(row.Channels), &served) // the view wrote it
		for _, name := range served {
			s.Channels = append(s.Channels, ChannelStatus{Name: name, Served: true})
		}
	}
	var channels []struct {
		Name, Error string
		Since       int64
	}
	if err := db.SelectContext(ctx, &channels, `SELECT name, error, since FROM channels ORDER BY name`); err != nil {
		return s, err
	}
	for _, c := range channels {
		i := slices.IndexFunc(s.Channels, func(o ChannelStatus) bool { return o.Name == c.Name })
		if i < 0 {
			s.Channels = append(s.Channels, ChannelStatus{Name: c.Name})
			i = len(s.Channels) - 1
		}
		if s.Channels[i].Error = c.Error; c.Error != "" {
			s.Channels[i].Since = time.Unix(0, c.Since)
		}
	}
	return s, nil
}

// Live is what a bridge of this process does now, beside what is on record.
type Live struct {
	Status
	Turns     []string // under way: who, and the beginning of what
	Queued    int      // messages that wait for their turn
	InLine    int      // contacts of which one waits
	Held      int      // messages that wait for their senders
	Questions []string // that wait: who is asked, and what
	Errors    []string // the last ones
	Projects  []string // where its bot serves several: each, and how it is
}

// Live returns what the bridge does now.
func (b *Bridge) Live(ctx context.Context) (l Live, err error) {
	if l.Status, err = b.records.Status(ctx); err != nil {
		return l, err
	}
	names := map[fact.Peer]string{}
	for i, name := range Names(l.Contacts) {
		names[l.Contacts[i].key()] = name
	}
	who := func(p fact.Peer) string { return cmp.Or(names[p], "somebody who was paired") }
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, d := range b.desk {
		d.mu.Lock()
		if d.now != nil {
			text, _, _ := strings.Cut(strings.TrimSpace(d.now.Text), "\n")
			l.Turns = append(l.Turns, who(d.key)+": "+text)
		}
		queued, held := d.waiting()
		l.Queued, l.Held = l.Queued+queued, l.Held+held
		if queued > 0 {
			l.InLine++
		}
		d.mu.Unlock()
	}
	for _, a := range b.asked {
		if a.there != nil {
			l.Questions = append(l.Questions, a.there.Worker+" (team): "+a.Title)
			continue
		}
		l.Questions = append(l.Questions, who(a.owner)+": "+a.Title)
	}
	slices.Sort(l.Turns)
	slices.Sort(l.Questions)
	l.Errors = slices.Clone(b.lastErrors)
	return l, nil
}

// Names are what people call each of the contacts: by name and channel, and by the platform's id only where
// that is not enough.
func Names(list []Contact) (names []string) {
	count := map[string]int{}
	for _, c := range list {
		count[c.called()]++
	}
	for _, c := range list {
		if c.Name == "" || count[c.called()] > 1 {
			names = append(names, c.Label())
			continue
		}
		names = append(names, c.called())
	}
	return names
}

func (c Contact) called() string { return c.Name + " (" + c.Channel + ")" }
