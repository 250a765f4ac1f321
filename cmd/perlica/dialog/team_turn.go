package dialog

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/perlica/perlica/cmd/perlica/frame"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/interaction"
	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/kernel/record"
	"github.com/perlica/perlica/provider"
	"github.com/perlica/perlica/service/access"
	"github.com/perlica/perlica/service/team"
	"github.com/perlica/perlica/service/team/hub"
)

// TeamTerminal shows an input that a team answers, and lets the person answer the agent's questions.
type TeamTerminal struct {
	Say  *Printer
	Ask  *Asker              // asks on the terminal of Say
	Show func(record.Notice) // Show shows the notices of the run. If Show is nil, Say.Show shows them.
	Stop *frame.Stopper      // Stop stops the input when the user asks for it.
	User string              // name of the person at the terminal
}

// teamTurn is one input that a team answers, with the notices that were shown so far.
type teamTurn struct {
	TeamTerminal
	t              *team.Team
	id             string
	live           *team.Live
	openQuestions  map[event.InteractionID]hub.Question // open questions of the hub that are on the screen
	firstSeen      map[event.InteractionID]time.Time    // the time when the hub first had a question
	inCopy         map[event.InteractionID]bool         // questions that the local copy of the worker's log contains
	shownQuestions map[event.InteractionID]bool         // questions that were shown
	shownEnds      map[event.InteractionID]bool         // questions with an end that was shown already

	questionsByID sync.Map // hub.Question by interaction id; the goroutine that answers the question also uses it

	shownState string    // the last state of the input that was shown
	untakenAt  time.Time // the time at which the user is told that no worker has taken the input
	startShown bool      // The start of the run was shown.
}

// TeamPendingError says that the team has accepted an input and that this process did not wait for its end.
type TeamPendingError struct{ error }

// Unwrap returns the reason.
func (e *TeamPendingError) Unwrap() error { return e.error }

// Answer sends an input to a team and waits for its result, as a Runner does on this machine. worker is the name of
// the worker that answered. The error is a *TeamPendingError if the team has accepted the input and its end is not
// known.
func (at TeamTerminal) Answer(ctx context.Context, t *team.Team, d team.Draft) (res record.Result, worker string,
	err error) {
	live, err := t.Live(ctx)
	if err != nil {
		return res, "", err
	}
	if at.Show == nil {
		at.Show = at.Say.Show
	}
	came, err := t.SubmitAgain(ctx, &d)
	var fate *team.FateError
	r := &teamTurn{
		TeamTerminal: at, t: t, id: d.ID, live: live, openQuestions: map[event.InteractionID]hub.Question{},
		untakenAt: time.Now().Add(untakenNotice), firstSeen: map[event.InteractionID]time.Time{},
		inCopy: map[event.InteractionID]bool{}, shownQuestions: map[event.InteractionID]bool{},
		shownEnds: map[event.InteractionID]bool{},
	}
	switch {
	case errors.As(err, &fate):
		return team.UnknownOutcome(r.id, err.Error()), "", nil
	case errors.Is(err, hub.ErrUnsure):
		at.Say.Note("warning: the hub's standby has not confirmed the input; if the hub fails now it may be lost")
	case err != nil:
		return res, "", err
	}
	if came == hub.Differs {
		return res, "", frame.WithHint(frame.UsageErrorf(
			"the input %s was submitted before with another text or other attachments", r.id),
			"another input takes another --input-id")
	}
	at.Say.Elsewhere = " --team"
	at.Stop.Tell(at.Say.StoppingElsewhere)
	at.Ask.Stop, at.Ask.Away, at.Ask.AnswerTo = at.Stop, true, r.proposeAnswer
	return r.waitForEnd(ctx, came == hub.There)
}

