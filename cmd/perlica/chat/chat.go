// Package chat is the command in which a person talks to the agent line by line.
package chat

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/perlica/perlica/cmd/perlica/dialog"
	"github.com/perlica/perlica/cmd/perlica/frame"
	"github.com/perlica/perlica/cmd/perlica/screen"
	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/kernel/agents"
	"github.com/perlica/perlica/kernel/command"
	"github.com/perlica/perlica/kernel/project"
	"github.com/perlica/perlica/kernel/sessions"
	"github.com/perlica/perlica/policy"
)

// app is an invocation, with the commands of this package as its methods.
type app struct{ *frame.App }

// AddFlags adds the flags of a chat to a command.
func AddFlags(a *frame.App, cmd *cobra.Command, f *Flags) { (&app{a}).addChatFlags(cmd, f) }

// Run is the chat, until the person leaves it.
func Run(a *frame.App, cmd *cobra.Command, f Flags) error { return (&app{a}).chat(cmd, f) }

// Flags are the flags of the chat: those of run that make sense there.
type Flags struct {
	dialog.Flags
	Team   dialog.TeamFlags
	Resume bool   // choose the session from a list
	First  string // a text that is sent at once
}

// Command returns the command.
func Command(c *frame.App) *cobra.Command {
	a := &app{c}
	var f Flags
	cmd := &cobra.Command{
		Use: "chat [TEXT]", Annotations: frame.PersonOnly.Annotation(),
		Short: "Talk to the agent, line by line",
		Long: `Talk to the agent, line by line. Each line that is sent is one input, and makes at most
one call. The agent lives as long as the chat. TEXT is sent first.

'perlica' without a command is the same, and 'perlica "TEXT"' with a text of several words.`,
		Args: frame.Between(0, "TEXT"),
		RunE: func(cmd *cobra.Command, args []string) error {
			f.First = strings.Join(args, "")
			return a.chat(cmd, f)
		},
	}
	a.addChatFlags(cmd, &f)
	return cmd
}

func (a *app) addChatFlags(cmd *cobra.Command, f *Flags) {
	dialog.AddFlags(cmd, &f.Flags)
	fl := cmd.Flags()
	fl.StringVar(&f.Permissions, "permissions", "", "who answers the agent's questions, a `mode`: ask, reads, deny or allow")
	fl.BoolVar(&f.Resume, "resume", false, "choose the session to go on with from a list")
	cmd.MarkFlagsMutuallyExclusive("resume", "session", "continue")
	fl.BoolVar(&f.Thoughts, "thoughts", false, "show the agent's thoughts")
	dialog.AddTeamFlags(cmd, &f.Team)
	dialog.CompleteFlags(a.App, cmd)
}

// chat is one chat at the terminal.
type chat struct {
	a       *app
	f       Flags
	p       *project.Project
	r       *kernel.Runner // nil: a team answers
	there   *there         // that team; nil: the agent is here
	workers *workers       // of the user's team; nil: there is none
	styles  screen.Styles
	dumb    bool
	tty     *screen.TTY
	keys    *chatKeys // how the terminal is shared during a turn

	ctx    context.Context // ends when the chat has to leave
	cancel context.CancelCauseFunc

	session  sessions.Session
	agent    agents.Agent
	conv     *kernel.Conversation
	host     *command.Host
	hint     func(error) string // what to do about an error of the agent
	turns    int                // of this session
	prompted bool               // in this conversation
	thoughts bool               // are shown
	attached []string
	last     string   // the last input
	with     []string // the files that were attached to it by command
	next     string   // what stands in the next prompt
	doubtful string   // the line of which was said that it may not be what it seems

	results  []result // of the tool calls that were shown, in their order
	backlog  *backlog
	commands sync.WaitGroup // those that were given during the turn under way

	mu      sync.Mutex           // guards what follows
	head    string               // of the prompt: the session and its agent
	beside  string               // of the prompt: what is attached and queued
	now     string               // of the prompt: the agent's model and mode
	full    string               // of the prompt: how full the agent's context is
	awaited *kernel.Conversation // whose agent is started; nil: the one that was is left
	stop    *frame.Stopper       // of the turn under way, or of a command
	line    *screen.StatusLine   // where the turn under way shows what it does
	edit    *screen.Editor       // nil before the first prompt

	suspended chan struct{} // closed when the process has been continued; nil: it was not stopped by its user
}

