package team

import (
	"cmp"
	"context"
	"fmt"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/message"
	"github.com/perlica/perlica/interaction"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/service/access"
	"github.com/perlica/perlica/service/team/hub"
)

// stopInput stops an input if the member may stop it.
func (w *Worker) stopInput(c hub.Cancel) {
	w.mu.Lock()
	stop := w.running[c.Input]
	w.mu.Unlock()
	if stop == nil {
		return
	}
	key, err := w.t.may(c.Member, access.Ask)
	if err != nil || !hub.VerifySignature(key, c.Text(w.t.State().ID), c.Signature) {
		w.mu.Lock()
		told := w.unsigned[c.Input]
		w.unsigned[c.Input] = true
		w.mu.Unlock()
		if !told { // report it once, although each pulse returns the request again
			w.opt.Note(fmt.Sprintf("%s: a wish to stop it is not %s's", c.Input, c.Member))
		}
		return
	}
	select {
	case stop <- stopOf(c.Member):
	default: // the run was already stopped
	}
}

// takeAnswer records a member's answer to a question of this process if it counts. It reports the
// verdict to the hub.
func (w *Worker) takeAnswer(ctx context.Context, a hub.Answer) {
	w.mu.Lock()
	open, ok := w.questions[event.InteractionID(a.Question)]
	w.mu.Unlock()
	if !ok {
		// Another process of this worker has asked the question, so that process handles the answer.
		return
	}
	verdict := ""
	if err := w.recordAnswer(ctx, open, a); err != nil {
		verdict = cmp.Or(err.Error(), "it does not count")
		w.opt.Note(fmt.Sprintf("an answer of %s does not count: %s", a.Member, verdict))
	}
	w.outbox.addReport(func(ctx context.Context) error { return w.t.Hub.Judge(ctx, a.Question, a.Member, verdict) })
}

// recordAnswer checks the answer and writes it to the log.
func (w *Worker) recordAnswer(ctx context.Context, open localQuestion, a hub.Answer) error {
	key, err := w.t.may(a.Member, access.Approve)
	if err != nil {
		return err
	}
	if !hub.VerifySignature(key, a.SignedText(w.t.State().ID, w.me.Name, open.shown), a.Signature) {
		return fmt.Errorf("it is not signed by %s for this question as it was asked", a.Member)
	}
	return open.r.AnswerQuestion(ctx, open.q, interaction.Answer{
		Option: a.Option, Text: a.Text, By: a.Member, Where: byMembers, Always: true, Signature: encoded(a.Signature),
		Key: key, Digest: open.shown,
	})
}

var stoppedBy = message.New("team.stopped-by", "stopped by %s")

// stopOf returns the stop that a member asked for.
func stopOf(member string) fact.Stop {
	stop := fact.NewStop("user", stoppedBy.With(member))
	stop.Person = member
	return stop
}
