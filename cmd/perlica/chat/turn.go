package chat

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/perlica/perlica/cmd/perlica/dialog"
	"github.com/perlica/perlica/cmd/perlica/frame"
	"github.com/perlica/perlica/cmd/perlica/screen"
	"github.com/perlica/perlica/eventlog"
	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/kernel/record"
	"github.com/perlica/perlica/kernel/streamjson"
	"github.com/perlica/perlica/policy"
)

// LongTurn is the duration after which the chat announces the end of a turn.
const LongTurn = 10 * time.Second

// checkText returns the reason why a text cannot be sent: it is too large or not valid text.
func checkText(text string) error {
	if len(text) > frame.MaxInput || !utf8.ValidString(text) {
		return fmt.Errorf("the text is no UTF-8, or has more than %d bytes", frame.MaxInput)
	}
	return nil
}

// sendLine sends the text of a line with the attached files and the files that it names.
func (c *chat) sendLine(line, text string) {
	if err := checkText(text); err != nil {
		c.a.Complain(err)
		return
	}
	files := slices.Clone(c.attached)
	for _, f := range c.mentionedFiles(text) {
		if !slices.Contains(files, f) {
			files = append(files, f)
		}
	}
	c.sendInput(line, kernel.Input{Text: text, Attachments: files, Source: "chat", Sender: frame.UserName(c.a.Getenv)})
}

// sendInput sends one input to the agent and shows the turn. line is the line as it was typed.
func (c *chat) sendInput(line string, in kernel.Input) {
	for _, f := range in.Attachments {
		c.printNote("attached: " + c.relativePath(f))
	}
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(c.ctx))
	defer cancel(nil)
	stop := frame.NewStopper(cancel)
	f := c.f.Flags
	f.Thoughts = c.thoughts
	say := dialog.NewPrinter(ctx, c.a.App, f, stop)
	say.Held = dialog.HeldFrom(c.agent, c.a.Environ)
	view := newChatView(c, say)
	stop.Tell(say.Stopping)
	asker := dialog.NewAskerAt(c.a.App, c.r, say, c.keys, "chat")
	asker.Stop, asker.Suspend, asker.Calm = stop, c.suspendProcess, c.keys.waitForCalm
	t := kernel.Turn{
		Input: in,
		Stop:  stop.First,
		Show: func(n record.Notice) {
			if q, ok := n.(record.Asked); ok && q.Answerable {
				c.backlog.holdInputs("a question came in between")
			}
			asker.Show(n)
			view.showNotice(n)
		},
	}
	t.Permissions, t.AnswerIn = c.p.Answering(asker.Available(), f.WaitPermissions)
	if t.Permissions == policy.ModeAllow && c.turns == 0 && c.team == nil {
		say.Note(dialog.AllowNote(c.agent.Sandbox))
	}
	c.setActive(stop, say.Status)
	c.keys.beginTurn(c.turnEvents(stop, say), c.hangup)
	say.SetStatus("working")
	var res record.Result
	var err error
	if c.team == nil {
		if _, _, ready := c.conv.Offers(); !ready {
			say.SetStatus("starting " + frame.OneLine(c.agent.ID))
		}
		res, err = c.conv.Run(ctx, t)
	} else {
		res, err = c.answerByTeam(ctx, in, say, asker, view.showNotice, stop)
	}
	asker.Close()
	c.keys.endTurn()
	c.setActive(nil, nil)
	c.commands.Wait()
	if err == nil && c.team == nil {
		if serr := say.Save(ctx, c.r, res); serr != nil {
			c.a.Complain(fmt.Errorf("--save-to: %w", serr))
		}
	}
	view.finishTurn(res, err)
	if err == nil && c.team == nil {
		if derr := say.Draw(ctx, c.r, res); derr != nil {
			c.a.Complain(fmt.Errorf("the images of the answer are not drawn: %w", derr))
		}
	}
	fmt.Fprintln(c.a.Stderr)            // an empty line before the next prompt
	var unseen *dialog.TeamPendingError // The team has the input; sending the line again would make a second call.
	c.keepLine(line, in.ID != "" || errors.As(err, &unseen), res, err)
	switch {
	case res.Stopped != nil:
		c.backlog.holdInputs("the turn was stopped")
	case err != nil, res.Outcome != record.OutcomeResponded:
		c.backlog.holdInputs("the turn did not end with an answer")
	}
}

