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
)

// Asker puts questions to the person at the terminal, one at a time, oldest first.
type Asker struct {
	a    *frame.App
	r    *kernel.Runner
	say  *Printer
	Stop *frame.Stopper
	tty  keyboard // nil: no person sits here

	done func() error // closes what newAsker opened

	Suspend func()                // stops the process until somebody continues it
	Calm    func(context.Context) // waits until no other text is being typed; nil: none can be

	where string // what answers given here say of their place

	// answerTo is set where the questions are those of other processes: Ctrl-C then ends the
	// watching, and no key a turn. Nil: they are r's own.
	AnswerTo func(context.Context, interaction.Question, interaction.Answer) error
	Away     bool // with AnswerTo: they are those of this command's own turn, which goes on elsewhere

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
	Session(f func(*screen.Keys) error) error
}

// openQuestion is a question with its end.
type openQuestion struct {
	interaction.Question
	closed chan struct{}
}

// CanAsk reports whether NewAsker would have a terminal to ask at.
func CanAsk(a *frame.App) bool {
	if !screen.IsTerminal(a.Stderr) || !a.Attended() {
		return false
	}
	tty, err := screen.OpenTTY()
	return err == nil && tty.Close() == nil
}

// NewAsker opens the terminal, if there is one to ask on: standard error is one, and the
// controlling terminal can be opened. Standard input may well be a pipe.
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
		say.Status.Aside(func() { _ = tty.Aside(frame.Suspend) }) // a terminal that is gone says so to its reader
	}
	return k
}

// NewAskerAt puts questions at a keyboard that somebody else opened; nil is none.
func NewAskerAt(a *frame.App, r *kernel.Runner, say *Printer, tty keyboard, where string) *Asker {
	k := &Asker{a: a, r: r, say: say, tty: tty, where: where, wake: make(chan struct{}, 1)}
	k.ctx, k.cancel = context.WithCancel(context.Background())
	if tty != nil {
		k.wg.Go(k.loop)
	}
	return k
}

// Available reports whether there is a terminal to ask at.
func (k *Asker) Available() bool { return k.tty != nil }

// Close ends the asking; a question that is shown is left open.
func (k *Asker) Close() {
	k.cancel()
	k.wg.Wait()
	if k.done != nil {
		_ = k.done() // read from only
	}
}

// Show takes note of questions and of their ends.
func (k *Asker) Show(n kernel.Notice) {
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

func (k *Asker) next() *openQuestion {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.open) == 0 {
		return nil
	}
	return k.open[0]
}

func (k *Asker) loop() {
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
func (k *Asker) put(q *openQuestion) {
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
			err := (&sitting{k: k, q: q.Question, keys: keys}).run(ctx)
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

// keysHint says what the keys do at a question, of a turn of this process or one that is watched.
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
