package dialog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/perlica/perlica/cmd/perlica/cli"
	"github.com/perlica/perlica/cmd/perlica/printing"
	"github.com/perlica/perlica/cmd/perlica/signals"
	"github.com/perlica/perlica/cmd/perlica/term"
	"github.com/perlica/perlica/interaction"
	"github.com/perlica/perlica/interaction/card"
	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/kernel/streamjson"
)

// sitting is a question at a terminal, from its first page to its answer or to Ctrl-Z.
type sitting struct {
	k    *Asker
	q    interaction.Question
	keys *term.Keys

	width, height int // of the screen that pager is for
	pager         *card.Pager
}

// run shows the question and reads keys until one of them is an answer that counts, or Ctrl-Z.
func (s *sitting) run(ctx context.Context) error {
	for {
		if err := s.layOut(); err != nil {
			return err
		}
		key, resized, err := s.next(ctx)
		for !resized && err == nil {
			var done bool
			if done, err = s.press(ctx, key); done || err != nil {
				return err
			}
			key, resized, err = s.next(ctx)
		}
		if err != nil {
			return err
		}
	}
}

// screen is the size of the terminal. One that does not say is taken for the usual one.
func (s *sitting) screen() (width, height int) {
	width, height = term.Width(s.k.a.Stderr), term.Height(s.k.a.Stderr)
	if width <= 0 {
		width = 80
	}
	if height <= 0 {
		height = 24
	}
	return width, height
}

// layOut begins at the first page, for the screen as it is now: what was seen on one of another
// size does not count.
func (s *sitting) layOut() error {
	s.width, s.height = s.screen()
	elsewhere := "perlica pending show " + printing.Short(s.q.ID)
	if s.k.Away {
		elsewhere = "perlica team pending"
	}
	s.pager = card.NewPager(s.q, s.width, s.height, card.Hints{
		Choose:    keysHint(s.q, s.k.AnswerTo != nil && !s.k.Away),
		Turn:      "y goes on, v shows all, n or Esc no",
		Small:     "This screen is too small: no yes can be given here, n or Esc is no.",
		Elsewhere: "from elsewhere: " + elsewhere,
	})
	return s.draw(true)
}

// draw shows the page.
func (s *sitting) draw(first bool) error {
	rows := s.pager.Draw()
	before := ""
	if first && len(rows) < s.height-1 {
		before = "\n"
	}
	return s.show(before + printing.Drawn(rows, s.k.say.Styles))
}

// show shows what is asked. What was typed before it could be read answers nothing. The end of its last line comes
// behind that: what is typed when all of it is there is not lost.
func (s *sitting) show(text string) (err error) {
	s.k.say.Status.Print(func(w io.Writer) {
		_, _ = io.WriteString(w, strings.TrimSuffix(text, "\n")) // a terminal that is gone says so to its reader
		err = s.keys.Discard()
		_, _ = io.WriteString(w, "\n")
	})
	return err
}

// next waits for a key, or until the terminal has another size.
func (s *sitting) next(ctx context.Context) (key term.Key, resized bool, err error) {
	changes, stop := signals.Resizes()
	defer stop()
	for {
		if w, h := s.screen(); w != s.width || h != s.height {
			return key, true, nil
		}
		key, err = s.nextUnless(ctx, changes)
		w, h := s.screen()
		switch {
		case ctx.Err() != nil:
			return key, false, ctx.Err()
		case w != s.width || h != s.height:
			return key, true, nil // a key was meant for what is not there any more
		case errors.Is(err, context.Canceled):
			continue
		}
		if err == nil && key.Kind == term.KeyRune {
			alone, err := s.keys.Alone(ctx)
			if err != nil {
				return key, false, err
			}
			if !alone {
				continue // a text that was pasted is no answer
			}
		}
		return key, false, err
	}
}

func (s *sitting) nextUnless(ctx context.Context, changes <-chan os.Signal) (term.Key, error) {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	wg.Go(func() {
		select {
		case <-changes:
			cancel()
		case <-ctx.Done():
		}
	})
	return s.keys.Next(ctx)
}

// press does what a key says and reports whether the question is done with here.
func (s *sitting) press(ctx context.Context, key term.Key) (done bool, err error) {
	switch {
	case key.Kind == term.KeyCtrlZ:
		return false, term.ErrSuspended
	case key.Kind == term.KeyCtrlC:
		s.k.Stop.Stop(kernel.Stop{By: streamjson.ByUser, Why: "interrupted at a question"})
		return true, nil
	case key.Kind == term.KeyEsc, isRune(key, 'n', 'N'):
		o, ok := s.q.Refusal()
		if ok {
			return s.give(ctx, o)
		}
		if s.k.AnswerTo == nil {
			// The agent offers no way to say no: the turn is cancelled instead.
			s.k.Stop.Stop(kernel.Stop{By: streamjson.ByUser, Why: "refused, and the agent offers no way to refuse"})
		}
		return s.k.AnswerTo == nil, nil
	case isRune(key, 'v', 'V'):
		s.pager.All()
		return false, s.draw(false)
	case isRune(key, 'y', 'Y'):
		o, ok := s.q.First("allow_once")
		return s.choose(ctx, o, ok)
	}
	o, ok := byNumber(key, s.q)
	if !ok {
		return false, nil
	}
	return s.choose(ctx, o, true)
}

