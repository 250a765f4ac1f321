package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/perlica/perlica/cmd/perlica/term"
)

// unknownCommand is what a first word that is no command leads to. It is never a prompt.
func unknownCommand(root *cobra.Command, word string) error {
	err := usageErr("there is no command %q", word)
	if near := nearestCommand(root, word); near != "" {
		return withHint(err, "did you mean 'perlica %s'?", near)
	}
	if strings.ContainsRune(word, ' ') {
		return withHint(err, "to send a text: perlica run %q", word)
	}
	return withHint(err, "to send a text: perlica run …; for the commands: perlica --help")
}

// main runs a command line and returns the exit code.
func (a *app) main(args []string) int {
	root := a.root(args)
	root.SetArgs(args)
	err := root.ExecuteContext(context.Background())
	code, printed := codeOf(err)
	if printed {
		a.complain(err)
	}
	return code
}

// root is the tree of commands, as far as args need it.
func (a *app) root(args []string) *cobra.Command {
	var chat chatFlags
	root := &cobra.Command{
		Use: "perlica", Annotations: runs.on(),
		Short: "Talk to a coding agent, one call an input, on the record",
		Long: `Perlica stands between you and a coding agent that speaks the Agent Client
Protocol. One input makes at most one call; nothing is executed here, nothing is
retried, and every step is on an append-only log.`,
		SilenceErrors: true, SilenceUsage: true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			// cobra would look after this, with an error that is not known as one of usage.
			if err := checkExclusive(cmd); err != nil {
				return err
			}
			if err := cmd.ValidateFlagGroups(); err != nil {
				return exitUsage.with(err)
			}
			return a.gate(cmd)
		},
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return unknownCommand(cmd, args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case a.serviceFlag:
				if err := a.personOnly("the bridge"); err != nil {
					return err
				}
				return a.serve(cmd.Context())
			case a.piped(): // the chat needs a terminal; what is piped in is one input
				return a.run(cmd, runFlags{format: "text"}, nil)
			case term.IsTerminal(a.stdin) && term.IsTerminal(a.stderr):
				if err := a.personOnly("the chat"); err != nil {
					return err
				}
				return a.chat(cmd, chat)
			}
			return cmd.Help()
		},
	}
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return withHint(exitUsage.with(err), "see '%s --help'", cmd.CommandPath())
	})
	root.PersistentFlags().StringVar(&a.contextFlag, "context", "", "use another set of databases, by its `name`")
	root.Flags().BoolVar(&a.serviceFlag, "service", false, "run the messaging bridge in the foreground: the same as 'perlica service'")
	commands := map[string]func() *cobra.Command{
		"agent": a.agentCommand, "chat": a.chatCommand, "config": a.configCommand, "doctor": func() *cobra.Command { return a.doctorCommand(a.setups) }, "init": a.initCommand,
		"log": a.logCommand, "pending": a.pendingCommand, "phone": a.phoneCommand, "policy": a.policyCommand, "provider": a.providerCommand,
		"run": a.runCommand, "service": func() *cobra.Command { return a.serviceCommand(a.logTailCommand()) }, "session": a.sessionCommand, "version": a.versionCommand, "watch": a.watchCommand,
	}
	if len(args) > 0 && commands[args[0]] != nil { // the others would be built for nothing
		root.AddCommand(commands[args[0]]())
		return root
	}
	a.addChatFlags(root, &chat)
	for _, command := range commands {
		root.AddCommand(command()) // it sorts them
	}
	return root
}
