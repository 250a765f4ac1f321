// Package budget has the command that shows the budgets and their used amounts.
package budget

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/perlica/perlica/cmd/perlica/frame"
	"github.com/perlica/perlica/cmd/perlica/screen"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/store"
	"github.com/perlica/perlica/interaction/card"
	"github.com/perlica/perlica/kernel/budget"
	"github.com/perlica/perlica/kernel/project"
)

// app is one invocation of perlica. Its methods are the commands of this package.
type app struct{ *frame.App }

// Command returns the command budget.
func Command(c *frame.App) *cobra.Command {
	a := &app{c}
	var asJSON bool
	var session string
	cmd := &cobra.Command{
		Use: "budget", Annotations: frame.ReadOnly.Annotation(),
		Short: "Show the budgets and the used amounts",
		Long: `Show each budget of the configuration as a bar, with the used amount, the remainder and the
time of renewal. The amounts follow from the event log. See docs/budgets.md.

A budget for each session has an amount only with --session.`,
		Example: `  perlica budget
  perlica budget --json | jq '.[].amounts[].left'`,
		Args: frame.Exactly(), ValidArgsFunction: frame.NoFiles,
		RunE: func(cmd *cobra.Command, _ []string) error {
			list, err := a.read(cmd, session)
			if err != nil {
				return err
			}
			if asJSON {
				return a.PrintJSON(list)
			}
			if len(list) == 0 {
				a.Note("no budget is configured")
				return nil
			}
			return a.Write(func(w io.Writer) error { return show(w, list, screen.TerminalWidth(a.Stdout)) })
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON array")
	cmd.Flags().StringVarP(&session, "session", "s", "", "the `session` for the budgets of each session, by its id")
	return cmd
}

// read returns the state of the budgets. If there is no log yet, the used amounts are zero.
func (a *app) read(cmd *cobra.Command, session string) ([]budget.Status, error) {
	list := []budget.Status{}
	read := func(log *store.Reader, p *project.Project) (err error) {
		g, err := p.Budgets()
		if g == nil || err != nil {
			return err
		}
		defer func() { _ = g.Close() }() // The budgets were only read, so a failed close loses no data.
		list, err = g.Status(cmd.Context(), log, event.SessionID(session))
		return err
	}
	err := a.Reading(cmd.Context(), read)
	if err != nil && a.EmptyIfNoLog(err) == nil {
		p, perr := a.LocateToRead()
		if perr != nil {
			return nil, perr
		}
		return list, read(nil, p)
	}
	return list, err
}

// show prints the budgets, each with the rows of its limits.
func show(w io.Writer, list []budget.Status, width int) error {
	var b strings.Builder
	for _, s := range list {
		row := s.Budget
		if renewal := s.Renewal(); renewal != nil {
			row += ", " + renewal.Text
		}
		b.WriteString(card.Marked(card.Line(row, 0), width) + "\n")
		for _, a := range s.Amount {
			fmt.Fprintf(&b, "  %s\n", strings.TrimSpace(a.Bar()+"  "+a.Sentence().Text))
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}
