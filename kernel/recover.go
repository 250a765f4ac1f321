package kernel

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/coder/acp-go-sdk"

	"github.com/perlica/perlica/eventlog"
	"github.com/perlica/perlica/interaction"
	"github.com/perlica/perlica/policy"
	"github.com/perlica/perlica/provider"
)

// Unfinished is a run whose intent has no outcome.
type Unfinished struct {
	Run   eventlog.RunID
	Input eventlog.InputID
	Alive bool // its process still holds the run's lock
}

// ListUnfinished returns the runs without an outcome, oldest first. It changes nothing.
func ListUnfinished(ctx context.Context, log *eventlog.Reader, locks string) ([]Unfinished, error) {
	ids, err := log.OpenRuns(ctx)
	if err != nil {
		return nil, err
	}
	var list []Unfinished
	for _, id := range ids {
		intent, _, err := log.Last(ctx, eventlog.Query{Run: id, Types: []eventlog.Type{eventlog.Requested}})
		if err != nil {
			return nil, err
		}
		alive, err := isLocked(runLockPath(locks, string(id)))
		if err != nil {
			return nil, err
		}
		list = append(list, Unfinished{Run: id, Input: intent.Input, Alive: alive})
	}
	return list, nil
}

// Recover writes the outcome of every run whose process is gone: unknown, since the
// prompt may have left. It sends nothing. It returns the results it wrote.
func (r *Runner) Recover(ctx context.Context) ([]Result, error) {
	ids, err := r.log.OpenRuns(ctx)
	if err != nil {
		return nil, err
	}
	var recovered []Result
	for _, id := range ids {
		// Whoever holds the lock is the run itself, or is recovering it already.
		lock, err := acquire(runLockPath(r.opt.Paths.Locks, string(id)))
		if errors.Is(err, errLocked) {
			continue
		}
		if err != nil {
			return recovered, err
		}
		ended, err := r.recoverRun(ctx, id)
		lock.release()
		if err != nil {
			return recovered, err
		}
		if !ended {
			continue
		}
		res, err := ReadResult(ctx, &r.log.Reader, id)
		if err != nil {
			return recovered, err
		}
		recovered = append(recovered, res)
	}
	return recovered, nil
}

// recoverRun ends one run of a process that is gone. It returns false if the run has its
// outcome: it ended in order after it was found open.
func (r *Runner) recoverRun(ctx context.Context, id eventlog.RunID) (ended bool, err error) {
	left, err := r.traces(ctx, id)
	if err != nil {
		return false, err
	}
	questions, err := interaction.Pending(ctx, &r.log.Reader, []eventlog.RunID{id})
	if err != nil {
		return false, err
	}
	for _, q := range questions {
		if err := r.questions.Bury(ctx, q, interaction.Crashed); err != nil {
			return false, err
		}
	}
	e := &provider.Error{
		Provider: left.provider, Type: provider.TypeGone, Subtype: "perlica_died", Method: acp.AgentMethodSessionPrompt,
		Message: "Perlica ended before the outcome was known",
	}
	_, err = r.log.Append(ctx,
		eventlog.NewFact(eventlog.OutcomeUnknown, "perlica", left.refs, failed{
			Error: e, Text: left.text.String(), NoticedBy: "recovery", Known: left.known(),
		}),
		eventlog.NewFact(eventlog.CallEnforced, "perlica", left.refs, enforced{Calls: 1, Blocked: left.blocked, Permissions: left.perms}))
	var conflict *eventlog.ConflictError
	if errors.As(err, &conflict) {
		return false, nil
	}
	return err == nil, err
}

// traces is what a run left on the log.
type traces struct {
	refs     eventlog.Refs
	provider string
	sent     bool // the prompt was recorded, which happens just before it is written
	lines    int  // that came after it
	answered bool // the last of them may be the answer
	text     strings.Builder
	blocked  int
	perms    Permissions
	options  map[eventlog.InteractionID][]interaction.Option // of the questions
}

func (r *Runner) traces(ctx context.Context, id eventlog.RunID) (*traces, error) {
	t := &traces{refs: eventlog.Refs{Run: id}, options: map[eventlog.InteractionID][]interaction.Option{}}
	for e, err := range r.log.Events(ctx, eventlog.Query{Run: id}) {
		if err != nil {
			return nil, err
		}
		if e.Refs.Conversation != "" || t.refs.Trace == "" {
			t.refs = e.Refs
			t.refs.Interaction = ""
		}
		t.apply(e)
	}
	return t, nil
}

func (t *traces) apply(e eventlog.Event) {
	switch e.Type {
	case eventlog.Requested:
		if p, err := decodePayload[requested](e); err == nil {
			t.provider = p.Provider
		}
	case eventlog.RequestSent:
		var v struct{ Method string }
		t.sent = t.sent || json.Unmarshal(e.Payload, &v) == nil && v.Method == acp.AgentMethodSessionPrompt
	case eventlog.NotificationReceived, eventlog.ResponseReceived:
		if !t.sent {
			return
		}
		t.lines++
		t.answered = t.answered || e.Type == eventlog.ResponseReceived
		if u, ok := provider.ParseUpdate(e.Payload); ok && u.Kind == provider.AgentMessageChunk {
			t.text.WriteString(u.Text)
		}
	case eventlog.ToolBlocked:
		t.blocked++
	case eventlog.InteractionRequested, eventlog.InteractionAnswered, eventlog.InteractionLapsed, eventlog.PolicyDecided:
		t.count(e)
	}
}

// count adds what an event says of questions to the run's numbers, as the run did.
func (t *traces) count(e eventlog.Event) {
	decided := func(yes bool) {
		if yes {
			t.perms.Allowed++
		} else {
			t.perms.Denied++
		}
	}
	switch e.Type {
	case eventlog.InteractionRequested:
		t.perms.Asked++
		if q, err := decodePayload[interaction.Question](e); err == nil {
			t.options[e.Interaction] = q.Options
		}
	case eventlog.InteractionAnswered:
		a, err := decodePayload[interaction.Answer](e)
		for _, o := range t.options[e.Interaction] {
			if err == nil && o.ID == a.Option {
				decided(o.Allows())
			}
		}
	case eventlog.InteractionLapsed:
		l, err := decodePayload[interaction.Resolution](e)
		if err == nil && (l.Reason == interaction.Nobody || l.Reason == interaction.TimeUp) {
			t.perms.Unanswered++
		}
	case eventlog.PolicyDecided:
		t.perms.Asked++
		if d, err := decodePayload[policyDecided](e); err == nil {
			decided(d.Effect == string(policy.Allow))
		}
	}
}

func (t *traces) known() string {
	switch {
	case !t.sent:
		return "the intent is on record; whether the prompt was sent is not"
	case t.answered:
		return fmt.Sprintf("the prompt was sent and the agent's last answer is on record, but was not acted upon; %s came", plural(t.lines, "line"))
	}
	return fmt.Sprintf("the prompt was being sent or had been; %s came back", plural(t.lines, "line"))
}
