package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/perlica/perlica/cmd/perlica/term"
	"github.com/perlica/perlica/eventlog"
	"github.com/perlica/perlica/interaction"
	"github.com/perlica/perlica/interaction/card"
	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/kernel/project"
	"github.com/perlica/perlica/kernel/report"
)

// pendingCommand lists what waits where nothing more is said: whoever is called to answer types
// no more than that.
func (a *app) pendingCommand() *cobra.Command {
	list := a.pendingListCommand()
	cmd := group("pending", "See and answer the questions that wait",
		`A question waits as long as the run that asked it lives and nobody has answered: at the
terminal of that run, and with these commands from anywhere else. The first answer wins,
and is on the log before the agent is told.

'perlica pending' alone is 'perlica pending list'. A question is named by the end of its
id, as it is listed.`,
		list, a.pendingShowCommand(),
		a.pendingAllowCommand(), a.pendingDenyCommand(), a.pendingChooseCommand())
	cmd.RunE = list.RunE
	cmd.Flags().AddFlagSet(list.Flags())
	return cmd
}

// openQuestions returns the questions of the context that wait. Where there is no log
// there is none.
func (a *app) openQuestions(ctx context.Context, log *eventlog.Reader, p *project.Project) ([]interaction.Question, error) {
	paths, err := p.Workspace.Context(p.Config.ContextID)
	if err != nil {
		return nil, err
	}
	return kernel.PendingQuestions(ctx, log, paths.Locks)
}

// completeQuestions gives shells the questions that wait.
func (a *app) completeQuestions(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	var ids []string
	err := a.reading(cmd.Context(), func(log *eventlog.Reader, p *project.Project) error {
		open, err := a.openQuestions(cmd.Context(), log, p)
		for _, q := range open {
			ids = append(ids, shortID(q.ID)+"\t"+questionTitle(q))
		}
		return err
	})
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return ids, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
}

// pendingQuestion is a question as the JSON of these commands has it.
type pendingQuestion struct {
	interaction.Question
	Short   string    `json:"short_id"`
	Run     string    `json:"run_id"`
	Session string    `json:"session_id"`
	Asked   time.Time `json:"asked"`
	Open    bool      `json:"open"`
	Ended   string    `json:"ended,omitempty"` // how, in words
}

func newPendingQuestion(q interaction.Question) pendingQuestion {
	return pendingQuestion{
		Question: q, Short: shortID(q.ID), Run: string(q.Refs.Run), Session: string(q.Refs.Session), Asked: q.Asked, Open: true,
	}
}

func (a *app) pendingListCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "list", Annotations: reads.on(),
		Aliases: []string{"ls"},
		Short:   "List the questions that wait for an answer",
		Long: `List the questions of this context that wait for an answer, the oldest first: those
of runs whose process lives. The last column ends with the run, for 'perlica log show'.`,
		Example: `  perlica pending list
  perlica pending list --json | jq -r '.[].short_id'`,
		Args: exactly(), ValidArgsFunction: noFiles,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var open []interaction.Question
			err := a.reading(cmd.Context(), func(log *eventlog.Reader, p *project.Project) (err error) {
				open, err = a.openQuestions(cmd.Context(), log, p)
				return err
			})
			if err := a.orNone(err); err != nil {
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
		return a.printJSON(list)
	}
	if len(open) == 0 {
		a.note("no question waits")
		return nil
	}
	now := time.Now()
	g := grid{head: []string{"QUESTION", "ASKED", "PROVIDER", "RUN", "TITLE"}}
	for _, q := range open {
		title := card.Line(q.Title, 0)
		if q.Word != "" {
			title = "(needs a word) " + title // ahead of what may be cut off
		}
		g.add(shortID(q.ID), took(max(0, now.Sub(q.Asked)).Round(time.Second))+" ago", q.Subject.Provider, short(q.Refs.Run), title)
	}
	return a.write(func(w io.Writer) error { return g.write(w, a.styles(a.stdout), term.Width(a.stdout)) })
}

