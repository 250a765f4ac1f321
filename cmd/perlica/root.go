package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/perlica/perlica/cmd/perlica/acp"
	"github.com/perlica/perlica/cmd/perlica/chat"
	"github.com/perlica/perlica/cmd/perlica/cli"
	"github.com/perlica/perlica/cmd/perlica/config"
	"github.com/perlica/perlica/cmd/perlica/dialog"
	"github.com/perlica/perlica/cmd/perlica/doctor"
	"github.com/perlica/perlica/cmd/perlica/exitcode"
	"github.com/perlica/perlica/cmd/perlica/log"
	"github.com/perlica/perlica/cmd/perlica/pending"
	"github.com/perlica/perlica/cmd/perlica/policy"
	"github.com/perlica/perlica/cmd/perlica/provider"
	"github.com/perlica/perlica/cmd/perlica/run"
	"github.com/perlica/perlica/cmd/perlica/service"
	"github.com/perlica/perlica/cmd/perlica/session"
	"github.com/perlica/perlica/cmd/perlica/term"
	"github.com/perlica/perlica/cmd/perlica/watch"
	"github.com/perlica/perlica/cmd/perlica/web"
	"github.com/perlica/perlica/kernel/project"
	bridge "github.com/perlica/perlica/service"
)

// app is an invocation of the program.
type app struct{ *cli.App }

func newApp(version string) *app { return &app{cli.New(version)} }

// unknownCommand is what a first word that is no command leads to. It is never a prompt.
func unknownCommand(root *cobra.Command, word string) error {
	err := exitcode.Usagef("there is no command %q", word)
	if near := cli.NearestCommand(root, word); near != "" {
		return exitcode.WithHint(err, "did you mean 'perlica %s'?", near)
	}
	if strings.ContainsRune(word, ' ') {
		return exitcode.WithHint(err, "to send a text: perlica run %q", word)
	}
	return exitcode.WithHint(err, "to send a text: perlica run …; for the commands: perlica --help")
}

// main runs a command line and returns the exit code.
func (a *app) main(args []string) int {
	root := a.root(args)
	args, a.AgentArgs = acp.Split(root, args)
	root.SetArgs(args)
	err := root.ExecuteContext(context.Background())
	code, printed := exitcode.Of(err)
	if printed {
		a.Complain(err)
	}
	return code
}

// root is the tree of commands, as far as args need it.
func (a *app) root(args []string) *cobra.Command {
	var flags chat.Flags
	var serves bool
	root := &cobra.Command{
		Use: "perlica", Annotations: cli.Runs.On(),
		Short: "Talk to a coding agent, one call an input, on the record",
		Long: `Perlica stands between you and a coding agent that speaks the Agent Client
Protocol. One input makes at most one call; nothing is executed here, nothing is
retried, and every step is on an append-only log.`,
		SilenceErrors: true, SilenceUsage: true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			// cobra would look after this, with an error that is not known as one of usage.
			if err := cli.CheckExclusive(cmd); err != nil {
				return err
			}
			if err := cmd.ValidateFlagGroups(); err != nil {
				return exitcode.Usage.With(err)
			}
			return a.Gate(cmd)
		},
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return unknownCommand(cmd, args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case serves:
				if err := a.PersonOnly("the bridge"); err != nil {
					return err
				}
				return service.Serve(cmd.Context(), a.App)
			case a.Piped(): // the chat needs a terminal; what is piped in is one input
				return run.Run(a.App, cmd, dialog.Flags{Format: "text"}, nil)
			case term.IsTerminal(a.Stdin) && term.IsTerminal(a.Stderr):
				if err := a.PersonOnly("the chat"); err != nil {
					return err
				}
				return chat.Run(a.App, cmd, flags)
			}
			return cmd.Help()
		},
	}
	root.SetOut(a.Stdout)
	root.SetErr(a.Stderr)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return exitcode.WithHint(exitcode.Usage.With(err), "see '%s --help'", cmd.CommandPath())
	})
	root.PersistentFlags().StringVar(&a.ContextFlag, "context", "", "use another set of databases, by its `name`")
	root.Flags().BoolVar(&serves, "service", false, "run the messaging bridge in the foreground: the same as 'perlica service'")
	if len(args) > 0 && commands[args[0]] != nil { // the others, and completion, would be built for nothing
		root.CompletionOptions.DisableDefaultCmd = true
		root.AddCommand(commands[args[0]](a.App))
		return root
	}
	chat.AddFlags(a.App, root, &flags)
	for _, command := range commands {
		root.AddCommand(command(a.App)) // it sorts them
	}
	return root
}

// commands are the commands below the root.
var commands = map[string]func(*cli.App) *cobra.Command{
	"acp": acp.Command, "agent": agentCommand, "chat": chat.Command, "config": config.Command, "doctor": doctorCommand, "init": config.InitCommand,
	"log": log.Command, "pending": pending.Command, "phone": service.PhoneCommand, "policy": policy.Command, "provider": provider.Command,
	"run": run.Command, "service": serviceCommand, "session": session.Command, "version": versionCommand, "watch": watch.Command,
	"web": web.Command,
}

func serviceCommand(a *cli.App) *cobra.Command { return service.Command(a, log.TailCommand(a)) }

func doctorCommand(a *cli.App) *cobra.Command {
	return doctor.Command(a, func(p *project.Project) []bridge.Setup { return service.Setups(a, p) })
}
