package command

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/interaction"
	"github.com/perlica/perlica/kernel/report"
)

// aTeam is a Team for tests. It stores the answers.
type aTeam struct {
	open    []TeamQuestion
	shown   []TeamQuestion
	answers []string
	away    error
	closes  bool
}

func (f *aTeam) Show() ([]TeamQuestion, error) {
	f.shown = f.open
	return f.open, f.away
}

func (f *aTeam) Shown() []TeamQuestion {
	shown := f.shown
	if f.closes { // the question is closed while the command runs
		f.shown = nil
	}
	return shown
}

func (f *aTeam) Answer(_ context.Context, id event.InteractionID, a interaction.Answer) error {
	f.answers = append(f.answers, string(id)+" "+a.Option+" "+a.Text)
	return nil
}

func (f *aTeam) asks(id string) {
	q := TeamQuestion{Worker: "bob", Sender: "alice", Project: "web*site*", Input: "i1", Question: interaction.Question{
		Title: "Build", Word: "root", Options: []interaction.Option{{ID: "a", Label: "Allow", Kind: "allow_once"},
			{ID: "r", Label: "Reject", Kind: "reject_once"}},
	}}
	q.ID = event.InteractionID(id)
	f.open = append(f.open, q)
}

// TestTeamQuestions checks that a command can answer a worker's question only after it was shown. If a question of this
// machine also waits, the command must name its question.
func TestTeamQuestions(t *testing.T) {
	team := &aTeam{}
	there := &Host{By: "me", Where: "chat", Team: team}
	there.says(t, map[string]string{"/pending": "No questions are waiting."})
	const id = "0123456789abcdef0123456789abcdef"
	team.asks(id)
	if err := there.refuses(t, "/deny"); !strings.Contains(err.Error(), "/pending has shown no question") {
		t.Error("before it was shown:", err)
	}
	if err := there.refuses(t, "/deny "+short(id)); len(team.answers) > 0 {
		t.Error("before it was shown, by its name:", err)
	}
	there.says(t, map[string]string{"/pending": `At the worker **bob** of the team, in an input of **alice** for the project web\*site\* (input i1)`})
	if words := there.Complete(t.Context(), "/allow "); len(words) != 1 || words[0] != short(id) {
		t.Errorf("got %v; want len(words) == 1 && words[0] == short(id)", words)
	}
	there.does(t, "/deny")
	there.does(t, "/allow "+strings.ToUpper(short(id))+" root")
	there.does(t, "/choose "+id+" 2")
	if got := strings.Join(team.answers, ", "); got != id+" r , "+id+" a root, "+id+" r " {
		t.Errorf(`got %v; want got == id + " r , " + id + " a root, " + id + " r "`, got)
	}
	if err := there.refuses(t, "/deny 89abcdee"); len(team.answers) != 3 {
		t.Error("another name:", err)
	}
	team.closes = true
	there.does(t, "/deny "+short(id)) // the worker reports that the question is closed
	team.closes, team.answers = false, team.answers[:3]
	team.away = errors.New("no answer")
	there.says(t, map[string]string{"/pending": "The team's questions cannot be read now, and there may be others: no answer"})
	team.away = nil
	// Another person creates a question with the same ending of its id.
	team.asks("ffffffffffffffffffffffff" + short(id))
	there.does(t, "/deny "+short(id))
	there.says(t, map[string]string{"/pending": "Build"})
	if err := there.refuses(t, "/deny "+short(id)); !errors.Is(err, report.ErrAmbiguousQuestion) ||
		len(team.answers) != 4 {
		t.Error("two that end alike were shown:", err)
	}

	h := newHost(t)
	team = &aTeam{}
	h.Team = team
	team.asks(id)
	q, ended := h.turn(t, `@ask execute "Make" command="make"`, 1)
	h.says(t, map[string]string{"/pending": "**Make**"})
	if err := h.refuses(t, "/allow"); !strings.Contains(err.Error(), "2 questions wait") {
		t.Errorf(`got %v; want strings.Contains(err.Error(), "2 questions wait")`, err)
	}
	h.does(t, "/deny "+short(id))
	h.does(t, "/deny "+short(string(q[0].ID)))
	if res := ended(); len(team.answers) != 1 || !strings.Contains(res.Text, "reject") {
		t.Errorf(`got %v, %v; want len(team.answers) == 1 && strings.Contains(res.Text, "reject")`, team.answers, res.Text)
	}
}
