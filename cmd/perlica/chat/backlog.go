package chat

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/google/uuid"

	"github.com/perlica/perlica/cmd/perlica/frame"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/kernel/command"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/kernel/queue"
)

// errQueued ends the reading of a line: an input of another process is to be sent.
var errQueued = errors.New("an input was queued")

// backlog is the queue of the chat's session. What is queued during a turn is sent when the turn has
// ended with an answer that nothing interrupted; else it is held until the person confirms it.
type backlog struct {
	c *chat

	mu     sync.Mutex // guards what follows
	q      queue.Queue
	typed  map[event.InputID]string // what was queued here, as it was typed: the log may be masked
	held   string                   // why nothing is sent until the person confirms; empty: it is
	said   bool                     // that it is held
	arrive func()                   // ends the reading of a line; nil: none is read
}

// open reads the queue of a session. What waits there was not confirmed by who sits here now.
func (b *backlog) open(ctx context.Context, session event.SessionID) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.q, b.typed, b.held, b.said = queue.Queue{Session: session}, map[event.InputID]string{}, "", false
	err := b.q.Read(ctx, &b.c.r.Log().Reader)
	if len(b.q.Inputs) > 0 {
		b.held = "queued before this chat was opened"
	}
	return err
}

// hold keeps what waits from being sent before the person confirms it.
func (b *backlog) hold(why string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.look(); len(b.q.Inputs) > 0 && b.held == "" {
		b.held, b.said = why, false
	}
}

// announce says what is held, once.
func (b *backlog) announce() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.held == "" || b.said {
		return
	}
	b.said = true
	text := frame.Count(len(b.q.Inputs), "queued input") + " held (" + b.held + "): Enter sends"
	if len(b.q.Inputs) > 1 {
		text += " them in turn"
	} else {
		text += " it"
	}
	b.c.note(text + ", /unqueue takes the last back")
	for i, in := range b.q.Inputs {
		b.c.note(fmt.Sprintf("%d: %s", i+1, frame.OneLine(in.Text)))
	}
}

// confirm sends what was held.
func (b *backlog) confirm() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.held = ""
}

// next is the input whose turn it is, if there is one.
func (b *backlog) next() (in queue.Input, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.look()
	if len(b.q.Inputs) == 0 {
		b.held = ""
	}
	if b.held != "" || len(b.q.Inputs) == 0 {
		return in, false
	}
	in = b.q.Inputs[0]
	if typed, ok := b.typed[in.ID]; ok {
		in.Text = typed
	}
	return in, true
}

// look reads what is new on the log. A log that cannot be read is noticed by who writes to it. The
// caller holds mu.
func (b *backlog) look() {
	if b.c.there == nil {
		_ = b.q.Read(context.WithoutCancel(b.c.ctx), &b.c.r.Log().Reader)
	}
}

// count is how many inputs wait.
func (b *backlog) count() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.q.Inputs)
}

// add queues an input and says how many are before it. It is on disk when add returns.
func (b *backlog) add(text string, files []string) (before int, err error) {
	id := event.InputID(uuid.Must(uuid.NewV7()).String())
	m := fact.MessageQueued{Text: text, Attachments: files, Source: "chat", Sender: frame.UserName(b.c.a.Getenv)}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.typed[id] = text
	if err := queue.Add(context.WithoutCancel(b.c.ctx), b.c.r.Log(), b.q.Session, id, m); err != nil {
		return 0, err
	}
	b.look()
	return len(b.q.Inputs) - 1, nil
}

// takeBack withdraws an input, the last one where n is 0, and returns the line that it was.
func (b *backlog) takeBack(n int) (line string, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.look()
	if n == 0 {
		n = len(b.q.Inputs)
	}
	if n < 1 || n > len(b.q.Inputs) {
		return "", errors.New("nothing of that number is queued")
	}
	in := b.q.Inputs[n-1]
	m := fact.MessageWithdrawn{By: frame.UserName(b.c.a.Getenv), Where: "chat"}
	if err := queue.Withdraw(context.WithoutCancel(b.c.ctx), b.c.r.Log(), b.q.Session, in.ID, m); err != nil {
		return "", err
	}
	if typed, ok := b.typed[in.ID]; ok {
		in.Text = typed
	}
	b.look()
	if strings.HasPrefix(in.Text, "/") && !slices.Contains(b.c.agentCommands(), strings.TrimPrefix(strings.Fields(in.Text)[0], "/")) {
		return "/" + in.Text, nil // else it would be a command of the chat's
	}
	return in.Text, nil
}

