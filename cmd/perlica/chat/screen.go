package chat

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"

	"github.com/perlica/perlica/cmd/perlica/dialog"
	"github.com/perlica/perlica/cmd/perlica/frame"
	"github.com/perlica/perlica/cmd/perlica/screen"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/interaction/card"
	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/kernel/agents"
	"github.com/perlica/perlica/kernel/command"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/kernel/sessions"
)

// greet says where the person is.
func (c *chat) greet(s sessions.Session, choice fact.SessionConfigured) {
	if c.agent.Why != "" {
		c.note("using " + c.agent.ID + ": " + c.agent.Why)
	}
	if text := c.f.NotSet(c.a.Environ); text != "" {
		c.note(text)
	}
	what := "a new session"
	if s.ID != "" {
		what = "session " + frame.SessionName(s, frame.ShortID(s.ID))
		if s.Turns > 0 {
			what += ", " + frame.Count(s.Turns, "turn")
		}
		if s.Title != "" && s.Title != s.Name {
			what += ", “" + frame.OneLine(s.Title) + "”"
		}
	}
	what += " with " + c.agent.ID
	if s.Turns == 0 { // else the person has been here, and the line is long enough
		what += "; /help lists the commands"
	}
	c.note(what)
	if text := frame.DescribeChoices(choice); text != "" {
		c.note("taken up again as it was chosen in this session, as far as the agent offers it: " + text)
	}
}

// note prints a line about the chat, not of it.
func (c *chat) note(text string) { fmt.Fprint(c.a.Stderr, c.inset(text)) }

func (c *chat) inset(text string) string {
	return c.styles.Dim(card.Marked("perlica: "+text, screen.TerminalWidth(c.a.Stderr))) + "\n"
}

// above is note while somebody may be writing a line, or a turn be under way.
func (c *chat) above(text string) { c.printAbove(c.inset(text)) }

func (c *chat) printAbove(lines string) {
	c.mu.Lock()
	edit, line := c.edit, c.line
	c.mu.Unlock()
	switch {
	case line != nil:
		line.Print(func(w io.Writer) { _, _ = io.WriteString(w, lines) })
	case edit == nil:
		fmt.Fprint(c.a.Stderr, lines)
	default:
		edit.Above(lines)
	}
}

// started says what came of an agent's start while somebody writes the first line: that it failed, or what it
// does not offer any more. Where a turn waits for it, that says it.
func (c *chat) started(conv *kernel.Conversation, hint func(error) string, err error) {
	c.mu.Lock()
	left := c.awaited != conv || c.ctx.Err() != nil || c.line != nil && err != nil
	c.mu.Unlock()
	switch {
	case left:
	case err != nil:
		text := c.inset(frame.OneLine(err.Error()) + "; your next line starts the agent again")
		if hint := hint(err); hint != "" {
			text += c.styles.Dim("hint: "+screen.Sanitize(hint)) + "\n"
		}
		c.printAbove(text)
	default:
		c.showOffers(conv)
		o, _, _ := conv.Offers()
		for _, lost := range o.Lost {
			c.above("as it was chosen in this session before, it cannot be: " + frame.OneLine(lost))
		}
	}
}

