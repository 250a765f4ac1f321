package team

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/perlica/perlica/cmd/perlica/frame"
	"github.com/perlica/perlica/cmd/perlica/screen"
	"github.com/perlica/perlica/kernel/project"
	"github.com/perlica/perlica/service/team"
	"github.com/perlica/perlica/service/team/hub"
)

// states are the states by which a user can select inputs.
var states = []string{hub.Waiting, hub.Queued, hub.Claimed, "responded", "provider_error", "outcome_unknown",
	hub.Refused, hub.Withdrawn, hub.Adopted, hub.Resolved, hub.Lost}

func (a *app) inputsCommand() *cobra.Command {
	var state string
	var most int
	var asJSON bool
	cmd := &cobra.Command{
		Use: "inputs [ID]", Annotations: frame.ReadOnly.Annotation(),
		Short: "List the newest inputs and their states, or show one",
		Long: `List the newest inputs and their states, or show one with its result.

States: waiting (for its time), queued, claimed (a worker has taken it), responded,
provider_error, outcome_unknown, refused (by its worker, without a call), withdrawn, adopted
(closed as unknown by 'perlica team adopt'), resolved (closed by 'perlica team resolve'), lost
(neither queued nor claimed, because somebody changed the database).`,
		Args: frame.Between(0, "ID"), ValidArgsFunction: frame.NoFiles,
		RunE: func(cmd *cobra.Command, args []string) error {
			if state != "" && !slices.Contains(states, state) {
				return frame.UsageErrorf("--state is one of %s", strings.Join(states, ", "))
			}
			return a.withTeam(cmd.Context(), func(t *team.Team, _ *project.Project) error {
				if len(args) > 0 {
					return a.showInput(cmd.Context(), t, args[0], asJSON)
				}
				list, err := t.Hub.Inputs(cmd.Context(), state, most)
				if err != nil {
					return err
				}
				if asJSON {
					return a.PrintJSON(append([]hub.Status{}, list...))
				}
				g := frame.Grid{Head: []string{"INPUT", "SUBMITTED", "FROM", "PROJECT", "STATE", "WORKER"}}
				for _, s := range list {
					g.Add(s.ID, s.Submitted.Local().Format(time.DateTime), s.Sender, s.Project, s.State, s.Worker)
				}
				return a.Table(g)
			})
		},
	}
	cmd.Flags().StringVar(&state, "state", "", "only inputs in this `state`")
	cmd.Flags().IntVar(&most, "limit", 50, "the `number` of inputs to list")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	frame.CompleteFlag(cmd, "state", cobra.FixedCompletions(states, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// inputStatus returns the state of an input. It fails if the hub does not know the input.
func inputStatus(ctx context.Context, t *team.Team, id string) (hub.Status, error) {
	s, ok, err := t.Status(ctx, id)
	if err == nil && !ok {
		err = fmt.Errorf("there is no input %s on this hub", id)
	}
	return s, err
}

func (a *app) showInput(ctx context.Context, t *team.Team, id string, asJSON bool) error {
	s, err := inputStatus(ctx, t, id)
	if err != nil {
		return err
	}
	return a.Show(asJSON, s, func(w io.Writer, st screen.Styles) error {
		rows := [][2]string{
			{"input     ", s.ID}, {"submitted ", s.Submitted.Local().Format(time.DateTime) + " by " + s.Sender},
			{"project   ", s.Project},
			{"generation", s.Generation}, {"state     ", s.State}, {"worker    ", s.Worker}, {"closed by ", s.By},
			{"note      ", s.Note}, {"replaces  ", s.Replaces},
		}
		if r, err := team.ResultOf(s); err == nil {
			rows = append(rows, [2]string{"run       ", r.RunID})
			if r.Error != nil {
				rows = append(rows, [2]string{"error     ", r.Error.Message})
			}
		}
		for _, row := range rows {
			if row[1] != "" {
				if _, err := fmt.Fprintln(w, st.Dim(row[0]), frame.OneLine(row[1])); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

func (a *app) cancelCommand() *cobra.Command {
	return &cobra.Command{
		Use: "cancel ID", Annotations: frame.PersonOnly.Annotation(),
		Short: "Withdraw a waiting input, or stop a running one",
		Args:  frame.Exactly("ID"), ValidArgsFunction: frame.NoFiles,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withTeam(cmd.Context(), func(t *team.Team, _ *project.Project) error {
				s, err := inputStatus(cmd.Context(), t, args[0])
				if err != nil {
					return err
				}
				if s.Ended() {
					return fmt.Errorf("the input is over: %s", s.State)
				}
				withdrawn, err := t.Cancel(cmd.Context(), args[0], frame.UserName(a.Getenv), "terminal")
				switch {
				case err != nil:
					return err
				case withdrawn:
					return a.Say("withdrawn: it is not called")
				}
				return a.Say("%s is asked to stop it", s.Worker)
			})
		},
	}
}

func (a *app) resolveCommand() *cobra.Command {
	var note string
	cmd := &cobra.Command{
		Use: "resolve ID", Annotations: frame.PersonOnly.Annotation(),
		Short: "Close an input if its worker does not come back",
		Long: `Close an input if its worker does not come back. The command records your judgement and starts
nothing. If the worker does come back, its log has precedence over your judgement. To repeat
the work, submit a new input under a new id with "replaces": "ID" ('perlica team submit').`,
		Args: frame.Exactly("ID"), ValidArgsFunction: frame.NoFiles,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withTeam(cmd.Context(), func(t *team.Team, _ *project.Project) error {
				s, err := inputStatus(cmd.Context(), t, args[0])
				switch {
				case err != nil:
					return err
				case s.State != hub.Claimed && s.State != hub.Adopted && s.State != hub.Lost && s.State != "outcome_unknown":
					return frame.WithHint(fmt.Errorf("the input is %s", s.State), "what waits is withdrawn: perlica team cancel %s",
						args[0])
				}
				if err := t.Resolve(cmd.Context(), args[0], note); err != nil {
					return err
				}
				return a.Say("closed by your judgement; if its owner reports another outcome, that one counts")
			})
		},
	}
	cmd.Flags().StringVar(&note, "note", "", "the reason, a `text` for the record")
	return cmd
}
