package provider

import (
	"context"
	"fmt"
	"os/exec"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/perlica/perlica/cmd/perlica/frame"
	"github.com/perlica/perlica/kernel/agents"
)

// oldestNode is the oldest major version of Node.js that current adapters support. With an older version, npm
// installs an old adapter without a warning.
const oldestNode = 22

func (a *app) providerInstallCommand() *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use: "install NAME", Annotations: frame.PersonOnly.Annotation(),
		Short: "Install an agent of the registry, after your yes",
		Long: `Show the command that installs an agent, or its adapter for the Agent Client Protocol. After
your yes, Perlica runs this command. It changes nothing else.`,
		Example:           `  perlica provider install claude`,
		Args:              frame.Exactly("NAME"),
		ValidArgsFunction: frame.CompleteFirst(a.CompleteProviders),
		RunE: func(cmd *cobra.Command,
			args []string) error {
			return a.providerInstall(cmd.Context(), args[0], yes)
		},
	}
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "run the command without asking")
	return cmd
}

func (a *app) providerInstall(ctx context.Context, name string, yes bool) error {
	p, err := a.locateValid()
	if err != nil {
		return err
	}
	res := p.Resolver()
	l, err := res.Describe(name)
	if err != nil {
		return err
	}
	if l.State == agents.Installed {
		return a.Say("%s is installed: %s", l.ID, agents.CommandLine(l.Command))
	}
	argv := l.Installer
	if argv == nil || l.State == agents.Disabled {
		return frame.WithHint(fmt.Errorf("there is no command that installs %s", l.ID), "see 'perlica provider show %s'",
			l.ID)
	}
	program, err := res.Find(argv[0])
	if err != nil {
		return frame.WithHint(fmt.Errorf("%s installs %s, and %s is not on PATH", l.Install, l.ID, argv[0]), "%s",
			installerHint(argv[0]))
	}
	if argv[0] == "npm" {
		a.checkNode(ctx, res)
	}
	if err := a.Say("%s is installed by this command:\n  %s", l.Name, l.Install); err != nil {
		return err
	}
	if !yes {
		if yes, err = a.Confirm(ctx, "Run it?"); err != nil || !yes {
			return err
		}
	}
	install := exec.CommandContext(ctx, program, argv[1:]...)
	install.Stdin, install.Stdout, install.Stderr = a.Stdin, a.Stderr, a.Stderr
	if err := install.Run(); err != nil {
		return fmt.Errorf("%s: %w", l.Install, err)
	}
	if l, err = res.Describe(name); err != nil {
		return err
	}
	if l.State != agents.Installed {
		return frame.WithHint(fmt.Errorf("the command ended well, and %s is not on PATH", l.Command[0]),
			"put the folder into which %s installs programs on PATH", argv[0])
	}
	return a.Say("%s is installed: %s\nto log in: %s", l.ID, agents.CommandLine(l.Command), l.Login)
}

// installerHint tells how to get a program that installs agents, such as npm.
func installerHint(program string) string {
	if program == "npm" {
		return fmt.Sprintf("install Node.js %d or newer, which brings npm: https://nodejs.org", oldestNode)
	}
	return "install uv: https://docs.astral.sh/uv"
}

// checkNode prints a warning if the version of Node.js is so old that npm would install an old adapter.
func (a *app) checkNode(ctx context.Context, res agents.Resolver) {
	node, err := res.Find("node")
	if err != nil {
		return
	}
	out, err := exec.CommandContext(ctx, node, "--version").Output()
	if err != nil {
		return
	}
	version := strings.TrimSpace(string(out))
	major, _, _ := strings.Cut(strings.TrimPrefix(version, "v"), ".")
	if n, err := strconv.Atoi(major); err == nil && n < oldestNode {
		a.Note(fmt.Sprintf("node on PATH is %s: npm then installs an old version without a word; use Node.js %d or newer",
			version, oldestNode))
	}
}
