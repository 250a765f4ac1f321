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

// TeamQuestion is an open question of a team's worker. Its ID is a hash of all its content, so a different question
// has a different ID. The worker's own ID of the question is unknown here.
type TeamQuestion struct {
	interaction.Question
	// Worker is the worker that asks.
	Worker string
	// Input is the id of the input that led to the question.
	Input string
	// Sender is the sender of that input. Empty means that the named sender did not sign it.
	Sender string
	// Project is the project of that input. Empty means that the named sender did not sign it.
	Project string
}

// Heading returns the Markdown before the question. It names the worker and the input. Other people wrote these
// words.
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
	// Show returns the known open questions, to be shown. The error says why the list may be incomplete.
	Show() ([]TeamQuestion, error)
	// Shown returns the open questions that Show returned before. A command can mean only these. A person with
	// write access to the team's database could give an unread question an id with the same ending.
	Shown() []TeamQuestion
	// Answer passes an answer to the worker that asks. It returns nil when the answer counts.
	Answer(ctx context.Context, id event.InteractionID, a interaction.Answer) error
}

// asked is a question that a command means.
type asked struct {
	interaction.Question
	// there says that the question belongs to Team, even if it no longer waits.
	there bool
	// unnamed says that the command does not name the question.
	unnamed bool
}

// shown returns the team's questions that a command can mean.
func (h *Host) shown() (list []asked) {
	if h.Team != nil {
		for _, q := range h.Team.Shown() {
			list = append(list, asked{Question: q.Question, there: true})
		}
	}
	return list
}

// ofTeam returns the shown questions whose id ends with ref.
func (h *Host) ofTeam(ref string) []asked {
	ref = strings.ToLower(ref)
	return slices.DeleteFunc(h.shown(), func(q asked) bool {
		return len(ref) < len(short(string(q.ID))) || !strings.HasSuffix(string(q.ID), ref)
	})
}