func (a *app) pendingShowCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "show [ID]", Annotations: reads.on(),
		Short: "Show a question: all that is to be judged, and the options",
		Long: `Show a question with all that is to be judged, its options, and how to answer it. If
exactly one question waits, ID may be left out. A question that is over is shown with
how it ended.`,
		Args: between(0, "ID"), ValidArgsFunction: completeFirst(a.completeQuestions),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.reading(cmd.Context(), func(log *eventlog.Reader, p *project.Project) error {
				q, err := a.findQuestion(cmd.Context(), log, p, args, true)
				if err != nil {
					return err
				}
				shown, err := a.describeQuestion(cmd.Context(), log, p, q)
				if err != nil {
					return err
				}
				if asJSON {
					return a.printJSON(shown)
				}
				return a.write(func(w io.Writer) error {
					_, err := io.WriteString(w, renderPending(shown, a.styles(a.stdout), a.cardWidth(), time.Now()))
					return err
				})
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

// findQuestion finds the question that the first argument names. Without one it is the
// only one that waits, if a wrong guess would do no harm.
func (a *app) findQuestion(ctx context.Context, log *eventlog.Reader, p *project.Project, args []string, guess bool) (interaction.Question, error) {
	if len(args) > 0 {
		q, err := report.FindQuestion(ctx, log, args[0])
		switch {
		case errors.Is(err, report.ErrNoQuestion):
			err = withHint(fmt.Errorf("there is no question %q in this context", args[0]), "see 'perlica pending list'")
		case errors.Is(err, report.ErrAmbiguousQuestion):
			err = withHint(err, "give more of the id, from its end")
		}
		return q, err
	}
	open, err := a.openQuestions(ctx, log, p)
	switch {
	case err != nil:
		return interaction.Question{}, err
	case len(open) == 0:
		return interaction.Question{}, errors.New("no question waits")
	case len(open) > 1 || !guess:
		return interaction.Question{}, withHint(usageErr("%s; which one is meant?", waiting(len(open))), "see 'perlica pending list'")
	}
	return open[0], nil
}

func waiting(n int) string {
	if n == 1 {
		return "1 question waits"
	}
	return fmt.Sprintf("%d questions wait", n)
}

// describeQuestion says whether a question is open and, if not, how it ended.
func (a *app) describeQuestion(ctx context.Context, log *eventlog.Reader, p *project.Project, q interaction.Question) (pendingQuestion, error) {
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
	shown.Open = false
	for _, o := range open {
		shown.Open = shown.Open || o.ID == q.ID
	}
	if !shown.Open {
		shown.Ended = kernel.ErrRunGone.Error()
	}
	return shown, nil
}

// unknownWidth is how wide a question is where nobody says how wide the reader's screen is.
const unknownWidth = 80

// cardWidth is how wide a question is printed to standard output.
func (a *app) cardWidth() int {
	if w := term.Width(a.stdout); w > 0 {
		return w
	}
	return unknownWidth
}

// renderPending is a question for somebody who is not at its terminal.
func renderPending(p pendingQuestion, s term.Styles, width int, now time.Time) string {
	var b strings.Builder
	q := p.Question
	c := card.Lay(q, width)
	b.WriteString(drawn(append(c.Rows, c.Options...), s))
	note := func(format string, args ...any) {
		b.WriteString(drawn(card.Note(fmt.Sprintf(format, args...), width), s))
	}
	note("question %s, run %s, asked %s ago, open until %s",
		p.Short, short(p.Run), took(max(0, now.Sub(q.Asked)).Round(time.Second)), q.Expires.Local().Format(time.DateTime))
	if !p.Open {
		note("closed: %s", p.Ended)
		return b.String()
	}
	word, always := "", ""
	if q.Word != "" {
		word = " --word WORD"
		note("a yes takes the word: %s", q.Word)
	}
	if slices.ContainsFunc(q.Options, interaction.Option.Always) {
		always = " (a yes for good: --always)"
	}
	note("perlica pending allow %[1]s%[2]s | deny %[1]s | choose %[1]s N%[3]s", p.Short, word, always)
	return b.String()
}
