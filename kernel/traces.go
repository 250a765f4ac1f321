package kernel

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/coder/acp-go-sdk"
	"github.com/dustin/go-humanize/english"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/store"
	"github.com/perlica/perlica/interaction"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/policy"
	"github.com/perlica/perlica/provider"
)

// Traces are what a run left on the log, whether it has ended or not.
type Traces struct {
	Sent      bool                   // the prompt was recorded, which happens just before it is written
	Lines     int                    // of the agent, that came after it
	Answered  bool                   // one of them may be the answer
	Text      string                 // of the agent's messages
	Questions []interaction.Question // that were asked, whatever became of them
	Pruned    bool                   // payloads are missing that could have said more

	refs     event.Refs
	intended bool
	provider string
	text     strings.Builder
	blocked  int
	perms    fact.Permissions
	options  map[event.InteractionID][]interaction.Option // of the questions
}

// ReadTraces gathers what a run left.
func ReadTraces(ctx context.Context, log *store.Reader, id event.RunID) (*Traces, error) {
	t := &Traces{refs: event.Refs{Run: id}, options: map[event.InteractionID][]interaction.Option{}}
	for e, err := range log.Events(ctx, event.Query{Run: id}) {
		if err != nil {
			return nil, err
		}
		if e.Refs.Conversation != "" || t.refs.Trace == "" {
			t.refs = e.Refs
			t.refs.Interaction = ""
		}
		t.apply(e)
	}
	t.Text = t.text.String()
	return t, nil
}

func (t *Traces) apply(e event.Event) {
	t.Pruned = t.Pruned || e.Payload == nil
	switch e.Type {
	case event.Requested:
		t.intended = true
		if p, err := fact.Decode[fact.Requested](e); err == nil {
			t.provider = p.Provider
		}
	case event.RequestSent:
		var v struct{ Method string }
		t.Sent = t.Sent || json.Unmarshal(e.Payload, &v) == nil && v.Method == acp.AgentMethodSessionPrompt
	case event.NotificationReceived, event.ResponseReceived:
		if !t.Sent {
			return
		}
		t.Lines++
		t.Answered = t.Answered || e.Type == event.ResponseReceived
		if u, ok := provider.ParseUpdate(e.Payload); ok && u.Kind == provider.AgentMessageChunk {
			t.text.WriteString(u.Text)
		}
	case event.ToolBlocked:
		t.blocked++
	case event.InteractionRequested, event.InteractionAnswered, event.InteractionLapsed, event.PolicyDecided:
		t.count(e)
	}
}

// count adds what an event says of questions to the run's numbers, as the run did.
func (t *Traces) count(e event.Event) {
	decided := func(yes bool) {
		if yes {
			t.perms.Allowed++
		} else {
			t.perms.Denied++
		}
	}
	switch e.Type {
	case event.InteractionRequested:
		t.perms.Asked++
		if q, err := fact.Decode[interaction.Question](e); err == nil {
			t.options[e.Interaction] = q.Options
			q.ID, q.Refs, q.Asked, q.Writer = e.Interaction, e.Refs, e.Time, e.Writer
			t.Questions = append(t.Questions, q)
		}
	case event.InteractionAnswered:
		a, err := fact.Decode[interaction.Answer](e)
		for _, o := range t.options[e.Interaction] {
			if err == nil && o.ID == a.Option {
				decided(o.Allows())
			}
		}
	case event.InteractionLapsed:
		l, err := fact.Decode[interaction.Resolution](e)
		if err == nil && (l.Reason == interaction.Nobody || l.Reason == interaction.TimeUp) {
			t.perms.Unanswered++
		}
	case event.PolicyDecided:
		t.perms.Asked++
		if d, err := fact.Decode[fact.PolicyDecided](e); err == nil {
			decided(d.Effect == string(policy.Allow))
		}
	}
}

// Known says in words how far the run is known to have come.
func (t *Traces) Known() string {
	switch {
	case !t.Sent && t.Pruned:
		return "the intent is on record; what else was is pruned"
	case !t.Sent:
		return "the intent is on record; whether the prompt was sent is not"
	case t.Answered:
		return fmt.Sprintf("the prompt was sent and the agent's last answer is on record, but was not acted upon; %s came", english.Plural(t.Lines, "line", ""))
	}
	return fmt.Sprintf("the prompt was being sent or had been; %s came back", english.Plural(t.Lines, "line", ""))
}
