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
	"github.com/perlica/perlica/kernel/record"
	"github.com/perlica/perlica/kernel/sessions"
	"github.com/perlica/perlica/provider/sandbox"
)

// printGreeting shows the session, the agent and the project.
func (c *chat) printGreeting(s sessions.Session, choice fact.SessionConfigured) {
	if c.agent.Why != "" {
		c.printNote("using " + c.agent.ID + ": " + c.agent.Why)
	}
	if text := c.f.NotSet(c.a.Environ); text != "" {
		c.printNote(text)
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
	mode := sandbox.Off
	if box := c.agent.Sandbox; box != nil {
		mode = box.Mode
	}
	what += " with " + c.agent.ID + ", sandbox " + string(mode)
	if s.Turns == 0 { // In a continued session the person knows the commands, and the line is long enough.
		what += "; /help lists the commands"
	}
	c.printNote(what)
	if c.p.OfferSandbox(c.agent) {
		c.printNote("this machine can keep agents from Perlica's files and other processes: perlica --sandbox protect, or " +
			"sandbox = \"protect\" in your configuration; 'perlica sandbox check' shows what it does")
	}
	if text := frame.DescribeChoices(choice); text != "" {
		c.printNote("set again as chosen in this session, as far as the agent offers it: " + text)
	}
}

// printNote prints a line about the chat on standard error.
func (c *chat) printNote(text string) { fmt.Fprint(c.a.Stderr, c.inset(text)) }

func (c *chat) inset(text string) string {
	return c.styles.Dim(card.Marked("perlica: "+text, screen.TerminalWidth(c.a.Stderr))) + "\n"
}

// printNoteAbove prints a note above a line that is being typed or a running turn.
func (c *chat) printNoteAbove(text string) { c.printAbove(c.inset(text)) }

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

// reportStart reports the result of an agent's start while the person writes the first line. The result is an error,
// or the settings that the agent no longer offers. If a turn waits for the start, the turn reports the result.
func (c *chat) reportStart(conv *kernel.Conversation, hint func(error) string, err error) {
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
			c.printNoteAbove("the agent does not take the earlier choice again:  " + frame.OneLine(lost.Text))
		}
	}
}

// setHead sets the part of the prompt with the session, its agent, the number of attached files and the number of
// queued inputs.
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
	c.promptHead = c.styles.Dim(frame.OneLine(cmp.Or(name, "new"))) + " " + c.styles.Cyan(frame.OneLine(c.agent.ID)) + " "
	c.promptFiles = strings.Join(beside, " ")
}

// longestName is the largest number of columns that the prompt uses for the name of a model or a mode.
const longestName = 24

// showOffers shows the agent's model and mode in the prompt. Without a running agent the prompt keeps the last
// values, because the next agent gets them.
func (c *chat) showOffers(conv *kernel.Conversation) {
	if conv == nil {
		return
	}
	o, _, ok := conv.Offers()
	if !ok {
		return
	}
	var now []string
	if _, _, model := o.Models(); model != "" && model != "default" { // The name "default" would tell the person nothing.
		now = append(now, card.Line(model, longestName))
	}
	if len(o.Modes) > 1 {
		now = append(now, card.Line(agents.ModeName(o.Modes, o.Mode), longestName))
	}
	c.mu.Lock()
	changed, edit := c.promptModel != strings.Join(now, " "), c.edit
	c.promptModel = strings.Join(now, " ")
	c.mu.Unlock()
	if changed && edit != nil && !c.dumb {
		edit.Redraw(false)
	}
}

// cycleMode puts the agent into the next of its modes.
func (c *chat) cycleMode() {
	if c.team != nil {
		c.printNote("the worker's own settings say in which mode its agent is")
		return
	}
	o, _, ok := c.conv.Offers()
	if !ok || len(o.Modes) < 2 {
		c.printNote("the agent has no modes to choose from, or has not said so yet")
		return
	}
	next := o.Modes[0].Id
	for i, m := range o.Modes[:len(o.Modes)-1] {
		if string(m.Id) == o.Mode {
			next = o.Modes[i+1].Id
		}
	}
	c.runCommand(command.Line{Name: "mode", Args: string(next)})
	c.showOffers(c.conv)
}

// promptText returns the prompt, which stands before the typed line.
func (c *chat) promptText() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	head, mark := c.promptHead, c.styles.Bold("❯")
	for _, part := range []string{c.styles.Dim(c.promptModel), c.styles.Dim(c.promptUsage), c.promptFiles} {
		if screen.TextWidth(part) > 0 {
			head += part + " "
		}
	}
	if c.dumb {
		mark = ">"
	}
	return head + mark + " "
}

// redrawLine draws the prompt or the status line again after another program had the terminal.
func (c *chat) redrawLine() {
	edit, line := c.drawnLines()
	if edit != nil {
		edit.Redraw(true)
	}
	if line != nil {
		line.Redraw()
	}
}

// handleResize redraws after a change of the terminal's size.
func (c *chat) handleResize() {
	edit, line := c.drawnLines()
	if edit != nil {
		edit.Resized()
	}
	if line != nil {
		line.Resized()
	}
}

// drawnLines returns the prompt and the status line that may be on the terminal.
func (c *chat) drawnLines() (*screen.Editor, *screen.StatusLine) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.edit, c.line
}

// chatView shows a turn of the chat. It adds notes to a TurnView that only the chat shows.
type chatView struct {
	*dialog.TurnView
	c     *chat
	alive bool // The agent that runs this turn has run earlier turns, too.
	run   event.RunID
}

func newChatView(c *chat, say *dialog.Printer) *chatView {
	v := &chatView{c: c, alive: c.team != nil || c.prompted && c.conv.Alive()}
	v.TurnView = dialog.NewTurnView(c.a.App, say, func(tool string) string {
		if c.team != nil {
			return "perlica log show " + frame.ShortID(v.run) + " --team"
		}
		c.results = append(c.results, result{v.run, tool})
		return fmt.Sprintf("/show %d", len(c.results))
	})
	return v
}

func (v *chatView) showNotice(n record.Notice) {
	switch n := n.(type) {
	case record.Started:
		v.run = n.Run
		v.explainStart()
		v.Say.Show(n)
	case record.Updated:
		v.Update(n)
	case record.Asked:
		v.Flush()
		if n.Answerable {
			v.c.notifyUser("a question: " + n.Title)
		}
		v.Say.Show(n)
	default:
		v.Flush()
		v.Say.Show(n)
	}
}

// explainStart prints how a newly started agent learns of the session's earlier turns.
func (v *chatView) explainStart() {
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

// finishTurn ends the turn on the screen. It shows the rest of the answer, errors and usage.
func (v *chatView) finishTurn(res record.Result, err error) {
	v.End()
	v.Say.Finish(res, err)
	if full := v.Full(); full != "" {
		v.c.mu.Lock()
		v.c.promptUsage = full
		v.c.mu.Unlock()
	}
	if text := v.Usage(res); err == nil && text != "" {
		fmt.Fprintln(v.A.Stderr, v.Say.Styles.Dim(text))
	}
}
