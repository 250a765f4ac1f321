package team

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/kernel/record"
	"github.com/perlica/perlica/provider"
	"github.com/perlica/perlica/service/team/hub"
)

// Live follows an input while its worker answers it. The state and the questions come from the hub.
// The run's updates come from the copy of the worker's log as they arrive there. Only the hub's
// record tells the outcome of the input. One goroutine uses a Live.
type Live struct {
	// Look is called each time the state or the questions may have changed.
	Look func(hub.Status, []hub.Question)
	// Show is called with the run's notices. nil means that the copy is not read.
	Show func(record.Notice)
	// Note is called once with each reason why an update cannot be shown. It may be nil.
	Note func(string)

	t      *Team
	sizes  map[string]event.Seq // sizes of the copies before the input could be claimed
	at     event.Seq            // the last event that was read from the copy
	run    *record.Record       // the known facts of the run
	text   strings.Builder      // the run's text
	over   bool                 // the copy contains the end of the run
	broken bool                 // the copy cannot be read further
	away   bool                 // the hub does not answer
	limit  time.Duration        // copyLimit, except in tests
}

// Live prepares to follow an input that is submitted after this call.
func (t *Team) Live(ctx context.Context) (*Live, error) {
	list, err := hub.ListCopies(ctx, t.Hub)
	if err != nil {
		return nil, err
	}
	l := &Live{t: t, sizes: map[string]event.Seq{}, limit: copyLimit}
	for _, c := range list {
		l.sizes[c.Worker] = event.Seq(c.Size)
	}
	return l, nil
}

// waitLeast is the pause between two looks at the hub, at the start and while updates arrive. Without updates the pause
// grows to waitMost. copyLimit is the time in which the copy must catch up with the outcome.
const (
	waitLeast = 50 * time.Millisecond
	waitMost  = time.Second
	copyLimit = 5 * time.Second
)

// Wait waits until the input has ended. It survives broken connections.
func (l *Live) Wait(ctx context.Context, id string) (s hub.Status, err error) {
	var ended time.Time
	for every := waitLeast; ; every = min(every*3/2, waitMost) {
		now, ok, err := l.t.Status(ctx, id)
		l.heard(ctx, err)
		switch {
		case err == nil && !ok:
			return s, cmp.Or(l.t.refreshMembership(ctx), fmt.Errorf("the hub has no input %s any more", id))
		case err == nil:
			s = now
			if l.showChanges(ctx, s) {
				every = waitLeast
				if !ended.IsZero() {
					ended = time.Now()
				}
			}
		}
		// The input has ended, but the last updates may not be in the copy yet. They get some time to arrive.
		if s.State != "" && s.Ended() {
			if ended.IsZero() {
				ended = time.Now()
			}
			whole := l.complete(s)
			if !whole && time.Since(ended) > l.limit {
				l.note("the copy of %s's log is behind: what is missing of the answer is the result's, and what else was said "+
					"'perlica team fetch %[1]s' has later", s.Worker)
				whole = true
			}
			if whole {
				l.Look(s, nil)
				return s, nil
			}
			every = waitLeast
		}
		select {
		case <-ctx.Done():
			return s, context.Cause(ctx)
		case <-time.After(every):
		}
	}
}

// heard reports once that the hub does not answer, and once that it answers again.
func (l *Live) heard(ctx context.Context, err error) {
	switch away := err != nil; {
	case away == l.away || ctx.Err() != nil:
	case away:
		l.away = true
		l.note("%v; what was taken goes on at its worker, and this waits", err)
	default:
		l.away = false
		l.note("the hub answers again")
	}
}

func (l *Live) note(format string, args ...any) {
	if l.Note != nil {
		l.Note(fmt.Sprintf(format, args...))
	}
}

// complete reports whether the copy needs no further reading.
func (l *Live) complete(s hub.Status) bool {
	return l.Show == nil || l.over || l.broken || s.Worker == "" || s.Result == nil || s.State == hub.Refused
}

// showChanges shows the changes and reports whether the run had updates.
func (l *Live) showChanges(ctx context.Context, s hub.Status) bool {
	said := false
	if s.Worker != "" && !l.over && !l.broken && l.Show != nil {
		var err error
		if said, err = l.readRun(ctx, s); errors.Is(err, errPruned) || errors.Is(err, hub.ErrEdited) {
			l.broken = true
			l.note("%v; the rest of the answer is shown when it is complete", err)
		}
	}
	if s.State != hub.Claimed {
		if !s.Ended() {
			l.Look(s, nil)
		}
		return said
	}
	if questions, err := l.t.Hub.Questions(ctx, "", s.ID); err == nil {
		l.Look(s, questions)
	}
	return said
}

// errPruned says that a part of the run's updates was removed.
var errPruned = errors.New("what the run said was removed from the copy of its worker's log")

// readRun shows the new events of the run in the copy. After errPruned or hub.ErrEdited, the copy cannot be read
// further. Any other error is a failed connection, and the next call continues after the shown events.
func (l *Live) readRun(ctx context.Context, s hub.Status) (said bool, err error) {
	r := hub.NewCopyReader(l.t.Hub, s.Worker)
	head, err := r.Head(ctx)
	if err != nil {
		return false, err
	}
	l.at = max(l.at, l.sizes[s.Worker])
	if head <= l.at {
		return false, nil
	}
	// The worker's process may have died before the run recorded its intent to call the agent. Another process may
	// then have started a new run.
	if l.run == nil || !l.run.Intended {
		e, ok, err := r.Last(ctx, event.Query{Input: event.InputID(s.ID), Types: []event.Type{event.MessageReceived},
			After: l.at, Until: head})
		if err != nil {
			return false, err
		}
		if ok {
			l.run, l.at = &record.Record{Result: record.Result{Run: e.Run}}, e.Seq-1
		}
	}
	if l.run != nil {
		for e, err := range r.Events(ctx, event.Query{Run: l.run.Run, After: l.at, Until: head}) {
			if err != nil {
				return said, err
			}
			if e.Withheld != "" {
				return said, errPruned
			}
			l.at, said = e.Seq, true
			l.showEvent(e)
		}
	}
	l.at = head
	return said, nil
}

// showEvent shows the notice of an event of the run.
func (l *Live) showEvent(e event.Event) {
	n := l.run.Notice(e)
	switch n := n.(type) {
	case record.Updated:
		if n.Kind == provider.AgentMessageChunk {
			l.text.WriteString(n.Text)
		}
	case record.Finished:
		l.over = true
	}
	if n != nil {
		l.Show(n)
	}
}

// Rest returns the rest of a text that begins with the run's text. ok is false if the text begins
// differently. A result has U+FFFD for each invalid byte of the run's text.
func (l *Live) Rest(text string) (rest string, ok bool) {
	return strings.CutPrefix(valid(text), valid(l.text.String()))
}

// valid replaces each byte that is not UTF-8 by U+FFFD.
func valid(text string) string { return string([]rune(text)) }
