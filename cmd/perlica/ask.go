package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/rogpeppe/go-internal/diff"

	"github.com/perlica/perlica/cmd/perlica/term"
	"github.com/perlica/perlica/eventlog"
	"github.com/perlica/perlica/interaction"
	"github.com/perlica/perlica/kernel"
)

// asker puts questions to the person at the terminal, one at a time, oldest first.
type asker struct {
	a    *app
	r    *kernel.Runner
	say  *printer
	stop *stopper
	tty  keyboard // nil: nobody sits here

	done func() error // closes what newAsker opened

	suspend func()                // stops the process until somebody continues it
	calm    func(context.Context) // waits until nobody is typing something else; nil: nobody can be

	where string // what answers given here say of their place

	// answerTo is set where the questions are those of other processes: Ctrl-C then ends the
	// watching, and no key a turn. Nil: they are r's own.
	answerTo func(context.Context, interaction.Question, interaction.Answer) error

	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup
	wake   chan struct{} // capacity 1: open changed

	mu   sync.Mutex // guards what follows
	open []*openQuestion
}

// keyboard is where questions are answered.
type keyboard interface {
	// Session calls f with the terminal in raw mode and nothing typed ahead.
	Session(f func(*term.Keys) error) error
}

// openQuestion is a question with its end.
type openQuestion struct {
	interaction.Question
	closed chan struct{}
}

// newAsker opens the terminal, if there is one to ask on: standard error is one, and the
// controlling terminal can be opened. Standard input may well be a pipe.
func newAsker(a *app, r *kernel.Runner, say *printer) *asker {
	if !term.IsTerminal(a.stderr) {
		return newAskerAt(a, r, say, nil, "terminal")
	}
	tty, err := term.OpenTTY()
	if err != nil {
		return newAskerAt(a, r, say, nil, "terminal")
	}
	k := newAskerAt(a, r, say, tty, "terminal")
	k.done = tty.Close
	k.suspend = func() {
		say.status.Aside(func() { _ = tty.Aside(suspend) }) // a terminal that is gone says so to whoever reads it
	}
	return k
}

// newAskerAt puts questions at a keyboard that somebody else opened; nil is none.
func newAskerAt(a *app, r *kernel.Runner, say *printer, tty keyboard, where string) *asker {
	k := &asker{a: a, r: r, say: say, tty: tty, where: where, wake: make(chan struct{}, 1)}
	k.ctx, k.cancel = context.WithCancel(context.Background())
	if tty != nil {
		k.wg.Go(k.loop)
	}
	return k
}

func (k *asker) available() bool { return k.tty != nil }

func (k *asker) close() {
	k.cancel()
	k.wg.Wait()
	if k.done != nil {
		_ = k.done() // read from only
	}
}

// show takes note of questions and of their ends.
func (k *asker) show(n kernel.Notice) {
	if k.tty == nil {
		return
	}
	switch n := n.(type) {
	case kernel.Asked:
		if !n.Answerable {
			return
		}
		k.mu.Lock()
		k.open = append(k.open, &openQuestion{n.Question, make(chan struct{})})
		k.mu.Unlock()
		select {
		case k.wake <- struct{}{}:
		default:
		}
	case kernel.Closed:
		k.mu.Lock()
		defer k.mu.Unlock()
		for i, q := range k.open {
			if q.ID == n.Question.ID {
				close(q.closed)
				k.open = append(k.open[:i], k.open[i+1:]...)
				return
			}
		}
	}
}

func (k *asker) next() *openQuestion {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.open) == 0 {
		return nil
	}
	return k.open[0]
}

func (k *asker) loop() {
	for {
		q := k.next()
		if q == nil {
			select {
			case <-k.wake:
				continue
			case <-k.ctx.Done():
				return
			}
		}
		k.put(q)
		select {
		case <-q.closed:
		case <-k.ctx.Done():
			return
		}
	}
}

