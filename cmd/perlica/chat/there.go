package chat

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/google/uuid"

	"github.com/perlica/perlica/cmd/perlica/dialog"
	"github.com/perlica/perlica/cmd/perlica/frame"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/kernel/command"
	"github.com/perlica/perlica/service/team"
)

// there is the team that answers the lines of a chat, and the session that they go on with.
type there struct {
	t       *team.Team
	worker  string // that has the session; empty: a new one is begun with the next line
	session event.SessionID

	input atomic.Value // the id, a string, of the input whose questions are asked in place; empty: none is waited for
}

// talkThere is the chat with a team.
func (c *chat) talkThere() error {
	return team.Use(c.ctx, c.p, c.a.Version, func(t *team.Team) error {
		c.there, c.backlog = &there{t: t}, &backlog{c: c}
		c.host, c.hint = &command.Host{By: frame.UserName(c.a.Getenv), Where: "chat", Team: c.workers}, func(error) string { return "" }
		release := c.signals()
		defer release()
		if err := c.openThere(); err != nil {
			return frame.RefusalExitCode(err).With(err)
		}
		if err := c.tty.Ahead(c.talk); err != nil {
			return err
		}
		if c.there.worker != "" {
			c.note(fmt.Sprintf("session %s at %s: perlica --team -s %[1]s goes on with it", frame.ShortID(c.there.session), c.there.worker))
		}
		return c.stoppedBy()
	})
}

// openThere goes on with the session of -s, if there is one, and says where the person is.
func (c *chat) openThere() error {
	name := c.there.t.State().Name
	if c.f.Session == "" {
		c.beginThere("", "")
		c.note("a new session with the team " + name + "; a worker begins it with your first line, and /help lists the commands")
		return nil
	}
	s, l, err := c.there.t.FindSession(c.ctx, c.f.Session, c.f.Team.Project(c.p), c.note)
	if err != nil {
		return err
	}
	c.beginThere(l.Worker, s.ID)
	c.session, c.turns = s, s.Turns
	c.note(fmt.Sprintf("session %s at %s, of the team %s", frame.DescribeSession(s), l.Worker, name))
	c.showEarlier(l, s)
	return nil
}

// beginThere has the next line go on with a session.
func (c *chat) beginThere(worker string, session event.SessionID) {
	c.there.worker, c.there.session = worker, session
	c.session.ID, c.session.Name = session, ""
	c.agent.ID = cmp.Or(worker, c.there.t.State().Name)
}

// answerThere hands an input to the team and waits for its result. The session that its worker began is gone on with.
func (c *chat) answerThere(ctx context.Context, in kernel.Input, say *dialog.Printer, ask *dialog.Asker, show func(kernel.Notice), stop *frame.Stopper) (kernel.Result, error) {
	err := c.there.t.Refresh(ctx) // an admin may have adopted another server since the last line
	if err != nil {
		err = c.there.t.Refresh(ctx) // that only reads: the server may have ended the connection since
	}
	if err != nil {
		return kernel.Result{}, err
	}
	f := c.f.Flags
	f.Attach = in.Attachments
	d, err := c.f.Team.Draft(c.p, f, in.Text)
	if err != nil {
		return kernel.Result{}, err
	}
	d.ID, d.Worker, d.Session = uuid.Must(uuid.NewV7()).String(), c.there.worker, c.there.session
	c.there.input.Store(d.ID)
	at := dialog.TeamTerminal{Say: say, Ask: ask, Show: show, Stop: stop, User: in.Sender}
	res, worker, err := at.Answer(ctx, c.there.t, d)
	c.there.input.Store("")
	if err == nil && res.Session != "" {
		c.beginThere(worker, res.Session)
	}
	return res, err
}

// thereCommands are the commands of a chat with a team, and what they do.
var thereCommands = [][2]string{
	{"/help", "what can be said here"},
	{"/again", "put the last input back into the line; sending it is a new input"},
	{"/attach PATH", "add a file to the next input"},
	{"/clear", "begin a new session with the next line"},
	{"/thoughts", "show the agent's thoughts, or hide them again"},
	{"/pending", "the questions that wait at the team's workers"},
	{"/allow [ID]", "say yes to a question, this once"},
	{"/deny [ID]", "say no to a question, this once"},
	{"/choose [ID] N", "take one of a question's options"},
	{"/exit", "leave"},
}

// answering are the commands that are not for a session, but for questions.
var answering = []string{"pending", "allow", "deny", "choose"}

// doThere carries out a command of a chat with a team, and reports whether the chat is over.
func (c *chat) doThere(l command.Line) (leave bool) {
	of := slices.IndexFunc(thereCommands, func(cmd [2]string) bool { return strings.HasPrefix(cmd[0]+" ", "/"+l.Name+" ") })
	switch {
	case of < 0:
		c.a.Complain(frame.WithHint(fmt.Errorf("/%s is not for a chat with a team", l.Name), "/help lists what is"))
		return false
	case (l.Args == "") == strings.Contains(thereCommands[of][0], " "):
		c.a.Complain(frame.UsageErrorf("here it is %s", thereCommands[of][0]))
		return false
	}
	switch l.Name {
	case "help":
		var b strings.Builder
		for _, cmd := range thereCommands {
			fmt.Fprintf(&b, "- `%s` — %s\n", cmd[0], cmd[1])
		}
		c.print(b.String() + "\n`?` lists the keys; `perlica team cancel` stops an input.\n")
	case "clear":
		c.beginThere("", "")
		c.turns = 0
		c.note("the next line begins a new session")
	case "again":
		return c.effect(command.Output{Effect: command.Recall})
	case "attach":
		return c.effect(command.Output{Effect: command.Attach, Path: l.Args})
	case "thoughts":
		return c.effect(command.Output{Effect: command.Thoughts})
	case "exit":
		return true
	}
	return false
}

// stoppedBy is the exit code of what stopped the chat, if something did.
func (c *chat) stoppedBy() error {
	var stopped *kernel.StoppedError
	if errors.As(context.Cause(c.ctx), &stopped) {
		return frame.StopExitCode(stopped.Stop).With(nil)
	}
	return nil
}
