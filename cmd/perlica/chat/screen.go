package chat

import (
	"fmt"

	"github.com/perlica/perlica/cmd/perlica/dialog"
	"github.com/perlica/perlica/cmd/perlica/printing"
	"github.com/perlica/perlica/cmd/perlica/term"
	"github.com/perlica/perlica/interaction/card"
	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/kernel/sessions"
)

// greet says where the person is.
func (c *chat) greet(s sessions.Session) {
	if c.agent.Why != "" {
		c.note("using " + c.agent.ID + ": " + c.agent.Why)
	}
	what := "a new session"
	if s.ID != "" {
		what = "session " + printing.SessionName(s, printing.Short(s.ID))
		if s.Turns > 0 {
			what += ", " + printing.Count(s.Turns, "turn")
		}
		if s.Title != "" && s.Title != s.Name {
			what += ", “" + printing.OneLine(s.Title) + "”"
		}
	}
	what += " with " + c.agent.ID
	if s.Turns == 0 { // else the person has been here, and the line is long enough
		what += "; /help lists the commands"
	}
	c.note(what)
}

// note prints a line about the chat, not of it.
func (c *chat) note(text string) { fmt.Fprint(c.a.Stderr, c.inset(text)) }

func (c *chat) inset(text string) string {
	return c.styles.Dim(card.Marked("perlica: "+text, term.Width(c.a.Stderr))) + "\n"
}

// above is note while somebody may be writing a line.
func (c *chat) above(text string) {
	c.mu.Lock()
	edit := c.edit
	c.mu.Unlock()
	if edit == nil {
		c.note(text)
		return
	}
	edit.Above(c.inset(text))
}

// prompt names the session and its agent.
func (c *chat) prompt() string {
	name := c.session.Name
	if name == "" {
		name = string(c.session.ID)
		name = name[max(0, len(name)-4):]
	}
	mark := "❯"
	if c.dumb {
		mark = ">"
	}
	if len(c.attached) > 0 {
		mark = fmt.Sprintf("+%s %s", printing.Count(len(c.attached), "file"), mark)
	}
	return c.styles.Dim(printing.OneLine(name)) + " " + c.styles.Cyan(printing.OneLine(c.agent.ID)) + " " + c.styles.Bold(mark) + " "
}

// redraw draws the prompt or the status line again, if there is one.
func (c *chat) redraw(lost bool) {
	c.mu.Lock()
	edit, line := c.edit, c.line
	c.mu.Unlock()
	if edit != nil {
		edit.Redraw(lost)
	}
	if line != nil {
		line.Redraw(lost)
	}
}

// chatView shows a turn of the chat, and shows what only its own terminal shows.
type chatView struct {
	*dialog.TurnView
	c     *chat
	alive bool // the agent was there in an earlier turn
}

func newChatView(c *chat, say *dialog.Printer) *chatView {
	return &chatView{TurnView: dialog.NewTurnView(c.a.App, say), c: c, alive: c.prompted && c.conv.Alive()}
}

func (v *chatView) show(n kernel.Notice) {
	switch n := n.(type) {
	case kernel.Started:
		v.started()
		v.Say.Show(n)
	case kernel.Updated:
		v.Update(n)
	case kernel.Asked:
		v.Flush()
		if n.Answerable {
			v.c.notify("a question: " + n.Title)
		}
		v.Say.Show(n)
	default:
		v.Flush()
		v.Say.Show(n)
	}
}

// started says how the agent came to know the earlier turns, when it had to.
func (v *chatView) started() {
	if v.alive || v.c.turns == 0 {
		return
	}
	switch _, how, _ := v.c.conv.Offers(); how {
	case "":
		v.Say.Note("the agent is told the earlier turns in a transcript")
	default:
		v.Say.Note("the agent continues the session by itself (session/" + how + ")")
	}
}

// finish ends the turn on the screen: the rest of the answer, what went wrong, what it took.
func (v *chatView) finish(res kernel.Result, err error) {
	v.End()
	v.Say.Finish(res, err)
	if text := v.Usage(res); err == nil && text != "" {
		fmt.Fprintln(v.A.Stderr, v.Say.Styles.Dim(text))
	}
}