// keepLine remembers the sent line exactly as it was typed. A text that was typed after two slashes would otherwise
// come back as a command. If the input was refused, the line comes back into the editor, or stays in the queue.
func (c *chat) keepLine(line string, queued bool, res record.Result, err error) {
	if err != nil {
		c.a.Complain(err)
		var record *eventlog.WriteError
		if errors.As(err, &record) {
			c.printNote("nothing was sent")
		}
		if !queued {
			c.addToNextLine(line)
		}
		return
	}
	c.lastInput, c.lastAttached = line, nil
	if !queued { // The attached files belong to the next line if this input came from the queue.
		c.lastAttached, c.attached = c.attached, nil
	}
	c.turns++
	c.prompted = true
	if res.Duration >= LongTurn && res.Stopped == nil {
		c.notifyUser("the turn is over")
	}
}

// keyEvents returns the reactions to keys while a command runs.
func (c *chat) keyEvents(interrupt func()) screen.AheadEvents {
	return screen.AheadEvents{Interrupt: interrupt, Typed: func(string) {}}
}

// turnEvents returns the reactions to keys during a turn.
func (c *chat) turnEvents(stop *frame.Stopper, say *dialog.Printer) screen.AheadEvents {
	interrupt := func() { stop.Stop(fact.NewStop(streamjson.ByUser, fact.Interrupted)) }
	var escaped sync.Once // Esc asks the agent to stop. Only Ctrl-C ends an agent that does not react.
	on := c.keyEvents(interrupt)
	on.Escape = func() { escaped.Do(interrupt) }
	on.Typed = say.Status.SetTyped
	if !c.p.Config.Chat.Queue || c.team != nil {
		return on
	}
	on.Enter = func(line string) { c.handleLineDuringTurn(line, say.Note) }
	on.Back = func() string {
		line, err := c.backlog.takeBack(0)
		if err == nil {
			say.Note("taken back: " + frame.OneLine(line))
		}
		return line // If the queue is empty, line is "" and the text stays empty.
	}
	return on
}

// setActive sets the stopper and the status line of the running turn or command.
func (c *chat) setActive(s *frame.Stopper, line *screen.StatusLine) {
	c.mu.Lock()
	c.stop, c.line = s, line
	c.mu.Unlock()
	if s != nil && c.ctx.Err() != nil { // A signal came before this call, and s must still get it.
		s.Stop(causeOf(c.ctx))
	}
}

func (c *chat) cancelTurn(why fact.Stop) bool {
	c.mu.Lock()
	s := c.stop
	c.mu.Unlock()
	if s != nil {
		s.Stop(why)
	}
	return s != nil
}

// quitChat ends the chat. It cancels a running turn first.
func (c *chat) quitChat(why fact.Stop) {
	c.cancel(&kernel.StoppedError{Stop: why})
	c.cancelTurn(why)
}

// hangup ends the chat after the terminal was closed.
func (c *chat) hangup() { c.quitChat(fact.Stop{By: streamjson.ByTerminated, Why: frame.HungUp}) }

func causeOf(ctx context.Context) fact.Stop {
	var stopped *kernel.StoppedError
	if errors.As(context.Cause(ctx), &stopped) {
		return stopped.Stop
	}
	return fact.Stop{By: streamjson.ByTerminated, Why: "the chat ended"}
}

// notifyUser sends the notification that the configuration names, for example a bell. The person may look at another
// window.
func (c *chat) notifyUser(text string) {
	switch c.p.Config.Chat.Notify {
	case "bell":
		_, _ = io.WriteString(c.a.Stderr, "\a")
	case "osc9":
		if !c.dumb {
			_, _ = io.WriteString(c.a.Stderr, "\x1b]9;perlica: "+frame.OneLine(text)+"\a")
		}
	}
}