// waitForEnd waits for the end of the input. If the user stops the turn, it cancels the input on the hub. The parameter
// "before" means that the team knew the input before this call.
func (r *teamTurn) waitForEnd(ctx context.Context, before bool) (res record.Result, worker string, err error) {
	under, end := context.WithCancel(ctx)
	defer end()
	stopped := make(chan fact.Stop, 1)
	go func() { // The goroutine ends when the wait ends.
		select {
		case s := <-r.Stop.First:
			stopped <- s
			r.cancelInput(under)
		case <-under.Done():
		}
	}()
	r.live.Look, r.live.Note = r.showStatus, r.Say.Note
	if !before { // For an input that the team knew before, only the recorded result is shown.
		r.live.Show = r.showNotice
	}
	s, err := r.live.Wait(under, r.id)
	var why *fact.Stop
	select {
	case s := <-stopped:
		why = &s
	default:
	}
	if err != nil {
		var cause *kernel.StoppedError
		if errors.As(err, &cause) {
			r.Say.Line("perlica: the worker continues the input: perlica team inputs " + r.id)
		}
		return res, s.Worker, &TeamPendingError{err}
	}
	res, err = r.resultOfStatus(s, why, before)
	return res, s.Worker, err
}

// cancelInput cancels the input on the hub. It tries until the hub can be reached.
func (r *teamTurn) cancelInput(ctx context.Context) {
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

// resultOfStatus returns the result that the command run shows for the input.
func (r *teamTurn) resultOfStatus(s hub.Status, stopped *fact.Stop, before bool) (record.Result, error) {
	res, err := team.Outcome(s)
	var none *kernel.StoppedError
	var refused *team.RefusedError
	switch {
	case errors.As(err, &none):
		return res, &kernel.StoppedError{Stop: localStop(stopped, none.Stop)}
	case errors.As(err, &refused):
		return res, frame.WithHint(frame.ExitFailure.With(err), "a new input takes a new id")
	case err != nil:
		return res, err
	case s.Result == nil: // the hub has no result of a worker
		return res, nil
	}
	res.Replayed = before
	if res.Stopped != nil && stopped != nil {
		res.Stopped = stopped
	}
	if !before {
		r.showRest(res)
	}
	return res, nil
}

// showRest shows the parts of a finished run that were not shown while the local copy of the log arrived.
func (r *teamTurn) showRest(res record.Result) {
	if !r.startShown {
		r.TeamTerminal.Show(record.Started{Result: res})
	}
	rest, ok := r.live.Rest(res.Text)
	if !ok {
		r.Say.Note(
			"warning: the text shown so far comes from the copy of the worker's log and differs from the result's text, " +
				"which follows. The worker's log may mask secrets, or somebody edited the copy: check it with 'perlica log " +
				"verify --team'")
		rest = "\n" + res.Text
	}
	if rest != "" {
		r.TeamTerminal.Show(record.Updated{Update: provider.Update{Kind: provider.AgentMessageChunk, Text: rest}})
	}
	for _, w := range res.Warnings {
		r.Say.warning(w)
	}
}

func localStop(here *fact.Stop, there fact.Stop) fact.Stop {
	if here != nil {
		return *here
	}
	return there
}

// untakenNotice is the time after which the user is told that no worker has taken the input. Perhaps no worker serves
// the input's project and labels.
const untakenNotice = 10 * time.Second

// copyWait is the longest time that a question waits until the agent's earlier text has been shown.
const copyWait = 2 * time.Second

// showStatus shows changes of the input's state and of its questions while the user waits.
func (r *teamTurn) showStatus(s hub.Status, open []hub.Question) {
	if s.State != r.shownState && !s.Ended() {
		r.shownState = s.State
		r.Say.SetStatus(cmp.Or(map[string]string{hub.Claimed: s.Worker + " is working", hub.Queued: "waiting for a worker",
			hub.Waiting: "waiting for its time"}[s.State], s.State))
	}
	if s.State == hub.Queued && !r.untakenAt.IsZero() && time.Now().After(r.untakenAt) {
		r.untakenAt = time.Time{}
		r.Say.Note("no worker has taken it yet; 'perlica team workers' shows who serves which projects and labels")
	}
	still := map[event.InteractionID]bool{}
	for _, q := range open {
		var shown interaction.Question
		if json.Unmarshal(q.Question, &shown) != nil || string(shown.ID) != q.ID || q.Worker != s.Worker {
			continue // The row is ignored, because a genuine worker writes no such row.
		}
		still[shown.ID] = true
		if r.firstSeen[shown.ID].IsZero() {
			r.firstSeen[shown.ID] = time.Now()
		}
		// The question is shown after the agent's earlier text, which comes from the copy of the log. If the copy is
		// late, the question is shown without this text.
		if !r.shownQuestions[shown.ID] && (r.inCopy[shown.ID] || r.live.Show == nil ||
			time.Since(r.firstSeen[shown.ID]) > copyWait) {
			r.openQuestions[shown.ID], r.shownQuestions[shown.ID] = q, true
			r.questionsByID.Store(shown.ID, q)
			mine := r.t.May(access.Approve) == nil
			r.showOnTerminal(record.Asked{Question: shown, Answerable: mine})
			switch {
			case !mine:
				r.Say.Note(frame.QuestionTitle(shown) + "; it waits for a member with the right to approve")
			case !r.Ask.Available():
				r.Say.Note("it waits for an answer; 'perlica team pending' gives one")
			}
		}
	}
	for id, q := range r.openQuestions {
		if !still[id] {
			r.showClosed(q)
		}
	}
}

// showNotice shows a notice from the copy of the worker's log. A question that can be answered is shown only when
// the hub has it. The end of a question is shown as soon as the copy or the hub reports it.
func (r *teamTurn) showNotice(n record.Notice) {
	switch n := n.(type) {
	case record.Started:
		r.startShown = true
	case record.Asked:
		if r.inCopy[n.ID] = true; n.Answerable {
			return
		}
		r.shownQuestions[n.ID] = true
	case record.Closed:
		r.showQuestionEnd(n)
		return
	case record.Received, record.Stopping, record.Finished: // The waiting user knows this already.
		return
	}
	r.showOnTerminal(n)
}

// showQuestionEnd shows the end of a question once. If the question itself was not shown while it was open, it is
// shown first.
func (r *teamTurn) showQuestionEnd(n record.Closed) {
	id := n.Question.ID
	if r.shownEnds[id] {
		return
	}
	if !r.shownQuestions[id] {
		r.showOnTerminal(record.Asked{Question: n.Question})
	}
	delete(r.openQuestions, id)
	r.shownQuestions[id], r.shownEnds[id] = true, true
	r.showOnTerminal(n)
}

// showClosed shows how a question ended.
func (r *teamTurn) showClosed(q hub.Question) {
	var n record.Closed
	_ = json.Unmarshal(q.Question, &n.Question) // This cannot fail, because showStatus has parsed the same text before.
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if end, err := r.t.Ended(ctx, q.ID); err == nil && end != nil {
		n.Answer, n.Reason = end.Answer, end.Reason
	}
	r.showQuestionEnd(n)
}

func (r *teamTurn) showOnTerminal(n record.Notice) {
	r.Ask.Show(n)
	r.TeamTerminal.Show(n)
}

// proposeAnswer sends an answer to the worker.
func (r *teamTurn) proposeAnswer(ctx context.Context, q interaction.Question, a interaction.Answer) error {
	list, err := r.t.Hub.Questions(ctx, "", r.id)
	if err != nil {
		return err
	}
	shown, ok := r.questionsByID.Load(q.ID)
	if !ok || !slices.ContainsFunc(list, func(open hub.Question) bool { return open.ID == string(q.ID) }) {
		return errors.New("the question is closed")
	}
	// The answer is for the question as the person saw it, even if the hub has replaced the question since then.
	return r.t.Answer(ctx, shown.(hub.Question), a)
}
