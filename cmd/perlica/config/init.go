package config

import (
	"errors"
	"io"

	"github.com/spf13/cobra"

	"github.com/perlica/perlica/cmd/perlica/cli"
	"github.com/perlica/perlica/cmd/perlica/exitcode"
	"github.com/perlica/perlica/cmd/perlica/term"
	"github.com/perlica/perlica/kernel/config"
)

func (a *app) initCommand() *cobra.Command {
	return &cobra.Command{
		Use: "init", Annotations: cli.Acts.On(),
		Short: "Write .perlica_config with commented defaults",
		Long: `Make .perlica_config with a config.toml in which every key stands as a comment, with
its default and what it does. Nothing works without it that does not work with it:
it is a place to begin.

It is made at the top of the git work tree, else in the working directory. A file that
exists is never overwritten.`,
		Example: `  perlica init
  perlica config show`,
		Args: cli.Exactly(), ValidArgsFunction: cli.NoFiles,
		RunE: func(*cobra.Command, []string) error { return a.init() },
	}
}

func (a *app) init() error {
	p, err := a.Locate(nil)
	var problems config.Problems
	if err != nil && !errors.As(err, &problems) { // a broken file of the user's is no obstacle
		return err
	}
	path, err := config.Init(p.Workspace)
	if errors.Is(err, config.ErrExists) {
		return exitcode.WithHint(exitcode.Failure.With(err), "nothing was changed; 'perlica config show' says what counts")
	}
	if err != nil {
		return err
	}
	return a.Write(func(w io.Writer) error {
		_, err := io.WriteString(w, "Made "+term.Sanitize(cli.ShownPath(p, path))+`: every key as a comment, with its default.
What runs leave behind lies beside it; .gitignore keeps that out of git.

Next:
  perlica provider list             which agents there are, and how to install them
  perlica provider default NAME     choose one for this project
  perlica run "hello"               send a first input
`)
		return err
	})
}
