package web

import (
	"context"
	"net/http"
	"time"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/interaction"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/kernel/report"
	"github.com/perlica/perlica/kernel/streamjson"
)

// step is one step of a story. The description of the API lists the members of each kind.
type step struct {
	Seq  event.Seq `json:"seq"`
	At   time.Time `json:"at"`
	Kind string    `json:"kind"`

	Text        string                `json:"text,omitempty"`
	Attachments []string              `json:"attachments,omitempty"`
	Sender      string                `json:"sender,omitempty"`
	Source      string                `json:"source,omitempty"`
	Dir         string                `json:"dir,omitempty"`
	Provider    string                `json:"provider,omitempty"`
	Pruned      bool                  `json:"pruned,omitempty"`
	Damage      string                `json:"damage,omitempty"`
	Tool        *fact.ToolSeen        `json:"tool,omitempty"`
	Question    *interaction.Question `json:"question,omitempty"`
	Answer      *firstAnswer          `json:"answer,omitempty"`
	Reason      string                `json:"reason,omitempty"`
	TookMS      int64                 `json:"took_ms,omitempty"`
	Result      *streamjson.Result    `json:"result,omitempty"`
	Shown       bool                  `json:"shown,omitempty"`
	Known       string                `json:"known,omitempty"`
	FirstMS     int64                 `json:"first_ms,omitempty"`
	Type        event.Type            `json:"type,omitempty"`
	Words       string                `json:"words,omitempty"`
	Bad         bool                  `json:"bad,omitempty"`
}

func newStep(ctx context.Context, from report.Step) step {
	to := step{Seq: from.Seq, At: from.At}
	switch w := from.What.(type) {
	case report.StepInput:
		to.Kind, to.Text, to.Attachments, to.Sender, to.Source = "input", w.Text, w.Attachments, w.Sender, w.Source
		to.Dir, to.Provider, to.Pruned, to.Damage = w.Dir, w.Provider, w.Pruned, say(ctx).Say(w.Damage)
	case report.StepSaid:
		if to.Kind, to.Text = "said", w.Text; w.Thought {
			to.Kind = "thought"
		}
	case report.StepTool:
		to.Kind, to.Tool = "tool", &w.ToolSeen
	case report.StepAsked:
		q := localized(ctx, w.Question)
		to.Kind, to.Question = "asked", &q
	case report.StepClosed:
		q := localized(ctx, w.Question)
		to.Kind, to.Question, to.Answer = "closed", &q, newFirstAnswer(w.Answer)
		to.Reason, to.TookMS = string(w.Reason), w.Took.Milliseconds()
	case report.StepOutcome:
		to.Kind, to.Result = "outcome", localizedResult(ctx, streamjson.NewResult(w.Result, nil, ""))
		to.Damage = say(ctx).Say(w.Damage)
		to.Shown, to.Known, to.FirstMS = w.Shown, say(ctx).Read(w.Known, w.KnownMessage), w.First.Milliseconds()
	case report.StepNote:
		to.Kind, to.Type, to.Bad = "note", w.Type, w.Bad
		to.Words, to.Text = w.In(say(ctx))
	}
	return to
}

func (s *Server) story(w http.ResponseWriter, r *request) error {
	if err := r.checkParameters("project", "context", "after", "limit"); err != nil {
		return err
	}
	n, err := r.limit(1000)
	if err != nil {
		return err
	}
	after, err := r.number("after", 0, 0, 1<<62)
	if err != nil {
		return err
	}
	id := event.RunID(r.PathValue("id"))
	l, log, err := s.holding(r.Context(), r.where(), event.Query{Run: id, Class: event.Fact})
	if err != nil {
		return err
	}
	answer := struct {
		place
		Run   event.RunID `json:"run_id"`
		Steps []step      `json:"steps"`
		Next  event.Seq   `json:"next,omitempty"`
	}{place: l.place, Run: id, Steps: []step{}}
	// The story is read from its beginning, because a step depends on the earlier steps.
	for one, err := range report.Story(r.Context(), log, id, event.Query{}) {
		if err != nil {
			return err
		}
		if int64(one.Seq) <= after {
			continue
		}
		if len(answer.Steps) == n {
			answer.Next = answer.Steps[n-1].Seq
			break
		}
		answer.Steps = append(answer.Steps, newStep(r.Context(), one))
	}
	return reply(w, http.StatusOK, answer)
}
