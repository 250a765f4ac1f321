package command

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/interaction"
	"github.com/perlica/perlica/kernel/language"
)

// TeamQuestion is an open question of a worker of a team. Its ID is made of all that it says, so that another question has
// another one; the ID that the worker gave it is not known here.
type TeamQuestion struct {
	interaction.Question
	Worker  string // that asks
	Input   string // the id of the input that it is about
	Sender  string // of that input; empty: it is not signed by whom it names
	Project string // of that input; empty likewise
}

// Heading is what stands ahead of the question, in Markdown: who asks, and whose input it is about. Those words are others'.
func (q TeamQuestion) Heading(say *language.Sentences) string {
	const most = 40
	cut := func(s string) string { return escaper.Replace(say.Card.Line(s, most)) }
	if q.Sender == "" {
		return fmt.Sprintf(say.InTeamUnsigned, cut(q.Worker), cut(q.Input))
	}
	return fmt.Sprintf(say.InTeam, cut(q.Worker), cut(q.Sender), cut(q.Project), cut(q.Input))
}

// Team has the questions of a team's workers that the user of a host may answer.
type Team interface {
	// Show returns those that are open, to be shown, as far as that is known. The error says why there may be others.
	Show() ([]TeamQuestion, error)
	// Shown returns those of them that Show has returned before. A command means one of these: somebody who can write to the
	// team's database could have another question, which nobody has read, end with the same letters.
	Shown() []TeamQuestion
	// Answer hands an answer to the worker that asks, and returns nil when it counts.
	Answer(ctx context.Context, id event.InteractionID, a interaction.Answer) error
}

// asked is a question that a command means.
type asked struct {
	interaction.Question
	there   bool // it is of Team, whether or not it still waits
	unnamed bool // the command does not name it
}

// shown are the questions of the team that a command can mean.
func (h *Host) shown() (list []asked) {
	if h.Team != nil {
		for _, q := range h.Team.Shown() {
			list = append(list, asked{Question: q.Question, there: true})
		}
	}
	return list
}

// ofTeam returns the questions that were shown whose id is ref, or ends so.
func (h *Host) ofTeam(ref string) []asked {
	ref = strings.ToLower(ref)
	return slices.DeleteFunc(h.shown(), func(q asked) bool {
		return len(ref) < len(short(string(q.ID))) || !strings.HasSuffix(string(q.ID), ref)
	})
}
