package main

import (
	"context"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/perlica/perlica/cmd/perlica/acp"
	"github.com/perlica/perlica/cmd/perlica/budget"
	"github.com/perlica/perlica/cmd/perlica/chat"
	"github.com/perlica/perlica/cmd/perlica/config"
	"github.com/perlica/perlica/cmd/perlica/demo"
	"github.com/perlica/perlica/cmd/perlica/doctor"
	"github.com/perlica/perlica/cmd/perlica/export"
	"github.com/perlica/perlica/cmd/perlica/flow"
	"github.com/perlica/perlica/cmd/perlica/frame"
	"github.com/perlica/perlica/cmd/perlica/hook"
	"github.com/perlica/perlica/cmd/perlica/log"
	"github.com/perlica/perlica/cmd/perlica/notify"
	"github.com/perlica/perlica/cmd/perlica/origin"
	"github.com/perlica/perlica/cmd/perlica/pending"
	"github.com/perlica/perlica/cmd/perlica/policy"
	"github.com/perlica/perlica/cmd/perlica/provider"
	"github.com/perlica/perlica/cmd/perlica/run"
	"github.com/perlica/perlica/cmd/perlica/sandbox"
	"github.com/perlica/perlica/cmd/perlica/schedule"
	"github.com/perlica/perlica/cmd/perlica/screen"
	"github.com/perlica/perlica/cmd/perlica/service"
	"github.com/perlica/perlica/cmd/perlica/session"
	"github.com/perlica/perlica/cmd/perlica/team"
	"github.com/perlica/perlica/cmd/perlica/watch"
	"github.com/perlica/perlica/cmd/perlica/web"
	"github.com/perlica/perlica/kernel/project"
	bridge "github.com/perlica/perlica/service"
)

// app is an invocation of the program.
type app struct{ *frame.App }

func newApp(version string) *app { return &app{frame.NewApp(version)} }

// unknownCommand returns the error for a first word that is not a command. Perlica never sends such a word as a
// prompt.
func unknownCommand(root *cobra.Command, word string) error {
	err := frame.UsageErrorf("there is no command %q", word)
	if near := frame.NearestCommand(root, word); near != "" {
		return frame.WithHint(err, "did you mean 'perlica %s'?", near)
	}
	if strings.ContainsRune(word, ' ') {
		return frame.WithHint(err, "to send a text: perlica run %q", word)
	}
	return frame.WithHint(err, "to send a text: perlica run …; for the commands: perlica --help")
}

// main runs a command line and returns the exit code.
func (a *app) main(args []string) int {
	if len(args) == 1 && args[0] == "-V" { // Similar programs know -V, too.
		args = []string{"--version"}
	}
	root := a.root(args)
	from := 0
	if len(args) > 0 && (args[0] == cobra.ShellCompRequestCmd || args[0] == cobra.ShellCompNoDescRequestCmd) {
		from = 1 // This is a request of a shell. It wants completions of the arguments after the first one.
	}
	if prints(root, args[from:]) {
		args = slices.Insert(slices.Clone(args), from, "run")
		root = a.root(args)
	}
	args, a.AgentArgs = acp.Split(root, args)
	root.SetArgs(args)
	out := &outlet{to: a.Stdout}
	root.SetOut(out)
	err := root.ExecuteContext(context.Background())
	if err == nil {
		err = a.Write(func(io.Writer) error { return out.err })
	}
	code, printed := frame.ExitCodeOf(err)
	if printed {
		a.Complain(err)
	}
	return code
}

// outlet is standard output for texts that cobra prints without looking at errors, such as help.
type outlet struct {
	to  io.Writer
	err error // the first error
}

func (o *outlet) Write(b []byte) (int, error) {
	if o.err == nil {
		_, o.err = o.to.Write(b)
	}
	return len(b), nil // The caller looks at the field err later, so cobra needs no error.
}

// prints reports whether a command line without a command has the flag -p. Similar programs use -p like 'perlica
// run'.
func prints(root *cobra.Command, args []string) bool {
	root.InitDefaultHelpCmd() // Cobra adds the command help late, and Find needs it now.
	if cmd, _, err := root.Find(args); err != nil || cmd != root {
		return false
	}
	if end := slices.Index(args, "--"); end >= 0 {
		args = args[:end]
	}
	return slices.Contains(args, "-p") || slices.Contains(args, "--print")
}

