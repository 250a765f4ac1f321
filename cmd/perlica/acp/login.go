package acp

import (
	"errors"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/perlica/perlica/cmd/perlica/dialog"
	"github.com/perlica/perlica/cmd/perlica/frame"
	"github.com/perlica/perlica/cmd/perlica/screen"
	"github.com/perlica/perlica/kernel/login"
)

// Split separates the arguments of 'perlica acp' from the arguments of its agent. The agent's arguments begin with
// the first argument that is not a flag of the command. For example, it splits "acp --provider claude --cli" before
// --cli. If the command is not acp, no argument belongs to an agent.
func Split(root *cobra.Command, args []string) (own, agents []string) {
	cmd, _, err := root.Find(args)
	if err != nil || cmd.Name() != "acp" || cmd.Parent() != root {
		return args, nil
	}
	cmd.InitDefaultHelpFlag()
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	flags.AddFlagSet(cmd.Flags())
	flags.AddFlagSet(root.PersistentFlags())
	named := false // true after the name of the command
	for i := 0; i < len(args); i++ {
		name, _, whole := strings.Cut(strings.TrimPrefix(args[i], "--"), "=")
		f := flags.Lookup(name)
		switch {
		case args[i] == "--":
			return args, nil
		case args[i] == "-h", f != nil && strings.HasPrefix(args[i], "--") && (whole || f.NoOptDefVal != ""):
		case f != nil && strings.HasPrefix(args[i], "--"):
			i++
		case !named && args[i] == cmd.Name():
			named = true
		default:
			return args[:i], args[i:]
		}
	}
	return args, nil
}

// runLogin runs the agent's command in this terminal with the arguments that an editor has added.
func (a *app) runLogin(cmd *cobra.Command, f dialog.Flags, setup string) error {
	first := a.AgentArgs[0]
	switch {
	case setup != "", !strings.HasPrefix(first, "-") && f.Provider == "" && f.Agent == "":
		return frame.WithHint(frame.UsageErrorf("'%s' takes no argument %q", cmd.CommandPath(), first),
			"put the agent's command after --")
	case !screen.IsTerminal(a.Stdin):
		return frame.WithHint(frame.UsageErrorf(
			"'%s' has no flag %s. The arguments from there on belong to the agent's login, "+
				"which needs a terminal on standard input", cmd.CommandPath(), first),
			"see '%s --help'", cmd.CommandPath())
	}
	p, own, _, agent, err := a.prepareStart(f)
	if err != nil {
		return err
	}
	r, done, err := a.Open(cmd.Context(), own)
	if err != nil {
		return frame.ExitLog.With(err)
	}
	caught, stop := frame.CatchDuringChild()
	defer stop()
	code, err := login.InTerminal(cmd.Context(), r, login.Terminal{
		Agent: agent, Args: a.AgentArgs, Dir: p.Dir, Environ: a.Environ, Limit: string(p.Mode()), Signals: caught,
		Starts: func(command []string) { a.Note("this terminal is the agent's: " + strings.Join(command, " ")) },
	})
	if errors.Is(err, login.ErrRecord) {
		err = frame.ExitLog.With(frame.LogErrorBeforeSend(err))
	}
	if err == nil {
		err = frame.ProgramExit(code)
	}
	return errors.Join(err, done())
}
