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
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/kernel/streamjson"
)

// questionScreen shows one question at a terminal and reads the answer. It ends with the answer or with Ctrl-Z. An
// allow key is a key for an option that allows something. It counts only some time after the question was drawn.
type questionScreen struct {
	k    *Asker
	q    interaction.Question
	keys *screen.Keys

	width, height int // the size of the screen for which pager was made
	pager         *card.Pager

	wait             interaction.Wait
	allowKeysCount   bool       // An allow key counts now.
	allowKeysCounted bool       // value of allowKeysCount before the last key was read
	keyRows          []card.Row // rows that explain the keys; drawn when allow keys count
	explained        bool       // The screen has explained why a key did not count.
}

// readAnswer shows the question and reads keys until the person has given a valid answer or pressed Ctrl-Z.
func (s *questionScreen) readAnswer(ctx context.Context) error {
	for first := true; ; first = false {
		if err := s.layOutPages(); err != nil {
			return err
		}
		if first { // A resize does not start the wait for allow keys again.
			s.wait.Drawn(time.Now())
		}
		key, resized, err := s.nextKey(ctx)
		for !resized && err == nil {
			var done bool
			if done, err = s.handleKey(ctx, key); done || err != nil {
				return err
			}
			key, resized, err = s.nextKey(ctx)
		}
		if err != nil {
			return err
		}
	}
}

// size returns the size of the terminal. A terminal that does not report its size counts as 80×24.
func (s *questionScreen) size() (width, height int) {
	width, height = screen.TerminalWidth(s.k.a.Stderr), screen.TerminalHeight(s.k.a.Stderr)
	if width <= 0 {
		width = 80
	}
	if height <= 0 {
		height = 24
	}
	return width, height
}

// layOutPages divides the question into pages for the current size and shows the first one. Pages that were seen at
// another size do not count as seen.
func (s *questionScreen) layOutPages() error {
	s.width, s.height = s.size()
	elsewhere := "perlica pending show " + frame.ShortID(s.q.ID)
	if s.k.Away {
		elsewhere = "perlica team pending"
	}
	s.pager = card.NewPager(s.q, s.width, s.height, card.Hints{
		Choose:    keysHint(s.q, s.k.AnswerTo != nil && !s.k.Away),
		Turn:      "y next page, v all pages, n or Esc no",
		Small:     "This screen is too small: no yes can be given here, n or Esc is no.",
		Elsewhere: "from elsewhere: " + elsewhere,
	})
	return s.drawPage(true)
}

// drawPage draws the current page.
func (s *questionScreen) drawPage(first bool) error {
	rows, keys := s.pager.Draw(), s.pager.Keys()
	before := ""
	if first && len(rows)+len(keys) < s.height-1 {
		before = "\n"
	}
	return s.printText(before+frame.RenderRows(rows, s.k.say.Styles), keys)
}

// printText prints text and then discards the keys that were typed before the text was complete. It prints the final
// newline after this, so a key that answers the complete text is not lost. The rows in keys are printed later, when
// allow keys count.
func (s *questionScreen) printText(text string, keys []card.Row) (err error) {
	s.k.say.Status.Print(func(w io.Writer) {
		// If the terminal is closed, Discard or the reading of the next key fails, too.
		_, _ = io.WriteString(w, strings.TrimSuffix(text, "\n"))
		err = s.keys.Discard()
		_, _ = io.WriteString(w, "\n")
	})
	s.allowKeysCount, s.keyRows, s.explained = false, keys, false
	return err
}

// acceptAllowKeys makes allow keys count if the wait is over and no unread key is left.
func (s *questionScreen) acceptAllowKeys(ctx context.Context) error {
	if s.allowKeysCount || s.wait.Left(time.Now()) > 0 {
		return nil
	}
	typed, err := s.keys.Pending(ctx, time.Millisecond)
	if typed || err != nil {
		return err
	}
	s.allowKeysCount = true
	text := frame.RenderRows(s.keyRows, s.k.say.Styles)
	if s.keyRows = nil; text != "" {
		s.printBelow(text)
	}
	return nil
}

// printBelow prints a text below the question. After explainIgnoredKey the cursor stays in the last row, because a
// page has only one spare row.
func (s *questionScreen) printBelow(text string) {
	if s.explained {
		text = strings.TrimSuffix(text, "\n")
	}
	// An error can be ignored here: if the terminal is closed, the goroutine that reads the keys ends the question.
	s.k.say.Status.Print(func(w io.Writer) { _, _ = io.WriteString(w, text) })
}

