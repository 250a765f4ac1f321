package command

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/perlica/perlica/eventlog"
	"github.com/perlica/perlica/interaction"
	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/kernel/report"
)

func (h *Host) open(ctx context.Context) ([]interaction.Question, error) {
	open, err := h.Runner.PendingQuestions(ctx)
	return slices.DeleteFunc(open, func(q interaction.Question) bool { return !h.concerns(q.Refs.Session) }), err
}

// concerns reports whether what happens in a session is the business of whoever gives the
// commands.
func (h *Host) concerns(session eventlog.SessionID) bool { return h.Only == "" || h.Only == session }

func (h *Host) pending(ctx context.Context, _ []string) (Output, error) {
	open, err := h.open(ctx)
	if err != nil || len(open) == 0 {
		return Output{Text: "No question waits."}, err
	}
	var b strings.Builder
	for _, q := range open {
		Describe(&b, q)
	}
	b.WriteString("\nAnswer with `/choose ID N`, `/allow ID` or `/deny ID`.\n")
	return Output{Text: b.String()}, nil
}

// Describe writes a question with all that is to be judged and its numbered options, in
// Markdown.
func Describe(b *strings.Builder, q interaction.Question) {
	fmt.Fprintf(b, "**%s** — %s, question `%s`\n", literal(title(q)), literal(q.Subject.Provider), short(string(q.ID)))
	fence := func(lang, text string) {
		ticks := "```"
		for strings.Contains(text, ticks) {
			ticks += "`"
		}
		fmt.Fprintf(b, "\n%s%s\n%s\n%s\n", ticks, lang, strings.TrimRight(text, "\n"), ticks)
	}
	for _, c := range q.Subject.Commands {
		fence("sh", c)
	}
	for _, p := range q.Subject.Paths {
		if strings.ContainsAny(p, "`\r\n") {
			fence("", p)
			continue
		}
		fmt.Fprintf(b, "\n`%s`\n", p)
	}
	for _, d := range q.Subject.Diffs {
		fence("diff", diffText(d))
	}
	for _, t := range q.Subject.Text {
		fence("", t)
	}
	if q.Why != "" {
		fmt.Fprintf(b, "\n%s\n", literal(q.Why))
	}
	if q.Word != "" {
		fmt.Fprintf(b, "\nA yes takes the word `%s`.\n", q.Word)
	}
	b.WriteString("\n")
	for i, o := range q.Options {
		fmt.Fprintf(b, "%d. %s\n", i+1, literal(o.Label))
	}
	b.WriteString("\n")
}

// literal is Markdown that shows an agent's words as they are, in one line: they must not look
// like an option, or like anything else that Perlica says.
func literal(s string) string {
	return escaper.Replace(strings.Join(strings.Fields(s), " "))
}

var escaper = strings.NewReplacer(
	`\`, `\\`, "`", "\\`", `*`, `\*`, `_`, `\_`, `[`, `\[`, `]`, `\]`, `(`, `\(`, `)`, `\)`,
	`#`, `\#`, `<`, `\<`, `>`, `\>`, `~`, `\~`)

func title(q interaction.Question) string {
	if q.Title == "" {
		return "use a tool"
	}
	return q.Title
}

// short is the end of an id, which is what differs between two of the same hour.
func short(id string) string {
	if len(id) > 8 {
		return id[len(id)-8:]
	}
	return id
}

// which finds the question that the first argument names and returns the arguments behind it.
// Without a name it is the only one that waits; if more do, a guess could approve another
// question than the one that was read.
func (h *Host) which(ctx context.Context, args []string, most int) (interaction.Question, []string, error) {
	if len(args) > 0 {
		q, err := report.FindQuestion(ctx, &h.Runner.Log().Reader, args[0])
		if err == nil && !h.concerns(q.Refs.Session) {
			err = ErrRight
		}
		if err == nil {
			return q, args[1:], nil
		}
		if !errors.Is(err, report.ErrNoQuestion) || len(args) > most {
			return q, nil, err
		}
	}
	open, err := h.open(ctx)
	switch {
	case err != nil:
		return interaction.Question{}, nil, err
	case len(open) == 0:
		return interaction.Question{}, nil, errors.New("no question waits")
	case len(open) > 1:
		return interaction.Question{}, nil, fmt.Errorf("%d questions wait: name the one that is meant, as /pending shows it", len(open))
	}
	return open[0], args, nil
}

func (h *Host) choose(ctx context.Context, args []string) (Output, error) {
	if len(args) == 0 {
		return Output{}, errUsage
	}
	q, rest, err := h.which(ctx, args, len(args))
	if err != nil {
		return Output{}, err
	}
	o, err := q.Choose(strings.Join(rest, " "))
	word := ""
	if err != nil && len(rest) > 1 && q.Word != "" {
		// The word may stand behind the choice.
		word = rest[len(rest)-1]
		o, err = q.Choose(strings.Join(rest[:len(rest)-1], " "))
	}
	if err != nil {
		return Output{}, err
	}
	return h.answer(ctx, q, o, word)
}

func (h *Host) allow(ctx context.Context, args []string) (Output, error) {
	q, rest, err := h.which(ctx, args, 1)
	if err != nil {
		return Output{}, err
	}
	o, ok := q.First("allow_once")
	if !ok {
		return Output{}, errors.New("the agent offers no way to allow this once; /choose takes any of its options")
	}
	return h.answer(ctx, q, o, strings.Join(rest, " "))
}

func (h *Host) deny(ctx context.Context, args []string) (Output, error) {
	q, rest, err := h.which(ctx, args, 0)
	if err != nil {
		return Output{}, err
	}
	if len(rest) > 0 {
		return Output{}, errUsage
	}
	o, ok := q.First("reject_once")
	if !ok {
		return Output{}, errors.New("the agent offers no way to reject this once; /choose takes any of its options, /cancel stops the turn")
	}
	return h.answer(ctx, q, o, "")
}

func (h *Host) answer(ctx context.Context, q interaction.Question, o interaction.Option, word string) (Output, error) {
	a := interaction.Answer{Option: o.ID, By: h.By, Where: h.Where}
	switch {
	case q.Word != "" && o.Allows():
		a.Text = word
	case word != "":
		return Output{}, errUsage
	}
	err := h.Runner.AnswerQuestion(ctx, q, a)
	if errors.Is(err, interaction.ErrWord) {
		return Output{}, fmt.Errorf("%w: %s", err, q.Word)
	}
	if err != nil {
		return Output{}, err
	}
	return Output{Text: fmt.Sprintf("Answered `%s`: %s", short(string(q.ID)), o.Label)}, nil
}

func (h *Host) findRun(ctx context.Context, ref string) (eventlog.RunID, error) {
	id, err := report.FindRun(ctx, &h.Runner.Log().Reader, ref)
	if err != nil || h.Only == "" {
		return id, err
	}
	res, err := kernel.ReadResult(ctx, &h.Runner.Log().Reader, id)
	if err == nil && !h.concerns(res.Session) {
		err = ErrRight
	}
	return id, err
}