// setHead says what the prompt names: the session, its agent, how many files go with the line, and how many
// inputs are queued.
func (c *chat) setHead(files, queued int) {
	name := c.session.Name
	if name == "" {
		name = string(c.session.ID)
		name = name[max(0, len(name)-4):]
	}
	var beside []string
	if files > 0 {
		beside = append(beside, "+"+frame.Count(files, "file"))
	}
	if queued > 0 {
		beside = append(beside, fmt.Sprintf("%d queued", queued))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if strings.ContainsFunc(name, unicode.IsSpace) {
		name = strconv.Quote(name)
	}
	c.head = c.styles.Dim(frame.OneLine(cmp.Or(name, "new"))) + " " + c.styles.Cyan(frame.OneLine(c.agent.ID)) + " "
	c.beside = strings.Join(beside, " ")
}

// longestName is how much of a model's or a mode's name stands in the prompt.
const longestName = 24

// showOffers has the prompt say in which model and mode the agent is. Where there is no agent it
// says what it said last: the next one is put into the same.
func (c *chat) showOffers(conv *kernel.Conversation) {
	if conv == nil {
		return
	}
	o, _, ok := conv.Offers()
	if !ok {
		return
	}
	var now []string
	if _, _, model := o.Models(); model != "" && model != "default" { // which says no more than nothing
		now = append(now, card.Line(model, longestName))
	}
	if len(o.Modes) > 1 {
		now = append(now, card.Line(agents.ModeName(o.Modes, o.Mode), longestName))
	}
	c.mu.Lock()
	changed, edit := c.now != strings.Join(now, " "), c.edit
	c.now = strings.Join(now, " ")
	c.mu.Unlock()
	if changed && edit != nil && !c.dumb {
		edit.Redraw(false)
	}
}

// cycleMode puts the agent into the next of its modes.
func (c *chat) cycleMode() {
	if c.there != nil {
		c.note("the worker's own settings say in which mode its agent is")
		return
	}
	o, _, ok := c.conv.Offers()
	if !ok || len(o.Modes) < 2 {
		c.note("the agent has no modes to choose from, or has not said so yet")
		return
	}
	next := o.Modes[0].Id
	for i, m := range o.Modes[:len(o.Modes)-1] {
		if string(m.Id) == o.Mode {
			next = o.Modes[i+1].Id
		}
	}
	c.do(command.Line{Name: "mode", Args: string(next)})
	c.showOffers(c.conv)
}

// prompt is what stands before the line.
func (c *chat) prompt() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	head, mark := c.head, c.styles.Bold("❯")
	for _, part := range []string{c.styles.Dim(c.now), c.styles.Dim(c.full), c.beside} {
		if screen.TextWidth(part) > 0 {
			head += part + " "
		}
	}
	if c.dumb {
		mark = ">"
	}
	return head + mark + " "
}

// redraw draws the prompt or the status line again, if there is one: somebody else had the terminal.
func (c *chat) redraw() {
	edit, line := c.drawn()
	if edit != nil {
		edit.Redraw(true)
	}
	if line != nil {
		line.Redraw()
	}
}

// resized is redraw where the size of the terminal changes.
func (c *chat) resized() {
	edit, line := c.drawn()
	if edit != nil {
		edit.Resized()
	}
	if line != nil {
		line.Resized()
	}
}

// drawn is what may be on the terminal.
func (c *chat) drawn() (*screen.Editor, *screen.StatusLine) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.edit, c.line
}

// chatView shows a turn of the chat, and shows what only its own terminal shows.
type chatView struct {
	*dialog.TurnView
	c     *chat
	alive bool // the agent was there in an earlier turn
	run   event.RunID
}

func newChatView(c *chat, say *dialog.Printer) *chatView {
	v := &chatView{c: c, alive: c.there != nil || c.prompted && c.conv.Alive()}
	v.TurnView = dialog.NewTurnView(c.a.App, say, func(tool string) string {
		if c.there != nil {
			return "perlica log show " + frame.ShortID(v.run) + " --team"
		}
		c.results = append(c.results, result{v.run, tool})
		return fmt.Sprintf("/show %d", len(c.results))
	})
	return v
}

func (v *chatView) show(n kernel.Notice) {
	switch n := n.(type) {
	case kernel.Started:
		v.run = n.Run
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
	if full := v.Full(); full != "" {
		v.c.mu.Lock()
		v.c.full = full
		v.c.mu.Unlock()
	}
	if text := v.Usage(res); err == nil && text != "" {
		fmt.Fprintln(v.A.Stderr, v.Say.Styles.Dim(text))
	}
}
