package chat

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/perlica/perlica/cmd/perlica/dialog"
	"github.com/perlica/perlica/cmd/perlica/frame"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/interaction"
	"github.com/perlica/perlica/interaction/card"
	"github.com/perlica/perlica/kernel/command"
	"github.com/perlica/perlica/service/access"
	"github.com/perlica/perlica/service/team"
)

// workers lists the open questions of a team's workers, for the commands that answer questions.
type workers struct {
	c    *chat
	link *team.Link

	mu   sync.Mutex // guards the fields below
	open []teamQuestion
	away error // the reason why the list may be incomplete; nil after the hub has answered
	// the questions shown by /pending; the value is the id that the worker gave the question
	shown map[event.InteractionID]string
}

// teamQuestion is a worker's question in the last state that the hub reported.
type teamQuestion struct {
	command.TeamQuestion
	id string // the id that the worker gave the question
}

// newWorkers returns nil if there is no team. The caller closes the link.
func (c *chat) newWorkers() *workers {
	opt, err := team.OptionsOf(c.p, "", c.a.Version)
	if err != nil {
		return nil
	}
	return &workers{
		c: c, away: errors.New("the hub has not answered yet"), shown: map[event.InteractionID]string{},
		link: team.NewLink(func(ctx context.Context) (*team.Team, error) { return team.Open(ctx, opt) }),
	}
}

// watchQuestions announces each new question and the end of each question, until ctx ends. It skips the questions
// that this chat asks itself. If the hub cannot be reached, it keeps the last list and reports nothing. The user
// learns of the fault from 'perlica doctor' or from the next line.
func (w *workers) watchQuestions(ctx context.Context) {
	w.link.Watch(ctx, w.updateQuestions, func(err error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.away = err
	})
}

func (w *workers) updateQuestions(ctx context.Context, t *team.Team, list []team.OpenQuestion) error {
	if t.May(access.Approve) != nil {
		list = nil // This member may not answer the questions.
	}
	w.mu.Lock()
	was := w.open
	w.mu.Unlock()
	var open []teamQuestion
	for _, q := range list {
		if w.c.team != nil && w.c.team.input.Load() == q.There.Input {
			continue
		}
		i := slices.IndexFunc(was, func(o teamQuestion) bool { return o.ID == q.Name() })
		if i >= 0 {
			open = append(open, was[i])
			continue
		}
		o := teamQuestion{command.TeamQuestion{Question: q.Question, Worker: q.There.Worker, Input: q.There.Input},
			q.There.ID}
		o.ID = q.Name()
		var err error
		if o.Sender, o.Project, err = q.From(ctx, t); err != nil {
			return err
		}
		open = append(open, o)
	}
	w.mu.Lock()
	w.open, w.away = open, nil
	w.mu.Unlock()
	w.announceQuestions("a question of the team at %s; /pending shows it", "%d questions of the team; /pending shows them",
		questionsMissingFrom(open, was))
	w.announceQuestions("no longer open at %s", "%d questions of the team are no longer open",
		questionsMissingFrom(was, open))
	return nil
}

// announceQuestions prints a note for each question, or one note for a long list.
func (w *workers) announceQuestions(each, all string, list []teamQuestion) {
	const most = 3
	if len(list) > most {
		w.c.printNoteAbove(fmt.Sprintf(all, len(list)))
		return
	}
	for _, o := range list {
		w.c.printNoteAbove(fmt.Sprintf(each, o.Worker+": "+card.Line(frame.QuestionTitle(o.Question), longestTitle)))
	}
}

// longestTitle is the largest number of columns for the title of an announced question.
const longestTitle = 100

// questionsMissingFrom returns the questions that are in list and not in other.
func questionsMissingFrom(list, other []teamQuestion) []teamQuestion {
	return slices.DeleteFunc(slices.Clone(list), func(o teamQuestion) bool {
		return slices.ContainsFunc(other, func(p teamQuestion) bool { return p.ID == o.ID })
	})
}

// Show implements [command.Team].
func (w *workers) Show() ([]command.TeamQuestion, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, o := range w.open {
		w.shown[o.ID] = o.id
	}
	return w.listShown(), w.away
}

// Shown implements [command.Team].
func (w *workers) Shown() []command.TeamQuestion {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.listShown()
}

// listShown returns the questions that were shown. The caller holds mu.
func (w *workers) listShown() (list []command.TeamQuestion) {
	for _, o := range w.open {
		if w.shown[o.ID] != "" {
			list = append(list, o.TeamQuestion)
		}
	}
	return list
}

// Answer implements [command.Team].
func (w *workers) Answer(ctx context.Context, id event.InteractionID, a interaction.Answer) error {
	if err := w.c.a.PersonOnly("an answer to a question of the team"); err != nil {
		return err
	}
	w.mu.Lock()
	there := w.shown[id]
	w.mu.Unlock()
	return dialog.TeamAnswerError(w.link.Answer(ctx, id, there, a))
}