func isRune(key term.Key, runes ...rune) bool {
	return key.Kind == term.KeyRune && slices.Contains(runes, key.Rune)
}

// choose takes an option. A yes turns the page until all that would run has been seen.
func (s *sitting) choose(ctx context.Context, o interaction.Option, ok bool) (done bool, err error) {
	switch {
	case ok && !o.Allows():
		return s.give(ctx, o)
	case !s.pager.Ready():
		s.pager.Turn()
		return false, s.draw(false)
	case !ok:
		return false, nil
	}
	return s.give(ctx, o)
}

// give records the choice. A yes for good takes a second key, a yes to something dangerous the
// word.
func (s *sitting) give(ctx context.Context, o interaction.Option) (done bool, err error) {
	answer := interaction.Answer{Option: o.ID, By: cli.UserName(s.k.a.Getenv), Where: s.k.where, Shown: s.pager.Shown(), Origin: s.k.a.Origin()}
	if o.Always() {
		if answer.Always, done, err = s.confirmed(ctx); !answer.Always || err != nil {
			return done, err
		}
	}
	switch {
	case s.q.Word != "" && o.Allows():
		answer.Text, err = s.typed(ctx, "Type "+s.k.say.Styles.Bold(card.Line(s.q.Word, 0))+" and Enter to go on, Esc to go back: ")
	case o.Text:
		answer.Text, err = s.value(ctx)
	}
	if errors.Is(err, term.ErrEscaped) || errors.Is(err, term.ErrInterrupted) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return s.k.record(ctx, s.q, answer)
}

// typed asks for a line.
func (s *sitting) typed(ctx context.Context, prompt string) (string, error) {
	s.k.say.Status.Print(func(w io.Writer) { fmt.Fprint(w, "  "+prompt) })
	text, err := s.keys.Line(ctx)
	s.k.say.Status.Print(func(io.Writer) {}) // ends the line, if that has not happened yet
	return text, err
}

// value asks for a text until it fits.
func (s *sitting) value(ctx context.Context) (string, error) {
	for {
		text, err := s.typed(ctx, "Your answer and Enter, Esc to go back: ")
		if err != nil {
			return "", err
		}
		_, err = s.q.Input.Value(text)
		if err == nil {
			return text, nil
		}
		s.k.say.Note(err.Error())
	}
}

// confirmed asks whether a yes for good is meant. Without one the question may be done with here
// all the same.
func (s *sitting) confirmed(ctx context.Context) (yes, done bool, err error) {
	rows := card.Note("A yes for good: the agent will not ask again, and Perlica cannot limit what it takes this to cover. y: that is meant; any other key: back.", s.width)
	if err := s.show(printing.Drawn(rows, s.k.say.Styles)); err != nil {
		return false, false, err
	}
	key, resized, err := s.next(ctx)
	switch {
	case err != nil || resized: // the next look at the screen lays out anew
		return false, false, err
	case isRune(key, 'y', 'Y'):
		return true, false, nil
	case key.Kind == term.KeyCtrlC, key.Kind == term.KeyCtrlZ:
		done, err = s.press(ctx, key)
		return false, done, err
	}
	return false, false, s.draw(false)
}

// record puts an answer on the log and reports whether the question is done with here.
func (k *Asker) record(ctx context.Context, q interaction.Question, answer interaction.Answer) (done bool, err error) {
	if k.AnswerTo != nil {
		answer.Where = "watch"
		err = k.AnswerTo(context.WithoutCancel(ctx), q, answer)
	} else {
		err = k.r.Questions().Answer(context.WithoutCancel(ctx), q.ID, answer)
	}
	var taken *interaction.TakenError
	switch {
	case err == nil:
		return true, nil
	case errors.As(err, &taken):
		k.say.Note(taken.Error())
		return true, nil
	case errors.Is(err, interaction.ErrWord), errors.Is(err, interaction.ErrNotAnOption):
		k.say.Note(err.Error())
		return false, nil
	case k.AnswerTo != nil:
		k.say.Note("your answer does not count: " + err.Error())
		return true, nil
	}
	return false, err
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
