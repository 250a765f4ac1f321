// Package acp is the command that stands between an editor and an agent. It opens a project for each session of the
// editor and prints the editor's configuration. The protocol itself belongs to service/acp.
package acp

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/perlica/perlica/cmd/perlica/dialog"
	"github.com/perlica/perlica/cmd/perlica/frame"
	"github.com/perlica/perlica/cmd/perlica/screen"
	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/kernel/agents"
	"github.com/perlica/perlica/kernel/project"
	"github.com/perlica/perlica/kernel/sessions"
	"github.com/perlica/perlica/service/acp"
	"github.com/perlica/perlica/service/notify"
)

// app is one invocation of perlica. Its method is the command of this package.
type app struct{ *frame.App }

// Command returns the command acp.
func Command(a *frame.App) *cobra.Command {
	var f dialog.Flags
	var setup string
	cmd := &cobra.Command{
		Use: "acp [-- COMMAND ARG…]", Annotations: frame.PersonOnly.Annotation(),
		Short: "Record and judge everything between an editor and its agent",
		Long: `An editor starts this command in place of its agent, and Perlica starts the agent. Perlica
passes on and records every line between them, byte for byte. Each prompt is an input that
makes at most one call. The policy judges the agent's questions. A person can answer them in
the editor, at another terminal ('perlica pending') or from a phone: the first answer counts.

Put this command into the editor's configuration in place of the agent's command; --setup
prints the text to paste. See docs/acp.md.

The first argument that is not one of these flags, and all arguments after it, belong to the
agent. Editors add such arguments for a login. Perlica then runs the agent's command with them
in this terminal, records it, and returns its exit code.

Exit codes: 0 the editor closed its side; 1 the agent ended; 2 usage or configuration;
7 the event log could not be written; 130, 143 a signal.`,
		Example: `  perlica acp --provider claude
  perlica acp -- my-agent --acp
  perlica acp --setup zed --provider claude
  perlica acp --provider claude --cli auth login`,
		RunE: func(cmd *cobra.Command, args []string) error {
			cmd.Flags().Visit(func(fl *pflag.Flag) {
				if fl.Value.Type() == "string" && fl.Value.String() == "" {
					f.Empty = fl.Name
				}
			})
			if err := f.Check(); err != nil {
				return err
			}
			if len(a.AgentArgs) > 0 {
				return (&app{a}).runLogin(cmd, f, setup)
			}
			if len(args) > 0 {
				if f.Provider != "" || f.Agent != "" {
					return frame.UsageErrorf("--provider, --agent and a command after -- exclude each other")
				}
				f.Agent = agents.CommandLine(args)
			}
			if setup != "" {
				return (&app{a}).printSetup(setup, f)
			}
			return (&app{a}).serveEditor(cmd.Context(), f)
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&f.Provider, "provider", "", "use the agent with this `name` in the configuration or the registry")
	fl.StringVar(&f.Agent, "agent", "", "use the ACP agent that this `command` starts: 'CMD ARG…'")
	fl.StringArrayVar(&f.Env, "env", nil, "pass this environment `variable` to the agent, too")
	fl.StringVar(&f.Mode, "mode", "", "the `id` of the agent's mode; \"none\" keeps the mode in which the agent starts")
	fl.StringVar(&f.Permissions, "permissions", "",
		"the `mode` for the agent's questions: ask, reads, deny or allow (default ask)")
	a.AddSandboxFlag(cmd)
	fl.StringVar(&setup, "setup", "", "print the lines for the configuration of this `editor`: "+
		strings.Join(editors(), ", "))
	cmd.MarkFlagsMutuallyExclusive("provider", "agent")
	return cmd
}

func (a *app) serveEditor(ctx context.Context, f dialog.Flags) error {
	if screen.IsTerminal(a.Stdin) && screen.IsTerminal(a.Stdout) {
		return frame.WithHint(frame.UsageErrorf(
			"this speaks a protocol with an editor, which starts it; there is nothing to type here"),
			"'perlica acp --setup EDITOR' prints the editor's configuration; 'perlica' talks to an agent in this terminal")
	}
	ctx, stop := frame.CatchSignals(ctx, 0)
	defer stop.Release()
	go func() { // The first signal ends the command, like the end of standard input.
		select {
		case why := <-stop.First:
			stop.End(&kernel.StoppedError{Stop: why})
		case <-ctx.Done():
		}
	}()
	p, own, choice, agent, err := a.prepareStart(f)
	if err != nil {
		return err
	}
	opened := &projects{app: a, choice: choice, flags: f, agent: agent, open: map[string]*acp.Place{}}
	home, err := opened.openLog(ctx, p, own)
	if err != nil {
		return frame.ExitLog.With(err)
	}
	err = acp.Serve(ctx, acp.Options{
		In: a.Stdin, Out: a.Stdout, Agent: agent, Dir: p.Dir, Environ: a.Environ, Version: a.Version, Limit: string(p.Mode()),
		Answers: acp.Answers(p.Config.Editor.Answers), Local: p.Config.Editor.ClientTools == "judge",
		Origin: a.Origin(), Home: home.Runner, Open: opened.openPlace,
		Log: func(format string, args ...any) {
			a.Note(screen.Sanitize(strings.TrimSpace(fmt.Sprintf(format, args...))))
		},
	})
	record, stopped := (*acp.RecordError)(nil), (*kernel.StoppedError)(nil)
	switch {
	case errors.As(err, &record):
		err = frame.LogErrorBeforeSend(err)
	case errors.As(err, &stopped):
		err = frame.StopExitCode(stopped.Stop).With(nil)
	}
	return errors.Join(err, opened.closeAll())
}

// prepareStart finds the project of the working directory, the user's own log and the agent.
func (a *app) prepareStart(f dialog.Flags) (here, own *project.Project, choice project.Choice, agent agents.Agent,
	err error) {
	here, warning, err := a.LocateLimited(f.ConfigFlags())
	if err != nil {
		return nil, nil, choice, agent, frame.ExitUsage.With(err)
	}
	if warning != "" {
		a.Note("warning: " + warning)
	}
	if text := f.NotSet(a.Environ); text != "" {
		a.Note(text)
	}
	if choice, err = f.Choice(); err != nil {
		return nil, nil, choice, agent, err
	}
	if agent, err = here.Agent(choice, sessions.Session{}); err == nil {
		if agent.Why != "" {
			a.Note("using " + agent.ID + ": " + agent.Why)
		}
		own, err = project.User(here.Dir, a.Environ, f.ConfigFlags())
	}
	if err != nil {
		err = frame.ExitUsage.With(err)
	}
	return here, own, choice, agent, err
}

// projects has the open projects of the editor's sessions.
type projects struct {
	app    *app
	choice project.Choice
	flags  dialog.Flags
	agent  agents.Agent

	mu    sync.Mutex
	open  map[string]*acp.Place // by the folder of the log
	done  []func() error
	first *project.Project // the user's own project
}

// openPlace opens the project of a directory.
func (s *projects) openPlace(ctx context.Context, dir string) (*acp.Place, error) {
	if !filepath.IsAbs(dir) {
		return nil, fmt.Errorf("the session's cwd is no absolute path: %q", dir)
	}
	p, err := s.app.FindProject(dir, s.flags.ConfigFlags())
	if err != nil {
		return nil, err
	}
	if !p.Workspace.Exists && isTop(p.Workspace.Root, p.Dirs.Home) {
		return s.openLog(ctx, p, s.first)
	}
	return s.openLog(ctx, p, p)
}

// isTop reports whether a folder is the root or the home directory, because Perlica makes no project in them.
func isTop(dir, home string) bool {
	if dir == filepath.Dir(dir) {
		return true
	}
	a, err := os.Stat(dir)
	b, herr := os.Stat(home)
	return err == nil && herr == nil && os.SameFile(a, b)
}

// openLog opens the log for the sessions in project p, unless this log is open already. The parameter "log" is the
// project with this log: p itself, or the user's own project if Perlica makes no project in p's folder.
func (s *projects) openLog(ctx context.Context, p, log *project.Project) (*acp.Place, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.first == nil {
		s.first = log
	}
	key := log.Workspace.Dir()
	if place := s.open[key]; place != nil {
		return place, nil
	}
	r, done, err := s.app.Open(ctx, log)
	if err != nil {
		return nil, err
	}
	stop := notify.Start(log, notify.Options{Version: s.app.Version, Terminal: s.app.Terminal()})
	s.done = append(s.done, func() error { stop(); return done() })
	place := &acp.Place{Runner: r, Setup: func(dir string) kernel.Setup {
		c := s.choice
		c.Dir = dir
		if c.Mode == "" && p.Config.Editor.Mode == "leave" {
			c.Mode = agents.ModeNone
		}
		return p.Setup(c, s.agent, sessions.Session{})
	}}
	place.Turn.Permissions, place.Turn.AnswerIn = p.Answering(true, 0)
	s.open[key] = place
	return place, nil
}

func (s *projects) closeAll() (err error) {
	for _, done := range s.done {
		err = errors.Join(err, done())
	}
	return err
}
