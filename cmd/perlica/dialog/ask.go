package dialog

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/perlica/perlica/cmd/perlica/frame"
	"github.com/perlica/perlica/cmd/perlica/screen"
	"github.com/perlica/perlica/interaction"
	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/kernel/record"
)

// Asker puts questions to the person at the terminal. It shows one question at a time, the oldest first.
type Asker struct {
	a    *frame.App
	r    *kernel.Runner
	say  *Printer
	Stop *frame.Stopper
	tty  keyboard // nil if no person can be asked

	done func() error // closes the terminal that NewAsker opened

	Suspend func()                // Suspend stops the process until the shell continues it.
	Calm    func(context.Context) // Calm waits for a pause in the typing of other text. It may be nil.

	where string // the place that the record names for an answer, such as "terminal" or "chat"

	// AnswerTo sends the answer to a question of another process. If AnswerTo is set, Ctrl-C ends the watching and
	// stops no turn. If AnswerTo is nil, the questions belong to the Runner r of this process.
	AnswerTo func(context.Context, interaction.Question, interaction.Answer) error
	Away     bool // Away is set with AnswerTo if the question is about this command's turn on another machine.

	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup
	wake   chan struct{} // capacity 1; receives a value when the field open changes

	mu   sync.Mutex // guards the fields below
	open []*openQuestion
}

// keyboard reads a person's keys.
type keyboard interface {
	// Session calls the function f with the terminal in raw mode. It first discards all keys that were pressed
	// earlier.
	Session(f func(*screen.Keys) error) error
}

// openQuestion is a question for the person. Its channel "closed" is closed at the end of the question.
type openQuestion struct {
	interaction.Question
	closed chan struct{}
}

// CanAsk reports whether NewAsker would find a terminal with a person.
func CanAsk(a *frame.App) bool {
	if !screen.IsTerminal(a.Stderr) || !a.Attended() {
		return false
	}
	tty, err := screen.OpenTTY()
	return err == nil && tty.Close() == nil
}

// NewAsker opens the controlling terminal if standard error is a terminal and a person may sit there. Standard input
// may be a pipe.
func NewAsker(a *frame.App, r *kernel.Runner, say *Printer) *Asker {
	if !screen.IsTerminal(a.Stderr) || !a.Attended() {
		return NewAskerAt(a, r, say, nil, "terminal")
	}
	tty, err := frame.OpenTTY()
	if err != nil {
		return NewAskerAt(a, r, say, nil, "terminal")
	}
	k := NewAskerAt(a, r, say, tty, "terminal")
	k.done = tty.Close
	k.Suspend = func() {
		// If the terminal is closed, reading the next key fails, too.
		say.Status.Aside(func() { _ = tty.Aside(frame.Suspend) })
	}
	return k
}

// NewAskerAt returns an Asker for a keyboard that the caller has opened. If tty is nil, the Asker asks nothing.
func NewAskerAt(a *frame.App, r *kernel.Runner, say *Printer, tty keyboard, where string) *Asker {
	k := &Asker{a: a, r: r, say: say, tty: tty, where: where, wake: make(chan struct{}, 1)}
	k.ctx, k.cancel = context.WithCancel(context.Background())
	if tty != nil {
		k.wg.Go(k.loop)
	}
	return k
}

// Available reports whether there is a terminal for questions.
func (k *Asker) Available() bool { return k.tty != nil }

// Close stops asking. A shown question stays open.
func (k *Asker) Close() {
	k.cancel()
	k.wg.Wait()
	if k.done != nil {
		_ = k.done() // A failed close of a terminal loses no data.
	}
}

// Show adds an opened question to the list and removes a closed one.
func (k *Asker) Show(n record.Notice) {
	if k.tty == nil {
		return
	}
	switch n := n.(type) {
	case record.Asked:
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
	case record.Closed:
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

func (k *Asker) oldestQuestion() *openQuestion {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.open) == 0 {
		return nil
	}
	return k.open[0]
}

func (k *Asker) loop() {
	for {
		q := k.oldestQuestion()
		if q == nil {
			select {
			case <-k.wake:
				continue
			case <-k.ctx.Done():
				return
			}
		}
		k.askQuestion(q)
		select {
		case <-q.closed:
		case <-k.ctx.Done():
			return
		}
	}
}

// askQuestion asks one question until it is closed.
func (k *Asker) askQuestion(q *openQuestion) {
	ctx, cancel := context.WithCancel(k.ctx)
	defer cancel()
	go func() {
		select {
		case <-q.closed:
			cancel()
		case <-ctx.Done():
		}
	}()
	if k.Calm != nil {
		if k.Calm(ctx); ctx.Err() != nil {
			return
		}
	}
	err := k.tty.Session(func(keys *screen.Keys) error {
		for {
			err := (&questionScreen{k: k, q: q.Question, keys: keys}).readAnswer(ctx)
			if !errors.Is(err, screen.ErrSuspended) {
				return err
			}
			if k.Suspend(); ctx.Err() != nil {
				return ctx.Err()
			}
		}
	})
	if err != nil && ctx.Err() == nil {
		k.say.Note("the terminal cannot be read: " + err.Error() + "; answer with 'perlica pending'")
		<-ctx.Done()
	}
}

// keysHint returns the rows that explain the keys at a question. watched means that the question belongs to another
// process.
func keysHint(q interaction.Question, watched bool) string {
	var keys []string
	switch n := min(len(q.Options), 9); n {
	case 0:
	case 1:
		keys = append(keys, "1 chooses")
	default:
		keys = append(keys, fmt.Sprintf("1-%d choose", n))
	}
	if _, ok := q.First("allow_once"); ok {
		keys = append(keys, "y yes once")
	}
	end, no := "Ctrl-C cancels the turn", "n or Esc no"
	if _, refusable := q.Refusal(); !refusable {
		end, no = "n, Esc or Ctrl-C cancels the turn", ""
	}
	if watched {
		end = "Ctrl-C ends the watching"
	}
	if no != "" {
		keys = append(keys, no)
	}
	return strings.Join(append(keys, end), ", ")
}
