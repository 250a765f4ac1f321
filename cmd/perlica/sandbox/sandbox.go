// Package sandbox is the command that tries the sandboxes of this machine and opens a shell in a sandbox.
package sandbox

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/perlica/perlica/cmd/perlica/frame"
	"github.com/perlica/perlica/cmd/perlica/screen"
	"github.com/perlica/perlica/provider"
	"github.com/perlica/perlica/provider/process"
	"github.com/perlica/perlica/provider/proxy"
	"github.com/perlica/perlica/provider/sandbox"
)

// app is one invocation of perlica. Its methods are the commands of this package.
type app struct{ *frame.App }

// Command returns the command sandbox with its subcommands.
func Command(c *frame.App) *cobra.Command {
	a := &app{c}
	return frame.Group("sandbox", "Test the sandboxes of this machine, or open a shell in one",
		`Perlica can start agents in a sandbox of the operating system, with --sandbox protect, project
or offline, or with the key 'sandbox' of the configuration. See docs/sandbox.md.`,
		a.checkCommand(), a.shellCommand(), a.tryCommand(),
		a.enterCommand())
}

func (a *app) checkCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "check", Annotations: frame.ReadOnly.Annotation(),
		Short: "Test each sandbox; exit code 1 if one is not available",
		Long: `Start a process in each sandbox of this project and let it try to break the sandbox's rules.
Print the actions that the sandbox refused. No agent is started.`,
		Example: `  perlica sandbox check
  perlica sandbox check --json | jq -r '.[] | select(.mode == "project").rules[]'`,
		Args: frame.Exactly(), ValidArgsFunction: frame.NoFiles,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.check(asJSON) },
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func (a *app) check(asJSON bool) error {
	p, err := a.Locate(nil)
	if err != nil {
		return err
	}
	var reports []sandbox.Report
	var missing []string
	for _, mode := range sandbox.Modes()[1:] {
		r := sandbox.Check(*p.SandboxIn(mode), []string{p.Resolver().Self, "sandbox", "try"})
		reports = append(reports, r)
		if !r.Available {
			missing = append(missing, string(mode))
		}
	}
	if asJSON {
		err = a.PrintJSON(reports)
	} else {
		err = a.Write(func(w io.Writer) error { return writeReports(w, reports) })
	}
	if err == nil && len(missing) > 0 {
		err = frame.WithHint(fmt.Errorf("not available: %s", strings.Join(missing, ", ")), "%s", cmp.Or(reports[0].Do,
			"the lines above say what the sandbox did not refuse"))
	}
	return err
}

func writeReports(w io.Writer, reports []sandbox.Report) error {
	for _, r := range reports {
		state := "not available: " + r.Why
		switch {
		case r.Available && r.Landlock:
			state = "available, by " + r.Mechanism + " " + r.Version + " and Landlock"
		case r.Available:
			state = "available, by " + r.Mechanism + " " + r.Version +
				"; abstract sockets stay open, because the kernel is older than Linux 6.12"
		case r.Why == "":
			state = "not available: the sandbox did not refuse everything"
		}
		if _, err := fmt.Fprintf(w, "%s: %s\n", r.Mode, screen.Sanitize(state)); err != nil {
			return err
		}
		for _, t := range r.Trials {
			word := "ok  "
			if !t.OK {
				word = "FAIL"
			}
			if _, err := fmt.Fprintf(w, "  %s  %s (%s)\n", word, t.Name, screen.Sanitize(t.Why)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (a *app) shellCommand() *cobra.Command {
	mode := string(sandbox.Project)
	cmd := &cobra.Command{
		Use: "shell [-- CMD ARG…]", Annotations: frame.PersonOnly.Annotation(),
		Short: "Open a shell in a sandbox, or run a command there",
		Long: `Run your shell, or CMD, in the sandbox in which an agent of this project would run. The exit
code is that of the shell or of CMD. The shell has no job control, because it does not own the
terminal.`,
		Example: `  perlica sandbox shell
  perlica sandbox shell --sandbox protect -- ls -la .perlica_config`,
		Args: cobra.ArbitraryArgs, ValidArgsFunction: frame.NoFiles,
		RunE: func(cmd *cobra.Command, args []string) error {
			if a.SandboxFlag != "" {
				mode = a.SandboxFlag
			}
			return a.shell(cmd.Context(), sandbox.Mode(mode), append(args, a.AgentArgs...))
		},
	}
	a.AddSandboxFlag(cmd)
	return cmd
}

func (a *app) shell(ctx context.Context, mode sandbox.Mode, argv []string) error {
	p, err := a.Locate(nil)
	if err != nil {
		return err
	}
	if len(argv) == 0 {
		argv = []string{cmp.Or(a.Getenv("SHELL"), "/bin/sh")}
	}
	agent := provider.Agent{ID: "shell", Env: []string{"TERM", "COLORTERM"}}
	env, err := agent.Environ(a.Environ)
	if err != nil {
		return err
	}
	_, stop := frame.CatchSignals(ctx, 0)
	defer stop.Release()
	code, _, err := process.Attached(process.Spec{Agent: "shell", Argv: argv, Env: env, Dir: p.Dir, Limit: "deny",
		Sandbox: p.SandboxIn(mode)}, nil)
	if err != nil {
		return err
	}
	return frame.ProgramExit(code)
}

// enterCommand returns the command that is the first process in a sandbox of the mode offline.
func (a *app) enterCommand() *cobra.Command {
	return &cobra.Command{
		Use: "enter ADDRESSES -- CMD ARG…", Hidden: true, Annotations: frame.ReadOnly.Annotation(),
		Short: "Prepare the network of the sandbox around this process, and run a command",
		Args:  cobra.MinimumNArgs(2),
		RunE: func(_ *cobra.Command, args []string) error {
			var locals []string
			if args[0] != "" {
				locals = strings.Split(args[0], ",")
			}
			return proxy.Enter(locals, args[1:], a.Environ)
		},
	}
}

// tryCommand returns the command that the subcommand check starts inside a sandbox.
func (a *app) tryCommand() *cobra.Command {
	return &cobra.Command{
		Use: "try", Hidden: true, Annotations: frame.ReadOnly.Annotation(), Args: frame.Exactly(),
		Short: "Try to break the rules of the sandbox around this process",
		RunE: func(*cobra.Command, []string) error {
			var task sandbox.Task
			if err := json.NewDecoder(os.Stdin).Decode(&task); err != nil {
				return err
			}
			return a.PrintJSON(sandbox.Try(task))
		},
	}
}
