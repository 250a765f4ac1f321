package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/message"
	"github.com/perlica/perlica/eventlog/store"
	"github.com/perlica/perlica/interaction"
	"github.com/perlica/perlica/kernel/language"
	"github.com/perlica/perlica/kernel/record"
	"github.com/perlica/perlica/kernel/report"
)

// openQuestions returns the waiting questions on this machine that the user may see.
func (h *Host) openQuestions(ctx context.Context) ([]interaction.Question, error) {
	if h.Runner == nil {
		return nil, nil
	}
	open, err := h.Runner.PendingQuestions(ctx)
	return slices.DeleteFunc(open, func(q interaction.Question) bool { return !h.concerns(q.Refs.Session) }), err
}

// concerns reports whether the user may see a session.
func (h *Host) concerns(session event.SessionID) bool {
	return h.Only == nil || slices.Contains(h.Only, session)
}

func (h *Host) pending(ctx context.Context, _ []string) (Output, error) {
	open, err := h.openQuestions(ctx)
	if err != nil {
		return Output{}, err
	}
	var b strings.Builder
	for _, q := range open {
		Describe(&b, h.say(), q)
	}
	unread := ""
	if h.Team != nil {
		list, err := h.Team.Show()
		for _, q := range list {
			b.WriteString(q.Heading(h.say()))
			Describe(&b, h.say(), q.Question)
		}
		if err != nil {
			unread = "\n" + fmt.Sprintf(h.say().TeamUnread, h.literal(h.say().Fault(err))) + "\n"
		}
	}
	if b.Len() == 0 {
		return Output{Text: cmp.Or(unread, h.say().NoQuestion)}, nil
	}
	return Output{Text: b.String() + h.say().HowToAnswer + unread}, nil
}

// Describe writes a question in Markdown: everything that a person needs for a decision, and numbered options.
func Describe(b *strings.Builder, say *language.Sentences, q interaction.Question) {
	fmt.Fprintf(b, say.Asks, literal(say, cmp.Or(q.Title, say.UseTool)), literal(say, q.Subject.Provider),
		short(string(q.ID)))
	b.WriteString("\n" + say.Lay(q).Block() + "\n")
	if address := plainAddress(q); address != "" {
		fmt.Fprintf(b, "\n"+say.Address+"\n", address)
	}
	if q.Word != "" {
		fmt.Fprintf(b, "\n"+say.TakesWord+"\n", q.Word)
	}
	if i := slices.IndexFunc(q.Options, func(o interaction.Option) bool { return o.Text }); i >= 0 {
		fmt.Fprintf(b, "\n"+say.TakesText+"\n", i+1)
	}
	b.WriteString("\n")
	for i, o := range q.Options {
		fmt.Fprintf(b, "%d. %s\n", i+1, escaper.Replace(say.Option(o, 0)))
	}
	b.WriteString("\n")
}

// plainAddress returns the web address that a form of the agent wants to open, unbroken for copying. It returns an
// empty string if a character of the address could mislead a reader.
func plainAddress(q interaction.Question) string {
	for _, f := range q.Subject.Fields {
		odd := strings.ContainsFunc(f.Value, func(c rune) bool { return c <= ' ' || c > '~' || c == '`' })
		if q.Subject.Kind == "form" && f.Name == "address" && !odd {
			return f.Value
		}
	}
	return ""
}

// literal returns Markdown that shows an agent's words unchanged on one line. So the words cannot imitate an option or
// a text of Perlica.
func literal(say *language.Sentences, s string) string { return escaper.Replace(say.Card.Line(s, 0)) }

func (h *Host) literal(s string) string { return literal(h.say(), s) }

