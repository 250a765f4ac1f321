// Package chat lets a person talk to an agent line by line. It owns the prompt, the queue of typed inputs and the
// commands of the chat. The kernel runs each turn, and package dialog shows it.
package chat

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/perlica/perlica/cmd/perlica/dialog"
	"github.com/perlica/perlica/cmd/perlica/frame"
	"github.com/perlica/perlica/cmd/perlica/screen"
	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/kernel/agents"
	"github.com/perlica/perlica/kernel/command"
	"github.com/perlica/perlica/kernel/flow"
	"github.com/perlica/perlica/kernel/project"
	"github.com/perlica/perlica/kernel/schedule"
	"github.com/perlica/perlica/kernel/sessions"
	"github.com/perlica/perlica/policy"
	"github.com/perlica/perlica/service/notify"
)

// app is one invocation of perlica. Its methods are the commands of this package.
type app struct{ *frame.App }

// AddFlags adds the flags of a chat to a command.
func AddFlags(a *frame.App, cmd *cobra.Command, f *Flags) { (&app{a}).addChatFlags(cmd, f) }

// Run runs the chat until the person leaves it.
func Run(a *frame.App, cmd *cobra.Command, f Flags) error { return (&app{a}).chat(cmd, f) }

// Flags are the flags of the chat.
type Flags struct {
	dialog.Flags
	Team   dialog.TeamFlags
	Resume bool   // Choose the session from a list.
	First  string // the first input, which the chat sends when it has started; "" for no input
}

// Command returns the command chat.
func Command(c *frame.App) *cobra.Command {
	a := &app{c}
	var f Flags
	cmd := &cobra.Command{
		Use: "chat [TEXT]", Annotations: frame.PersonOnly.Annotation(),
		Short: "Talk to the agent, line by line",
		Long: `Talk to the agent, line by line. Each line that you send is one input, and makes at most
one call. The agent runs until the chat ends. TEXT is the first input.

'perlica' without a command does the same, and so does 'perlica "TEXT"' if the text has
several words.`,
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
	fl.StringVar(&f.Permissions, "permissions", "",
		"the `mode` for the agent's questions: ask, reads, deny or allow")
	a.AddSandboxFlag(cmd)
	fl.BoolVar(&f.Resume, "resume", false, "choose a session from a list, and continue it")
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
	r       *kernel.Runner // runs the turns; nil if a team answers
	team    *teamSession   // the team that answers; nil if the agent runs here
	workers *workers       // the user's team, for questions of its workers; nil without a team
	styles  screen.Styles
	dumb    bool
	tty     *screen.TTY
	keys    *chatKeys // the terminal during a turn

	ctx    context.Context // ends when the chat has to leave
	cancel context.CancelCauseFunc

	session      sessions.Session
	agent        agents.Agent
	conv         *kernel.Conversation
	host         *command.Host
	hint         func(error) string // returns a hint for an agent's error
	turns        int                // number of turns in this session so far
	prompted     bool               // A prompt was sent in this conversation.
	thoughts     bool               // The thoughts are shown.
	attached     []string
	lastInput    string   // the last input
	lastAttached []string // files that commands attached to the last input
	nextLine     string   // the text of the next prompt
	doubtful     string   // the last line that caused a warning; sending the same line again sends it

	results  []result // the shown tool calls in order
	backlog  *backlog
	commands sync.WaitGroup // commands given during the running turn

	mu          sync.Mutex           // guards the fields below
	promptHead  string               // part of the prompt: the session and its agent
	promptFiles string               // part of the prompt: attached files and queued inputs
	promptModel string               // part of the prompt: the agent's model and mode
	promptUsage string               // part of the prompt: how full the agent's context is
	awaited     *kernel.Conversation // the conversation that starts its agent; nil if no agent starts
	stop        *frame.Stopper       // stops the running turn or command
	line        *screen.StatusLine   // the status line of the running turn
	edit        *screen.Editor       // nil before the first prompt

	suspended chan struct{} // closed when the process continues; nil if the user did not stop it
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
		c.setBracketedPaste(false)
		return c.tty.Restore()
	})
	defer func() { _ = c.tty.Close() }() // A failed close of a terminal loses no data.
	if c.p, err = a.Locate(f.ConfigFlags()); err != nil {
		return frame.ExitUsage.With(err)
	}
	c.thoughts = f.Thoughts || c.p.Config.Chat.Thoughts
	c.ctx, c.cancel = context.WithCancelCause(cmd.Context())
	defer c.cancel(nil)
	for _, w := range c.p.Config.Warnings {
		c.printNote(w)
	}
	if w := c.p.Config.Withheld; len(w) > 0 {
		c.printNote("not trusted yet, left aside: " + strings.Join(w, "; ") + " (perlica config trust)")
	}
	if c.workers = c.newWorkers(); c.workers != nil {
		defer func() { _ = c.workers.link.Close() }() // Every write was synced, so a failed close loses no data.
	}
	if inTeam, err := f.Team.Meant(cmd, c.p); err != nil {
		return err
	} else if inTeam {
		return c.chatWithTeam()
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
	defer notify.Start(c.p, notify.Options{Version: a.Version, Terminal: a.Terminal()})()
	c.backlog = &backlog{c: c}
	release := c.handleSignals()
	defer release()
	return c.runChat()
}