// list says what waits.
func (b *backlog) list() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.look()
	if len(b.q.Inputs) == 0 {
		return "nothing is queued"
	}
	var lines []string
	for i, in := range b.q.Inputs {
		lines = append(lines, fmt.Sprintf("%d: %s (%s, %s, %s)", i+1, frame.OneLine(in.Text), in.Sender, in.Source, frame.ShortID(string(in.ID))))
	}
	return strings.Join(lines, "\n")
}

// reading has arrive called when an input of another process can be sent, until done is called.
func (b *backlog) reading(arrive func()) (done func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.arrive = arrive
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.arrive = nil
	}
}

// watch looks for what other processes queue until ctx ends.
func (b *backlog) watch(ctx context.Context) {
	if b.c.there != nil {
		return // a team's input is queued on its hub
	}
	changes, err := b.c.r.Log().Changes(ctx)
	if err != nil {
		return // what they queue is seen after the next turn
	}
	defer func() { _ = changes.Close() }() // nothing was written
	for {
		if _, err := changes.Wait(ctx, 0); err != nil {
			return
		}
		b.mu.Lock()
		if b.arrive != nil {
			before := len(b.q.Inputs)
			b.look()
			switch n := len(b.q.Inputs); {
			case n <= before:
			case b.held == "":
				b.arrive()
			default:
				in := b.q.Inputs[n-1]
				b.c.above(fmt.Sprintf("queued by %s (%s): %s", frame.OneLine(in.Sender), frame.OneLine(in.Source), frame.OneLine(in.Text)))
			}
		}
		b.mu.Unlock()
	}
}

// sendQueued sends the input whose turn it is. What is not called stays in the queue.
func (c *chat) sendQueued(in queue.Input) {
	c.setHead(len(in.Attachments), c.backlog.count()-1)
	fmt.Fprintln(c.a.Stderr, c.prompt()+frame.OneLine(in.Text))
	c.send(in.Text, kernel.Input{ID: in.ID, Text: in.Text, Attachments: in.Attachments, Source: in.Source, Sender: in.Sender})
}

// entered does what a line says that was sent while a turn is under way, and tells it by say.
func (c *chat) entered(line string, say func(string)) {
	l, err := command.Parse(line, c.agentCommands()...)
	switch {
	case err != nil:
		say(err.Error())
	case l.Name == "" && strings.TrimSpace(l.Text) == "?":
		c.tell(keysHelp)
	case l.Name == "":
		c.enqueue(l.Text, say)
	case l.Waits():
		say("/" + l.Name + " has to wait for the end of the turn, and stands in the next prompt; Esc asks the agent to stop")
		c.stand(line)
	default:
		c.commands.Go(func() { c.during(l, say) })
	}
}

func (c *chat) enqueue(text string, say func(string)) {
	if err := fit(text); err != nil {
		say(err.Error())
		return
	}
	if strings.HasPrefix(text, "!") {
		say("Perlica runs nothing: this is text for the agent; Up takes it back")
	}
	for _, name := range c.missing(text) {
		say("@" + name + " is no file in " + c.dir() + "; Up takes the text back")
	}
	before, err := c.backlog.add(text, c.mentioned(text))
	switch {
	case err != nil:
		say("not queued: " + err.Error())
	case before == 0:
		say("queued, sent after this turn: " + frame.OneLine(text) + " (Up takes it back)")
	default:
		say(fmt.Sprintf("queued behind %d: %s (Up takes it back)", before, frame.OneLine(text)))
	}
}
