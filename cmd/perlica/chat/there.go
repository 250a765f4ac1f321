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
	"github.com/perlica/perlica/kernel/record"
	"github.com/perlica/perlica/service/team"
)

// teamSession has the team that answers the lines of a chat, and the session that they continue.
type teamSession struct {
	t       *team.Team
	worker  string // the worker that has the session; "" if the next line begins a session
	session event.SessionID

	input atomic.Value // id (a string) of the input with the shown questions; "" if there is no such input
}

// chatWithTeam is the chat with a team.
func (c *chat) chatWithTeam() error {
	return team.Use(c.ctx, c.p, c.a.Version, func(t *team.Team) error {
		c.team, c.backlog = &teamSession{t: t}, &backlog{c: c}
		c.host, c.hint = &command.Host{By: frame.UserName(c.a.Getenv), Where: "chat", Team: c.workers},
			func(error) string { return "" }
		release := c.handleSignals()
		defer release()
		if err := c.openTeamSession(); err != nil {
			return frame.RefusalExitCode(err).With(err)
		}
		if err := c.tty.Ahead(c.readLines); err != nil {
			return err
		}
		if c.team.worker != "" {
			c.printNote(fmt.Sprintf("session %s at %s: continue it with: perlica --team -s %[1]s", frame.ShortID(c.team.session),
				c.team.worker))
		}
		return c.stoppedBy()
	})
}

// openTeamSession continues the session that the flag -s names, and prints the greeting.
func (c *chat) openTeamSession() error {
	name := c.team.t.State().Name
	if c.f.Session == "" {
		c.continueTeamSession("", "")
		c.printNote("a new session with the team " + name +
			"; a worker begins it with your first line, and /help lists the commands")
		return nil
	}
	s, l, err := c.team.t.FindSession(c.ctx, c.f.Session, c.f.Team.Project(c.p), c.printNote)
	if err != nil {
		return err
	}
	c.continueTeamSession(l.Worker, s.ID)
	c.session, c.turns = s, s.Turns
	c.printNote(fmt.Sprintf("session %s at %s, of the team %s", frame.DescribeSession(s), l.Worker, name))
	c.showEarlier(l, s)
	return nil
}

// continueTeamSession makes the next line continue a session.
func (c *chat) continueTeamSession(worker string, session event.SessionID) {
	c.team.worker, c.team.session = worker, session
	c.session.ID, c.session.Name = session, ""
	c.agent.ID = cmp.Or(worker, c.team.t.State().Name)
}

// answerByTeam sends an input to the team and waits for its result. The next input continues the session that the
// worker began.
func (c *chat) answerByTeam(ctx context.Context, in kernel.Input, say *dialog.Printer, ask *dialog.Asker,
	show func(record.Notice), stop *frame.Stopper) (record.Result, error) {
	err := c.team.t.Refresh(ctx) // An admin may have adopted another server since the last line.
	if err != nil {
		// Refresh only reads, so a second try is harmless. The server may have closed an idle connection before the
		// first try.
		err = c.team.t.Refresh(ctx)
	}
	if err != nil {
		return record.Result{}, err
	}
	f := c.f.Flags
	f.Attach = in.Attachments
	d, err := c.f.Team.Draft(c.p, f, in.Text)
	if err != nil {
		return record.Result{}, err
	}
	d.ID, d.Worker, d.Session = uuid.Must(uuid.NewV7()).String(), c.team.worker, c.team.session
	c.team.input.Store(d.ID)
	at := dialog.TeamTerminal{Say: say, Ask: ask, Show: show, Stop: stop, User: in.Sender}
	res, worker, err := at.Answer(ctx, c.team.t, d)
	c.team.input.Store("")
	if err == nil && res.Session != "" {
		c.continueTeamSession(worker, res.Session)
	}
	return res, err
}

// teamCommands are the commands of a chat with a team and their descriptions.
var teamCommands = [][2]string{
	{"/help", "list these commands"},
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

// questionCommands are the commands that answer questions.
var questionCommands = []string{"pending", "allow", "deny", "choose"}

// runTeamCommand runs a command of a chat with a team and reports whether the chat is over.
func (c *chat) runTeamCommand(l command.Line) (leave bool) {
	of := slices.IndexFunc(teamCommands, func(cmd [2]string) bool { return strings.HasPrefix(cmd[0]+" ", "/"+l.Name+" ") })
	switch {
	case of < 0:
		c.a.Complain(frame.WithHint(fmt.Errorf("/%s is not for a chat with a team", l.Name), "/help lists what is"))
		return false
	case (l.Args == "") == strings.Contains(teamCommands[of][0], " "):
		c.a.Complain(frame.UsageErrorf("here it is %s", teamCommands[of][0]))
		return false
	}
	switch l.Name {
	case "help":
		var b strings.Builder
		for _, cmd := range teamCommands {
			fmt.Fprintf(&b, "- `%s` — %s\n", cmd[0], cmd[1])
		}
		c.printText(b.String() + "\n`?` lists the keys; `perlica team cancel` stops an input.\n")
	case "clear":
		c.continueTeamSession("", "")
		c.turns = 0
		c.printNote("the next line begins a new session")
	case "again":
		return c.applyOutput(command.Output{Effect: command.Recall})
	case "attach":
		return c.applyOutput(command.Output{Effect: command.Attach, Path: l.Args})
	case "thoughts":
		return c.applyOutput(command.Output{Effect: command.Thoughts})
	case "exit":
		return true
	}
	return false
}

// stoppedBy returns the error with the exit code of the stop that ended the chat, or nil.
func (c *chat) stoppedBy() error {
	var stopped *kernel.StoppedError
	if errors.As(context.Cause(c.ctx), &stopped) {
		return frame.StopExitCode(stopped.Stop).With(nil)
	}
	return nil
}