func (a *app) chat(cmd *cobra.Command, f Flags) (err error) {
	dialog.PrimeCaches()
	f.Format, f.Program = "text", cmd.CommandPath()
	if err := f.Check(); err != nil {
		return err
	}
	if !screen.IsTerminal(a.Stderr) {
		return frame.WithHint(frame.UsageErrorf("the chat needs a terminal"), "for one input: perlica run")
	}
	c := &chat{a: a, f: f, styles: screen.NewStyles(a.Getenv, true), dumb: a.HasDumbTerminal()}
	if c.tty, err = screen.OpenTTY(); err != nil {
		return frame.WithHint(frame.ExitUsage.With(err), "for one input: perlica run")
	}
	frame.BeforeFatalSignal(func() error {
		c.paste(false)
		return c.tty.Restore()
	})
	defer func() { _ = c.tty.Close() }() // read from only
	if c.p, err = a.Locate(f.ConfigFlags()); err != nil {
		return frame.ExitUsage.With(err)
	}
	c.thoughts = f.Thoughts || c.p.Config.Chat.Thoughts
	c.ctx, c.cancel = context.WithCancelCause(cmd.Context())
	defer c.cancel(nil)
	for _, w := range c.p.Config.Warnings {
		c.note(w)
	}
	if w := c.p.Config.Withheld; len(w) > 0 {
		c.note("not trusted yet, left aside: " + strings.Join(w, "; ") + " (perlica config trust)")
	}
	if c.workers = c.newWorkers(); c.workers != nil {
		defer func() { _ = c.workers.link.Close() }() // what an answer wrote is on its disk
	}
	if inTeam, err := f.Team.Meant(cmd, c.p); err != nil {
		return err
	} else if inTeam {
		return c.talkThere()
	}
	r, done, err := a.Open(c.ctx, c.p)
	if err != nil {
		return frame.ExitLog.With(err)
	}
	c.r = r
	defer func() {
		if cerr := done(); cerr != nil && err == nil {
			err = frame.ExitLog.With(cerr)
		}
	}()
	c.backlog = &backlog{c: c}
	release := c.signals()
	defer release()
	return c.run()
}

// run opens the session and lets the person talk until the chat ends.
func (c *chat) run() error {
	recovered, err := c.r.Recover(c.ctx)
	if err != nil {
		return frame.ExitLog.With(frame.LogErrorBeforeSend(err))
	}
	for _, res := range recovered {
		c.note(fmt.Sprintf("an earlier run was cut off; its outcome is unknown and nothing was sent again: perlica log show %s", res.Run))
	}
	s, err := c.f.Find(c.ctx, c.r)
	if c.f.Resume {
		err = c.tty.Session(func(keys *screen.Keys) (err error) {
			s, err = c.chooseSession(c.ctx, keys, "")
			return err
		})
	}
	if err != nil {
		return frame.RefusalExitCode(err).With(err)
	}
	if err := c.enter(s, ""); err != nil {
		return frame.RefusalExitCode(err).With(err)
	}
	err = c.tty.Ahead(c.talk)
	if cerr := c.leave(); err == nil {
		err = cerr
	}
	return cmp.Or(c.stoppedBy(), err)
}

// enter begins a conversation in a session; an empty one is new, with the given agent.
func (c *chat) enter(s sessions.Session, name string) (err error) {
	f := c.f.Flags
	if name != "" {
		f.Provider, f.Agent = name, ""
	}
	if s.Provider != "" && name != "" {
		f.Provider = "" // it is the session's
	}
	choice, badDir := f.Choice()
	agent, adHoc := c.agent, c.f.Agent != "" && (name == "" || name == c.agent.ID)
	if agent.Why = ""; name == "" || name != agent.ID { // else it may be of no configuration
		if agent, err = f.ChooseAgent(c.ctx, c.p, c.r, choice, s); err != nil {
			return err
		}
	}
	if badDir != nil {
		return badDir
	}
	setup := c.p.Setup(choice, agent, s)
	setup.Limit = c.p.Mode() // there is a terminal
	setup.Forms, setup.Notices = setup.Limit != policy.ModeDeny, true
	conv, err := c.r.Converse(c.ctx, setup, c.p.Config.Chat.Idle, "chat")
	if err != nil {
		return busyHint(err, s)
	}
	c.leaveConversation()
	conv.Lost(func(err error) {
		c.above(frame.OneLine(err.Error()) + "; your next line starts it again")
	})
	conv.Warm()
	held := dialog.HeldFrom(agent, c.a.Environ)
	hint := func(err error) string { return dialog.AgentHint(err, agent.ID, adHoc, held) }
	c.hint = hint
	c.session, c.agent, c.conv, c.turns, c.prompted = s, agent, conv, s.Turns, false
	c.session.ID = conv.Session()
	c.host = &command.Host{
		Runner: c.r, Conversation: conv, Agents: c.p.Resolver(), Workspace: c.p.Workspace, Dirs: c.p.Dirs,
		By: frame.UserName(c.a.Getenv), Where: "chat", Origin: c.a.Origin(),
	}
	c.host.Cancel = c.cancelTurn
	if c.workers != nil {
		c.host.Team = c.workers
	}
	c.mu.Lock()
	c.now, c.full, c.awaited = "", "", conv
	c.mu.Unlock()
	c.greet(s, setup.Earlier)
	if s.Turns > 0 {
		c.showEarlier(&c.r.Log().Reader, s)
	}
	go func() { c.started(conv, hint, conv.Await(c.ctx)) }() // ends with the chat, or when the agent is there
	return c.backlog.open(c.ctx, c.session.ID)
}