// runChat opens the session and lets the person talk until the chat ends.
func (c *chat) runChat() error {
	recovered, err := c.r.Recover(c.ctx)
	if err != nil {
		return frame.ExitLog.With(frame.LogErrorBeforeSend(err))
	}
	for _, res := range recovered {
		c.printNote(frame.CutOff(res.Run))
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
	if err := c.enterSession(s, ""); err != nil {
		return frame.RefusalExitCode(err).With(err)
	}
	err = c.tty.Ahead(c.readLines)
	if cerr := c.leaveChat(); err == nil {
		err = cerr
	}
	return cmp.Or(c.stoppedBy(), err)
}

// enterSession begins a conversation in a session. An empty session means a new one with the named agent.
func (c *chat) enterSession(s sessions.Session, name string) (err error) {
	f := c.f.Flags
	if name != "" {
		f.Provider, f.Agent = name, ""
	}
	if s.Provider != "" && name != "" {
		f.Provider = "" // The record of the session names its provider.
	}
	choice, badDir := f.Choice()
	agent, adHoc := c.agent, c.f.Agent != "" && (name == "" || name == c.agent.ID)
	// If name is the agent that the chat uses already, the chat keeps this agent. The configuration may not contain
	// it, because --agent may have named its command.
	if agent.Why = ""; name == "" || name != agent.ID {
		if agent, err = f.ChooseAgent(c.ctx, c.p, c.r, choice, s); err != nil {
			return err
		}
	}
	if badDir != nil {
		return badDir
	}
	setup := c.p.Setup(choice, agent, s)
	setup.Limit = c.p.Mode() // Runs that the agent starts may have this mode, too, because a person can answer here.
	setup.Forms, setup.Notices = setup.Limit != policy.ModeDeny, true
	conv, err := c.r.Converse(c.ctx, setup, c.p.Config.Chat.Idle, "chat")
	if err != nil {
		return busyHint(err, s)
	}
	c.leaveConversation()
	conv.Lost(func(err error) {
		c.printNoteAbove(frame.OneLine(err.Error()) + "; your next line starts it again")
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
		Flows: flow.Teller(c.p, c.r),
	}
	c.host.Cancel = c.cancelTurn
	c.host.Schedules = schedule.Slash(c.r.Log(), func() (*project.Project, error) { return c.a.Locate(c.f.ConfigFlags()) },
		time.Now)
	if c.workers != nil {
		c.host.Team = c.workers
	}
	c.mu.Lock()
	c.promptModel, c.promptUsage, c.awaited = "", "", conv
	c.mu.Unlock()
	c.printGreeting(s, setup.Earlier)
	if s.Turns > 0 {
		c.showEarlier(&c.r.Log().Reader, s)
	}
	// The goroutine ends with the chat or when the agent has started.
	go func() { c.reportStart(conv, hint, conv.Await(c.ctx)) }()
	return c.backlog.openSession(c.ctx, c.session.ID)
}

// readLines reads and handles lines with the terminal in raw mode.
func (c *chat) readLines(keys *screen.Keys) (err error) {
	edit, err := c.newEditor(keys)
	if err != nil {
		return err
	}
	c.mu.Lock()
	c.edit = edit
	c.mu.Unlock()
	c.keys = &chatKeys{keys: keys, edit: edit}
	edit.Early(c.ctx)
	c.setBracketedPaste(true)
	defer c.setBracketedPaste(false)
	defer func() { err = errors.Join(err, edit.Close()) }()
	var watching sync.WaitGroup
	ctx, stopWatching := context.WithCancel(c.ctx)
	defer watching.Wait()
	defer stopWatching()
	watching.Go(func() { c.backlog.watchLog(ctx) })
	if c.workers != nil {
		watching.Go(func() { c.workers.watchQuestions(ctx) })
	}
	if first := c.f.First; first != "" {
		c.setHead(0, c.backlog.countWaiting())
		fmt.Fprintln(c.a.Stderr, c.promptText()+frame.OneLine(first))
		if leave := c.handleLine(first); leave || c.ctx.Err() != nil {
			return nil
		}
	}
	for interrupted := false; ; {
		if in, ok := c.backlog.nextInput(); ok && c.ctx.Err() == nil {
			c.sendQueued(in)
			continue
		}
		c.backlog.announceHeld()
		line, err := c.readLine(edit)
		switch {
		case errors.Is(err, errQueued):
			continue
		case errors.Is(err, screen.ErrInterrupted):
			if interrupted && line == "" {
				return nil
			}
			interrupted = c.handleInterrupt(line)
			continue
		case errors.Is(err, io.EOF), err != nil && c.ctx.Err() != nil:
			return nil
		case err != nil:
			return err
		}
		interrupted = false
		if strings.TrimSpace(line) == "" {
			c.backlog.confirmHeld()
			continue
		}
		if leave := c.handleLine(line); leave || c.ctx.Err() != nil {
			return nil
		}
	}
}

// readLine reads a line. It fails with errQueued if an input of another process must be sent first. In this case it
// keeps the typed text for the next line.
func (c *chat) readLine(edit *screen.Editor) (string, error) {
	ctx, cancel := context.WithCancelCause(c.ctx)
	defer cancel(nil)
	defer c.backlog.onArrival(func() { cancel(errQueued) })()
	c.setHead(len(c.attached), c.backlog.countWaiting())
	c.showOffers(c.conv)
	text := c.nextLine
	c.nextLine = ""
	line, err := edit.Line(ctx, c.promptText, text)
	if err != nil && errors.Is(context.Cause(ctx), errQueued) {
		c.nextLine = line
		return "", errQueued
	}
	return line, err
}

// handleInterrupt handles Ctrl-C at the prompt. It returns true if one more Ctrl-C leaves the chat.
func (c *chat) handleInterrupt(line string) bool {
	switch {
	case line != "":
		return false
	case len(c.attached) > 0:
		c.attached = nil
		c.printNote("nothing is attached any more")
		return false
	}
	c.printNote("Ctrl-C once more leaves; so do Ctrl-D and /exit")
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
		c.printNote("warning: closing the session: " + err.Error())
	}
	c.conv = nil
}

// leaveChat ends the chat and tells how to continue its session.
func (c *chat) leaveChat() error {
	if c.conv == nil {
		return nil // The session was discarded.
	}
	id := c.conv.Session()
	c.leaveConversation()
	if n := c.backlog.countWaiting(); n > 0 {
		c.printNote(frame.Count(n, "queued input") + " stay in this session, and wait for your Enter when you open it again")
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
		return nil // The session was discarded and cannot be found.
	}
	c.printNote(c.farewellText(s))
	return nil
}

// farewellText names a session and the command that continues it.
func (c *chat) farewellText(s sessions.Session) string {
	id, with := frame.ShortID(s.ID), ""
	if c.f.Agent != "" {
		with = " with the same --agent"
	}
	name := ""
	if s.Name != "" {
		name = " (" + frame.OneLine(s.Name) + ")"
	}
	return fmt.Sprintf("session %s%s: continue it with: perlica -s %s%s", id, name, id, with)
}
