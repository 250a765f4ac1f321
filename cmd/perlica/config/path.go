package config

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/mattn/go-runewidth"
	"github.com/spf13/cobra"

	"github.com/perlica/perlica/cmd/perlica/frame"
	"github.com/perlica/perlica/cmd/perlica/screen"
	"github.com/perlica/perlica/kernel/config"
	"github.com/perlica/perlica/kernel/project"
)

func (a *app) configPathCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "path", Annotations: frame.ReadOnly.Annotation(),
		Short: "Show the files that Perlica reads, and the place of the log",
		Example: `  perlica config path
  perlica config path --json | jq -r '.paths[] | select(.name == "event log").path'`,
		Args: frame.Exactly(), ValidArgsFunction: frame.NoFiles,
		RunE: func(*cobra.Command, []string) error { return a.configPath(asJSON) },
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

// namedPath is the path of a file or folder. It also says whether the path exists.
type namedPath struct {
	Name   string `json:"name"`
	Path   string `json:"path"`
	Exists bool   `json:"exists"`
}

func (a *app) configPath(asJSON bool) error {
	p, _, err := a.locateLenient() // The command prints only paths, so mistakes in the files do not matter.
	if err != nil {
		return err
	}
	if a.ContextFlag != "" {
		if err := config.CheckContextName(a.ContextFlag); err != nil {
			return err
		}
	}
	paths, err := pathsOf(p)
	if err != nil {
		return err
	}
	if asJSON {
		return a.PrintJSON(struct {
			Workspace string      `json:"workspace"`
			Exists    bool        `json:"exists"`
			Context   string      `json:"context"`
			Paths     []namedPath `json:"paths"`
		}{p.Workspace.Dir(), p.Workspace.Exists, p.Config.ContextID, paths})
	}
	s := a.Styles(a.Stdout)
	return a.Write(func(w io.Writer) error {
		for _, f := range paths {
			line := runewidth.FillRight(f.Name, 16) + screen.Sanitize(f.Path)
			if !f.Exists {
				line += s.Dim("  (not there)")
			}
			if _, err := fmt.Fprintln(w, line); err != nil {
				return err
			}
		}
		return nil
	})
}

// pathsOf returns the files that Perlica reads and writes.
func pathsOf(p *project.Project) ([]namedPath, error) {
	ctx, err := p.Workspace.Context(p.Config.ContextID)
	if err != nil {
		return nil, err
	}
	list := []namedPath{
		{Name: "user file", Path: p.Dirs.ConfigFile()},
		{Name: "project file", Path: p.Workspace.ConfigFile()},
		{Name: "system prompt", Path: p.Workspace.SystemPromptFile()},
		{Name: "context", Path: ctx.Dir},
		{Name: "event log", Path: ctx.EventLog},
		{Name: "sessions", Path: ctx.Sessions},
		{Name: "approvals", Path: ctx.Approvals},
		{Name: "debug trail", Path: ctx.Logs},
		{Name: "locks", Path: ctx.Locks},
		{Name: "state", Path: p.Dirs.State},
		{Name: "sockets", Path: p.Dirs.Runtime},
	}
	for i := range list {
		_, err := os.Stat(list[i].Path)
		list[i].Exists = err == nil
	}
	return list, nil
}

// InitCommand returns the command that makes the configuration of a project.
func InitCommand(c *frame.App) *cobra.Command {
	a := &app{c}
	return &cobra.Command{
		Use: "init", Annotations: frame.PersonOnly.Annotation(),
		Short: "Write .perlica_config with commented defaults",
		Long: `Make the folder .perlica_config with a file config.toml. The file lists every key as a comment,
with its default and its effect. It is optional: Perlica works without it.

The folder is made at the top of the git work tree, or in the working directory if there is
no git work tree. An existing file is never overwritten.`,
		Example: `  perlica init
  perlica config show`,
		Args: frame.Exactly(), ValidArgsFunction: frame.NoFiles,
		RunE: func(*cobra.Command, []string) error { return a.initProject() },
	}
}

func (a *app) initProject() error {
	p, err := a.Locate(nil)
	var problems config.Problems
	if err != nil && !errors.As(err, &problems) { // A mistake in the user's own file does not matter here.
		return err
	}
	path, err := config.Init(p.Workspace)
	if errors.Is(err, config.ErrExists) {
		return frame.WithHint(frame.ExitFailure.With(err), "nothing was changed; 'perlica config show' says what counts")
	}
	if err != nil {
		return err
	}
	return a.Write(func(w io.Writer) error {
		_, err := io.WriteString(w, "Made "+screen.Sanitize(frame.ShownPath(p, path))+
			`: every key as a comment, with its default.
The files of runs lie next to it; .gitignore keeps them out of git.

Next:
  perlica provider list             which agents there are, and how to install them
  perlica provider default NAME     choose one for this project
  perlica run "hello"               send a first input
`)
		return err
	})
}