var escaper = strings.NewReplacer(
	`\`, `\\`, "`", "\\`", `*`, `\*`, `_`, `\_`, `[`, `\[`, `]`, `\]`, `(`, `\(`, `)`, `\)`,
	`#`, `\#`, `<`, `\<`, `>`, `\>`, `~`, `\~`)

// short returns the last eight characters of an id. The beginnings of ids from the same hour are equal.
func short(id string) string {
	if len(id) > 8 {
		return id[len(id)-8:]
	}
	return id
}

// questionOf returns the question that the first argument names, and the remaining arguments. If the first argument
// names no question, questionOf returns the only waiting question and all arguments. But if the number of arguments is
// above the parameter "most", the first argument must name a question. With several waiting questions it returns an
// error, because a guess could approve an unread question.
func (h *Host) questionOf(ctx context.Context, args []string, most int) (asked, []string, error) {
	if len(args) > 0 {
		q, err := h.findQuestion(ctx, args[0])
		if err == nil {
			return q, args[1:], nil
		}
		if !errors.Is(err, report.ErrNoQuestion) || len(args) > most {
			return q, nil, err
		}
	}
	here, err := h.openQuestions(ctx)
	open := h.shown()
	for _, q := range here {
		open = append(open, asked{Question: q})
	}
	switch {
	case err != nil:
		return asked{}, nil, err
	case len(open) == 0 && h.Team != nil:
		return asked{}, nil, noQuestionShown
	case len(open) == 0:
		return asked{}, nil, noQuestion
	case h.Named:
		return asked{}, nil, errUnnamed
	case len(open) > 1:
		return asked{}, nil, fmt.Errorf("%d questions wait: name the one that is meant, as /pending shows it", len(open))
	}
	open[0].unnamed = true
	return open[0], args, nil
}

// findQuestion returns the question with the id or short id ref, on this machine or in the team. The error is
// report.ErrNoQuestion, report.ErrAmbiguousQuestion or errRight.
func (h *Host) findQuestion(ctx context.Context, ref string) (q asked, err error) {
	found := h.ofTeam(ref)
	err = report.ErrNoQuestion
	if h.Runner != nil {
		q.Question, err = report.FindQuestion(ctx, &h.Runner.Log().Reader, ref)
	}
	switch {
	case errors.Is(err, report.ErrNoQuestion) && len(found) == 1:
		return found[0], nil
	case len(found) > 0 && (err == nil || errors.Is(err, report.ErrNoQuestion)):
		return q, fmt.Errorf("%w: %s", report.ErrAmbiguousQuestion, ref)
	case err == nil && !h.concerns(q.Refs.Session):
		return q, errRight
	}
	return q, err
}

// Names reports whether ref is the id of a recorded question, or the end of at least one such id.
func Names(ctx context.Context, log *store.Reader, ref string) (bool, error) {
	_, err := report.FindQuestion(ctx, log, ref)
	switch {
	case errors.Is(err, report.ErrNoQuestion):
		return false, nil
	case errors.Is(err, report.ErrAmbiguousQuestion):
		return true, nil
	}
	return err == nil, err
}

// errUnnamed means that an answer must name its question.
var errUnnamed = message.New("command.unnamed",
	"it is not clear which question you mean: put its id after the command, as /pending shows it")

// errTooSoon means that a yes without a question's id came before anyone could read the question.
var errTooSoon = message.New("command.too-soon",
	"the question arrived only a moment ago: read it and send your answer again, or put the question's "+
		"id after the command")

func (h *Host) choose(ctx context.Context, args []string) (Output, error) {
	if len(args) == 0 {
		return Output{}, errUsage
	}
	q, rest, err := h.questionOf(ctx, args, len(args))
	if err != nil {
		return Output{}, err
	}
	c, err := Line{Name: "choose"}.Means(q.Question, rest)
	if err != nil {
		return Output{}, err
	}
	return h.answerQuestion(ctx, q, c)
}

// Means converts a line of /allow, /deny or /choose to an answer to the question q. args are the words after the
// question's id.
func (l Line) Means(q interaction.Question, args []string) (c Choice, err error) {
	ok := true
	switch {
	case l.Name == "choose":
		return ReadChoice(q, strings.Join(args, " "))
	case l.Name == "allow" && (q.Word != "" || len(args) == 0):
		if c.Option, ok = q.First("allow_once"); !ok {
			return c, noAllowOnce
		}
		c.Word = strings.Join(args, " ")
		return c, nil
	case l.Name == "deny" && len(args) == 0:
		if c.Option, ok = q.Refusal(); !ok {
			return c, noRejectOnce
		}
		return c, nil
	}
	known, _ := lookup(l.Name)
	return c, &usageError{known}
}

// Choice is a person's choice of an option. Word is the word that the question requires for a yes. Always confirms a
// permanent yes.
type Choice struct {
	Option interaction.Option
	Word   string
	Always bool
}

// always is the word that a person types after an option to confirm a permanent yes.
const always = "always"

// ReadChoice finds the option in a text, as [interaction.Question.Choose] does. The question's word and the word
// "always" may follow the option. ReadChoice refuses a text with two possible meanings, because an agent may call its
// options anything.
func ReadChoice(q interaction.Question, text string) (Choice, error) {
	var found []Choice
	if c, ok := readText(q, text); ok {
		return c, nil
	}
	_, first := q.Choose(text)
	read := func(text string, c Choice) {
		if o, err := q.Choose(text); err == nil {
			c.Option = o
			found = append(found, c)
		}
	}
	both := func(text string, c Choice) {
		read(text, c)
		if rest, ok := without(text, q.Word); ok {
			c.Word = q.Word
			read(rest, c)
		}
	}
	both(text, Choice{})
	if rest, ok := without(text, always); ok {
		both(rest, Choice{Always: true})
	}
	switch len(found) {
	case 0:
		return Choice{}, first
	case 1:
		return found[0], nil
	}
	return Choice{}, fmt.Errorf("%w: %q", interaction.ErrAmbiguous, text)
}

// readText parses the number of an option that requires a text, and the text after the number.
func readText(q interaction.Question, text string) (Choice, bool) {
	number, rest, _ := strings.Cut(strings.TrimSpace(text), " ")
	o, err := q.Choose(number)
	if i := slices.Index(q.Options, o); err != nil || !o.Text || number != fmt.Sprint(i+1) {
		return Choice{}, false
	}
	return Choice{Option: o, Word: strings.TrimSpace(rest)}, true
}

// without removes a word from the end of a text. ok is false if the text does not end with the word.
func without(text, word string) (string, bool) {
	rest, ok := strings.CutSuffix(strings.TrimSpace(text), " "+word)
	return rest, ok && word != ""
}

// GivesUp returns the sentence that explains a permanent yes to a person before the person confirms it.
func (c Choice) GivesUp(say *language.Sentences, q interaction.Question) string {
	return fmt.Sprintf(say.GivesUp, strings.Join(strings.Fields(c.Option.Label), " "),
		cmp.Or(q.Subject.Provider, say.TheAgent))
}

func (h *Host) allow(ctx context.Context, args []string) (Output, error) {
	q, rest, err := h.questionOf(ctx, args, 1)
	if err != nil {
		return Output{}, err
	}
	c, err := Line{Name: "allow"}.Means(q.Question, rest)
	if err != nil {
		return Output{}, err
	}
	return h.answerQuestion(ctx, q, c)
}

func (h *Host) deny(ctx context.Context, args []string) (Output, error) {
	q, rest, err := h.questionOf(ctx, args, 0)
	if err != nil {
		return Output{}, err
	}
	c, err := Line{Name: "deny"}.Means(q.Question, rest)
	if err != nil {
		return Output{}, err
	}
	return h.answerQuestion(ctx, q, c)
}

func (h *Host) answerQuestion(ctx context.Context, q asked, c Choice) (Output, error) {
	o := c.Option
	if q.unnamed && o.Allows() && h.now().Sub(q.Asked) < interaction.ReadTime {
		return Output{}, errTooSoon
	}
	a := interaction.Answer{Option: o.ID, By: h.By, Where: h.Where, Origin: h.Origin, Always: c.Always}
	switch {
	case o.Text && c.Word == "":
		return Output{}, needsText
	case o.Text, q.Word != "" && o.Allows():
		a.Text = c.Word
	case c.Word != "":
		return Output{}, errUsage
	}
	if o.Always() && !c.Always {
		return Output{}, language.Said(c.GivesUp(h.say(), q.Question) +
			fmt.Sprintf(h.say().WhereMeantChoose, short(string(q.ID)), strings.TrimSpace(q.Word+" "+always)))
	}
	var err error
	if q.there {
		err = h.Team.Answer(ctx, q.ID, a)
	} else {
		err = h.Runner.AnswerQuestion(ctx, q.Question, a)
	}
	if errors.Is(err, interaction.ErrWord) {
		return Output{}, fmt.Errorf("%w: %s", err, q.Word)
	}
	if err != nil {
		return Output{}, err
	}
	return Output{Text: fmt.Sprintf(h.say().Answered, short(string(q.ID)), escaper.Replace(given(h.say(), o, a)))}, nil
}

// given returns the words of the given answer, as card.Given does.
func given(say *language.Sentences, o interaction.Option, a interaction.Answer) string {
	if o.Text {
		o.Label, o.Offer = a.Text, false
	}
	return say.Option(o, 0)
}

func (h *Host) findRun(ctx context.Context, ref string) (event.RunID, error) {
	id, err := report.FindRun(ctx, &h.Runner.Log().Reader, ref)
	if err != nil || h.Only == nil {
		return id, err
	}
	res, err := record.ReadResult(ctx, &h.Runner.Log().Reader, id)
	if err == nil && !h.concerns(res.Session) {
		err = errRight
	}
	return id, err
}
