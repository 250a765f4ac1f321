package watch

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/perlica/perlica/cmd/perlica/frame"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/kernel/project"
	"github.com/perlica/perlica/kernel/record"
	"github.com/perlica/perlica/kernel/streamjson"
)

// CancelCommand returns the command that stops a turn in another process.
func CancelCommand(c *frame.App) *cobra.Command {
	a := &app{c}
	return &cobra.Command{
		Use: "cancel [RUN]", Annotations: frame.PersonOnly.Annotation(),
		Short: "Stop a running turn of any process",
		Long: `Stop a running turn. Perlica asks the agent to cancel, as Ctrl-C in the turn's own terminal
does. The turn's own process reports the end. RUN is the id of the turn's run, or the beginning
or end of the id. You may leave it out if only one turn is running. The stop is on record when
this command returns.`,
		Example: `  perlica cancel
  perlica cancel 3f2a91bc`,
		Args: frame.Between(0, "RUN"), ValidArgsFunction: frame.NoFiles,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.Writing(cmd.Context(), func(r *kernel.Runner, p *project.Project) error {
				return a.cancelTurn(cmd.Context(), r, p, args)
			})
		},
	}
}

func (a *app) cancelTurn(ctx context.Context, r *kernel.Runner, p *project.Project, args []string) error {
	paths, err := p.Workspace.Context(p.Config.ContextID)
	if err != nil {
		return err
	}
	unfinished, err := record.ListUnfinished(ctx, &r.Log().Reader, paths.Locks)
	if err != nil {
		return err
	}
	var live []event.RunID
	var names []string
	for _, u := range unfinished {
		id := string(u.Run)
		if u.Alive && (len(args) == 0 || strings.HasPrefix(id, args[0]) || strings.HasSuffix(id, args[0]) ||
			strings.HasPrefix(frame.ShortID(id), args[0])) {
			live, names = append(live, u.Run), append(names, frame.ShortID(id))
		}
	}
	switch {
	case len(live) == 0 && len(args) > 0:
		return frame.WithHint(fmt.Errorf("no turn of run %s is under way", frame.OneLine(args[0])),
			"to see its words and actions: perlica log show %s", frame.OneLine(args[0]))
	case len(live) == 0:
		return errors.New("no turn is under way")
	case len(live) > 1:
		return frame.ExitUsage.With(fmt.Errorf("%d turns are under way: name one: %s", len(live), strings.Join(names, ", ")))
	}
	by := frame.UserName(a.Getenv)
	if err := r.CancelRun(ctx, live[0], fact.Stop{By: streamjson.ByUser, Why: "perlica cancel by " + by,
		Person: by}); err != nil {
		return err
	}
	return a.Say("run %s was told to stop", names[0])
}
