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

// Status is the recorded state of a bridge.
type Status struct {
	Running  bool            `json:"running"` // on record; the lock tells whether the process lives
	Since    time.Time       `json:"since"`
	Why      string          `json:"why,omitempty"` // the reason of the end
	Channels []ChannelStatus `json:"channels"`
	Contacts []Contact       `json:"contacts"`
	// Unconfirmed lists the contacts on the log without rights; see [Records.Unconfirmed].
	Unconfirmed []Contact `json:"unconfirmed,omitempty"`
	Waiting     int       `json:"waiting"`   // messages without an outcome
	Unsent      int       `json:"unsent"`    // messages to contacts
	Unknown     int       `json:"unknown"`   // unsent messages that the platform may have received before
	Failed      int       `json:"failed"`    // messages that were given up
	Ignored     int       `json:"ignored"`   // recorded refusals of strangers
	LastWhy     string    `json:"last_fail"` // the reason of the last failed attempt; empty if no failed message waits
}

// ChannelStatus is the state of a channel.
type ChannelStatus struct {
	Name   string    `json:"name"`
	Served bool      `json:"served"`
	Error  string    `json:"error,omitempty"` // the channel cannot be read
	Since  time.Time `json:"since,omitzero"`
}

// Status reads the state of the bridge.
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
		_ = json.Unmarshal([]byte(row.Channels), &served) // the view wrote this text
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

// Live is the current state of a running bridge, in addition to its record.
type Live struct {
	Status
	Turns     []string // running turns: the contact and the beginning of the input
	Queued    int      // messages that wait for their turn
	InLine    int      // contacts with a message that waits for its turn
	Held      int      // messages that wait for their senders
	Questions []string // open questions: the asked contact and the title
	Errors    []string // the latest ones
	Projects  []string // the state of each project, if the bot serves several
}

// Live returns the current state of the bridge.
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
	for _, ib := range b.inboxByPeer {
		ib.mu.Lock()
		if ib.now != nil {
			text, _, _ := strings.Cut(strings.TrimSpace(ib.now.Text), "\n")
			l.Turns = append(l.Turns, who(ib.key)+": "+text)
		}
		queued, held := ib.waiting()
		l.Queued, l.Held = l.Queued+queued, l.Held+held
		if queued > 0 {
			l.InLine++
		}
		ib.mu.Unlock()
	}
	for _, a := range b.openQuestions {
		if a.team != nil {
			l.Questions = append(l.Questions, a.team.Worker+" (team): "+a.Title)
			continue
		}
		l.Questions = append(l.Questions, who(a.owner)+": "+a.Title)
	}
	slices.Sort(l.Turns)
	slices.Sort(l.Questions)
	l.Errors = slices.Clone(b.lastErrors)
	return l, nil
}

// Names returns a short name for each contact: its name and channel. If two contacts have the same short name, it also
// has the platform's id.
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
