package provider

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/coder/acp-go-sdk"
	"github.com/spf13/cobra"

	"github.com/perlica/perlica/cmd/perlica/frame"
	"github.com/perlica/perlica/cmd/perlica/screen"
	"github.com/perlica/perlica/eventlog/redact"
	"github.com/perlica/perlica/kernel/agents"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/kernel/login"
	"github.com/perlica/perlica/kernel/project"
	"github.com/perlica/perlica/provider"
)

func (a *app) providerLoginCommand() *cobra.Command {
	var env []string
	cmd := &cobra.Command{
		Use: "login NAME [LOGIN]", Annotations: frame.PersonOnly.Annotation(),
		Short: "Log in to an agent by one of the ways that it offers",
		Long: `Start an agent, ask it for its ways to log in, and use one of them. LOGIN is the id of this
way; you may leave it out if there is only one. No prompt is sent.

Some agents open a page in the browser. Other agents log in with a program of their own in
this terminal: Perlica shows its whole command line and runs it after you have confirmed it. If
an agent needs an environment variable, Perlica explains it.

Your own log ('perlica log tail --user') records the start and the end of a login, and not
the typed or shown text. The exit code is that of the agent's program, or 1.`,
		Example: `  perlica provider login claude
  perlica provider login codex chatgpt`,
		Args:              frame.Between(1, "NAME", "LOGIN"),
		ValidArgsFunction: frame.CompleteFirst(a.CompleteProviders),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withVisit(cmd.Context(), args[0], env,
				func(v *visit) error { return v.logIn(cmd.Context(), strings.Join(args[1:], "")) })
		},
	}
	cmd.Flags().StringArrayVar(&env, "env", nil, "pass this environment `variable` to the agent, too")
	return cmd
}

func (a *app) providerLogoutCommand() *cobra.Command {
	var env []string
	cmd := &cobra.Command{
		Use: "logout NAME", Annotations: frame.PersonOnly.Annotation(),
		Short: "Let an agent end its login",
		Long: `Start an agent and ask it to end its present login. Not every agent supports this. Your own
log records the request and its result.`,
		Example:           `  perlica provider logout codex`,
		Args:              frame.Exactly("NAME"),
		ValidArgsFunction: frame.CompleteFirst(a.CompleteProviders),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withVisit(cmd.Context(), args[0], env, func(v *visit) error { return v.logOut(cmd.Context()) })
		},
	}
	cmd.Flags().StringArrayVar(&env, "env", nil, "pass this environment `variable` to the agent, too")
	return cmd
}

// visit is a connection to an agent on which no prompt is sent.
type visit struct {
	*app
	project *project.Project
	own     *project.Project // the user's own project; its log records logins
	agent   agents.Agent
	options agents.ProbeOptions
}

// withVisit finds the named agent and calls the function "do".
func (a *app) withVisit(ctx context.Context, name string, env []string, do func(*visit) error) error {
	v, err := a.findVisit(testFlags{env: env}, name)
	if err != nil {
		return err
	}
	if v.agent.Model || v.agent.ID == agents.Predictable {
		return frame.ExitFailure.With(frame.WithHint(fmt.Errorf("%s has no login", v.agent.ID),
			"see 'perlica provider show %s'", v.agent.ID))
	}
	if v.own, err = project.User(v.project.Dir, a.Environ, nil); err != nil {
		return frame.ExitUsage.With(err)
	}
	v.options.TerminalLogins = true
	return do(v)
}

// findVisit finds the agent that the command connects to.
func (a *app) findVisit(f testFlags, name string) (*visit, error) {
	p, err := a.locateValid()
	if err != nil {
		return nil, err
	}
	agent, err := a.testedAgent(p, f, name)
	if err != nil {
		return nil, err
	}
	redactor, err := p.Redactor()
	if err != nil {
		return nil, err
	}
	return &visit{app: a, project: p, agent: agent, options: agents.ProbeOptions{
		Dir: p.Dir, Environ: a.Environ, Version: a.Version, Redactor: redactor,
	}}, nil
}

