// Package session has the commands that list, name, show and delete sessions.
package session

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/perlica/perlica/cmd/perlica/frame"
	"github.com/perlica/perlica/eventlog/store"
	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/kernel/filelock"
	"github.com/perlica/perlica/kernel/project"
	"github.com/perlica/perlica/kernel/sessions"
)

// app is one invocation of perlica. Its methods are the commands of this package.
type app struct{ *frame.App }

// Command returns the command session with its subcommands.
func Command(c *frame.App) *cobra.Command {
	a := &app{c}
	return frame.Group("session", "List, make and choose sessions",
		`A session is a conversation with one agent. 'perlica run -s REF' continues the session REF,
and 'perlica run -c' the session that was used last. REF is a session's name, its id, or a
unique beginning or end of the id. A run without -s and -c makes its own session; the list
shows such a session only with --all.`,
		a.sessionListCommand(), a.sessionNewCommand(), a.sessionUseCommand(), a.sessionCurrentCommand(),
		a.sessionShowCommand(), a.sessionRenameCommand(), a.sessionDeleteCommand(), a.sessionExportCommand())
}

// changingSession finds a session, opens the context for writing and calls f. If the context has no log, it makes
// none.
func (a *app) changingSession(ctx context.Context, ref string,
	f func(r *kernel.Runner, s sessions.Session) error) error {
	s, err := a.foundSession(ctx, ref)
	if err != nil {
		return err
	}
	return a.Writing(ctx, func(r *kernel.Runner, _ *project.Project) error { return f(r, s) })
}

func (a *app) foundSession(ctx context.Context, ref string) (s sessions.Session, err error) {
	err = a.ViewingSessions(ctx, func(view *sessions.View, _ *store.Reader) (err error) {
		s, err = view.Find(ctx, ref)
		return err
	})
	return s, err
}

func (a *app) sessionNewCommand() *cobra.Command {
	var provider string
	cmd := &cobra.Command{
		Use: "new [NAME]", Annotations: frame.PersonOnly.Annotation(),
		Short: "Make a session, select it, and print its id",
		Long: `Make a session, select it as the current one, and print its id. The session always uses the
same agent: the agent of --provider, or the default agent.`,
		Example: `  perlica session new
  perlica session new refactoring --provider claude
  id=$(perlica session new); perlica run -s "$id" "hello"`,
		Args: frame.Between(0, "NAME"), ValidArgsFunction: frame.NoFiles,
		RunE: func(cmd *cobra.Command, args []string) error {
			name := ""
			if len(args) > 0 {
				if name = args[0]; name == "" {
					return frame.UsageErrorf("a session's name cannot be empty")
				}
			}
			return a.Writing(cmd.Context(), func(r *kernel.Runner, p *project.Project) error {
				return a.sessionNew(cmd.Context(), r, p, name, provider)
			})
		},
	}
	cmd.Flags().StringVar(&provider, "provider", "",
		"use the agent with this `name` in the configuration or the registry")
	frame.CompleteFlag(cmd, "provider", a.CompleteProviders)
	return cmd
}

func (a *app) sessionNew(ctx context.Context, r *kernel.Runner, p *project.Project, name, provider string) error {
	agent, err := p.Resolver().Default()
	if provider != "" {
		agent, err = p.Resolver().Named(provider)
	}
	if err != nil {
		return frame.ExitUsage.With(err)
	}
	if agent.Why != "" {
		a.Note("it is " + agent.ID + "'s: " + agent.Why)
	}
	id, err := r.CreateSession(ctx, fact.SessionCreated{Name: name, Provider: agent.ID})
	if err != nil {
		return err
	}
	if err := r.SelectSession(ctx, id); err != nil {
		return err
	}
	return a.Say("%s", id)
}

func (a *app) sessionUseCommand() *cobra.Command {
	return &cobra.Command{
		Use: "use REF", Annotations: frame.PersonOnly.Annotation(),
		Short:   "Make a session the current one",
		Example: `  perlica session use refactoring`,
		Args:    frame.Exactly("REF"), ValidArgsFunction: frame.CompleteFirst(a.CompleteSessions),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.changingSession(cmd.Context(), args[0], func(r *kernel.Runner, s sessions.Session) error {
				if err := r.SelectSession(cmd.Context(), s.ID); err != nil {
					return err
				}
				return a.Say("the current session is %s", frame.DescribeSession(s))
			})
		},
	}
}