// explainIgnoredKey says why the last key does not count. It says so once, in the row of the cursor.
func (s *questionScreen) explainIgnoredKey() {
	if s.explained {
		return
	}
	s.explained = true
	const why = "Too soon to count: let go, read, press it again."
	s.printBelow(frame.RenderRows([]card.Row{{Head: "  " + card.Line(why, s.width-3), Tone: card.Aside}}, s.k.say.Styles))
}

// nextKey waits for a key or for a resize of the terminal. It also makes allow keys count when the wait is over.
func (s *questionScreen) nextKey(ctx context.Context) (key screen.Key, resized bool, err error) {
	changes, stop := frame.TerminalResizes()
	defer stop()
	for {
		if w, h := s.size(); w != s.width || h != s.height {
			return key, true, nil
		}
		if err := s.acceptAllowKeys(ctx); err != nil {
			return key, false, err
		}
		key, err = s.waitForKey(ctx, changes)
		w, h := s.size()
		switch {
		case ctx.Err() != nil:
			return key, false, ctx.Err()
		case w != s.width || h != s.height:
			return key, true, nil // The caller drops the key, because it was meant for the old screen.
		case errors.Is(err, context.Canceled):
			continue
		}
		s.allowKeysCounted, s.allowKeysCount = s.allowKeysCount, false
		s.wait.Input(time.Now())
		if err == nil && key.Kind == screen.KeyRune {
			alone, err := s.keys.Alone(ctx)
			if err != nil {
				return key, false, err
			}
			if !alone {
				continue // Pasted text is not an answer.
			}
		}
		return key, false, err
	}
}

