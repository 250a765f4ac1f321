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
	"github.com/perlica/perlica/kernel/streamjson"
	"github.com/perlica/perlica/policy"
)

// LongTurn is how long a turn takes whose end is announced.
const LongTurn = 10 * time.Second

// fit says what is wrong with a text that is too large to be sent, or no text.
func fit(text string) error {
	if len(text) > frame.MaxInput || !utf8.ValidString(text) {
		return fmt.Errorf("the text is no UTF-8, or has more than %d bytes", frame.MaxInput)
	}
	return nil
}

// say sends the text of a line, with the files that are attached and those that it names.
func (c *chat) say(line, text string) {
	if err := fit(text); err != nil {
		c.a.Complain(err)
		return
	}
	files := slices.Clone(c.attached)
	for _, f := range c.mentioned(text) {
		if !slices.Contains(files, f) {
			files = append(files, f)
		}
	}
	c.send(line, kernel.Input{Text: text, Attachments: files, Source: "chat", Sender: frame.UserName(c.a.Getenv)})
}

// send gives the agent one input, which is what a line says, and shows what comes of it.
func (c *chat) send(line string, in kernel.Input) {
	for _, f := range in.Attachments {
		c.note("attached: " + c.relative(f))
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
	asker.Stop, asker.Suspend, asker.Calm = stop, c.suspend, c.keys.calm
	t := kernel.Turn{
		Input: in,
		Stop:  stop.First,
		Show: func(n kernel.Notice) {
			if q, ok := n.(kernel.Asked); ok && q.Answerable {
				c.backlog.hold("a question came in between")
			}
			asker.Show(n)
			view.show(n)
		},
	}
	t.Permissions, t.AnswerIn = c.p.Answering(asker.Available(), f.WaitPermissions)
	if t.Permissions == policy.ModeAllow && c.turns == 0 && c.there == nil {
		say.Note("--permissions allow: every ordinary command is allowed without asking; this is no sandbox")
	}
	c.under(stop, say.Status)
	c.keys.begin(c.turnEvents(stop, say), c.hangup)
	say.SetStatus("working")
	var res kernel.Result
	var err error
	if c.there == nil {
		if _, _, ready := c.conv.Offers(); !ready {
			say.SetStatus("starting " + frame.OneLine(c.agent.ID))
		}
		res, err = c.conv.Run(ctx, t)
	} else {
		res, err = c.answerThere(ctx, in, say, asker, view.show, stop)
	}
	asker.Close()
	c.keys.end()
	c.under(nil, nil)
	c.commands.Wait()
	if err == nil && c.there == nil {
		if serr := say.Save(ctx, c.r, res); serr != nil {
			c.a.Complain(fmt.Errorf("--save-to: %w", serr))
		}
	}
	view.finish(res, err)
	if err == nil && c.there == nil {
		if derr := say.Draw(ctx, c.r, res); derr != nil {
			c.a.Complain(fmt.Errorf("the images of the answer are not drawn: %w", derr))
		}
	}
	fmt.Fprintln(c.a.Stderr)            // room before the next prompt
	var unseen *dialog.TeamPendingError // sent again, it would be called twice
	c.keep(line, in.ID != "" || errors.As(err, &unseen), res, err)
	switch {
	case res.Stopped != nil:
		c.backlog.hold("the turn was stopped")
	case err != nil, res.Outcome != kernel.OutcomeResponded:
		c.backlog.hold("the turn did not end with an answer")
	}
}

// keep keeps in mind the line that was sent, as it was typed: what stands behind two slashes is
// no command when it comes back either. What was refused comes back into the line, or waits on.
func (c *chat) keep(line string, queued bool, res kernel.Result, err error) {
	if err != nil {
		c.a.Complain(err)
		var record *eventlog.WriteError
		if errors.As(err, &record) {
			c.note("nothing was sent")
		}
		if !queued {
			c.stand(line)
		}
		return
	}
	c.last, c.with = line, nil
	if !queued { // what is attached is for the next line
		c.with, c.attached = c.attached, nil
	}
	c.turns++
	c.prompted = true
	if res.Duration >= LongTurn && res.Stopped == nil {
		c.notify("the turn is over")
	}
}

// events are what happens at the keyboard during a command.
func (c *chat) events(interrupt func()) screen.AheadEvents {
	return screen.AheadEvents{Interrupt: interrupt, Typed: func(string) {}}
}

// turnEvents are what happens at the keyboard during a turn.
func (c *chat) turnEvents(stop *frame.Stopper, say *dialog.Printer) screen.AheadEvents {
	interrupt := func() { stop.Stop(kernel.Stop{By: streamjson.ByUser, Why: "interrupted"}) }
	var escaped sync.Once // Esc asks; only Ctrl-C ends the agent that does not answer
	on := c.events(interrupt)
	on.Escape = func() { escaped.Do(interrupt) }
	on.Typed = say.Status.SetTyped
	if !c.p.Config.Chat.Queue || c.there != nil {
		return on
	}
	on.Enter = func(line string) { c.entered(line, say.Note) }
	on.Back = func() string {
		line, err := c.backlog.takeBack(0)
		if err == nil {
			say.Note("taken back: " + frame.OneLine(line))
		}
		return line // there may be none
	}
	return on
}

// under says which turn is under way, or which command, and its status line.
func (c *chat) under(s *frame.Stopper, line *screen.StatusLine) {
	c.mu.Lock()
	c.stop, c.line = s, line
	c.mu.Unlock()
	if s != nil && c.ctx.Err() != nil { // the signal came before
		s.Stop(causeOf(c.ctx))
	}
}

func (c *chat) cancelTurn(why kernel.Stop) bool {
	c.mu.Lock()
	s := c.stop
	c.mu.Unlock()
	if s != nil {
		s.Stop(why)
	}
	return s != nil
}

// quit ends the chat: the turn under way is cancelled first.
func (c *chat) quit(why kernel.Stop) {
	c.cancel(&kernel.StoppedError{Stop: why})
	c.cancelTurn(why)
}

// hangup is called when the terminal is gone.
func (c *chat) hangup() { c.quit(kernel.Stop{By: streamjson.ByTerminated, Why: frame.HungUp}) }

func causeOf(ctx context.Context) kernel.Stop {
	var stopped *kernel.StoppedError
	if errors.As(context.Cause(ctx), &stopped) {
		return stopped.Stop
	}
	return kernel.Stop{By: streamjson.ByTerminated, Why: "the chat ended"}
}

// notify calls a person who may be looking elsewhere.
func (c *chat) notify(text string) {
	switch c.p.Config.Chat.Notify {
	case "bell":
		_, _ = io.WriteString(c.a.Stderr, "\a")
	case "osc9":
		if !c.dumb {
			_, _ = io.WriteString(c.a.Stderr, "\x1b]9;perlica: "+frame.OneLine(text)+"\a")
		}
	}
}
