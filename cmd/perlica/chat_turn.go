package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/perlica/perlica/cmd/perlica/editor"
	"github.com/perlica/perlica/cmd/perlica/term"
	"github.com/perlica/perlica/eventlog"
	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/kernel/streamjson"
	"github.com/perlica/perlica/policy"
)

// longTurn is how long a turn takes whose end is announced.
const longTurn = 10 * time.Second

// send gives the agent one input, which is what a line says, and shows what comes of it.
func (c *chat) send(line, text string) {
	if len(text) > maxInput || !utf8.ValidString(text) {
		c.a.complain(fmt.Errorf("the text is no UTF-8, or has more than %d bytes", maxInput))
		return
	}
	files := slices.Clone(c.attached)
	for _, f := range c.mentioned(text) {
		if !slices.Contains(files, f) {
			files = append(files, f)
		}
	}
	for _, f := range files {
		c.note("attached: " + c.relative(f))
	}
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(c.ctx))
	defer cancel(nil)
	stop := newStopper(cancel)
	f := c.f.runFlags
	f.thoughts = c.thoughts
	say := newPrinter(ctx, c.a, f, stop)
	view := newChatView(c, say)
	stop.tell(say.stopping)
	asker := newAskerAt(c.a, c.r, say, c.keys, "chat")
	asker.stop, asker.suspend, asker.calm = stop, c.suspend, c.keys.calm
	t := kernel.Turn{
		Input: kernel.Input{Text: text, Attachments: files, Source: "chat", Sender: userName(c.a.getenv)},
		Stop:  stop.first,
		Show: func(n kernel.Notice) {
			asker.show(n)
			view.show(n)
		},
	}
	t.Permissions, t.AnswerIn = c.p.Answering(asker.available(), f.waitPermissions)
	if t.Permissions == policy.ModeAllow && c.turns == 0 {
		say.note("--permissions allow: every ordinary command is allowed without asking; this is no sandbox")
	}
	c.under(stop, say.status)
	c.keys.begin(c.events(func() { stop.stop(kernel.Stop{By: streamjson.ByUser, Why: "interrupted"}) }, say), c.hangup)
	say.setStatus("working")
	if _, _, ready := c.conv.Offers(); !ready {
		say.setStatus("starting " + oneLine(c.agent.ID))
	}
	res, err := c.conv.Run(ctx, t)
	asker.close()
	c.keys.end()
	c.under(nil, nil)
	view.finish(res, err)
	fmt.Fprintln(c.a.stderr) // room before the next prompt
	c.told(line, res, err)
}

// told keeps in mind the line that was sent, as it was typed: what stands behind two slashes is
// no command when it comes back either. What was refused comes back into the line.
func (c *chat) told(line string, res kernel.Result, err error) {
	if err != nil {
		c.a.complain(err)
		var record *eventlog.WriteError
		if errors.As(err, &record) {
			c.note("nothing was sent")
		}
		c.next = line
		return
	}
	c.last, c.with, c.attached = line, c.attached, nil
	c.turns++
	c.prompted = true
	if res.Duration >= longTurn && res.Stopped == nil {
		c.notify("the turn is over")
	}
}

// events are what happens at the keyboard during a turn.
func (c *chat) events(interrupt func(), say *printer) editor.Events {
	return editor.Events{
		Interrupt: interrupt,
		Typed: func(text string) {
			if say != nil {
				say.setTyped(strings.ReplaceAll(text, "\n", "⏎"))
			}
		},
	}
}

// under says which turn is under way, or which command, and its status line.
func (c *chat) under(s *stopper, line *term.Status) {
	c.mu.Lock()
	c.stop, c.line = s, line
	c.mu.Unlock()
	if s != nil && c.ctx.Err() != nil { // the signal came before
		s.stop(causeOf(c.ctx))
	}
}

// cancelTurn stops the turn under way, if there is one.
func (c *chat) cancelTurn(why kernel.Stop) bool {
	c.mu.Lock()
	s := c.stop
	c.mu.Unlock()
	if s != nil {
		s.stop(why)
	}
	return s != nil
}

// quit ends the chat: the turn under way is cancelled first.
func (c *chat) quit(why kernel.Stop) {
	c.cancel(&kernel.StoppedError{Stop: why})
	c.cancelTurn(why)
}

// hangup is called when the terminal is gone.
func (c *chat) hangup() { c.quit(kernel.Stop{By: streamjson.ByTerminated, Why: hungUp}) }

func causeOf(ctx context.Context) kernel.Stop {
	var stopped *kernel.StoppedError
	if errors.As(context.Cause(ctx), &stopped) {
		return stopped.Stop
	}
	return kernel.Stop{By: streamjson.ByTerminated, Why: "the chat ended"}
}

// notify calls whoever may be looking elsewhere.
func (c *chat) notify(text string) {
	switch c.p.Config.Chat.Notify {
	case "bell":
		_, _ = io.WriteString(c.a.stderr, "\a")
	case "osc9":
		if !c.dumb {
			_, _ = io.WriteString(c.a.stderr, "\x1b]9;perlica: "+oneLine(text)+"\a")
		}
	}
}