// waitForKey returns the next key. A resize, or the end of the wait for allow keys, cancels it.
func (s *questionScreen) waitForKey(ctx context.Context, changes <-chan os.Signal) (screen.Key, error) {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	var over <-chan time.Time // nil if allow keys count already
	if !s.allowKeysCount {
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

// handleKey acts on a key. The result "done" means that the screen needs no further key.
func (s *questionScreen) handleKey(ctx context.Context, key screen.Key) (done bool, err error) {
	switch {
	case key.IsControl(screen.CtrlZ):
		return false, screen.ErrSuspended
	case key.IsControl(screen.CtrlC):
		s.k.Stop.Stop(fact.Stop{By: streamjson.ByUser, Why: "interrupted at a question"})
		return true, nil
	case key.Kind == screen.KeyEsc, isRune(key, 'n', 'N'):
		o, ok := s.q.Refusal()
		if ok {
			return s.recordChoice(ctx, o)
		}
		if s.k.AnswerTo == nil {
			// The agent offers no option to refuse, so this key cancels the turn.
			s.k.Stop.Stop(fact.Stop{By: streamjson.ByUser, Why: "refused, and the agent offers no way to refuse"})
		}
		return s.k.AnswerTo == nil, nil
	case isRune(key, 'v', 'V'):
		s.pager.All()
		return false, s.drawNextPage()
	case isRune(key, 'y', 'Y'):
		o, ok := s.q.First("allow_once")
		return s.chooseOption(ctx, o, ok)
	}
	o, ok := optionByDigit(key, s.q)
	if !ok {
		return false, nil
	}
	return s.chooseOption(ctx, o, true)
}

func isRune(key screen.Key, runes ...rune) bool {
	return key.Kind == screen.KeyRune && slices.Contains(runes, key.Rune)
}

// drawNextPage draws another page and restarts the wait for allow keys.
func (s *questionScreen) drawNextPage() error {
	err := s.drawPage(false)
	s.wait.Drawn(time.Now())
	return err
}

// chooseOption acts on a key for the option o. ok is false if the key is y and the question has no option for y. A
// key that allows turns the pages until the person has seen everything that would run. Such a key counts only if no
// other key comes shortly before or after it.
func (s *questionScreen) chooseOption(ctx context.Context, o interaction.Option, ok bool) (done bool, err error) {
	if ok && !o.Allows() {
		return s.recordChoice(ctx, o)
	}
	if meant, err := s.isDeliberate(ctx, o); !meant || err != nil {
		return false, err
	}
	switch {
	case !s.pager.Ready():
		s.pager.Turn()
		return false, s.drawNextPage()
	case !ok:
		return false, nil
	}
	return s.recordChoice(ctx, o)
}

// isDeliberate reports whether an allow key counts. If the key does not count, isDeliberate explains this. It waits
// for more keys, because a key that is held down repeats. It waits longer if the person must type a text next.
func (s *questionScreen) isDeliberate(ctx context.Context, o interaction.Option) (bool, error) {
	if s.allowKeysCounted {
		within := interaction.HeldTime
		if o.Text || s.q.Word != "" {
			within = interaction.QuietTime
		}
		followed, err := s.keys.Pending(ctx, within)
		if !followed || err != nil {
			return err == nil, err
		}
	}
	s.explainIgnoredKey()
	return false, nil
}

// recordChoice puts the chosen option on the log. An option that allows an action for good needs a second key. A
// dangerous action needs the typed word.
func (s *questionScreen) recordChoice(ctx context.Context, o interaction.Option) (done bool, err error) {
	answer := interaction.Answer{Option: o.ID, By: frame.UserName(s.k.a.Getenv), Where: s.k.where, Shown: s.pager.Shown(),
		Origin: s.k.a.Origin()}
	if o.Always() {
		if answer.Always, done, err = s.confirmAlways(ctx); !answer.Always || err != nil {
			return done, err
		}
	}
	switch {
	case s.q.Word != "" && o.Allows():
		answer.Text, err = s.readLine(ctx, "Type "+s.k.say.Styles.Bold(card.Line(s.q.Word, 0))+
			" and Enter to go on, Esc to go back: ")
	case o.Text:
		answer.Text, err = s.readValue(ctx)
	}
	s.keyRows, s.explained = s.pager.Keys(), false // The rows of keys will be printed again below the typed text.
	s.wait.Input(time.Now())
	if errors.Is(err, screen.ErrEscaped) || errors.Is(err, screen.ErrInterrupted) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return s.k.recordAnswer(ctx, s.q, answer)
}

// readLine prints a prompt and returns the line of text that the person enters.
func (s *questionScreen) readLine(ctx context.Context, prompt string) (string, error) {
	s.k.say.Status.Print(func(w io.Writer) { fmt.Fprint(w, "  "+prompt) })
	text, err := s.keys.Line(ctx)
	s.k.say.Status.Print(func(io.Writer) {}) // starts a new line if the cursor is still in the old one
	return text, err
}

// readValue asks for a text until it is valid.
func (s *questionScreen) readValue(ctx context.Context) (string, error) {
	for {
		text, err := s.readLine(ctx, "Your answer and Enter, Esc to go back: ")
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

// confirmAlways asks for a second key, because the option allows an action for good. The result "yes" means that the
// person confirmed. The result "done" means that the screen needs no further key.
func (s *questionScreen) confirmAlways(ctx context.Context) (yes, done bool, err error) {
	rows := card.Note(
		"This allows it for good: the agent will not ask again, and Perlica cannot limit the actions that this covers.",
		s.width)
	keys := card.Note("Press y to confirm, any other key to go back.", s.width)
	if err := s.printText(frame.RenderRows(rows, s.k.say.Styles), keys); err != nil {
		return false, false, err
	}
	s.wait.Drawn(time.Now())
	for {
		key, resized, err := s.nextKey(ctx)
		switch {
		case err != nil || resized: // The caller lays the pages out again.
			return false, false, err
		case isRune(key, 'y', 'Y'):
			if yes, err := s.isDeliberate(ctx, interaction.Option{}); yes || err != nil {
				return yes, false, err
			}
		case key.IsControl(screen.CtrlC), key.IsControl(screen.CtrlZ):
			done, err = s.handleKey(ctx, key)
			return false, done, err
		default:
			return false, false, s.drawNextPage()
		}
	}
}

// recordAnswer puts an answer on the log. The result "done" means that the question needs no further answer.
func (k *Asker) recordAnswer(ctx context.Context, q interaction.Question, answer interaction.Answer) (done bool,
	err error) {
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

// optionByDigit returns the option that a digit chooses. A question with more than nine options also needs the
// command 'perlica pending choose'.
func optionByDigit(key screen.Key, q interaction.Question) (interaction.Option, bool) {
	n, ok := key.Digit()
	if !ok || n < 1 || n > len(q.Options) {
		return interaction.Option{}, false
	}
	return q.Options[n-1], true
}
