package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/perlica/perlica/cmd/perlica/term"
	"github.com/perlica/perlica/eventlog"
	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/kernel/filelock"
	"github.com/perlica/perlica/kernel/project"
	"github.com/perlica/perlica/kernel/sessions"
)

func (a *app) sessionCommand() *cobra.Command {
	return group("session", "List, make and choose sessions",
		`A session is a conversation with one provider: 'perlica run -s REF' and -c continue
one. REF is a session's name, its id, or a unique beginning or end of the id. Every run
without -s or -c makes a session of its own, which is listed with --all only.`,
		a.sessionListCommand(), a.sessionNewCommand(), a.sessionUseCommand(), a.sessionCurrentCommand(),
		a.sessionShowCommand(), a.sessionRenameCommand(), a.sessionDeleteCommand(), a.sessionExportCommand())
}

// completeSessions gives shells the sessions that are listed.
func (a *app) completeSessions(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	var names []string
	err := a.viewingSessions(cmd.Context(), func(view *sessions.View, _ *eventlog.Reader) error {
		list, err := view.List(cmd.Context(), false)
		for _, s := range list {
			names = append(names, sessionName(s, string(s.ID))+"\t"+oneLine(s.Title))
		}
		return err
	})
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return names, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
}

// sessionName is a session's name, or else the given part of its id.
func sessionName(s sessions.Session, id string) string {
	if s.Name != "" {
		return s.Name
	}
	return id
}

// viewingSessions calls f with the view of the context's sessions and its log, both open
// for reading.
func (a *app) viewingSessions(ctx context.Context, f func(view *sessions.View, log *eventlog.Reader) error) error {
	return a.reading(ctx, func(log *eventlog.Reader, p *project.Project) (err error) {
		paths, err := p.Workspace.Context(p.Config.ContextID)
		if err != nil {
			return err
		}
		view, remove, err := openView(paths.Sessions, func(path string) (*sessions.View, error) {
			return sessions.Open(ctx, log, path)
		})
		if err != nil {
			return err
		}
		defer remove()
		defer func() { err = errors.Join(err, view.Close()) }()
		return f(view, log)
	})
}

// changingSession finds a session and calls f with the context open for writing. A
// context without a log is not made for that.
func (a *app) changingSession(ctx context.Context, ref string, f func(r *kernel.Runner, s sessions.Session) error) error {
	var s sessions.Session
	err := a.viewingSessions(ctx, func(view *sessions.View, _ *eventlog.Reader) (err error) {
		s, err = view.Find(ctx, ref)
		return err
	})
	if err != nil {
		return err
	}
	return a.writing(ctx, func(r *kernel.Runner, _ *project.Project) error { return f(r, s) })
}

// writing calls f with the context open for writing.
func (a *app) writing(ctx context.Context, f func(r *kernel.Runner, p *project.Project) error) error {
	p, err := a.locate(nil)
	if err != nil {
		return err
	}
	r, done, err := a.open(ctx, p)
	if err != nil {
		return err
	}
	return errors.Join(f(r, p), done())
}

func (a *app) sessionListCommand() *cobra.Command {
	var all, asJSON bool
	cmd := &cobra.Command{
		Use: "list", Annotations: reads.on(),
		Aliases: []string{"ls"},
		Short:   "List the sessions, the last used first",
		Long: `List the sessions, the last used first. A star marks the current one. Sessions that
a run made for itself are listed with --all.`,
		Example: `  perlica session list
  perlica session list --all --json | jq -r '.[].id'`,
		Args: exactly(), ValidArgsFunction: noFiles,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var list []sessions.Session
			err := a.viewingSessions(cmd.Context(), func(view *sessions.View, _ *eventlog.Reader) (err error) {
				list, err = view.List(cmd.Context(), all)
				return err
			})
			if err := a.orNone(err); err != nil {
				return err
			}
			if asJSON {
				return a.printJSON(append([]sessions.Session{}, list...))
			}
			return a.printSessions(list, all)
		},
	}
	cmd.Flags().BoolVarP(&all, "all", "a", false, "also those that a run made for itself")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON array")
	return cmd
}

func (a *app) printSessions(list []sessions.Session, all bool) error {
	if len(list) == 0 {
		hint := "perlica session new NAME makes one"
		if !all {
			hint += "; --all lists those that runs made for themselves"
		}
		a.note("there is no session; " + hint)
		return nil
	}
	now := time.Now()
	g := grid{head: []string{" ", "SESSION", "PROVIDER", "TURNS", "LAST USED", "TITLE"}}
	for _, s := range list {
		mark := " "
		if s.Current {
			mark = "*"
		}
		g.add(mark, sessionName(s, short(s.ID)), s.Provider, strconv.Itoa(s.Turns), ago(s.Used, now), s.Title)
	}
	return a.write(func(w io.Writer) error { return g.write(w, a.styles(a.stdout), term.Width(a.stdout)) })
}

