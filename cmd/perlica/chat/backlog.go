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

// errQueued ends the reading of a line, because another process has queued an input that the chat should send.
var errQueued = errors.New("an input was queued")

// backlog is the queue of inputs for the chat's session. After a turn with an answer and without an interruption,
// the chat sends the next input of the queue. Otherwise the backlog holds the queue until the person confirms it.
type backlog struct {
	c *chat

	mu            sync.Mutex // guards the fields below
	q             queue.Queue
	typed         map[event.InputID]string // the inputs as typed in this chat; the log may contain masked texts
	held          string                   // the reason why the queue waits for the person; "" if it does not wait
	heldAnnounced bool                     // The person was told that the queue waits.
	arrive        func()                   // called to end the reading of a line; nil if no line is read
}

// openSession reads the queue of a session. If inputs wait already, it holds the queue, because the person at this
// terminal has not confirmed them.
func (b *backlog) openSession(ctx context.Context, session event.SessionID) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.q, b.typed, b.held, b.heldAnnounced = queue.Queue{Session: session}, map[event.InputID]string{}, "", false
	err := b.q.Read(ctx, &b.c.r.Log().Reader)
	if len(b.q.Inputs) > 0 {
		b.held = "queued before this chat was opened"
	}
	return err
}

// holdInputs holds the queue until the person confirms it.
func (b *backlog) holdInputs(why string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.readNew(); len(b.q.Inputs) > 0 && b.held == "" {
		b.held, b.heldAnnounced = why, false
	}
}

// announceHeld tells the person once that the queue is held.
func (b *backlog) announceHeld() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.held == "" || b.heldAnnounced {
		return
	}
	b.heldAnnounced = true
	text := frame.Count(len(b.q.Inputs), "queued input") + " held (" + b.held + "): Enter sends"
	if len(b.q.Inputs) > 1 {
		text += " them in turn"
	} else {
		text += " it"
	}
	b.c.printNote(text + ", /unqueue takes the last back")
	for i, in := range b.q.Inputs {
		b.c.printNote(fmt.Sprintf("%d: %s", i+1, frame.OneLine(in.Text)))
	}
}

// confirmHeld lets the chat send the held inputs.
func (b *backlog) confirmHeld() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.held = ""
}

// nextInput returns the next input to send, if any.
func (b *backlog) nextInput() (in queue.Input, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.readNew()
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

// readNew reads the log's new events into the queue. It ignores an unreadable log, because the next write reports
// the error. The caller holds mu.
func (b *backlog) readNew() {
	if b.c.team == nil {
		_ = b.q.Read(context.WithoutCancel(b.c.ctx), &b.c.r.Log().Reader)
	}
}

// countWaiting returns the number of waiting inputs.
func (b *backlog) countWaiting() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.q.Inputs)
}

// addInput queues an input and returns the number of inputs before it. The input is on disk when addInput returns.
func (b *backlog) addInput(text string, files []string) (before int, err error) {
	id := event.InputID(uuid.Must(uuid.NewV7()).String())
	m := fact.MessageQueued{Text: text, Attachments: files, Source: "chat", Sender: frame.UserName(b.c.a.Getenv)}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.typed[id] = text
	if err := queue.Add(context.WithoutCancel(b.c.ctx), b.c.r.Log(), b.q.Session, id, m); err != nil {
		return 0, err
	}
	b.readNew()
	return len(b.q.Inputs) - 1, nil
}

// takeBack withdraws input number n and returns its line. If n is 0, it withdraws the last input.
func (b *backlog) takeBack(n int) (line string, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.readNew()
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
	b.readNew()
	if strings.HasPrefix(in.Text, "/") && !slices.Contains(b.c.agentCommands(),
		strings.TrimPrefix(strings.Fields(in.Text)[0], "/")) {
		return "/" + in.Text, nil // Without the second slash the line would be a command of the chat.
	}
	return in.Text, nil
}

