package pending

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/perlica/perlica/cmd/perlica/frame"
	"github.com/perlica/perlica/eventlog/store"
	"github.com/perlica/perlica/interaction"
	"github.com/perlica/perlica/interaction/card"
	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/kernel/project"
	"github.com/perlica/perlica/kernel/report"
)

func (a *app) pendingAllowCommand() *cobra.Command {
	var word string
	cmd := &cobra.Command{
		Use: "allow ID", Annotations: frame.AnswersQuestion.Annotation(),
		Short: "Say yes to a question, only this time",
		Long: `Say yes to a question: choose the first of the agent's options that allows the action once.
You must give the ID, so that your yes goes only to the question that you have read. A
question about an action that no rule can allow shows a word; repeat the word with --word.

Exit codes: 0 your answer counts; 1 somebody answered earlier, or the question is closed;
2 usage, or the command was started by an agent, which may not answer.`,
		Example: `  perlica pending allow 3f2a91bc
  perlica pending allow 3f2a91bc --word delete`,
		Args: frame.Exactly("ID"), ValidArgsFunction: frame.CompleteFirst(a.completeQuestions),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.answerPending(cmd.Context(), args, interaction.Answer{Text: word},
				func(q interaction.Question) (interaction.Option, error) {
					o, ok := q.First("allow_once")
					if !ok {
						return o, frame.WithHint(errors.New("the agent offers no way to allow this once"),
							"'perlica pending choose %s N' chooses any of its options; a yes for all future times also needs --always",
							frame.ShortID(q.ID))
					}
					return o, nil
				})
		},
	}
	cmd.Flags().StringVar(&word, "word", "", "the `word` that a question about a dangerous action shows")
	return cmd
}

func (a *app) pendingDenyCommand() *cobra.Command {
	return &cobra.Command{
		Use: "deny [ID]", Annotations: frame.AnswersQuestion.Annotation(),
		Short: "Say no to a question, only this time",
		Long: `Say no to a question: choose the first of the agent's options that rejects the action once. If
the agent offers no such option, Perlica cancels its request. You may leave out the ID if only
one question is open.`,
		Args: frame.Between(0, "ID"), ValidArgsFunction: frame.CompleteFirst(a.completeQuestions),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.answerPending(cmd.Context(), args, interaction.Answer{},
				func(q interaction.Question) (interaction.Option, error) {
					o, ok := q.Refusal()
					if !ok { // No option of the question refuses.
						return o, frame.WithHint(errors.New("the agent offers no way to reject this once"),
							"'perlica pending choose %s N' takes any of its options; Ctrl-C at the run cancels the turn",
							frame.ShortID(q.ID))
					}
					return o, nil
				})
		},
	}
}

func (a *app) pendingChooseCommand() *cobra.Command {
	var answer interaction.Answer
	var text string
	cmd := &cobra.Command{
		Use: "choose ID N|OPTION-ID|LABEL", Annotations: frame.AnswersQuestion.Annotation(),
		Short: "Answer a question with any of its options",
		Long: `Answer a question with one of its options. Name the option by its number in 'perlica pending
show', by its id, or by its exact label. Any other text chooses nothing.

An option that means yes for all future times counts only with --always: the agent will not
ask again, and Perlica cannot limit the actions that this yes covers. If an option asks for a
text, give the text with --text.`,
		Example: `  perlica pending choose 3f2a91bc 2
  perlica pending choose 3f2a91bc 1 --text main
  perlica pending choose 3f2a91bc allow_always --always
  perlica pending choose 3f2a91bc "Yes, and tell me more"`,
		Args: frame.Exactly("ID", "N|OPTION-ID|LABEL"), ValidArgsFunction: a.completeChoice,
		RunE: func(cmd *cobra.Command, args []string) error {
			answer.Text = cmp.Or(answer.Text, text)
			return a.answerPending(cmd.Context(), args, answer, func(q interaction.Question) (interaction.Option, error) {
				o, err := q.Choose(args[1])
				switch given := cmd.Flags().Changed("text"); {
				case err != nil:
					err = frame.WithHint(err, "'perlica pending show %s' lists the options", frame.ShortID(q.ID))
				case o.Text && !given:
					err = frame.UsageErrorf("that option asks for a text: give it with --text")
				case given && !o.Text:
					err = frame.UsageErrorf("that option asks for no text: leave out --text")
				}
				return o, err
			})
		},
	}
	cmd.Flags().StringVar(&text, "text", "", "the `text` that the option asks for")
	cmd.Flags().StringVar(&answer.Text, "word", "", "the `word` that a question about a dangerous action shows")
	cmd.MarkFlagsMutuallyExclusive("text", "word")
	cmd.Flags().BoolVar(&answer.Always, "always", false, "confirm a yes for all future times")
	return cmd
}

