// Package pending has the commands that list the open questions of other processes and answer them.
package pending

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/perlica/perlica/cmd/perlica/frame"
	"github.com/perlica/perlica/cmd/perlica/screen"
	"github.com/perlica/perlica/eventlog/store"
	"github.com/perlica/perlica/interaction"
	"github.com/perlica/perlica/interaction/card"
	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/kernel/project"
	"github.com/perlica/perlica/kernel/record"
	"github.com/perlica/perlica/kernel/report"
)

// app is one invocation of perlica. Its methods are the commands of this package.
type app struct{ *frame.App }

// Command returns the command pending with its subcommands. Without a subcommand it lists the open questions,
// because a person in a hurry types only this word.
func Command(c *frame.App) *cobra.Command {
	a := &app{c}
	list := a.pendingListCommand()
	cmd := frame.Group("pending", "Show and answer the open questions of agents",
		`An agent's question is open until somebody answers it or its run ends. You can answer it at
the terminal of the run, or with these commands from any other terminal. The first answer
counts. Perlica records the answer on the log before it tells the agent.

'perlica pending' alone does the same as 'perlica pending list'. ID is a question's id, or the
end of it, as in this list.`,
		list, a.pendingShowCommand(),
		a.pendingAllowCommand(), a.pendingDenyCommand(), a.pendingChooseCommand())
	cmd.RunE = list.RunE
	cmd.Flags().AddFlagSet(list.Flags())
	return cmd
}

// openQuestions returns the open questions of the context. If there is no log, there are no questions.
func (a *app) openQuestions(ctx context.Context, log *store.Reader, p *project.Project) ([]interaction.Question,
	error) {
	paths, err := p.Workspace.Context(p.Config.ContextID)
	if err != nil {
		return nil, err
	}
	return record.PendingQuestions(ctx, log, paths.Locks)
}

// completeQuestions completes the ids of open questions.
func (a *app) completeQuestions(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	var ids []string
	err := a.Reading(cmd.Context(), func(log *store.Reader, p *project.Project) error {
		open, err := a.openQuestions(cmd.Context(), log, p)
		for _, q := range open {
			ids = append(ids, frame.ShortID(q.ID)+"\t"+frame.QuestionTitle(q))
		}
		return err
	})
	return frame.Completed(ids, err)
}

// pendingQuestion is a question as the commands of this package print it with --json.
type pendingQuestion struct {
	interaction.Question
	Short   string    `json:"short_id"`
	Run     string    `json:"run_id"`
	Session string    `json:"session_id"`
	Asked   time.Time `json:"asked"`
	Open    bool      `json:"open"`
	Ended   string    `json:"ended,omitempty"` // a sentence about the end of the question
}

func newPendingQuestion(q interaction.Question) pendingQuestion {
	return pendingQuestion{
		Question: q, Short: frame.ShortID(q.ID), Run: string(q.Refs.Run), Session: string(
			q.Refs.Session), Asked: q.Asked, Open: true,
	}
}

func (a *app) pendingListCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "list", Annotations: frame.ReadOnly.Annotation(),
		Aliases: []string{"ls"},
		Short:   "List the open questions",
		Long: `List the open questions of this context, the oldest first. The last column ends with the
question's run, for 'perlica log show'.`,
		Example: `  perlica pending list
  perlica pending list --json | jq -r '.[].short_id'`,
		Args: frame.Exactly(), ValidArgsFunction: frame.NoFiles,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var open []interaction.Question
			err := a.Reading(cmd.Context(), func(log *store.Reader, p *project.Project) (err error) {
				open, err = a.openQuestions(cmd.Context(), log, p)
				return err
			})
			if err := a.EmptyIfNoLog(err); err != nil {
				return err
			}
			return a.printPending(open, asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON array")
	return cmd
}

func (a *app) printPending(open []interaction.Question, asJSON bool) error {
	if asJSON {
		list := []pendingQuestion{}
		for _, q := range open {
			list = append(list, newPendingQuestion(q))
		}
		return a.PrintJSON(list)
	}
	if len(open) == 0 {
		a.Note("no question waits")
		return nil
	}
	now := time.Now()
	g := frame.Grid{Head: []string{"QUESTION", "ASKED", "PROVIDER", "RUN", "TITLE"}}
	for _, q := range open {
		title := card.Line(q.Title, 0)
		if q.Word != "" {
			title = "(needs a word) " + title // The hint stands first, so that a shortened title still has it.
		}
		g.Add(frame.ShortID(q.ID), frame.FormatDuration(max(0, now.Sub(q.Asked)).Round(time.Second))+" ago",
			q.Subject.Provider, frame.ShortID(q.Refs.Run), title)
	}
	return a.Table(g)
}

