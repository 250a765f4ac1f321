// Package chat is the command in which a person talks to the agent line by line.
package chat

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/perlica/perlica/cmd/perlica/cli"
	"github.com/perlica/perlica/cmd/perlica/dialog"
	"github.com/perlica/perlica/cmd/perlica/editor"
	"github.com/perlica/perlica/cmd/perlica/exitcode"
	"github.com/perlica/perlica/cmd/perlica/printing"
	"github.com/perlica/perlica/cmd/perlica/signals"
	"github.com/perlica/perlica/cmd/perlica/term"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/kernel/agents"
	"github.com/perlica/perlica/kernel/command"
	"github.com/perlica/perlica/kernel/filelock"
	"github.com/perlica/perlica/kernel/project"
	"github.com/perlica/perlica/kernel/sessions"
)

// app is an invocation, with the commands of this package as its methods.
type app struct{ *cli.App }

// AddFlags adds the flags of a chat to a command.
func AddFlags(a *cli.App, cmd *cobra.Command, f *Flags) { (&app{a}).addChatFlags(cmd, f) }

// Run is the chat, until the person leaves it.
func Run(a *cli.App, cmd *cobra.Command, f Flags) error { return (&app{a}).chat(cmd, f) }

// Flags are the flags of the chat: those of run that make sense there.
type Flags struct{ dialog.Flags }

