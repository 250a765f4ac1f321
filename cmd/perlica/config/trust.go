package config

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/perlica/perlica/cmd/perlica/frame"
	"github.com/perlica/perlica/cmd/perlica/screen"
	"github.com/perlica/perlica/kernel/config"
	"github.com/perlica/perlica/kernel/program"
	"github.com/perlica/perlica/kernel/project"
	"github.com/perlica/perlica/kernel/schedule"
)

func (a *app) configTrustCommand() *cobra.Command {
	var yes, revoke bool
	cmd := &cobra.Command{
		Use: "trust", Annotations: frame.PersonOnly.Annotation(),
		Short: "Let all settings of the project's own files count",
		Long: `A project's files come with its repository. Until you trust them, they may only make things
stricter. Their commands, environment lists, MCP servers, allowing rules and texts for the
agent do not count.

This command shows the settings that would begin to count, and asks you. Your trust covers
the present content of these files in this folder, and of the hooks, the policy programs and
the flows of schedules that lie inside the project. After each change of the files, Perlica
asks again. In CI, PERLICA_TRUST_PROJECT=1 trusts the files for one command.`,
		Example: `  perlica config trust
  perlica config trust --yes
  perlica config trust --revoke`,
		Args: frame.Exactly(), ValidArgsFunction: frame.NoFiles,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if revoke {
				p, err := a.LocateWithoutTrust(nil)
				var problems config.Problems
				if err != nil && !errors.As(err, &problems) { // A user can revoke trust in a file that has mistakes.
					return err
				}
				trusted := p.Config.Project.Trusted
				flows, _ := schedule.FlowFiles(p) // A flow that cannot be read has no trusted file to revoke.
				if err := p.Programs().Untrust(flows); err != nil {
					return err
				}
				for _, c := range p.Commands() {
					files, _ := p.Programs().Files(c) // A program that is missing has no trusted file to revoke.
					if err := p.Programs().Untrust(files); err != nil {
						return err
					}
				}
				if err := config.Untrust(p.Dirs, p.Workspace); err != nil {
					return err
				}
				if !trusted {
					return a.Say("%s was not trusted.", frame.ShownPath(p, p.Workspace.ConfigFile()))
				}
				return a.Say("%s is no longer trusted.", frame.ShownPath(p, p.Workspace.ConfigFile()))
			}
			return a.askTrust(cmd.Context(), yes)
		},
	}
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	cmd.Flags().BoolVar(&revoke, "revoke", false, "end the trust in these files")
	cmd.MarkFlagsMutuallyExclusive("yes", "revoke")
	return cmd
}

func (a *app) askTrust(ctx context.Context, yes bool) error {
	p, err := a.LocateWithoutTrust(nil)
	if err != nil {
		return err
	}
	programs, flows, err := a.untrusted(p)
	if err != nil {
		return err
	}
	switch {
	case len(programs)+len(flows) > 0:
	case p.Config.Project.Digest == "":
		return frame.WithHint(fmt.Errorf("there is nothing to trust: %s does not exist",
			frame.ShownPath(p, p.Workspace.ConfigFile())), "'perlica init' makes it")
	case p.Config.Project.Trusted:
		return a.Say("%s is trusted already.", frame.ShownPath(p, p.Workspace.ConfigFile()))
	}
	if err := a.Write(func(w io.Writer) error {
		return errors.Join(writeWithheld(w, p, a.Styles(a.Stdout)),
			writeFiles(w, "Perlica would start these programs for your hooks and questions:", programs),
			writeFiles(w, "Schedules would run these flows:", flows))
	}); err != nil {
		return err
	}
	if !yes {
		if yes, err = a.Confirm(ctx, "Trust these files?"); err != nil {
			return err
		}
	}
	if !yes {
		return frame.WithHint(frame.ExitFailure.With(errors.New("not trusted")), "nothing was changed")
	}
	// Trust records the digest of the files that were shown. If the files change before this call, their digest
	// differs and they are not trusted.
	if p.Config.Project.Digest != "" {
		if err := config.Trust(p.Dirs, p.Workspace, p.Config.Project.Digest); err != nil {
			return err
		}
	}
	if err := p.Programs().Trust(slices.Concat(programs, flows)); err != nil {
		return err
	}
	return a.Say("Trusted, until the files change.")
}

// untrusted returns the untrusted files of hooks, policy programs and schedules' flows. All of these files lie
// inside the project. untrusted includes the files of settings that do not count yet.
func (a *app) untrusted(p *project.Project) (programs, flows []program.File, err error) {
	as, err := p.AsTrusted()
	if err != nil {
		return nil, nil, err
	}
	if as.Config.Project.Digest != p.Config.Project.Digest {
		return nil, nil, errors.New("the project's files are changing: run the command again")
	}
	for _, c := range as.Commands() {
		files, err := p.Programs().Files(c)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", c.Name(), err)
		}
		for _, f := range files {
			if !f.Trusted && !slices.Contains(programs, f) {
				programs = append(programs, f)
			}
		}
	}
	flows, err = schedule.FlowFiles(as)
	return programs, slices.DeleteFunc(flows, func(f program.File) bool { return f.Trusted }), err
}

// writeFiles shows files inside the project that would begin to count.
func writeFiles(w io.Writer, head string, list []program.File) error {
	if len(list) > 0 {
		if _, err := fmt.Fprintln(w, head); err != nil {
			return err
		}
	}
	for _, f := range list {
		if _, err := fmt.Fprintf(w, "  %s, sha256 %s\n", screen.Sanitize(f.Path), f.SHA256); err != nil {
			return err
		}
	}
	return nil
}

// writeWithheld shows the project's settings that have no effect until the user trusts them.
func writeWithheld(w io.Writer, p *project.Project, s screen.Styles) error {
	var b strings.Builder
	if len(p.Config.Withheld) == 0 {
		b.WriteString("The project's files loosen nothing: all of them counts already.\n")
	} else {
		b.WriteString("This would begin to count:\n")
	}
	for _, line := range p.Config.Withheld {
		b.WriteString("  " + s.Yellow(screen.Sanitize(line)) + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}
