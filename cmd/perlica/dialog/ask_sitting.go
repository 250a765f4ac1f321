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
	"time"

	"github.com/perlica/perlica/cmd/perlica/frame"
	"github.com/perlica/perlica/cmd/perlica/screen"
	"github.com/perlica/perlica/interaction"
	"github.com/perlica/perlica/interaction/card"
	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/kernel/streamjson"
)

// sitting is a question at a terminal, from its first page to its answer or to Ctrl-Z.
type sitting struct {
	k    *Asker
	q    interaction.Question
	keys *screen.Keys

	width, height int // of the screen that pager is for
	pager         *card.Pager

	wait      interaction.Wait
	counts    bool       // a key that allows counts now
	counted   bool       // counts, as it was before the last key
	due       []card.Row // say what the keys do; they are drawn when keys that allow count
	explained bool       // the reason why a key does not count stands on the screen
}

// run shows the question and reads keys until one of them is an answer that counts, or Ctrl-Z.
func (s *sitting) run(ctx context.Context) error {
	for first := true; ; first = false {
		if err := s.layOut(); err != nil {
			return err
		}
		if first { // a new size makes nobody wait again
			s.wait.Drawn(time.Now())
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
	width, height = screen.TerminalWidth(s.k.a.Stderr), screen.TerminalHeight(s.k.a.Stderr)
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
	elsewhere := "perlica pending show " + frame.ShortID(s.q.ID)
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
	rows, keys := s.pager.Draw(), s.pager.Keys()
	before := ""
	if first && len(rows)+len(keys) < s.height-1 {
		before = "\n"
	}
	return s.show(before+frame.RenderRows(rows, s.k.say.Styles), keys)
}

// show shows the question, or more of it, and discards everything typed before. The rows about the keys follow when
// a key that allows counts. The end of the last line comes after the discarding: a key typed when all of it stands
// there is not lost.
func (s *sitting) show(text string, keys []card.Row) (err error) {
	s.k.say.Status.Print(func(w io.Writer) {
		_, _ = io.WriteString(w, strings.TrimSuffix(text, "\n")) // a terminal that is gone says so to its reader
		err = s.keys.Discard()
		_, _ = io.WriteString(w, "\n")
	})
	s.counts, s.due, s.explained = false, keys, false
	return err
}

// open lets keys that allow count if the wait is over and nothing was typed that is not read yet.
func (s *sitting) open(ctx context.Context) error {
	if s.counts || s.wait.Left(time.Now()) > 0 {
		return nil
	}
	typed, err := s.keys.Pending(ctx, time.Millisecond)
	if typed || err != nil {
		return err
	}
	s.counts = true
	text := frame.RenderRows(s.due, s.k.say.Styles)
	if s.due = nil; text != "" {
		s.below(text)
	}
	return nil
}

// below draws rows below the question. After the reason why a key does not count the cursor stays in the last row:
// a page has only one row more than the question needs.
func (s *sitting) below(text string) {
	if s.explained {
		text = strings.TrimSuffix(text, "\n")
	}
	s.k.say.Status.Print(func(w io.Writer) { _, _ = io.WriteString(w, text) }) // likewise
}

// explain says why a key does not count, once, in the row of the cursor.
func (s *sitting) explain() {
	if s.explained {
		return
	}
	s.explained = true
	const why = "Too soon to count: let go, read, press it again."
	s.below(frame.RenderRows([]card.Row{{Head: "  " + card.Line(why, s.width-3), Tone: card.Aside}}, s.k.say.Styles))
}

// next waits for a key, or until the terminal has another size.
func (s *sitting) next(ctx context.Context) (key screen.Key, resized bool, err error) {
	changes, stop := frame.TerminalResizes()
	defer stop()
	for {
		if w, h := s.screen(); w != s.width || h != s.height {
			return key, true, nil
		}
		if err := s.open(ctx); err != nil {
			return key, false, err
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
		s.counted, s.counts = s.counts, false
		s.wait.Input(time.Now())
		if err == nil && key.Kind == screen.KeyRune {
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

// nextUnless waits for a key, for another size of the terminal, or for the end of the wait.
func (s *sitting) nextUnless(ctx context.Context, changes <-chan os.Signal) (screen.Key, error) {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	var over <-chan time.Time // nil: keys that allow count already
	if !s.counts {
		over = time.After(max(s.wait.Left(time.Now()), time.Millisecond))
	}
	wg.Go(func() {
		select {
		case <-changes:
			cancel()
		case <-over:
			cancel()
		case <-ctx.Done():
		}
	})
	return s.keys.Next(ctx)
}

// press does what a key says and reports whether the question is done with here.
func (s *sitting) press(ctx context.Context, key screen.Key) (done bool, err error) {
	switch {
	case key.Kind == screen.KeyCtrlZ:
		return false, screen.ErrSuspended
	case key.Kind == screen.KeyCtrlC:
		s.k.Stop.Stop(kernel.Stop{By: streamjson.ByUser, Why: "interrupted at a question"})
		return true, nil
	case key.Kind == screen.KeyEsc, isRune(key, 'n', 'N'):
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
		return false, s.turned()
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

func isRune(key screen.Key, runes ...rune) bool {
	return key.Kind == screen.KeyRune && slices.Contains(runes, key.Rune)
}

// turned draws another page, which takes its time to be read.
func (s *sitting) turned() error {
	err := s.draw(false)
	s.wait.Drawn(time.Now())
	return err
}

// choose takes an option. A yes turns the page until all that would run has been seen, and counts only if no other
// key comes shortly before or after it.
func (s *sitting) choose(ctx context.Context, o interaction.Option, ok bool) (done bool, err error) {
	if ok && !o.Allows() {
		return s.give(ctx, o)
	}
	if meant, err := s.meant(ctx, o); !meant || err != nil {
		return false, err
	}
	switch {
	case !s.pager.Ready():
		s.pager.Turn()
		return false, s.turned()
	case !ok:
		return false, nil
	}
	return s.give(ctx, o)
}

// meant reports whether a key that allows counts, and otherwise says why it does not. A key that is held down is
// followed by itself. Before a line is typed nothing may be on its way.
func (s *sitting) meant(ctx context.Context, o interaction.Option) (bool, error) {
	if s.counted {
		within := interaction.HeldTime
		if o.Text || s.q.Word != "" {
			within = interaction.QuietTime
		}
		followed, err := s.keys.Pending(ctx, within)
		if !followed || err != nil {
			return err == nil, err
		}
	}
	s.explain()
	return false, nil
}

// give records the choice. A yes for good takes a second key, a yes to something dangerous the
// word.
func (s *sitting) give(ctx context.Context, o interaction.Option) (done bool, err error) {
	answer := interaction.Answer{Option: o.ID, By: frame.UserName(s.k.a.Getenv), Where: s.k.where, Shown: s.pager.Shown(), Origin: s.k.a.Origin()}
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
	s.due, s.explained = s.pager.Keys(), false // other rows stand below them by now
	s.wait.Input(time.Now())
	if errors.Is(err, screen.ErrEscaped) || errors.Is(err, screen.ErrInterrupted) {
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

// confirmed asks whether a yes for good is meant. Without that yes the question may have its end all the same.
func (s *sitting) confirmed(ctx context.Context) (yes, done bool, err error) {
	rows := card.Note("This allows it for good: the agent will not ask again, and Perlica cannot limit what it takes this to cover.", s.width)
	keys := card.Note("Press y to confirm, any other key to go back.", s.width)
	if err := s.show(frame.RenderRows(rows, s.k.say.Styles), keys); err != nil {
		return false, false, err
	}
	s.wait.Drawn(time.Now())
	for {
		key, resized, err := s.next(ctx)
		switch {
		case err != nil || resized: // the next look at the screen lays it out once more
			return false, false, err
		case isRune(key, 'y', 'Y'):
			if yes, err := s.meant(ctx, interaction.Option{}); yes || err != nil {
				return yes, false, err
			}
		case key.Kind == screen.KeyCtrlC, key.Kind == screen.KeyCtrlZ:
			done, err = s.press(ctx, key)
			return false, done, err
		default:
			return false, false, s.turned()
		}
	}
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
func byNumber(key screen.Key, q interaction.Question) (interaction.Option, bool) {
	n, ok := key.Digit()
	if !ok || n < 1 || n > len(q.Options) {
		return interaction.Option{}, false
	}
	return q.Options[n-1], true
}