// root builds the tree of commands. It builds only the commands that args need.
func (a *app) root(args []string) *cobra.Command {
	var flags chat.Flags
	var serves bool
	root := &cobra.Command{
		Use: "perlica", Annotations: frame.StartsRun.Annotation(),
		Short: "Talk to a coding agent, one call an input, on the record",
		Long: `Perlica stands between you and a coding agent that speaks the Agent Client
Protocol. One input makes at most one call of the agent. Perlica itself executes and
retries nothing. It records every step on an append-only log.

At a terminal, 'perlica' without a command starts the chat.`,
		Example: `  perlica demo                                   a demonstration, without an account
  perlica run "what does this repository do?"    one input, the answer, exit
  perlica                                        the chat
  perlica "what does this repository do?"        the chat, with this text as its first input
  perlica provider list                          the known agents, and how to install them
  perlica log show                               the story of the last run
  perlica doctor                                 a check of everything, with hints for repairs`,
		SilenceErrors: true, SilenceUsage: true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			// Cobra would check this later, and its error would not be a usage error.
			if err := frame.CheckExclusive(cmd); err != nil {
				return err
			}
			if err := cmd.ValidateFlagGroups(); err != nil {
				return frame.ExitUsage.With(err)
			}
			if asked, _ := cmd.Flags().GetBool("version"); asked {
				cmd.RunE = commands["version"](a.App).RunE
				return nil
			}
			return a.Gate(cmd)
		},
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 && flags.Resume { // In similar programs the session's id follows the flag.
				flags.Resume, flags.Session = false, args[0]
				return nil
			}
			switch {
			case len(args) == 1 && strings.ContainsRune(args[0], ' ') && screen.IsTerminal(a.Stdin) &&
				screen.IsTerminal(a.Stderr):
				flags.First = args[0]
			case len(args) > 0:
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
				return service.Serve(cmd.Context(), a.App, web.ServeWithBridge)
			case a.Piped(): // The chat needs a terminal. A piped text is one input for the command run.
				flags.Format = "text"
				return run.Run(a.App, cmd, flags.Flags, flags.Team, nil)
			case screen.IsTerminal(a.Stdin) && screen.IsTerminal(a.Stderr), cmd.Flags().NFlag() > 0:
				// A command line with flags and without a command is a chat.
				if err := a.PersonOnly("the chat"); err != nil {
					return err
				}
				return chat.Run(a.App, cmd, flags)
			}
			return cmd.Help()
		},
	}
	root.SetErr(a.Stderr)
	root.SetFlagErrorFunc(flagError)
	root.SetHelpCommand(helpCommand(root))
	root.PersistentFlags().StringVar(&a.ContextFlag, "context", "",
		"use the context with this `name`, which has its own log")
	root.PersistentFlags().StringVar(&a.ProjectFlag, "project", "",
		"the project's `folder` (default: this folder or its nearest parent that has .perlica_config)")
	root.Flags().BoolP("print", "p", false,
		"send one input, print the answer, exit: the same as 'perlica run', with its flags")
	root.Flags().BoolVar(&serves, "service", false,
		"run the messaging bridge in the foreground: the same as 'perlica service'")
	root.CompletionOptions.DisableDefaultCmd = true // completionCommand takes the place of this command.
	if len(args) > 0 && commands[args[0]] != nil {  // Building the other commands would only take time.
		root.AddCommand(commands[args[0]](a.App))
		return root
	}
	addVersion(root)
	chat.AddFlags(a.App, root, &flags)
	for _, command := range commands {
		root.AddCommand(command(a.App)) // The order does not matter, because AddCommand sorts the commands.
	}
	if len(args) > 0 && strings.HasPrefix(args[0], cobra.ShellCompRequestCmd) {
		describeForShells(root)
	}
	return root
}

// commands are the constructors of all commands below the root.
var commands = map[string]func(*frame.App) *cobra.Command{
	"acp": acp.Command, "agent": agentCommand, "blame": origin.BlameCommand, "budget": budget.Command,
	"cancel": watch.CancelCommand, "changes": origin.ChangesCommand, "chat": chat.Command,
	"completion": completionCommand, "config": config.Command, "demo": demo.Command, "doctor": doctorCommand,
	"flow": flow.Command,
	"hook": hook.Command, "init": config.InitCommand,
	"log": log.Command, "notify": notify.Command, "pending": pending.Command, "phone": service.PhoneCommand,
	"policy":   policy.Command,
	"provider": provider.Command, "report": export.ReportCommand,
	"run": runCommand, "sandbox": sandbox.Command, "schedule": schedule.Command,
	"send": watch.SendCommand, "service": serviceCommand,
	"session": session.Command,
	"version": versionCommand, "watch": watch.Command,
	"team": team.Command, "web": web.Command,
}

// addVersion adds the flag --version. Cobra's own flag prints a different line, and changing it would need
// text/template.
func addVersion(cmd *cobra.Command) {
	cmd.Flags().BoolP("version", "v", false, "print the version")
}

func serviceCommand(a *frame.App) *cobra.Command {
	return service.Command(a, log.TailCommand(a), web.ServeWithBridge)
}

// runCommand returns the command run with a flag --version. Similar programs have it, too.
func runCommand(a *frame.App) *cobra.Command {
	cmd := run.Command(a)
	addVersion(cmd)
	return cmd
}

func doctorCommand(a *frame.App) *cobra.Command {
	return doctor.Command(a, func(ctx context.Context, p *project.Project) (channels, projects []bridge.Setup) {
		return service.Setups(a, p), service.Projects(ctx, a, p)
	})
}
