package notify

import (
	"context"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/store"
	"github.com/perlica/perlica/interaction"
	"github.com/perlica/perlica/kernel/config"
	"github.com/perlica/perlica/kernel/fact"
)

// These are the kinds of causes, as the configuration names them.
const (
	question = "question"
	finished = "finished"
	failed   = "failed"
	unknown  = "unknown"
	budget   = "budget"
	schedule = "schedule"
)

// cause is an event that may make a notification.
type cause struct {
	Seq event.Seq
	ID  string // the event's id
	event.Refs
	at      time.Time
	kinds   []string      // the first one names the cause
	lasted  time.Duration // the duration of a turn or of a flow run
	planned bool          // a schedule made the input or the flow run
	flow    string        // the id of a finished flow run, or ""
	until   time.Time     // the end of a question
}

// watched are the types of the events that a ledger reads.
var watched = []event.Type{
	event.InteractionRequested, event.InteractionAnswered, event.InteractionLapsed, event.InteractionResolved,
	event.Responded, event.ProviderError, event.OutcomeUnknown,
	event.FlowFinished, event.BudgetWarned, event.BudgetRefused, event.ScheduleMissed,
	event.NotifyStarted, event.NotifySent, event.NotifyFailed,
}

// causeOf returns the cause of a notification in an event. ok is false for an event that never makes a notification,
// and for an event without its payload.
func causeOf(e event.Event) (c cause, ok bool) {
	c = cause{Seq: e.Seq, ID: e.ID, Refs: e.Refs, at: e.Time, planned: bySchedule(e.Input)}
	ofStep := strings.HasPrefix(string(e.Input), event.FlowPrefix) // the end of the flow run tells about its steps
	switch e.Type {
	case event.InteractionRequested:
		q, err := fact.Decode[interaction.Question](e)
		c.kinds, c.until = []string{question}, q.Expires
		return c, err == nil && q.Expires.After(e.Time) // a question that has already expired asks nobody
	case event.Responded:
		r, err := fact.Decode[fact.Responded](e)
		c.kinds, c.lasted = []string{finished}, time.Duration(r.DurationMS)*time.Millisecond
		return c, err == nil && !ofStep
	case event.ProviderError:
		r, err := fact.Decode[fact.Failed](e)
		c.kinds, c.lasted = []string{failed}, time.Duration(r.DurationMS)*time.Millisecond
		if c.planned {
			c.kinds = []string{failed, schedule}
		}
		return c, err == nil && !ofStep
	case event.FlowFinished:
		return flowCause(c, e)
	case event.OutcomeUnknown:
		c.kinds = []string{unknown}
		if c.planned {
			c.kinds = []string{unknown, schedule}
		}
		return c, true
	case event.BudgetWarned, event.BudgetRefused:
		c.kinds = []string{budget}
		return c, true
	case event.ScheduleMissed:
		c.kinds = []string{schedule}
		return c, true
	}
	return c, false
}

// bySchedule reports whether a schedule made the input, or the flow run of the input.
func bySchedule(id event.InputID) bool {
	return strings.HasPrefix(strings.TrimPrefix(string(id), event.FlowPrefix), event.SchedulePrefix)
}

// flowCause adds the end of a flow run to its cause. A cancelled flow run makes no notification, because a person
// cancelled it.
func flowCause(c cause, e event.Event) (cause, bool) {
	f, err := fact.Decode[fact.FlowFinished](e)
	c.flow = strings.TrimPrefix(string(e.Run), event.FlowPrefix)
	c.planned = bySchedule(event.InputID(e.Run))
	c.kinds = []string{finished}
	if f.Outcome == fact.FlowFailed {
		c.kinds = []string{failed}
		if c.planned {
			c.kinds = []string{failed, schedule}
		}
	}
	return c, err == nil && f.Outcome != fact.FlowCancelled
}

// due returns the time at which a cause makes a notification by a rule. ok is false if it makes none.
func due(c cause, r config.Notify) (at time.Time, ok bool) {
	for _, kind := range c.kinds {
		if !slices.Contains(r.When, kind) {
			continue
		}
		switch kind {
		case question:
			at = c.at.Add(r.After)
			return at, at.Before(c.until)
		case finished, failed:
			// A turn shorter than the rule's time makes no notification, because a person still waits at the terminal.
			// Nobody waits for a schedule's turn, so each such turn makes one.
			if c.lasted < r.After && !c.planned {
				continue
			}
		}
		return c.at, true
	}
	return at, false
}

// ledger has the notifications for one target that are not delivered yet. It follows from the events of the log alone.
type ledger struct {
	target string // the digest
	rules  []config.Notify
	since  time.Time // events before this time make no notification

	head    event.Seq // all events up to head were read
	begun   bool
	entries []*entry
}

