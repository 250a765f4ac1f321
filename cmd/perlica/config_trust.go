package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/perlica/perlica/cmd/perlica/term"
	"github.com/perlica/perlica/kernel/config"
	"github.com/perlica/perlica/kernel/project"
)

func (a *app) configTrustCommand() *cobra.Command {
	var yes, revoke bool
	cmd := &cobra.Command{
		Use: "trust", Annotations: acts.on(),
		Short: "Let the project's own files count in full",
		Long: `A project's files come with its repository. Until they are trusted they may only make
things stricter: commands, environment lists, MCP servers, rules that allow and texts
for the agent are left aside.

This shows what would begin to count, and asks. Trust is for exactly these contents, in
this place, by this user: after any change of the files it is asked for again. In CI,
PERLICA_TRUST_PROJECT=1 does the same for one command.`,
		Example: `  perlica config trust
  perlica config trust --yes
  perlica config trust --revoke`,
		Args: exactly(), ValidArgsFunction: noFiles,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if revoke {
				return a.untrust()
			}
			return a.trust(cmd.Context(), yes)
		},
	}
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	cmd.Flags().BoolVar(&revoke, "revoke", false, "take it back")
	cmd.MarkFlagsMutuallyExclusive("yes", "revoke")
	return cmd
}

// withoutTrust is the configuration as it counts by what a person trusted, whatever the
// environment says.
func (a *app) withoutTrust(settings map[string]string) (*project.Project, error) {
	return a.locateAs(slices.DeleteFunc(slices.Clone(a.environ), func(kv string) bool {
		return strings.HasPrefix(kv, config.TrustVariable+"=")
	}), settings)
}

func (a *app) trust(ctx context.Context, yes bool) error {
	p, err := a.withoutTrust(nil)
	if err != nil {
		return err
	}
	switch {
	case p.Config.Project.Digest == "":
		return withHint(fmt.Errorf("there is nothing to trust: %s does not exist", shownPath(p, p.Workspace.ConfigFile())), "'perlica init' makes it")
	case p.Config.Project.Trusted:
		return a.say("%s is trusted already.", shownPath(p, p.Workspace.ConfigFile()))
	}
	if err := a.write(func(w io.Writer) error { return writeWithheld(w, p, a.styles(a.stdout)) }); err != nil {
		return err
	}
	if !yes {
		if yes, err = a.confirm(ctx, "Trust these files?"); err != nil {
			return err
		}
	}
	if !yes {
		return withHint(&exitError{1, errors.New("not trusted")}, "nothing was changed")
	}
	// What was shown is what is trusted: had the files changed meanwhile, their digest
	// would be another.
	if err := config.Trust(p.Dirs, p.Workspace, p.Config.Project.Digest); err != nil {
		return err
	}
	return a.say("Trusted, until the files change.")
}

// writeWithheld shows what would begin to count.
func writeWithheld(w io.Writer, p *project.Project, s term.Styles) error {
	var b strings.Builder
	if len(p.Config.Withheld) == 0 {
		b.WriteString("The project's files loosen nothing: all of them counts already.\n")
	} else {
		b.WriteString("This would begin to count:\n")
	}
	for _, line := range p.Config.Withheld {
		b.WriteString("  " + s.Yellow(term.Sanitize(line)) + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (a *app) untrust() error {
	p, err := a.withoutTrust(nil)
	var problems config.Problems
	if err != nil && !errors.As(err, &problems) { // trust can be taken back from a broken file
		return err
	}
	trusted := p.Config.Project.Trusted
	if err := config.Untrust(p.Dirs, p.Workspace); err != nil {
		return err
	}
	if !trusted {
		return a.say("%s was not trusted.", shownPath(p, p.Workspace.ConfigFile()))
	}
	return a.say("%s is no longer trusted.", shownPath(p, p.Workspace.ConfigFile()))
}

// confirm asks a question that one key answers. Only y is a yes.
func (a *app) confirm(ctx context.Context, question string) (yes bool, err error) {
	noTerminal := withHint(&exitError{2, errors.New("there is no terminal to ask on")}, "--yes answers in its place")
	if !term.IsTerminal(a.stderr) {
		return false, noTerminal
	}
	tty, err := term.OpenTTY()
	if err != nil {
		return false, noTerminal
	}
	defer func() { _ = tty.Close() }() // read from only
	fmt.Fprint(a.stderr, a.styles(a.stderr).Bold(question)+" [y/N] ")
	err = tty.Session(func(keys *term.Keys) error {
		key, err := keys.Next(ctx)
		yes = key.Kind == term.KeyRune && (key.Rune == 'y' || key.Rune == 'Y')
		return err
	})
	fmt.Fprintln(a.stderr, map[bool]string{true: "yes", false: "no"}[yes])
	return yes, err
}
