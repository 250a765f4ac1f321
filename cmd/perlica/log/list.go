package log

import (
	"github.com/spf13/cobra"

	"github.com/perlica/perlica/cmd/perlica/frame"
	"github.com/perlica/perlica/kernel/config"
	"github.com/perlica/perlica/kernel/project"
)

func (a *app) logListCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "list", Annotations: frame.ReadOnly.Annotation(),
		Aliases: []string{"ls"},
		Short:   "List the logs of all projects in which you used Perlica",
		Long: `List the logs of all projects in which you used Perlica, by folder. A project joins the list
with the first command that writes to its log or trusts it. Commands that only read a log do
not add it. A log that was moved or deleted stays on the list with a mark.`,
		Example: `  perlica log list
  perlica log list --json | jq -r '.[] | select(.gone | not).project'`,
		Args: frame.Exactly(), ValidArgsFunction: frame.NoFiles,
		RunE: func(*cobra.Command, []string) error { return a.logList(asJSON) },
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON array")
	return cmd
}

func (a *app) logList(asJSON bool) error {
	dirs, err := config.UserDirs(a.Getenv)
	if err != nil {
		return err
	}
	list, err := project.List(dirs)
	switch {
	case err != nil:
		return err
	case asJSON:
		return a.PrintJSON(append([]project.Used{}, list...))
	case len(list) == 0:
		a.Note("there is no log yet; the first 'perlica run' in a project makes one")
		return nil
	}
	g := frame.Grid{Head: []string{"CONTEXT", "LOG", "PROJECT"}}
	for _, u := range list {
		g.Add(u.Context, map[bool]string{true: "gone", false: "in place"}[u.Gone], u.Dir)
	}
	return a.Table(g)
}
