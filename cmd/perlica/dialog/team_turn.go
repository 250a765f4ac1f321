package dialog

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/perlica/perlica/cmd/perlica/frame"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/interaction"
	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/provider"
	"github.com/perlica/perlica/service/team"
	"github.com/perlica/perlica/service/team/hub"
)

// TeamTerminal is where an input is shown that a team answers, and where its questions are answered.
type TeamTerminal struct {
	Say  *Printer
	Ask  *Asker              // of Say
	Show func(kernel.Notice) // shows what the run says; nil: Say.Show
	Stop *frame.Stopper      // stops the input
	User string              // who sits there
}

// teamTurn is an input that a team answers.
type teamTurn struct {
	TeamTerminal
	t    *team.Team
	id   string
	live *team.Live
	open map[event.InteractionID]hub.Question // that the hub has, and are shown
	came map[event.InteractionID]time.Time    // when the hub first had a question
	said map[event.InteractionID]bool         // the questions that the copy has
	seen map[event.InteractionID]bool         // the questions that are or were shown
	past map[event.InteractionID]bool         // whose end is shown

	shown sync.Map // hub.Question by the id of an interaction, as it was shown; its answer comes from another goroutine

	does    string    // what was said of its state
	overdue time.Time // when nobody has taken it for so long that it is said
	gone    bool      // the run's beginning is shown
}

// TeamPendingError says that the team has accepted an input and that this process did not wait for its end.
type TeamPendingError struct{ error }

// Unwrap returns why.
func (e *TeamPendingError) Unwrap() error { return e.error }

// Answer hands an input to a team and waits for its result, as a Runner does on this machine. worker is the one that
// answered, where there is one. The error is an *UnseenError where the input was taken.
func (at TeamTerminal) Answer(ctx context.Context, t *team.Team, d team.Draft) (res kernel.Result, worker string, err error) {
	live, err := t.Live(ctx)
	if err != nil {
		return res, "", err
	}
	if at.Show == nil {
		at.Show = at.Say.Show
	}
	drafts := []team.Draft{d}
	came, err := t.Submit(ctx, drafts)
	var fate *team.FateError
	r := &teamTurn{
		TeamTerminal: at, t: t, id: drafts[0].ID, live: live, open: map[event.InteractionID]hub.Question{},
		overdue: time.Now().Add(untaken), came: map[event.InteractionID]time.Time{}, said: map[event.InteractionID]bool{}, seen: map[event.InteractionID]bool{}, past: map[event.InteractionID]bool{},
	}
	switch {
	case errors.As(err, &fate):
		return unknown(r.id, err.Error()), "", nil
	case errors.Is(err, hub.ErrUnsure):
		at.Say.Note("warning: the hub's standby has not confirmed the input; if the hub fails now it may be lost")
	case err != nil:
		return res, "", err
	}
	if came[r.id] == hub.Differs {
		return res, "", frame.WithHint(frame.UsageErrorf("the input %s was submitted before with another text or other attachments", r.id), "another input takes another --input-id")
	}
	at.Say.Elsewhere = " --team"
	at.Stop.Tell(at.Say.StoppingElsewhere)
	at.Ask.Stop, at.Ask.Away, at.Ask.AnswerTo = at.Stop, true, r.answer
	return r.wait(ctx, came[r.id] == hub.There)
}

// unknown is the result of an input of which nobody knows what became.
func unknown(id, why string) kernel.Result {
	return kernel.Result{Input: event.InputID(id), Outcome: kernel.OutcomeUnknown, Err: &provider.Error{Type: provider.TypeGone, Subtype: "team", Message: why}}
}

