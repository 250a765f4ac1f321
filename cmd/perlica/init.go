package main

import (
	"errors"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/perlica/perlica/cmd/perlica/term"
	"github.com/perlica/perlica/kernel/config"
	"github.com/perlica/perlica/kernel/project"
)

func (a *app) initCommand() *cobra.Command {
	return &cobra.Command{
		Use: "init", Annotations: acts.on(),
		Short: "Write .perlica_config with commented defaults",
		Long: `Make .perlica_config with a config.toml in which every key stands as a comment, with
its default and what it does. Nothing works without it that does not work with it:
it is a place to begin.

It is made at the top of the git work tree, else in the working directory. A file that
exists is never overwritten.`,
		Example: `  perlica init
  perlica config show`,
		Args: exactly(), ValidArgsFunction: noFiles,
		RunE: func(*cobra.Command, []string) error { return a.init() },
	}
}

func (a *app) init() error {
	p, err := a.locate(nil)
	var problems config.Problems
	if err != nil && !errors.As(err, &problems) { // a broken file of the user's is no obstacle
		return err
	}
	path, err := config.Init(p.Workspace)
	if errors.Is(err, config.ErrExists) {
		return withHint(&exitError{1, err}, "nothing was changed; 'perlica config show' says what counts")
	}
	if err != nil {
		return err
	}
	return a.write(func(w io.Writer) error {
		_, err := io.WriteString(w, "Made "+term.Sanitize(shownPath(p, path))+`: every key as a comment, with its default.
What runs leave behind lies beside it; .gitignore keeps that out of git.

Next:
  perlica provider list             which agents there are, and how to install them
  perlica provider default NAME     choose one for this project
  perlica run "hello"               send a first input
`)
		return err
	})
}

// shownPath is a path as a person in the working directory would write it.
func shownPath(p *project.Project, path string) string {
	rel, err := filepath.Rel(p.Dir, path)
	if err != nil || !filepath.IsLocal(rel) {
		return path
	}
	return rel
}