// callRunning starts the agent, calls the function "do" and ends the agent. Ctrl-C ends the agent at once.
func (v *visit) callRunning(ctx context.Context,
	do func(context.Context, *provider.Conn, acp.InitializeResponse) error) error {
	return frame.Interruptible(ctx, "the agent was ended; it may have completed the request",
		func(ctx context.Context) error {
			var refused error // the error of do, if the agent did not cause it
			r := agents.Visit(ctx, v.agent, v.options,
				func(ctx context.Context, c *provider.Conn, info acp.InitializeResponse) error {
					err := do(ctx, c, info)
					if e := (*provider.Error)(nil); !errors.As(err, &e) {
						refused = err
					}
					return err
				})
			switch {
			case refused != nil:
				return refused
			case ctx.Err() != nil:
				return ctx.Err()
			case r.Err == nil:
				return nil
			}
			if r.Stderr != "" {
				fmt.Fprintln(v.Stderr, v.Styles(v.Stderr).Dim("standard error")+"\n"+indentedTail(r.Stderr))
			}
			if r.Err.Type == provider.TypeTimeout {
				return frame.ExitFailure.With(frame.WithHint(r.Err, "%s", frame.TimeoutHint(v.agent.ID, false)))
			}
			return frame.ExitFailure.With(r.Err)
		})
}

// recordLogin calls the function "do", which logs in or out, and records it on the user's own log.
func (v *visit) recordLogin(ctx context.Context, what fact.Login, do func() error) error {
	r, done, err := v.Open(ctx, v.own)
	if err != nil {
		return frame.ExitLog.With(err)
	}
	what.Provider, what.Command, what.Cwd = v.agent.ID, v.agent.Command, v.project.Dir
	return errors.Join(loginLogError(login.ByAgent(ctx, r, what, do)), done())
}

// loginLogError adds an exit code to an error if the log caused it.
func loginLogError(err error) error {
	if errors.Is(err, login.ErrRecord) {
		return frame.ExitLog.With(frame.LogErrorBeforeSend(err))
	}
	return err
}

func (v *visit) logOut(ctx context.Context) error {
	err := v.callRunning(ctx, func(ctx context.Context, c *provider.Conn, info acp.InitializeResponse) error {
		if info.AgentCapabilities.Auth.Logout == nil {
			return frame.ExitFailure.With(frame.WithHint(fmt.Errorf("%s offers no logout", v.agent.ID),
				"use the agent's own command: see 'perlica provider show %s'", v.agent.ID))
		}
		return v.recordLogin(ctx, fact.Login{Method: acp.AgentMethodLogout}, func() error { return c.Logout(ctx) })
	})
	if err != nil {
		return err
	}
	return v.Say("%s says that it is logged out.", v.agent.ID)
}

func (v *visit) logIn(ctx context.Context, id string) error {
	var chosen acp.AuthMethod
	err := v.callRunning(ctx, func(ctx context.Context, c *provider.Conn, info acp.InitializeResponse) (err error) {
		if chosen, err = v.chooseLogin(info.AuthMethods, id); err != nil || chosen.Agent == nil {
			return err
		}
		v.Note(fmt.Sprintf("%s logs in by itself: %s; it may open a browser, and Ctrl-C ends it", v.agent.ID,
			frame.OneLine(chosen.Agent.Name)))
		what := fact.Login{Method: acp.AgentMethodAuthenticate, Login: chosen.Agent.Id}
		return v.recordLogin(ctx, what, func() error { return c.Authenticate(ctx, chosen.Agent.Id) })
	})
	switch {
	case err != nil:
		return err
	case chosen.EnvVar != nil:
		return v.explainVariables(chosen.EnvVar)
	case chosen.Terminal != nil:
		return v.runTerminalLogin(ctx, chosen.Terminal)
	}
	return v.Say("%s says that it is logged in.", v.agent.ID)
}