// put asks one question until it has an end.
func (k *asker) put(q *openQuestion) {
	ctx, cancel := context.WithCancel(k.ctx)
	defer cancel()
	go func() {
		select {
		case <-q.closed:
			cancel()
		case <-ctx.Done():
		}
	}()
	if k.calm != nil {
		if k.calm(ctx); ctx.Err() != nil {
			return
		}
	}
	err := k.tty.Session(func(keys *term.Keys) error {
		for {
			k.say.status.Print(func(w io.Writer) { io.WriteString(w, k.render(q.Question)) })
			if err := keys.Discard(); err != nil {
				return err
			}
			if err := k.answer(ctx, keys, q.Question); !errors.Is(err, term.ErrSuspended) {
				return err
			}
			if k.suspend(); ctx.Err() != nil {
				return ctx.Err()
			}
		}
	})
	if err != nil && ctx.Err() == nil {
		k.say.note("the terminal cannot be read: " + err.Error() + "; answer with 'perlica pending'")
		<-ctx.Done()
	}
}

// answer reads keys until one of them is an answer that counts, or Ctrl-Z.
func (k *asker) answer(ctx context.Context, keys *term.Keys, q interaction.Question) error {
	for {
		key, err := keys.Next(ctx)
		if err != nil {
			return err
		}
		if key.Kind == term.KeyRune {
			if alone, err := keys.Alone(ctx); err != nil {
				return err
			} else if !alone {
				continue // a text that was pasted is no answer
			}
		}
		var o interaction.Option
		ok := false
		switch {
		case key.Kind == term.KeyCtrlZ:
			return term.ErrSuspended
		case key.Kind == term.KeyCtrlC:
			k.stop.stop(kernel.Stop{By: byUser, Why: "interrupted at a question"})
			return nil
		case key.Kind == term.KeyEsc, key.Kind == term.KeyRune && (key.Rune == 'n' || key.Rune == 'N'):
			if o, ok = refusal(q); !ok && k.answerTo == nil {
				// The agent offers no way to say no: the turn is cancelled instead.
				k.stop.stop(kernel.Stop{By: byUser, Why: "refused, and the agent offers no way to refuse"})
				return nil
			}
		case key.Kind == term.KeyRune && (key.Rune == 'y' || key.Rune == 'Y'):
			o, ok = q.First("allow_once")
		default:
			o, ok = byNumber(key, q)
		}
		if !ok {
			continue
		}
		if done, err := k.give(ctx, keys, q, o); done || err != nil {
			return err
		}
	}
}

// give records the choice. A yes to something dangerous takes the word.
func (k *asker) give(ctx context.Context, keys *term.Keys, q interaction.Question, o interaction.Option) (done bool, err error) {
	answer := interaction.Answer{Option: o.ID, By: userName(k.a.getenv), Where: k.where}
	if q.Word != "" && o.Allows() {
		k.say.status.Print(func(w io.Writer) {
			fmt.Fprintf(w, "  Type %s and Enter to go on, Esc to go back: ", k.say.styles.Bold(term.Sanitize(q.Word)))
		})
		answer.Text, err = keys.Line(ctx)
		k.say.status.Print(func(io.Writer) {}) // ends the line, if nobody has meanwhile
		if errors.Is(err, term.ErrEscaped) || errors.Is(err, term.ErrInterrupted) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
	}
	if k.answerTo != nil {
		answer.Where = "watch"
		err = k.answerTo(context.WithoutCancel(ctx), q, answer)
	} else {
		err = k.r.Questions().Answer(context.WithoutCancel(ctx), q.ID, answer)
	}
	var taken *interaction.TakenError
	switch {
	case err == nil:
		return true, nil
	case errors.As(err, &taken):
		k.say.note(taken.Error())
		return true, nil
	case errors.Is(err, interaction.ErrWord):
		k.say.note(err.Error())
		return false, nil
	case k.answerTo != nil:
		k.say.note("your answer does not count: " + err.Error())
		return true, nil
	}
	return false, err
}

// refusal is the option that Esc and n choose.
func refusal(q interaction.Question) (interaction.Option, bool) {
	if o, ok := q.First("reject_once"); ok {
		return o, true
	}
	return interaction.Option{}, false
}