// talk reads and answers lines with the terminal in raw mode.
func (c *chat) talk(keys *screen.Keys) (err error) {
	edit, err := c.newEditor(keys)
	if err != nil {
		return err
	}
	c.mu.Lock()
	c.edit = edit
	c.mu.Unlock()
	c.keys = &chatKeys{keys: keys, edit: edit}
	edit.Early(c.ctx)
	c.paste(true)
	defer c.paste(false)
	defer func() { err = errors.Join(err, edit.Close()) }()
	var watching sync.WaitGroup
	ctx, stopWatching := context.WithCancel(c.ctx)
	defer watching.Wait()
	defer stopWatching()
	watching.Go(func() { c.backlog.watch(ctx) })
	if c.workers != nil {
		watching.Go(func() { c.workers.watch(ctx) })
	}
	if first := c.f.First; first != "" {
		c.setHead(0, c.backlog.count())
		fmt.Fprintln(c.a.Stderr, c.prompt()+frame.OneLine(first))
		if leave := c.take(first); leave || c.ctx.Err() != nil {
			return nil
		}
	}
	for interrupted := false; ; {
		if in, ok := c.backlog.next(); ok && c.ctx.Err() == nil {
			c.sendQueued(in)
			continue
		}
		c.backlog.announce()
		line, err := c.readLine(edit)
		switch {
		case errors.Is(err, errQueued):
			continue
		case errors.Is(err, screen.ErrInterrupted):
			if interrupted && line == "" {
				return nil
			}
			interrupted = c.interrupted(line)
			continue
		case errors.Is(err, io.EOF), err != nil && c.ctx.Err() != nil:
			return nil
		case err != nil:
			return err
		}
		interrupted = false
		if strings.TrimSpace(line) == "" {
			c.backlog.confirm()
			continue
		}
		if leave := c.take(line); leave || c.ctx.Err() != nil {
			return nil
		}
	}
}

// readLine reads a line, or fails with errQueued: an input of another process is to be sent first,
// and what was typed stands in the next line.
func (c *chat) readLine(edit *screen.Editor) (string, error) {
	ctx, cancel := context.WithCancelCause(c.ctx)
	defer cancel(nil)
	defer c.backlog.reading(func() { cancel(errQueued) })()
	c.setHead(len(c.attached), c.backlog.count())
	c.showOffers(c.conv)
	text := c.next
	c.next = ""
	line, err := edit.Line(ctx, c.prompt, text)
	if err != nil && errors.Is(context.Cause(ctx), errQueued) {
		c.next = line
		return "", errQueued
	}
	return line, err
}

// interrupted does what Ctrl-C means at the prompt, and reports whether the next one leaves.
func (c *chat) interrupted(line string) bool {
	switch {
	case line != "":
		return false
	case len(c.attached) > 0:
		c.attached = nil
		c.note("nothing is attached any more")
		return false
	}
	c.note("Ctrl-C once more leaves; so do Ctrl-D and /exit")
	return true
}

func (c *chat) leaveConversation() {
	if c.conv == nil {
		return
	}
	c.mu.Lock()
	c.awaited = nil
	c.mu.Unlock()
	if err := c.conv.Close(context.WithoutCancel(c.ctx)); err != nil {
		c.note("warning: closing the session: " + err.Error())
	}
	c.conv = nil
}

// leave ends the chat and says how to go on with its session.
func (c *chat) leave() error {
	if c.conv == nil {
		return nil // it was discarded
	}
	id := c.conv.Session()
	c.leaveConversation()
	if n := c.backlog.count(); n > 0 {
		c.note(frame.Count(n, "queued input") + " stay in this session, and wait for your Enter when you open it again")
	}
	if c.turns == 0 {
		return nil
	}
	view, err := c.r.Sessions(context.WithoutCancel(c.ctx))
	if err != nil {
		return frame.ExitLog.With(frame.LogErrorBeforeSend(err))
	}
	s, err := view.Find(context.WithoutCancel(c.ctx), string(id))
	if err = errors.Join(err, view.Close()); err != nil {
		return nil // it was discarded: there is nothing to find
	}
	c.note(c.farewell(s))
	return nil
}

// farewell names a session and the command that goes on with it.
func (c *chat) farewell(s sessions.Session) string {
	id, with := frame.ShortID(s.ID), ""
	if c.f.Agent != "" {
		with = " with the same --agent"
	}
	name := ""
	if s.Name != "" {
		name = " (" + frame.OneLine(s.Name) + ")"
	}
	return fmt.Sprintf("session %s%s: perlica -s %s%s goes on with it", id, name, id, with)
}
