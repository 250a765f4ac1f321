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

// TeamQuestion is an open question of a team's worker. Its ID is a hash of its whole content, so that a different
// question has a different ID. The ID that the worker itself uses is unknown here.
type TeamQuestion struct {
	interaction.Question
	// Worker is the name of the worker that asks.
	Worker string
	// Input is the id of the input that led to the question.
	Input string
	// Sender is the sender of that input. Empty means that the input has no valid signature of its sender.
	Sender string
	// Project is the project of that input. Empty means that the input has no valid signature of its sender.
	Project string
}

// Heading returns the Markdown before the question. It names the worker and the input. It escapes the names, because
// other people chose them.
func (q TeamQuestion) Heading(say *language.Sentences) string {
	const most = 40
	cut := func(s string) string { return escaper.Replace(say.Card.Line(s, most)) }
	if q.Sender == "" {
		return fmt.Sprintf(say.InTeamUnsigned, cut(q.Worker), cut(q.Input))
	}
	return fmt.Sprintf(say.InTeam, cut(q.Worker), cut(q.Sender), cut(q.Project), cut(q.Input))
}

// Team gives access to the questions of a team's workers that the user of a host may answer.
type Team interface {
	// Show returns the known open questions, and remembers them as shown. The error means that the list may be
	// incomplete.
	Show() ([]TeamQuestion, error)
	// Shown returns the open questions that Show has returned. A command can refer to these only. Otherwise a person
	// with write access to the team's database could give an unread question a similar id.
	Shown() []TeamQuestion
	// Answer passes an answer to the worker that asks. It returns nil after the answer was accepted.
	Answer(ctx context.Context, id event.InteractionID, a interaction.Answer) error
}

// asked is the question to which a command refers.
type asked struct {
	interaction.Question
	// there means that the question came from Team.
	there bool
	// unnamed means that the command does not name the question.
	unnamed bool
}

// shown returns the team's questions to which a command can refer.
func (h *Host) shown() (list []asked) {
	if h.Team != nil {
		for _, q := range h.Team.Shown() {
			list = append(list, asked{Question: q.Question, there: true})
		}
	}
	return list
}

// ofTeam returns the shown questions of the team with an id that ends with ref.
func (h *Host) ofTeam(ref string) []asked {
	ref = strings.ToLower(ref)
	return slices.DeleteFunc(h.shown(), func(q asked) bool {
		return len(ref) < len(short(string(q.ID))) || !strings.HasSuffix(string(q.ID), ref)
	})
}