func (a *app) sessionNewCommand() *cobra.Command {
	var provider string
	cmd := &cobra.Command{
		Use: "new [NAME]", Annotations: acts.on(),
		Short: "Make a session, select it, and print its id",
		Long: `Make a session and make it the current one. It stays with its provider: the one that
--provider names, else the default one. Its id is printed.`,
		Example: `  perlica session new
  perlica session new refactoring --provider claude
  id=$(perlica session new); perlica run -s "$id" "hello"`,
		Args: between(0, "NAME"), ValidArgsFunction: noFiles,
		RunE: func(cmd *cobra.Command, args []string) error {
			name := ""
			if len(args) > 0 {
				if name = args[0]; name == "" {
					return usageErr("a session's name cannot be empty")
				}
			}
			return a.writing(cmd.Context(), func(r *kernel.Runner, p *project.Project) error {
				return a.sessionNew(cmd.Context(), r, p, name, provider)
			})
		},
	}
	cmd.Flags().StringVar(&provider, "provider", "", "the agent's `name` in the configuration or the registry")
	completeFlag(cmd, "provider", a.completeProviders)
	return cmd
}

func (a *app) sessionNew(ctx context.Context, r *kernel.Runner, p *project.Project, name, provider string) error {
	agent, err := p.Resolver().Default()
	if provider != "" {
		agent, err = p.Resolver().Named(provider)
	}
	if err != nil {
		return &exitError{2, err}
	}
	if agent.Why != "" {
		a.note("it is " + agent.ID + "'s: " + agent.Why)
	}
	id, err := r.CreateSession(ctx, fact.SessionCreated{Name: name, Provider: agent.ID})
	if err != nil {
		return err
	}
	if err := r.SelectSession(ctx, id); err != nil {
		return err
	}
	return a.say("%s", id)
}

func (a *app) sessionUseCommand() *cobra.Command {
	return &cobra.Command{
		Use: "use REF", Annotations: acts.on(),
		Short:   "Make a session the current one",
		Example: `  perlica session use refactoring`,
		Args:    exactly("REF"), ValidArgsFunction: completeFirst(a.completeSessions),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.changingSession(cmd.Context(), args[0], func(r *kernel.Runner, s sessions.Session) error {
				if err := r.SelectSession(cmd.Context(), s.ID); err != nil {
					return err
				}
				return a.say("the current session is %s", describeSession(s))
			})
		},
	}
}

// describeSession names a session so that it can be told from others.
func describeSession(s sessions.Session) string {
	if s.Name == "" {
		return string(s.ID)
	}
	return fmt.Sprintf("%s (%s)", s.Name, s.ID)
}

func (a *app) sessionCurrentCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "current", Annotations: reads.on(),
		Short: "Print the id of the current session",
		Long: `Print the id of the session that 'session new' or 'session use' selected last. Exit
code 1 if there is none.`,
		Args: exactly(), ValidArgsFunction: noFiles,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.viewingSessions(cmd.Context(), func(view *sessions.View, _ *eventlog.Reader) error {
				s, err := current(cmd.Context(), view)
				if err != nil {
					return err
				}
				if asJSON {
					return a.printJSON(s)
				}
				return a.say("%s", s.ID)
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the whole session as JSON")
	return cmd
}

func current(ctx context.Context, view *sessions.View) (sessions.Session, error) {
	s, err := view.Current(ctx)
	if errors.Is(err, sessions.ErrNoSession) {
		err = withHint(errors.New("no session is selected"), "'perlica session use REF' selects one, 'perlica session new' makes one")
	}
	return s, err
}

func (a *app) sessionRenameCommand() *cobra.Command {
	return &cobra.Command{
		Use: "rename REF NAME", Annotations: acts.on(),
		Short: "Give a session a name",
		Long: `Give a session a name. One that a run made for itself is thereby kept: it is listed
without --all from then on.`,
		Example: `  perlica session rename 1a2b3c4d refactoring`,
		Args:    exactly("REF", "NAME"), ValidArgsFunction: completeFirst(a.completeSessions),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.changingSession(cmd.Context(), args[0], func(r *kernel.Runner, s sessions.Session) error {
				if err := r.RenameSession(cmd.Context(), s.ID, args[1]); err != nil {
					return err
				}
				return a.say("%s is called %s now", sessionName(s, string(s.ID)), args[1])
			})
		},
	}
}

func (a *app) sessionDeleteCommand() *cobra.Command {
	return &cobra.Command{
		Use: "delete REF", Annotations: acts.on(),
		Aliases: []string{"rm"},
		Short:   "Take a session off the lists; the log keeps it",
		Long: `Take a session off every list. It cannot be continued any more; what happened in it
stays on the log, and 'perlica log show ID' still shows it. A session in which a run is
under way is not deleted.`,
		Args: exactly("REF"), ValidArgsFunction: completeFirst(a.completeSessions),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.changingSession(cmd.Context(), args[0], func(r *kernel.Runner, s sessions.Session) error {
				err := r.DeleteSession(cmd.Context(), s.ID)
				if errors.Is(err, filelock.ErrBusy) {
					why := "a run is under way in it"
					if busy := (*filelock.BusyError)(nil); errors.As(err, &busy) && busy.By != "" {
						why = busy.Error()
					}
					return withHint(fmt.Errorf("%s is busy: %s", sessionName(s, string(s.ID)), why),
						"wait for it, or stop it; nothing was deleted")
				}
				if err != nil {
					return err
				}
				return a.say("deleted %s: it is off the lists; its %s on the log: perlica log show %s",
					sessionName(s, string(s.ID)), stay(s.Turns), s.ID)
			})
		},
	}
}

// stay says that so many turns remain.
func stay(turns int) string {
	if turns == 1 {
		return "1 turn stays"
	}
	return count(turns, "turn") + " stay"
}
