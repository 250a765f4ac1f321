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
	"github.com/perlica/perlica/service/team"
)

// workers has the questions that a team's workers ask, for the commands that answer questions.
type workers struct {
	c    *chat
	link *team.Link

	mu    sync.Mutex // guards what follows
	open  []openThere
	away  error                          // why there may be others
	shown map[event.InteractionID]string // by /pending: what its worker calls it
}

// openThere is a question as the hub had it last.
type openThere struct {
	command.TeamQuestion
	id string // what its worker calls it
}

// newWorkers returns nil where there is no team. The link is the caller's to close.
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

// watch says of each question that it waits, and of its end, until ctx ends, but of those that this chat asks in place. A hub that
// cannot be reached is doctor's to tell, or the next line's: what it had last stays.
func (w *workers) watch(ctx context.Context) {
	w.link.Watch(ctx, w.see, func(err error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.away = err
	})
}

func (w *workers) see(ctx context.Context, t *team.Team, list []team.OpenQuestion) error {
	if t.May(team.Approve) != nil {
		list = nil // they are not this member's
	}
	w.mu.Lock()
	was := w.open
	w.mu.Unlock()
	var open []openThere
	for _, q := range list {
		if w.c.there != nil && w.c.there.input.Load() == q.There.Input {
			continue
		}
		i := slices.IndexFunc(was, func(o openThere) bool { return o.ID == q.Name() })
		if i >= 0 {
			open = append(open, was[i])
			continue
		}
		o := openThere{command.TeamQuestion{Question: q.Question, Worker: q.There.Worker, Input: q.There.Input}, q.There.ID}
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
	w.tell("a question of the team at %s; /pending shows it", "%d questions of the team; /pending shows them", without(open, was))
	w.tell("no longer open at %s", "%d questions of the team are no longer open", without(was, open))
	return nil
}

// tell says something of each question, or of all at once if they are many.
func (w *workers) tell(each, all string, list []openThere) {
	const most = 3
	if len(list) > most {
		w.c.above(fmt.Sprintf(all, len(list)))
		return
	}
	for _, o := range list {
		w.c.above(fmt.Sprintf(each, o.Worker+": "+card.Line(frame.QuestionTitle(o.Question), longestTitle)))
	}
}

// longestTitle is how many columns of a question's title are told.
const longestTitle = 100

// without are the questions of a list that the other one lacks.
func without(list, other []openThere) []openThere {
	return slices.DeleteFunc(slices.Clone(list), func(o openThere) bool {
		return slices.ContainsFunc(other, func(p openThere) bool { return p.ID == o.ID })
	})
}

// Show is the method of [command.Team].
func (w *workers) Show() ([]command.TeamQuestion, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, o := range w.open {
		w.shown[o.ID] = o.id
	}
	return w.listed(), w.away
}

// Shown is the method of [command.Team].
func (w *workers) Shown() []command.TeamQuestion {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.listed()
}

// listed are the questions that were shown. The caller holds mu.
func (w *workers) listed() (list []command.TeamQuestion) {
	for _, o := range w.open {
		if w.shown[o.ID] != "" {
			list = append(list, o.TeamQuestion)
		}
	}
	return list
}

// Answer is the method of [command.Team].
func (w *workers) Answer(ctx context.Context, id event.InteractionID, a interaction.Answer) error {
	if err := w.c.a.PersonOnly("an answer to a question of the team"); err != nil {
		return err
	}
	w.mu.Lock()
	there := w.shown[id]
	w.mu.Unlock()
	return dialog.TeamAnswerError(w.link.Answer(ctx, id, there, a))
}