// chooseLogin returns the login method with the given id. If id is empty, it returns the only method. If there are
// several methods, it lists them and fails.
func (v *visit) chooseLogin(list []acp.AuthMethod, id string) (acp.AuthMethod, error) {
	var rows []row
	for _, m := range list {
		own, name := loginOf(m)
		if own == id || id == "" && len(list) == 1 {
			return m, nil
		}
		rows = append(rows, row{frame.OneLine(own), frame.OneLine(name)})
	}
	if len(list) == 0 {
		return acp.AuthMethod{}, frame.ExitFailure.With(frame.WithHint(fmt.Errorf("%s offers no login", v.agent.ID), "%s",
			frame.LoginHint(v.agent.ID, false, v.agent.HeldBack(v.Environ, nil))))
	}
	if err := v.Write(func(w io.Writer) error { return writeRows(w, v.Styles(v.Stdout), rows) }); err != nil {
		return acp.AuthMethod{}, err
	}
	if id == "" {
		return acp.AuthMethod{}, frame.WithHint(frame.UsageErrorf("%s offers %d logins, which are above", v.agent.ID,
			len(list)), "name one: 'perlica provider login %s %s'", v.agent.ID, rows[0].name)
	}
	return acp.AuthMethod{}, frame.UsageErrorf("%s offers no login %q; those that it offers are above", v.agent.ID, id)
}

// loginOf returns the id of a login method. The result "name" is the method's name, followed by the values that the
// method needs.
func loginOf(m acp.AuthMethod) (id, name string) {
	switch {
	case m.Terminal != nil:
		return m.Terminal.Id, m.Terminal.Name + " (in this terminal)"
	case m.EnvVar != nil:
		return m.EnvVar.Id, m.EnvVar.Name + " (a variable of the environment)"
	case m.Agent != nil:
		return m.Agent.Id, m.Agent.Name
	}
	return "", ""
}

// explainVariables explains a login method that needs only environment variables to be set.
func (v *visit) explainVariables(m *acp.AuthMethodEnvVarInline) error {
	var names []string
	for _, one := range m.Vars {
		names = append(names, frame.OneLine(one.Name))
	}
	hint := fmt.Sprintf("set it, and hand it to the agent by '--env %s' or providers.%s.adapter.env_allowlist",
		strings.Join(names, " --env "), v.agent.ID)
	if m.Link != nil {
		hint += "; it is had at " + frame.OneLine(*m.Link)
	}
	return frame.ExitFailure.With(frame.WithHint(fmt.Errorf("this login of %s is the environment's %s", v.agent.ID,
		strings.Join(names, ", ")), "%s", hint))
}

// runTerminalLogin runs the agent's program in this terminal with the arguments of the login method.
func (v *visit) runTerminalLogin(ctx context.Context, m *acp.AuthMethodTerminalInline) error {
	if !screen.IsTerminal(v.Stdin) || !screen.IsTerminal(v.Stderr) {
		return frame.UsageErrorf("this login of %s takes a terminal", v.agent.ID)
	}
	env, err := environOf(m.Env)
	if err != nil {
		return frame.ExitFailure.With(err)
	}
	var shown strings.Builder
	for _, kv := range redact.Args(env) {
		name, value, _ := strings.Cut(kv, "=")
		shown.WriteString(name + "=" + agents.CommandLine([]string{value}) + " ")
	}
	shown.WriteString(agents.CommandLine(redact.Args(slices.Concat(v.agent.Command, m.Args))))
	if err := v.Say("%s", screen.Sanitize(shown.String())); err != nil {
		return err
	}
	if yes, err := v.Confirm(ctx, "Run this command of the agent's in this terminal?"); err != nil || !yes {
		return err
	}
	r, done, err := v.Open(ctx, v.own)
	if err != nil {
		return frame.ExitLog.With(err)
	}
	caught, stop := frame.CatchDuringChild()
	defer stop()
	code, err := login.InTerminal(ctx, r, login.Terminal{
		Agent: v.agent, Args: m.Args, Env: env, Dir: v.project.Dir, Environ: v.Environ, Limit: string(
			v.project.Mode()), Signals: caught,
		Starts: func([]string) {},
	})
	if err = loginLogError(err); err == nil {
		err = frame.ProgramExit(code)
	}
	return errors.Join(err, done())
}

// environOf returns the variables of a login method as NAME=value.
func environOf(set map[string]any) (env []string, err error) {
	for _, name := range slices.Sorted(maps.Keys(set)) {
		value, ok := set[name].(string)
		if !ok || name == "" || strings.ContainsAny(name, "=\x00") || strings.Contains(value, "\x00") {
			return nil, fmt.Errorf("the agent wants a variable %q set to what is no text: %v", name, set[name])
		}
		env = append(env, name+"="+value)
	}
	return env, nil
}