func (a *app) pendingShowCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "show [ID]", Annotations: frame.ReadOnly.Annotation(),
		Short: "Show a question with its whole content and its options",
		Long: `Show a question with its whole content, its options, and the commands that answer it. You may
leave out the ID if only one question is open. If the question is closed, the command shows
its answer or the reason.`,
		Args: frame.Between(0, "ID"), ValidArgsFunction: frame.CompleteFirst(a.completeQuestions),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.Reading(cmd.Context(), func(log *store.Reader, p *project.Project) error {
				q, err := a.findQuestion(cmd.Context(), log, p, args)
				if err != nil {
					return err
				}
				shown, err := a.describeQuestion(cmd.Context(), log, p, q)
				if err != nil {
					return err
				}
				return a.Show(asJSON, shown, func(w io.Writer, s screen.Styles) error {
					_, err := io.WriteString(w, renderPending(shown, s, a.cardWidth(), time.Now()))
					return err
				})
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

// findQuestion finds the question that the first argument names. Without arguments it returns the open question, and
// fails if several questions are open.
func (a *app) findQuestion(ctx context.Context, log *store.Reader, p *project.Project,
	args []string) (interaction.Question, error) {
	if len(args) > 0 {
		q, err := report.FindQuestion(ctx, log, args[0])
		switch {
		case errors.Is(err, report.ErrNoQuestion):
			err = frame.WithHint(fmt.Errorf("there is no question %q in this context", args[0]), "see 'perlica pending list'")
		case errors.Is(err, report.ErrAmbiguousQuestion):
			err = frame.WithHint(err, "give more of the id, from its end")
		}
		return q, err
	}
	open, err := a.openQuestions(ctx, log, p)
	switch {
	case err != nil:
		return interaction.Question{}, err
	case len(open) == 0:
		return interaction.Question{}, errors.New("no question waits")
	case len(open) > 1:
		return interaction.Question{}, frame.WithHint(frame.UsageErrorf("%d questions wait; which one is meant?", len(open)),
			"see 'perlica pending list'")
	}
	return open[0], nil
}

// describeQuestion returns a question together with its state: open, or the way in which it ended.
func (a *app) describeQuestion(ctx context.Context, log *store.Reader, p *project.Project,
	q interaction.Question) (pendingQuestion, error) {
	shown := newPendingQuestion(q)
	end, err := interaction.Closed(ctx, log, q.ID)
	if err != nil {
		return shown, err
	}
	if end != nil {
		shown.Open, shown.Ended = false, end.Error()
		return shown, nil
	}
	open, err := a.openQuestions(ctx, log, p)
	if err != nil {
		return shown, err
	}
	if shown.Open = slices.ContainsFunc(open, func(o interaction.Question) bool { return o.ID == q.ID }); !shown.Open {
		shown.Ended = kernel.ErrRunGone.Error()
	}
	return shown, nil
}

// cardWidth returns the width in columns of a question on standard output.
func (a *app) cardWidth() int {
	if w := screen.TerminalWidth(a.Stdout); w > 0 {
		return w
	}
	return frame.DefaultWidth
}

// renderPending returns a question as text for a person at another terminal than the agent's.
func renderPending(p pendingQuestion, s screen.Styles, width int, now time.Time) string {
	var b strings.Builder
	q := p.Question
	c := card.Lay(q, width)
	b.WriteString(frame.RenderRows(append(c.Rows, c.Options...), s))
	note := func(format string, args ...any) {
		b.WriteString(frame.RenderRows(card.Note(fmt.Sprintf(format, args...), width), s))
	}
	note("question %s, run %s, asked %s ago, open until %s",
		p.Short, frame.ShortID(p.Run), frame.FormatDuration(max(0,
			now.Sub(q.Asked)).Round(time.Second)), q.Expires.Local().Format(time.DateTime))
	if !p.Open {
		note("closed: %s", p.Ended)
		return b.String()
	}
	var ways []string
	word, more := "", ""
	if q.Word != "" {
		word = " --word WORD"
		note("a yes takes the word: %s", q.Word)
	}
	if _, ok := q.First("allow_once"); ok {
		ways = append(ways, "allow "+p.Short+word)
	}
	if _, ok := q.First("reject_once"); ok {
		ways = append(ways, "deny "+p.Short)
	}
	if slices.ContainsFunc(q.Options, func(o interaction.Option) bool { return o.Text }) {
		more = " (a text of your own: --text TEXT)"
	}
	if slices.ContainsFunc(q.Options, interaction.Option.Always) {
		more += " (a yes for all future times: --always)"
	}
	note("perlica pending %s", strings.Join(append(ways, "choose "+p.Short+" N"+more), " | "))
	return b.String()
}
