package kernel

import (
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/interaction"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/provider"
)

// event yields what one event means to a person who watches.
func (f *follower) event(e event.Event) error {
	if e.Run == "" {
		return nil
	}
	t := f.turns[e.Session]
	if e.Type == event.Requested && f.session == "" && (t == nil || t.res.Run != e.Run) && !f.muted {
		// Accepted before the first event that was asked for, and not on the list of open runs then.
		if err := f.recall(e.Run, e.Seq-1); err != nil {
			return err
		}
		t = f.turns[e.Session]
	}
	if e.Type == event.MessageReceived {
		t = &followed{res: Result{Run: e.Run}}
		f.turns[e.Session] = t
	}
	if t == nil || t.res.Run != e.Run || t.over { // of an earlier turn, or what an agent says between turns
		t = &followed{over: true}
	}
	if e.Class == event.Frame {
		if u, ok := provider.ParseUpdate(e.Payload); ok && t.prompted && e.Type == event.NotificationReceived {
			f.put(entry(e, Updated{u}))
		}
		return nil
	}
	if t.res.Run != "" {
		if err := t.res.Apply(e); err != nil {
			f.unreadable(e)
			return nil
		}
	}
	return f.fact(t, e)
}

func entry(e event.Event, n Notice) Entry { return Entry{Seq: e.Seq, Refs: e.Refs, Notice: n} }

// unreadable warns of a fact that cannot be decoded: a later version wrote it.
func (f *follower) unreadable(e event.Event) {
	f.put(entry(e, Warned{Subtype: "unreadable", Detail: "an event that this version cannot read: " + string(e.Type)}))
}

// fact yields what a fact says; t is its turn.
func (f *follower) fact(t *followed, e event.Event) error {
	switch e.Type {
	case event.MessageReceived:
		says(f, e, func(m fact.MessageReceived) Notice {
			return Received{Run: e.Run, Session: e.Session, At: e.Time, Pruned: e.Payload == nil, Input: Input{
				ID: e.Input, Text: m.Text, Attachments: m.Attachments, Source: m.Source, Sender: m.Sender,
			}}
		})
	case event.Requested:
		t.prompted = true
		f.put(entry(e, Started{Result: t.res}))
	case event.InteractionRequested:
		return f.asked(e)
	case event.InteractionAnswered:
		says(f, e, func(a interaction.Answer) Notice { return Closed{Question: f.question(e), Answer: &a} })
	case event.InteractionLapsed:
		says(f, e, func(l interaction.Resolution) Notice { return Closed{Question: f.question(e), Reason: l.Reason} })
	case event.PolicyDecided:
		says(f, e, func(p fact.PolicyDecided) Notice {
			return Decided{Title: p.Title, Effect: p.Effect, By: p.By, Why: p.Why}
		})
	case event.ToolBlocked:
		says(f, e, func(b fact.ToolBlocked) Notice { return Blocked{Method: b.Method} })
	case event.CancelRequested:
		says(f, e, func(s Stop) Notice { return Stopping{Run: e.Run, Stop: s} })
	case event.Responded, event.ProviderError, event.OutcomeUnknown:
		t.prompted, t.at = false, e.Time
	case event.CallEnforced: // in one commit with the outcome, and its last event
		if t.res.Outcome != "" {
			t.over = true
			f.put(entry(e, Finished{Result: t.res, At: t.at}))
			t.res = Result{Run: e.Run}
		}
	}
	return nil
}

// says yields what a fact says, if it can be read. Of a payload that was removed it yields the
// zero value: that something happened is known all the same.
func says[T any](f *follower, e event.Event, notice func(T) Notice) {
	var v T
	if e.Payload != nil {
		var err error
		if v, err = fact.Decode[T](e); err != nil {
			f.unreadable(e)
			return
		}
	}
	f.put(entry(e, notice(v)))
}

// asked yields a question, and whether an answer would still count.
func (f *follower) asked(e event.Event) error {
	closed, err := interaction.Closed(f.ctx, f.log, e.Interaction)
	if err != nil {
		return err
	}
	says(f, e, func(q interaction.Question) Notice {
		q.ID, q.Refs, q.Asked, q.Writer = e.Interaction, e.Refs, e.Time, e.Writer
		f.questions[q.ID] = q
		return Asked{Question: q, Answerable: closed == nil && q.Expires.After(q.Asked)}
	})
	return nil
}

// question returns the question that an event closes, and forgets it.
func (f *follower) question(e event.Event) interaction.Question {
	q, ok := f.questions[e.Interaction]
	if !ok {
		q = interaction.Question{ID: e.Interaction, Refs: e.Refs}
	}
	delete(f.questions, e.Interaction)
	return q
}