func (a *app) sessionCurrentCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "current", Annotations: frame.ReadOnly.Annotation(),
		Short: "Print the id of the current session",
		Long: `Print the id of the current session: 'perlica session new' or 'perlica session use' selected it
last. The exit code is 1 if no session is selected.`,
		Args: frame.Exactly(), ValidArgsFunction: frame.NoFiles,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.ViewingSessions(cmd.Context(), func(view *sessions.View, _ *store.Reader) error {
				s, err := current(cmd.Context(), view)
				if err != nil {
					return err
				}
				if asJSON {
					return a.PrintJSON(s)
				}
				return a.Say("%s", s.ID)
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the whole session as JSON")
	return cmd
}

func current(ctx context.Context, view *sessions.View) (sessions.Session, error) {
	s, err := view.Current(ctx)
	if errors.Is(err, sessions.ErrNoSession) {
		err = frame.WithHint(errors.New("no session is selected"),
			"'perlica session use REF' selects one, 'perlica session new' makes one")
	}
	return s, err
}

func (a *app) sessionRenameCommand() *cobra.Command {
	return &cobra.Command{
		Use: "rename REF NAME", Annotations: frame.PersonOnly.Annotation(),
		Short: "Give a session a name",
		Long: `Give a session a name. If a run made the session for itself, the list then shows the session
without --all, too.`,
		Example: `  perlica session rename 1a2b3c4d refactoring`,
		Args:    frame.Exactly("REF", "NAME"), ValidArgsFunction: frame.CompleteFirst(a.CompleteSessions),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.changingSession(cmd.Context(), args[0], func(r *kernel.Runner, s sessions.Session) error {
				if err := r.RenameSession(cmd.Context(), s.ID, args[1]); err != nil {
					return err
				}
				return a.Say("%s is called %s now", frame.SessionName(s, string(s.ID)), args[1])
			})
		},
	}
}

func (a *app) sessionDeleteCommand() *cobra.Command {
	var kept bool
	cmd := &cobra.Command{
		Use: "delete REF", Annotations: frame.PersonOnly.Annotation(),
		Aliases: []string{"rm"},
		Short:   "Take a session off the lists; the log keeps it",
		Long: `Remove a session from every list. Nobody can continue it. Its events stay on the log, and
'perlica log show ID' still shows them. A session with a running turn cannot be deleted.

With --from-agent, Perlica first starts the agent and asks it to delete its own data of the
session. The agent must support ACP's session/delete. The log records the request and the
answer. If the agent does not delete its data, the session stays on the lists.`,
		Example: `  perlica session delete 1a2b3c4d
  perlica session delete refactoring --from-agent`,
		Args: frame.Exactly("REF"), ValidArgsFunction: frame.CompleteFirst(a.CompleteSessions),
		RunE: func(cmd *cobra.Command, args []string) error { return a.sessionDelete(cmd.Context(), args[0], kept) },
	}
	cmd.Flags().BoolVar(&kept, "from-agent", false, "delete the agent's own data of the session, too")
	return cmd
}

func (a *app) sessionDelete(ctx context.Context, ref string, kept bool) error {
	s, err := a.foundSession(ctx, ref)
	if err != nil {
		return err
	}
	also := ""
	err = a.Writing(ctx, func(r *kernel.Runner, p *project.Project) error {
		if !kept {
			return r.DeleteSession(ctx, s.ID)
		}
		agent, err := p.Agent(project.Choice{}, s)
		if err != nil {
			return frame.ExitUsage.With(frame.WithHint(err,
				"without --from-agent it goes off the lists alone; nothing was deleted"))
		}
		n := 0
		err = frame.Interruptible(ctx, "the agent may have deleted the session", func(ctx context.Context) error {
			n, err = r.DeleteKept(ctx, p.Setup(project.Choice{}, agent, s))
			return err
		})
		also = fmt.Sprintf("; %s deleted %s of its own", agent.ID, frame.Count(n, "session"))
		switch {
		case err == nil, errors.Is(err, filelock.ErrBusy):
			return err
		case n > 0:
			err = fmt.Errorf("%w; %s of its own were deleted before", err, frame.Count(n, "session"))
		}
		return frame.WithHint(err, "without --from-agent the session goes off the lists alone; it is still on them")
	})
	if errors.Is(err, filelock.ErrBusy) {
		why := "a run is under way in it"
		if busy := (*filelock.BusyError)(nil); errors.As(err, &busy) && busy.By != "" {
			why = busy.Error()
		}
		return frame.WithHint(fmt.Errorf("%s is busy: %s", frame.SessionName(s, string(s.ID)), why),
			"wait for it, or stop it; nothing was deleted")
	}
	if err != nil {
		return err
	}
	return a.Say("deleted %s: it is off the lists; its %s on the log: perlica log show %s%s",
		frame.SessionName(s, string(s.ID)), turnsRemain(s.Turns), s.ID, also)
}

// turnsRemain returns a sentence about the number of turns that remain on the record.
func turnsRemain(turns int) string {
	if turns == 1 {
		return "1 turn stays"
	}
	return frame.Count(turns, "turn") + " stay"
}