// byNumber is the option that a digit chooses. Questions with more than nine options are
// answered by 'perlica pending choose'.
func byNumber(key term.Key, q interaction.Question) (interaction.Option, bool) {
	n, ok := key.Digit()
	if !ok || n < 1 || n > len(q.Options) {
		return interaction.Option{}, false
	}
	return q.Options[n-1], true
}

// render is a question as it is shown: what is asked, in full, and the options.
func (k *asker) render(q interaction.Question) string {
	var b strings.Builder
	s := k.say.styles
	fmt.Fprintf(&b, "\n%s %s\n", s.Yellow("?"), s.Bold(hanging(questionTitle(q))))
	writeSubject(&b, q, s)
	for i, o := range q.Options {
		fmt.Fprintf(&b, "  %s %s\n", s.Cyan(fmt.Sprintf("%d", i+1)), oneLine(o.Label))
	}
	b.WriteString(s.Dim("  "+keysHint(q, k.answerTo != nil)) + "\n")
	b.WriteString(s.Dim("  from elsewhere: perlica pending show "+shortID(q.ID)) + "\n")
	return b.String()
}

// keysHint says what the keys do at a question, of a turn of this process or one that is watched.
func keysHint(q interaction.Question, watched bool) string {
	var keys []string
	switch n := min(len(q.Options), 9); n {
	case 0:
	case 1:
		keys = append(keys, "1 chooses")
	default:
		keys = append(keys, fmt.Sprintf("1-%d chooses", n))
	}
	if _, ok := q.First("allow_once"); ok {
		keys = append(keys, "y yes once")
	}
	_, refusable := refusal(q)
	switch {
	case watched && refusable:
		return strings.Join(append(keys, "n or Esc no", "Ctrl-C ends the watching"), ", ")
	case watched:
		return strings.Join(append(keys, "Ctrl-C ends the watching"), ", ")
	case refusable:
		return strings.Join(append(keys, "n or Esc no", "Ctrl-C cancels the turn"), ", ")
	}
	return strings.Join(append(keys, "n, Esc or Ctrl-C cancels the turn"), ", ")
}

func questionTitle(q interaction.Question) string {
	title := q.Title
	if title == "" {
		title = "use a tool"
	}
	return q.Subject.Provider + " asks: " + title
}

// hanging is a text whose first line stands two columns in, as its others do then: none of them
// looks like something that is not the agent's.
func hanging(text string) string {
	return strings.ReplaceAll(term.Sanitize(strings.TrimRight(text, "\r\n")), "\n", "\n  ")
}

// writeSubject shows what is to be judged, whole.
func writeSubject(b *strings.Builder, q interaction.Question, s term.Styles) {
	indent := func(text string) {
		for line := range strings.SplitSeq(strings.TrimRight(text, "\n"), "\n") {
			b.WriteString("    " + term.Sanitize(line) + "\n")
		}
	}
	for _, c := range q.Subject.Commands {
		indent(c)
	}
	for _, d := range q.Subject.Diffs {
		for line := range strings.SplitSeq(strings.TrimRight(string(diff.Diff(d.Path, []byte(d.Old), d.Path, []byte(d.New))), "\n"), "\n") {
			line = term.Sanitize(line)
			switch {
			case strings.HasPrefix(line, "diff "):
				continue
			case strings.HasPrefix(line, "+"):
				line = s.Green(line)
			case strings.HasPrefix(line, "-"):
				line = s.Red(line)
			}
			b.WriteString("    " + line + "\n")
		}
	}
	for _, t := range q.Subject.Text {
		indent(t)
	}
	if len(q.Subject.Commands) == 0 && len(q.Subject.Diffs) == 0 {
		for _, p := range q.Subject.Paths {
			indent(p)
		}
		if len(q.Subject.RawInput) > 0 && string(q.Subject.RawInput) != "{}" && string(q.Subject.RawInput) != "null" {
			indent(string(q.Subject.RawInput))
		}
	}
	if q.Why != "" {
		b.WriteString("  " + s.Yellow(hanging(q.Why)) + "\n")
	}
}

// shortID is enough of an id to name a question among those that are open.
func shortID(id eventlog.InteractionID) string {
	s := string(id)
	return s[max(0, len(s)-8):]
}