// entry is one notification.
type entry struct {
	cause    cause
	content  bool
	first    time.Time // the time at which the notification was first due
	due      time.Time // the time of the next attempt
	attempts int
	started  bool   // the last attempt has no result
	over     bool   // its question was closed during an attempt, so a failure is not repeated
	err      string // the error of the last attempt
}

// read applies the new events of the log. It drops the causes that are too old for a first attempt, for example after
// the machine slept.
func (l *ledger) read(ctx context.Context, log *store.Reader, now time.Time) error {
	defer func() {
		l.entries = slices.DeleteFunc(l.entries, func(e *entry) bool {
			return e.attempts == 0 && now.After(e.first.Add(maxAge))
		})
	}()
	newest, _, err := log.Last(ctx, event.Query{})
	if err != nil || newest.Seq == l.head {
		return err
	}
	if !l.begun {
		if err := l.skip(ctx, log, now); err != nil {
			return err
		}
	}
	events := log.Events(ctx, event.Query{After: l.head, Until: newest.Seq, Types: watched})
	if err := l.follow(ctx, log, events); err != nil {
		return err
	}
	l.head, l.begun = newest.Seq, true
	return nil
}

// follow applies events and moves the head. After an error, a later call can begin after the head and repeats no event.
func (l *ledger) follow(ctx context.Context, log *store.Reader, events iter.Seq2[event.Event, error]) error {
	for e, err := range events {
		if err != nil {
			return err
		}
		if err := l.apply(ctx, log, e); err != nil {
			return err
		}
		l.head, l.begun = e.Seq, true
	}
	return nil
}

// skip sets the head to the newest event that is too old to make a notification.
func (l *ledger) skip(ctx context.Context, log *store.Reader, now time.Time) error {
	horizon := now.Add(-maxAge - longestAfter(l.rules))
	for e, err := range log.Events(ctx, event.Query{Types: watched, Newest: true}) {
		if err != nil {
			return err
		}
		if e.Time.Before(horizon) {
			l.head = e.Seq
			return nil
		}
	}
	return nil
}

// apply applies one event.
func (l *ledger) apply(ctx context.Context, log *store.Reader, e event.Event) error {
	switch e.Type {
	case event.NotifyStarted, event.NotifySent, event.NotifyFailed:
		if f, err := fact.Decode[fact.Notified](e); err == nil && f.Target == l.target {
			l.applyAttempt(e.Type, f)
		}
		return nil
	case event.InteractionAnswered, event.InteractionLapsed, event.InteractionResolved:
		l.entries = slices.DeleteFunc(l.entries, func(one *entry) bool {
			closed := one.cause.kinds[0] == question && one.cause.Interaction == e.Interaction
			one.over = one.over || closed
			return closed && !one.started
		})
		return nil
	}
	c, ok := causeOf(e)
	if !ok || c.at.Before(l.since) {
		return nil
	}
	if c.flow != "" {
		// A flow inside of a flow makes no notification, because the outer flow run goes on. Its id is the outer id, a slash
		// and more. An outer id has no slash.
		if strings.Contains(string(e.Run), "/") {
			return nil
		}
		began, known, err := log.Last(ctx, event.Query{Run: e.Run, Types: []event.Type{event.FlowStarted}})
		if err != nil {
			return err
		}
		if known {
			c.lasted = e.Time.Sub(began.Time)
		}
	}
	var made *entry
	for _, r := range l.rules {
		at, ok := due(c, r)
		switch {
		case !ok:
		case made == nil:
			made = &entry{cause: c, content: r.Content, first: at, due: at}
		default:
			made.content = made.content || r.Content
			if at.Before(made.due) {
				made.first, made.due = at, at
			}
		}
	}
	if made != nil {
		l.entries = append(l.entries, made)
	}
	return nil
}

// applyAttempt applies an event about an attempt.
func (l *ledger) applyAttempt(t event.Type, f fact.Notified) {
	i := slices.IndexFunc(l.entries, func(e *entry) bool { return e.cause.Seq == f.Cause })
	if i < 0 {
		return
	}
	one := l.entries[i]
	one.attempts, one.started = f.Attempt, t == event.NotifyStarted
	switch {
	case t == event.NotifySent, t == event.NotifyFailed && (f.Final || one.over):
		l.entries = slices.Delete(l.entries, i, i+1)
	case t == event.NotifyFailed:
		one.err, one.due = f.Error, f.Next
	}
}

// next returns the entry that is due first.
func (l *ledger) next() (*entry, bool) {
	if len(l.entries) == 0 {
		return nil, false
	}
	return slices.MinFunc(l.entries, func(a, b *entry) int { return a.due.Compare(b.due) }), true
}
