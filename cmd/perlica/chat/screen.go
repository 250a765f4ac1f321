package chat

import (
	"fmt"

	"github.com/perlica/perlica/cmd/perlica/printing"
	"github.com/perlica/perlica/cmd/perlica/term"
	"github.com/perlica/perlica/interaction/card"
	"github.com/perlica/perlica/kernel/sessions"
)

// greet says where the person is.
func (c *chat) greet(s sessions.Session) {
	if c.agent.Why != "" {
		c.note("using " + c.agent.ID + ": " + c.agent.Why)
	}
	what := "a new session"
	if s.ID != "" {
		what = "session " + printing.ShortSession(s)
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