// Command returns the command.
func Command(c *cli.App) *cobra.Command {
	a := &app{c}
	var f Flags
	cmd := &cobra.Command{
		Use: "chat", Annotations: cli.Acts.On(),
		Short: "Talk to the agent, line by line",
		Long: `Talk to the agent, line by line. Each line that is sent is one input, and makes at most
one call. The agent lives as long as the chat.

'perlica' without a command is the same.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.chat(cmd, f) },
	}
	a.addChatFlags(cmd, &f)
	return cmd
}

func (a *app) addChatFlags(cmd *cobra.Command, f *Flags) {
	dialog.AddFlags(cmd, &f.Flags)
	fl := cmd.Flags()
	fl.StringVar(&f.Permissions, "permissions", "", "who answers the agent's questions, a `mode`: ask, reads, deny or allow")
	fl.BoolVar(&f.Thoughts, "thoughts", false, "show the agent's thoughts")
	dialog.CompleteFlags(a.App, cmd)
}

// chat is one chat at the terminal.
type chat struct {
	a      *app
	f      Flags
	p      *project.Project
	r      *kernel.Runner
	styles term.Styles
	dumb   bool
	tty    *term.TTY
	keys   *chatKeys // how the terminal is shared during a turn

	ctx    context.Context // ends when the chat has to leave
	cancel context.CancelCauseFunc

	session  sessions.Session
	agent    agents.Agent
	conv     *kernel.Conversation
	host     *command.Host
	turns    int  // of this session
	prompted bool // in this conversation
	thoughts bool // are shown
	attached []string
	last     string   // the last input
	with     []string // the files that were attached to it by command
	next     string   // what stands in the next prompt

	mu   sync.Mutex       // guards what follows
	stop *signals.Stopper // of the turn under way, or of a command
	line *term.Status     // where the turn under way shows what it does
	edit *editor.Editor   // nil before the first prompt

	suspended chan struct{} // closed when the process has been continued; nil: it was not stopped by its user
}

func (a *app) chat(cmd *cobra.Command, f Flags) (err error) {
	f.Format, f.Program = "text", cmd.CommandPath()
	if err := f.Check(); err != nil {
		return err
	}
	if !term.IsTerminal(a.Stderr) {
		return exitcode.WithHint(exitcode.Usagef("the chat needs a terminal"), "for one input: perlica run")
	}
	c := &chat{a: a, f: f, styles: term.NewStyles(a.Getenv, true), dumb: cli.IsDumb(a.App)}
	if c.tty, err = term.OpenTTY(); err != nil {
		return exitcode.WithHint(exitcode.Usage.With(err), "for one input: perlica run")
	}
	defer func() { _ = c.tty.Close() }() // read from only
	if c.p, err = a.Locate(f.ConfigFlags()); err != nil {
		return exitcode.Usage.With(err)
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
	r, done, err := a.Open(c.ctx, c.p)
	if err != nil {
		return exitcode.Log.With(err)
	}
	c.r = r
	defer func() {
		if cerr := done(); cerr != nil && err == nil {
			err = exitcode.Log.With(cerr)
		}
	}()
	release := c.signals()
	defer release()
	return c.run()
}

// run opens the session and lets the person talk until the chat ends.
func (c *chat) run() error {
	recovered, err := c.r.Recover(c.ctx)
	if err != nil {
		return exitcode.Log.With(exitcode.InLog(err))
	}
	for _, res := range recovered {
		c.note(fmt.Sprintf("an earlier run did not end in order; its outcome is unknown and nothing was sent again: perlica log show %s", res.Run))
	}
	s, err := c.f.Find(c.ctx, c.r)
	if err != nil {
		return exitcode.OfRefusal(err).With(err)
	}
	if err := c.enter(s, ""); err != nil {
		return exitcode.OfRefusal(err).With(err)
	}
	err = c.tty.Session(c.talk)
	if cerr := c.leave(); err == nil {
		err = cerr
	}
	var stopped *kernel.StoppedError
	if errors.As(context.Cause(c.ctx), &stopped) {
		return exitcode.OfStop(stopped.Stop).With(nil)
	}
	return err
}

// enter begins a conversation in a session; an empty one is new, with the given provider.
func (c *chat) enter(s sessions.Session, provider string) (err error) {
	f := c.f.Flags
	if provider != "" {
		f.Provider, f.Agent = provider, ""
	}
	if s.Provider != "" && provider != "" {
		f.Provider = "" // it is the session's
	}
	choice, badDir := f.Choice()
	agent := c.agent
	if agent.Why = ""; provider == "" || provider != agent.ID { // else it may be of no configuration
		if agent, err = f.ChooseAgent(c.ctx, c.p, c.r, choice, s); err != nil {
			return err
		}
	}
	if badDir != nil {
		return badDir
	}
	setup := c.p.Setup(choice, agent, s)
	setup.Limit = c.p.Mode() // there is a terminal
	conv, err := c.r.Converse(c.ctx, setup, c.p.Config.Chat.Idle, "chat")
	if err != nil {
		return busyHint(err, s)
	}
	c.leaveConversation()
	conv.Lost(func(err error) {
		c.above(printing.OneLine(err.Error()) + "; your next line starts it again")
	})
	conv.Warm()
	c.session, c.agent, c.conv, c.turns, c.prompted = s, agent, conv, s.Turns, false
	c.session.ID = conv.Session()
	c.host = &command.Host{
		Runner: c.r, Conversation: conv, Agents: c.p.Resolver(), Workspace: c.p.Workspace, Dirs: c.p.Dirs,
		By: cli.UserName(c.a.Getenv), Where: "chat", Origin: c.a.Origin(),
	}
	c.greet(s)
	return nil
}

// busyHint says who holds a session and how to look at it.
func busyHint(err error, s sessions.Session) error {
	if errors.Is(err, filelock.ErrBusy) {
		return exitcode.WithHint(err, "to follow it: perlica watch %s", printing.SessionName(s, printing.Short(s.ID)))
	}
	return err
}

// talk reads and answers lines with the terminal in raw mode.
func (c *chat) talk(keys *term.Keys) (err error) {
	edit, err := c.newEditor(keys)
	if err != nil {
		return err
	}
	c.mu.Lock()
	c.edit = edit
	c.mu.Unlock()
	c.keys = &chatKeys{keys: keys, edit: edit}
	c.paste(true)
	defer c.paste(false)
	defer func() { err = errors.Join(err, edit.Close()) }()
	interrupted := false
	for {
		text := c.next
		c.next = ""
		line, err := edit.Line(c.ctx, c.prompt(), text)
		switch {
		case errors.Is(err, editor.ErrInterrupted):
			if interrupted && line == "" {
				return nil
			}
			if line == "" && len(c.attached) > 0 {
				c.attached = nil
				c.note("nothing is attached any more")
				continue
			}
			if interrupted = line == ""; interrupted {
				c.note("Ctrl-C once more leaves; so do Ctrl-D and /exit")
			}
			continue
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			if c.ctx.Err() != nil {
				return nil
			}
			return err
		}
		interrupted = false
		if strings.TrimSpace(line) == "" {
			continue
		}
		if leave := c.take(line); leave || c.ctx.Err() != nil {
			return nil
		}
	}
}

func (c *chat) leaveConversation() {
	if c.conv == nil {
		return
	}
	if err := c.conv.Close(context.WithoutCancel(c.ctx)); err != nil {
		c.note("warning: closing the session: " + err.Error())
	}
	c.conv = nil
}

// leave ends the chat. A session that is on no list is easily lost: how to find it is said.
func (c *chat) leave() error {
	if c.conv == nil {
		return nil // it was discarded
	}
	id := c.conv.Session()
	c.leaveConversation()
	if c.turns == 0 {
		return nil
	}
	view, err := c.r.Sessions(context.WithoutCancel(c.ctx))
	if err != nil {
		return exitcode.Log.With(exitcode.InLog(err))
	}
	s, err := view.Find(context.WithoutCancel(c.ctx), string(id))
	if err = errors.Join(err, view.Close()); err != nil {
		return nil // it was discarded: there is nothing to find
	}
	if s.Ephemeral {
		how := "perlica -c goes on with it"
		if c.f.Agent != "" {
			how = "perlica -c with the same --agent goes on with it"
		}
		c.note("the session is not on the lists: " + how + ", /save there keeps it")
	}
	return nil
}

// sessionOf reads what is on record about a session.
func (c *chat) sessionOf(id event.SessionID) (s sessions.Session, err error) {
	view, err := c.r.Sessions(c.ctx)
	if err != nil {
		return s, err
	}
	s, err = view.Find(c.ctx, string(id))
	return s, errors.Join(err, view.Close())
}
