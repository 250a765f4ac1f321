package flow

import (
	"context"
	"sync"
	"time"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/interaction"
	"github.com/perlica/perlica/kernel/fact"
)

// questionLife is the time for which a flow's question stays open. It is longer than any flow.
const questionLife = 10 * 365 * 24 * time.Hour

// ask asks the question of a step. If the log already has the question, ask waits for the answer to that one. The
// question belongs to the flow run and stays open after the end of this process.
func (r *drive) ask(ctx context.Context, wg *sync.WaitGroup, st *StepState) {
	text, err := st.text.render(r.values.vars())
	if err != nil {
		r.decide(st, 0, because(fact.FlowFailed, err))
		return
	}
	question, err := r.state.questionID(ctx, &r.Log.Reader, st)
	if err != nil {
		r.fail(err)
		return
	}
	q := interaction.Question{
		ID: question, Title: "flow " + r.state.Flow.Name + ": " + st.ID,
		Subject: interaction.Subject{Provider: "flow " + r.state.Flow.Name, Kind: "flow", Text: []string{text}},
		Expires: time.Now().Add(questionLife), Refs: event.Refs{Run: RunID(r.state.ID)},
	}
	for _, o := range st.Options {
		q.Options = append(q.Options, interaction.Option{ID: o, Label: o, Kind: "answer"})
	}
	// An error means that other processes cannot send an answer to this process directly. It may be ignored, because
	// this process also finds an answer on the log.
	_ = r.Questions.Reachable()
	t, err := r.Questions.AskOnce(ctx, q)
	if err != nil {
		r.fail(err)
		return
	}
	r.tickets[st.ID] = t
	select {
	case <-t.Done(): // an earlier process asked, and the question has ended already
		r.takeAnswer(st.ID)
		return
	default:
	}
	r.setPhase(st, 0, Asked)
	if r.Asked != nil {
		q.Refs, q.Asked, q.Writer = t.Refs, t.Question.Asked, t.Writer
		r.Asked(q)
	}
	id := st.ID
	wg.Go(func() {
		select {
		case <-t.Done():
		case <-ctx.Done():
			return
		}
		select {
		case r.answered <- id:
		case <-ctx.Done():
		}
	})
}

// takeAnswer records the answer to a step's question, or the end without an answer, and decides about the step.
func (r *drive) takeAnswer(step string) {
	st, t := r.state.step(step), r.tickets[step]
	delete(r.tickets, step)
	a, lapsed, err := t.Outcome()
	if err != nil {
		r.fail(err)
		return
	}
	d := because(fact.FlowFailed, &interaction.TakenError{Lapsed: lapsed})
	end := interaction.Resolution{Reason: lapsed}
	if a != nil {
		d = fact.FlowDecided{Decision: fact.FlowDone, Answer: a.Option, By: a.By}
		end = interaction.Resolution{Option: a.Option, Sent: true}
	}
	r.fail(r.Questions.Resolve(t, end))
	if r.Closed != nil {
		r.Closed(t.Question)
	}
	r.decide(st, 0, d)
}
