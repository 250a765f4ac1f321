package team

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/perlica/perlica/cmd/perlica/dialog"
	"github.com/perlica/perlica/cmd/perlica/frame"
	"github.com/perlica/perlica/cmd/perlica/screen"
	"github.com/perlica/perlica/interaction"
	"github.com/perlica/perlica/interaction/card"
	"github.com/perlica/perlica/kernel/project"
	"github.com/perlica/perlica/service/team"
	"github.com/perlica/perlica/service/team/hub"
)

// statusJSON is the status of the team as --json prints it.
type statusJSON struct {
	Team       string         `json:"team"`
	Server     int            `json:"server_version"`
	Schema     int            `json:"schema"`
	Generation string         `json:"generation"`
	Adopted    bool           `json:"adopted"`
	Inputs     map[string]int `json:"inputs"` // number of inputs in this generation of the hub, by state
	Workers    int            `json:"workers"`
	Alive      int            `json:"workers_alive"`
	Questions  int            `json:"questions"`
}

// silence is the time after which lists show that a worker is gone. It has no other effect.
const silence = 15 * time.Second

func (a *app) statusCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "status", Annotations: frame.ReadOnly.Annotation(),
		Short: "Show the state of the hub, its inputs and its workers",
		Args:  frame.Exactly(), ValidArgsFunction: frame.NoFiles,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withTeam(cmd.Context(), func(t *team.Team, _ *project.Project) error {
				s, err := gather(cmd.Context(), t)
				if err != nil {
					return err
				}
				return a.Show(asJSON, s, func(w io.Writer, st screen.Styles) error {
					_, err := io.WriteString(w, s.writeText(st))
					return err
				})
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

func gather(ctx context.Context, t *team.Team) (s statusJSON, err error) {
	state := t.State()
	s = statusJSON{Team: state.Name, Server: state.Server, Schema: hub.SchemaVersion, Generation: state.Generation,
		Adopted: state.Adopted}
	if s.Inputs, err = t.Hub.Counts(ctx); err != nil {
		return s, err
	}
	workers, now, err := t.Hub.Workers(ctx)
	if err != nil {
		return s, err
	}
	for _, w := range workers {
		s.Workers++
		if now.Sub(w.Heard) < silence {
			s.Alive++
		}
	}
	questions, err := t.Hub.Questions(ctx, "", "")
	s.Questions = len(questions)
	return s, err
}

func (s statusJSON) writeText(st screen.Styles) string {
	var b strings.Builder
	row := func(name, format string, args ...any) {
		fmt.Fprintln(&b, st.Dim(fmt.Sprintf("%-11s", name)), fmt.Sprintf(format, args...))
	}
	row("team", "%s (PostgreSQL %d.%d)", s.Team, s.Server/10000, s.Server%10000)
	generation := s.Generation
	if !s.Adopted {
		generation += "; this is another server: no input is taken until an admin adopts it"
	}
	row("generation", "%s", generation)
	row("workers", "%d, %d of them heard of lately", s.Workers, s.Alive)
	row("questions", "%d open", s.Questions)
	var counts []string
	for _, state := range states {
		if n := s.Inputs[state]; n > 0 {
			counts = append(counts, fmt.Sprintf("%d %s", n, state))
		}
	}
	if counts == nil {
		counts = []string{"none"}
	}
	row("inputs", "%s", strings.Join(counts, ", "))
	return b.String()
}

func (a *app) workersCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "workers", Annotations: frame.ReadOnly.Annotation(),
		Short: "List the workers with their projects and the time of their last message",
		Args:  frame.Exactly(), ValidArgsFunction: frame.NoFiles,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withTeam(cmd.Context(), func(t *team.Team, _ *project.Project) error {
				list, now, err := t.Hub.Workers(cmd.Context())
				if err != nil {
					return err
				}
				if asJSON {
					return a.PrintJSON(append([]hub.Worker{}, list...))
				}
				g := frame.Grid{Head: []string{"WORKER", "HEARD", "SLOTS", "PROJECTS", "LABELS"}}
				for _, w := range list {
					g.Add(w.Name, frame.FormatDuration(max(0, now.Sub(w.Heard)).Round(time.Second))+" ago", fmt.Sprint(w.Slots),
						strings.Join(w.Projects, ","), strings.Join(w.Labels, ","))
				}
				return a.Table(g)
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON array")
	return cmd
}

func (a *app) pendingCommand() *cobra.Command {
	var text string
	var always, asJSON bool
	answer := &cobra.Command{
		Use: "choose ID N", Annotations: frame.AnswersQuestion.Annotation(),
		Short: "Answer a question by the number of an option",
		Long: `Answer a question with its ID and the number N of an option, as 'perlica team pending' lists
them. ID is the beginning of the SHA-256 of the shown question, and your signature covers it.
So the answer does not count if somebody has changed the question on the hub.

The worker that asked counts the first answer that reaches its log.`,
		Args: frame.Exactly("ID", "N"), ValidArgsFunction: frame.NoFiles,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := a.PersonOnly("an answer to a question of the team"); err != nil {
				return err
			}
			return a.withTeam(cmd.Context(), func(t *team.Team, _ *project.Project) error {
				return a.answerQuestion(cmd.Context(), t, args[0], args[1], text, always)
			})
		},
	}
	answer.Flags().StringVar(&text, "text", "",
		"the `text` that the option asks for, or the word that a dangerous question shows")
	answer.Flags().BoolVar(&always, "always", false, "confirm a yes for all future times")
	list := &cobra.Command{
		Use: "list", Annotations: frame.ReadOnly.Annotation(), Aliases: []string{"ls"},
		Short: "List the open questions of all workers, with their options",
		Args:  frame.Exactly(), ValidArgsFunction: frame.NoFiles,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withTeam(cmd.Context(), func(t *team.Team,
				_ *project.Project) error {
				return a.listQuestions(cmd.Context(), t, asJSON)
			})
		},
	}
	cmd := frame.Group("pending", "List the open questions of all workers, and answer them",
		`List the open questions of all workers, and answer them.

'perlica team pending' alone is 'perlica team pending list'.`, list, answer)
	cmd.RunE = list.RunE
	for _, c := range []*cobra.Command{cmd, list} {
		c.Flags().BoolVar(&asJSON, "json", false, "print a JSON array")
	}
	return cmd
}

// nameLength is the number of characters in a question's name. They come from the digest of the question. The name
// is so long that nobody can make a second question with the same name.
const nameLength = 24

// nameOf returns the name with which a user answers a question. The name depends on the content that the user saw.
// If somebody with write access to the hub exchanges the question, no question has this name.
func nameOf(q team.OpenQuestion) string { return q.There.Digest()[:nameLength] }

// openJSON is an open question with its worker and its input, as 'perlica team pending --json' prints it.
type openJSON struct {
	interaction.Question
	Short  string    `json:"short_id"`
	Worker string    `json:"worker"`
	Input  string    `json:"input_id"`
	Asked  time.Time `json:"asked"` // in the time of the hub's clock
}

// idOf returns the id of an input for one line of output. The sender chose the id, so idOf cuts it. A long id could
// contain a text that looks like a command.
func idOf(input string) string {
	const most = 40
	r := []rune(frame.OneLine(input))
	if len(r) > most {
		r = append(r[:most-1], '…')
	}
	return string(r)
}

func (a *app) listQuestions(ctx context.Context, t *team.Team, asJSON bool) error {
	open, err := team.OpenQuestions(ctx, t, "")
	if err != nil {
		return err
	}
	if asJSON {
		all := []openJSON{}
		for _, q := range open {
			all = append(all, openJSON{q.Question, nameOf(q), q.There.Worker, q.There.Input, q.There.Asked})
		}
		return a.PrintJSON(all)
	}
	if len(open) == 0 {
		a.Note("no question waits")
		return nil
	}
	return a.Write(func(w io.Writer) error {
		for _, q := range open {
			if _, err := io.WriteString(w, a.renderQuestion(q.Question)); err != nil {
				return err
			}
			_, err := fmt.Fprintf(w, "question %s of %s: perlica team pending choose %[1]s N (input %[3]s)\n", nameOf(q),
				q.There.Worker, idOf(q.There.Input))
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// renderQuestion returns a question and its options as text, in the width of standard output.
func (a *app) renderQuestion(q interaction.Question) string {
	c := card.Lay(q, cmp.Or(max(screen.TerminalWidth(a.Stdout), 0), frame.DefaultWidth))
	return frame.RenderRows(append(c.Rows, c.Options...), a.Styles(a.Stdout))
}

func (a *app) answerQuestion(ctx context.Context, t *team.Team, id, choice, text string, always bool) error {
	if len(id) < nameLength {
		return frame.WithHint(frame.UsageErrorf("a question is named by at least %d digits, not %q", nameLength, id),
			"perlica team pending shows the open ones with their names")
	}
	open, err := team.OpenQuestions(ctx, t, "")
	if err != nil {
		return err
	}
	var found []team.OpenQuestion
	for _, q := range open {
		if strings.HasPrefix(q.There.Digest(), id) {
			found = append(found, q)
		}
	}
	if len(found) != 1 {
		return frame.WithHint(fmt.Errorf("no open question is named %s", id),
			"'perlica team pending' lists the open questions with the names that answer them")
	}
	q := found[0]
	option, err := q.Choose(choice)
	if err != nil {
		return frame.ExitUsage.With(err)
	}
	ans := interaction.Answer{Option: option.ID, Text: text, By: frame.UserName(a.Getenv), Where: "terminal",
		Always: always}
	if err := q.Check(ans); err != nil {
		return frame.ExitUsage.With(err)
	}
	if err := dialog.TeamAnswerError(t.Answer(ctx, q.There, ans)); err != nil {
		return err
	}
	return a.Say("answered %s: %s", nameOf(q), card.Given(option, ans, 0))
}
