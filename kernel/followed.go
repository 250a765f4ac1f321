package kernel

import (
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/interaction"
)

// event yields what one event means to a person who watches.
func (f *follower) event(e event.Event) error {
	if e.Run == "" {
		return nil
	}
	t := f.turns[e.Session]
	if e.Type == event.Requested && f.session == "" && (t == nil || t.Run != e.Run) && !f.muted {
		// Accepted before the first event that was asked for, and not on the list of open runs then.
		if err := f.recall(e.Run, e.Seq-1); err != nil {
			return err
		}
		t = f.turns[e.Session]
	}
	if e.Type == event.MessageReceived {
		t = newFollowed(e.Run)
		f.turns[e.Session] = t
	}
	if t == nil || t.Run != e.Run || t.over { // of an earlier turn, or what an agent says between turns
		t = newFollowed(e.Run)
	}
	if err := t.Apply(e); err != nil {
		f.put(entry(e, Warned{Subtype: "unreadable", Detail: "an event that this version cannot read: " + string(e.Type)}))
		return nil
	}
	if e.Class == event.Frame {
		if t.prompted && e.Type == event.NotificationReceived && t.Update.Kind != "" {
			f.put(entry(e, Updated{t.Update}))
		}
		return nil
	}
	return f.fact(t, e)
}

func newFollowed(run event.RunID) *followed {
	return &followed{Record: &Record{Result: Result{Run: run}}}
}

func entry(e event.Event, n Notice) Entry { return Entry{Seq: e.Seq, Refs: e.Refs, Notice: n} }

// fact yields what a fact says, which its turn's record has. Of a payload that was removed that is
// little: that something happened is known all the same.
func (f *follower) fact(t *followed, e event.Event) error {
	var n Notice
	q := t.Question(e.Interaction)
	switch e.Type {
	case event.MessageReceived:
		m := t.Received
		n = Received{Run: e.Run, Session: e.Session, At: e.Time, Pruned: e.Payload == nil, Input: Input{
			ID: e.Input, Text: m.Text, Attachments: m.Attachments, Source: m.Source, Sender: m.Sender,
		}}
	case event.Requested:
		t.prompted = true
		n = Started{Result: t.Result}
	case event.InteractionRequested:
		closed, err := interaction.Closed(f.ctx, f.log, e.Interaction)
		if err != nil {
			return err
		}
		n = Asked{Question: q.Question, Answerable: closed == nil && q.Expires.After(q.Asked)}
	case event.InteractionAnswered, event.InteractionLapsed:
		n = Closed{Question: q.Question, Answer: q.Answer, Reason: q.Reason}
	case event.PolicyDecided:
		p := t.Decisions[len(t.Decisions)-1]
		n = Decided{Title: p.Title, Effect: p.Effect, By: p.By, Why: p.Why}
	case event.ToolBlocked:
		n = Blocked{Method: t.Refused[len(t.Refused)-1].Method}
	case event.CancelRequested:
		n = Stopping{Run: e.Run, Stop: *t.Stopped}
	case event.Responded, event.ProviderError, event.OutcomeUnknown:
		t.prompted, t.at = false, e.Time
	case event.CallEnforced: // in one commit with the outcome, and its last event
		if t.Outcome != "" {
			t.over = true
			n = Finished{Result: t.Result, At: t.at}
			t.Record = &Record{Result: Result{Run: e.Run}}
		}
	}
	if n != nil {
		f.put(entry(e, n))
	}
	return nil
}