// wait waits for the input's end. A stop cancels it there.
func (r *teamTurn) wait(ctx context.Context, before bool) (res kernel.Result, worker string, err error) {
	under, end := context.WithCancel(ctx)
	defer end()
	stopped := make(chan kernel.Stop, 1)
	go func() { // ends with the waiting
		select {
		case s := <-r.Stop.First:
			stopped <- s
			r.cancel(under)
		case <-under.Done():
		}
	}()
	r.live.Look, r.live.Note = r.look, r.Say.Note
	if !before { // else its recorded result is shown, as on one machine
		r.live.Show = r.notice
	}
	s, err := r.live.Wait(under, r.id)
	var why *kernel.Stop
	select {
	case s := <-stopped:
		why = &s
	default:
	}
	if err != nil {
		var cause *kernel.StoppedError
		if errors.As(err, &cause) {
			r.Say.Line("perlica: the input goes on at its worker: perlica team inputs " + r.id)
		}
		return res, s.Worker, &TeamPendingError{err}
	}
	res, err = r.result(s, why, before)
	return res, s.Worker, err
}

// cancel has the input stopped, as soon as the hub can be reached.
func (r *teamTurn) cancel(ctx context.Context) {
	for {
		_, err := r.t.Cancel(ctx, r.id, r.User, "terminal")
		if err == nil || ctx.Err() != nil {
			return
		}
		r.Say.Note("the stop has not reached the hub yet: " + err.Error())
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
}

// result is what has become of the input, as run has it.
func (r *teamTurn) result(s hub.Status, stopped *kernel.Stop, before bool) (kernel.Result, error) {
	switch s.State {
	case hub.Withdrawn:
		return kernel.Result{}, &kernel.StoppedError{Stop: cmpStop(stopped, kernel.Stop{By: "user", Why: "withdrawn from the queue"})}
	case hub.Adopted, hub.Lost:
		return unknown(r.id, "the hub was replaced before the input's outcome was known there"), nil
	case hub.Resolved:
		why := s.By + " closed it, the outcome is not known"
		if s.Note != "" {
			why += ": " + s.Note
		}
		return unknown(r.id, why), nil
	}
	found, err := team.ResultOf(s)
	if err != nil {
		return kernel.Result{}, fmt.Errorf("the result on the hub cannot be read: %w", err)
	}
	if s.State == hub.Refused {
		why := "no reason is given"
		if found.Error != nil {
			why = found.Error.Message
		}
		if found.Stopped != nil {
			return kernel.Result{}, &kernel.StoppedError{Stop: cmpStop(stopped, *found.Stopped)}
		}
		return kernel.Result{}, frame.WithHint(frame.ExitFailure.With(fmt.Errorf("%s made no call: %s", s.Worker, why)), "a new input takes a new id")
	}
	res := found.Kernel()
	res.Replayed = before
	if res.Stopped != nil && stopped != nil {
		res.Stopped = stopped
	}
	if !before {
		r.finish(res)
	}
	return res, nil
}

// finish shows what the copy has not shown of a run that is over.
func (r *teamTurn) finish(res kernel.Result) {
	if !r.gone {
		r.TeamTerminal.Show(kernel.Started{Result: res})
	}
	rest, ok := r.live.Rest(res.Text)
	if !ok {
		r.Say.Note("warning: what was shown so far, from the copy of the worker's log, is not the beginning of the result's text, which follows: the worker's log may mask secrets, or somebody edited the copy, which 'perlica log verify --team' would find")
		rest = "\n" + res.Text
	}
	if rest != "" {
		r.TeamTerminal.Show(kernel.Updated{Update: provider.Update{Kind: provider.AgentMessageChunk, Text: rest}})
	}
	for _, w := range res.Warnings {
		r.Say.Note("warning: " + w)
	}
}

func cmpStop(here *kernel.Stop, there kernel.Stop) kernel.Stop {
	if here != nil {
		return *here
	}
	return there
}

// untaken is how long an input waits for a worker before that is said: none may serve what it wants.
const untaken = 10 * time.Second

// copyWait is how long a question waits for what the agent said before it.
const copyWait = 2 * time.Second

// look shows what changed while the input is waited for.
func (r *teamTurn) look(s hub.Status, open []hub.Question) {
	if s.State != r.does && !s.Ended() {
		r.does = s.State
		r.Say.SetStatus(cmp.Or(map[string]string{hub.Claimed: s.Worker + " is working", hub.Queued: "waiting for a worker", hub.Waiting: "waiting for its time"}[s.State], s.State))
	}
	if s.State == hub.Queued && !r.overdue.IsZero() && time.Now().After(r.overdue) {
		r.overdue = time.Time{}
		r.Say.Note("no worker has taken it yet; 'perlica team workers' shows who serves which projects and labels")
	}
	still := map[event.InteractionID]bool{}
	for _, q := range open {
		var shown interaction.Question
		if json.Unmarshal(q.Question, &shown) != nil || string(shown.ID) != q.ID || q.Worker != s.Worker {
			continue // not what its worker writes
		}
		still[shown.ID] = true
		if r.came[shown.ID].IsZero() {
			r.came[shown.ID] = time.Now()
		}
		// What the agent said before it comes first, unless the copy is behind.
		if !r.seen[shown.ID] && (r.said[shown.ID] || r.live.Show == nil || time.Since(r.came[shown.ID]) > copyWait) {
			r.open[shown.ID], r.seen[shown.ID] = q, true
			r.shown.Store(shown.ID, q)
			mine := r.t.May(team.Approve) == nil
			r.show(kernel.Asked{Question: shown, Answerable: mine})
			switch {
			case !mine:
				r.Say.Note(frame.QuestionTitle(shown) + "; it waits for a member with the right to approve")
			case !r.Ask.Available():
				r.Say.Note("it waits for an answer; 'perlica team pending' gives one")
			}
		}
	}
	for id, q := range r.open {
		if !still[id] {
			r.closed(q)
		}
	}
}

// notice shows what the run says, by the copy of the worker's log. A question that can be answered is shown when the hub
// has it, too, and its end when either says so first.
func (r *teamTurn) notice(n kernel.Notice) {
	switch n := n.(type) {
	case kernel.Started:
		r.gone = true
	case kernel.Asked:
		if r.said[n.ID] = true; n.Answerable {
			return
		}
		r.seen[n.ID] = true
	case kernel.Closed:
		r.end(n)
		return
	case kernel.Received, kernel.Stopping, kernel.Finished: // who waits for a run knows
		return
	}
	r.show(n)
}

// end shows the end of a question, once, and before it a question that was not seen while it was open.
func (r *teamTurn) end(n kernel.Closed) {
	id := n.Question.ID
	if r.past[id] {
		return
	}
	if !r.seen[id] {
		r.show(kernel.Asked{Question: n.Question})
	}
	delete(r.open, id)
	r.seen[id], r.past[id] = true, true
	r.show(n)
}

// closed shows how a question ended.
func (r *teamTurn) closed(q hub.Question) {
	var n kernel.Closed
	_ = json.Unmarshal(q.Question, &n.Question) // it was read before
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if end, err := r.t.Ended(ctx, q.ID); err == nil && end != nil {
		n.Answer, n.Reason = end.Answer, end.Reason
	}
	r.end(n)
}

func (r *teamTurn) show(n kernel.Notice) {
	r.Ask.Show(n)
	r.TeamTerminal.Show(n)
}

// answer proposes an answer that was given here.
func (r *teamTurn) answer(ctx context.Context, q interaction.Question, a interaction.Answer) error {
	list, err := r.t.Hub.Questions(ctx, "", r.id)
	if err != nil {
		return err
	}
	shown, ok := r.shown.Load(q.ID)
	if !ok || !slices.ContainsFunc(list, func(open hub.Question) bool { return open.ID == string(q.ID) }) {
		return errors.New("the question is closed")
	}
	return r.t.Answer(ctx, shown.(hub.Question), a) // what the hub has now may be another one
}