// completeChoice completes the first argument with the open questions, and the second with the options of this
// question.
func (a *app) completeChoice(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return a.completeQuestions(cmd, args, word)
	}
	var options []string
	err := a.Reading(cmd.Context(), func(log *store.Reader, _ *project.Project) error {
		q, err := report.FindQuestion(cmd.Context(), log, args[0])
		for _, o := range q.Options {
			if o.ID == card.Line(o.ID, 0) { // An id with other characters would not survive as a word of the shell.
				options = append(options, o.ID+"\t"+card.Label(o, 0))
			}
		}
		return err
	})
	if err != nil || len(args) > 1 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return options, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
}

// answerPending finds the question and calls the function choose, which picks the option. It then records the answer
// and prints it in full. It does not create a missing context, because each question belongs to a context.
func (a *app) answerPending(ctx context.Context, args []string, answer interaction.Answer,
	choose func(interaction.Question) (interaction.Option, error)) error {
	var q interaction.Question
	err := a.Reading(ctx, func(log *store.Reader, p *project.Project) (err error) {
		q, err = a.findQuestion(ctx, log, p, args)
		return err
	})
	if err != nil {
		return err
	}
	o, err := choose(q)
	if err != nil {
		return err
	}
	answer.Option, answer.By, answer.Where = o.ID, frame.UserName(a.Getenv), "pending"
	answer.Origin = a.Origin()
	if !o.Text && (q.Word == "" || !o.Allows()) {
		answer.Text = ""
	}
	err = a.Writing(ctx, func(r *kernel.Runner, _ *project.Project) error {
		if err := a.MayAnswer(r, q); err != nil {
			return err
		}
		return r.AnswerQuestion(ctx, q, answer)
	})
	if err != nil {
		return a.explainAnswerError(q, o, err)
	}
	if err := a.Say("answered %s: %s", frame.ShortID(q.ID), card.Given(o, answer, 0)); err != nil {
		return err
	}
	return a.Write(func(w io.Writer) error {
		_, err := io.WriteString(w, frame.RenderRows(card.Lay(q, a.cardWidth()).Rows, a.Styles(a.Stdout)))
		return err
	})
}

// explainAnswerError returns the error of an answer that does not count, with the reason and the next step.
func (a *app) explainAnswerError(q interaction.Question, o interaction.Option, err error) error {
	var taken *interaction.TakenError
	switch {
	case errors.As(err, &taken):
		return frame.WithHint(fmt.Errorf("your answer does not count: %w", taken), "perlica log show %s",
			frame.ShortID(q.Refs.Run))
	case errors.Is(err, interaction.ErrAgent):
		return frame.WithHint(frame.ExitUsage.With(err), "answer in a terminal of your own, which no agent has started")
	case errors.Is(err, interaction.ErrWord):
		return frame.WithHint(fmt.Errorf("%w: %s", err, q.Word), "read it first: perlica pending show %s; then add --word",
			frame.ShortID(q.ID))
	case errors.Is(err, interaction.ErrAlways):
		return frame.WithHint(err, "perlica pending choose %s %d --always", frame.ShortID(q.ID), slices.Index(q.Options, o)+1)
	case errors.Is(err, kernel.ErrRunGone):
		return frame.WithHint(err, "perlica log show %s tells what is known; nothing is sent again",
			frame.ShortID(q.Refs.Run))
	case errors.Is(err, kernel.ErrNotWoken):
		return frame.WithHint(err, "it is seen as soon as that process looks again; it may be suspended")
	}
	return err
}