// listInputs describes the waiting inputs.
func (b *backlog) listInputs() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.readNew()
	if len(b.q.Inputs) == 0 {
		return "nothing is queued"
	}
	var lines []string
	for i, in := range b.q.Inputs {
		lines = append(lines, fmt.Sprintf("%d: %s (%s, %s, %s)", i+1, frame.OneLine(in.Text), in.Sender, in.Source,
			frame.ShortID(string(in.ID))))
	}
	return strings.Join(lines, "\n")
}

// onArrival makes the backlog call the function arrive as soon as it can send an input of another process. After a
// call of the returned function "done", the backlog calls arrive no longer.
func (b *backlog) onArrival(arrive func()) (done func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.arrive = arrive
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.arrive = nil
	}
}

// watchLog looks for inputs that other processes queue, until ctx ends.
func (b *backlog) watchLog(ctx context.Context) {
	if b.c.team != nil {
		return // With a team, other processes queue their inputs on the hub and not on this log.
	}
	changes, err := b.c.r.Log().Changes(ctx)
	if err != nil {
		return // Without this watch, the chat finds such inputs only after its next turn.
	}
	defer func() { _ = changes.Close() }() // A failed close of a reader loses no data.
	for {
		if _, err := changes.Wait(ctx, 0); err != nil {
			return
		}
		b.mu.Lock()
		if b.arrive != nil {
			before := len(b.q.Inputs)
			b.readNew()
			switch n := len(b.q.Inputs); {
			case n <= before:
			case b.held == "":
				b.arrive()
			default:
				in := b.q.Inputs[n-1]
				b.c.printNoteAbove(fmt.Sprintf("queued by %s (%s): %s", frame.OneLine(in.Sender), frame.OneLine(in.Source),
					frame.OneLine(in.Text)))
			}
		}
		b.mu.Unlock()
	}
}

// sendQueued sends a queued input. The input stays in the queue if no call was made.
func (c *chat) sendQueued(in queue.Input) {
	c.setHead(len(in.Attachments), c.backlog.countWaiting()-1)
	fmt.Fprintln(c.a.Stderr, c.promptText()+frame.OneLine(in.Text))
	c.sendInput(in.Text, kernel.Input{ID: in.ID, Text: in.Text, Attachments: in.Attachments, Source: in.Source,
		Sender: in.Sender})
}

// handleLineDuringTurn handles a line that was entered during a turn. It calls the function "say" with each message for
// the person.
func (c *chat) handleLineDuringTurn(line string, say func(string)) {
	l, err := command.Parse(line, c.agentCommands()...)
	switch {
	case err != nil:
		say(err.Error())
	case l.Name == "" && strings.TrimSpace(l.Text) == "?":
		c.printDuringTurn(keysHelp)
	case l.Name == "":
		c.enqueue(l.Text, say)
	case l.Waits():
		say("/" + l.Name + " has to wait for the end of the turn, and stands in the next prompt; Esc asks the agent to stop")
		c.addToNextLine(line)
	default:
		c.commands.Go(func() { c.runCommandDuringTurn(l, say) })
	}
}

func (c *chat) enqueue(text string, say func(string)) {
	if err := checkText(text); err != nil {
		say(err.Error())
		return
	}
	if strings.HasPrefix(text, "!") {
		say("Perlica runs nothing: this is text for the agent; Up takes it back")
	}
	for _, name := range c.missingFiles(text) {
		say("@" + name + " is no file in " + c.dir() + "; Up takes the text back")
	}
	before, err := c.backlog.addInput(text, c.mentionedFiles(text))
	switch {
	case err != nil:
		say("not queued: " + err.Error())
	case before == 0:
		say("queued, sent after this turn: " + frame.OneLine(text) + " (Up takes it back)")
	default:
		say(fmt.Sprintf("queued after %d: %s (Up takes it back)", before, frame.OneLine(text)))
	}
}
