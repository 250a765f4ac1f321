package team

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/provider"
	"github.com/perlica/perlica/service/team/hub"
)

// Live is an input that is seen while its worker has it answered: its state and its questions as the hub has them, and
// what its run says, from the copy of the worker's log, as it arrives there. What becomes of the input the hub's record
// of it says alone. It is used by one goroutine.
type Live struct {
	Look func(hub.Status, []hub.Question) // is called each time these may have changed
	Show func(kernel.Notice)              // is called with what the run says; nil: it is not read
	Note func(string)                     // is called once with what keeps any of this from being seen; nil: nobody is told

	t      *Team
	sizes  map[string]event.Seq // of the copies before the input could be claimed
	at     event.Seq            // up to here the copy was read
	run    *kernel.Record       // what is known of the run
	text   strings.Builder      // that it said
	over   bool                 // the copy has the end of the run
	broken bool                 // the copy cannot be read any further
	away   bool                 // the hub does not answer
	limit  time.Duration        // copyLimit
}

// Live prepares to see an input that is submitted after this call.
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

// How often an input that is waited for is looked at: at first and while its run says something, and later; and how
// long the copy may be behind the outcome before it is not waited for any longer.
const (
	waitLeast = 50 * time.Millisecond
	waitMost  = time.Second
	copyLimit = 5 * time.Second
)

// Wait waits until the input has ended, through whatever may happen to the connection.
func (l *Live) Wait(ctx context.Context, id string) (s hub.Status, err error) {
	var ended time.Time
	for every := waitLeast; ; every = min(every*3/2, waitMost) {
		now, ok, err := l.t.Status(ctx, id)
		l.heard(ctx, err)
		switch {
		case err == nil && !ok:
			return s, cmp.Or(l.t.stays(ctx), fmt.Errorf("the hub has no input %s any more", id))
		case err == nil:
			s = now
			if l.see(ctx, s) {
				every = waitLeast
				if !ended.IsZero() {
					ended = time.Now()
				}
			}
		}
		if s.State != "" && s.Ended() { // the last of what it said may be on its way
			if ended.IsZero() {
				ended = time.Now()
			}
			whole := l.complete(s)
			if !whole && time.Since(ended) > l.limit {
				l.note("the copy of %s's log is behind: what is missing of the answer is the result's, and what else was said 'perlica team fetch %[1]s' has later", s.Worker)
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

// heard says once that the hub does not answer, and once that it does again.
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

// complete reports whether nothing more is expected of the copy.
func (l *Live) complete(s hub.Status) bool {
	return l.Show == nil || l.over || l.broken || s.Worker == "" || s.Result == nil || s.State == hub.Refused
}

// see shows what is different, and reports whether the run said something.
func (l *Live) see(ctx context.Context, s hub.Status) bool {
	said := false
	if s.Worker != "" && !l.over && !l.broken && l.Show != nil {
		var err error
		if said, err = l.read(ctx, s); errors.Is(err, errPruned) || errors.Is(err, hub.ErrEdited) {
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

// errPruned says that a part of what a run said is no longer there.
var errPruned = errors.New("what the run said was removed from the copy of its worker's log")

// read shows what the copy has gained of the run. An error other than errPruned and hub.ErrEdited is the
// connection's: the next call goes on behind what was shown.
func (l *Live) read(ctx context.Context, s hub.Status) (said bool, err error) {
	r := hub.NewCopyReader(l.t.Hub, s.Worker)
	head, err := r.Head(ctx)
	if err != nil {
		return false, err
	}
	l.at = max(l.at, l.sizes[s.Worker])
	if head <= l.at {
		return false, nil
	}
	if l.run == nil || !l.run.Intended { // before it a process of the worker may have died, and another one begun a run
		e, ok, err := r.Last(ctx, event.Query{Input: event.InputID(s.ID), Types: []event.Type{event.MessageReceived}, After: l.at, Until: head})
		if err != nil {
			return false, err
		}
		if ok {
			l.run, l.at = &kernel.Record{Result: kernel.Result{Run: e.Run}}, e.Seq-1
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
			l.notice(e)
		}
	}
	l.at = head
	return said, nil
}

// notice shows what an event of the run means.
func (l *Live) notice(e event.Event) {
	n := l.run.Notice(e)
	switch n := n.(type) {
	case kernel.Updated:
		if n.Kind == provider.AgentMessageChunk {
			l.text.WriteString(n.Text)
		}
	case kernel.Finished:
		l.over = true
	}
	if n != nil {
		l.Show(n)
	}
}

// Rest returns the missing end of a text whose begin the run said already. It is not ok when the run said something
// else. A result holds U+FFFD in the place of each invalid byte that the run said.
func (l *Live) Rest(text string) (rest string, ok bool) {
	return strings.CutPrefix(valid(text), valid(l.text.String()))
}

// valid puts U+FFFD in the place of each byte that is not UTF-8.
func valid(text string) string { return string([]rune(text)) }
