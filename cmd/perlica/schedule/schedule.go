// Package schedule has the commands that show schedules, keep them, and install a unit that keeps them.
package schedule

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/perlica/perlica/cmd/perlica/frame"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/kernel/project"
	"github.com/perlica/perlica/kernel/schedule"
)

// app is one invocation of perlica. Its methods are the commands of this package.
type app struct{ *frame.App }

// Command returns the command schedule with its subcommands.
func Command(c *frame.App) *cobra.Command {
	a := &app{c}
	return frame.Group("schedule", "Make inputs at planned times",
		`A schedule is a [[schedule]] table of the configuration. It makes one input at each planned
time. The input's id follows from the schedule and the time, so that several processes make
one call. See docs/schedules.md.

'perlica schedule run' and 'perlica service' keep the schedules of a project. 'perlica
schedule due' makes the inputs that are due now, and ends.`,
		a.listCommand(), a.nextCommand(), a.dueCommand(), a.runCommand(), a.pauseCommand(), a.resumeCommand(),
		a.runNowCommand(), a.installCommand())
}

// schedules returns the schedules of a project. It says which settings do not count before the project is trusted.
func (a *app) schedules(p *project.Project) ([]schedule.Schedule, error) {
	for _, w := range p.Config.Withheld {
		if strings.Contains(w, "schedule") {
			a.Note("not trusted yet, left aside: " + w + " (perlica config trust)")
		}
	}
	return schedule.Of(p)
}

// find returns the schedule with this id.
func (a *app) find(p *project.Project, id string) (schedule.Schedule, error) {
	list, err := a.schedules(p)
	if err != nil {
		return schedule.Schedule{}, err
	}
	var ids []string
	for _, s := range list {
		if s.ID == id {
			return s, nil
		}
		ids = append(ids, s.ID)
	}
	err = frame.UsageErrorf("there is no schedule %q", id)
	if len(ids) == 0 {
		return schedule.Schedule{}, frame.WithHint(err,
			"add a [[schedule]] table to the configuration; see docs/schedules.md")
	}
	return schedule.Schedule{}, frame.WithHint(err, "there are: %s", strings.Join(ids, ", "))
}

// completeIDs completes the ids of schedules.
func (a *app) completeIDs(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	p, err := a.Locate(nil)
	if err != nil {
		return frame.Completed(nil, err)
	}
	var ids []string
	for _, s := range p.Config.Schedules {
		ids = append(ids, s.ID)
	}
	return frame.Completed(ids, nil)
}

// listedSchedule is a schedule as the command list prints it with --json.
type listedSchedule struct {
	ID          string      `json:"id"`
	Rule        string      `json:"rule"`
	Timezone    string      `json:"timezone"`
	Provider    string      `json:"provider,omitempty"`
	Permissions string      `json:"permissions"`
	Paused      bool        `json:"paused"`
	Next        *time.Time  `json:"next,omitempty"`
	Due         *time.Time  `json:"due,omitempty"` // Next plus the delay of this schedule
	Last        *time.Time  `json:"last,omitempty"`
	Outcome     string      `json:"outcome,omitempty"`
	Run         event.RunID `json:"run_id,omitempty"`
	Flow        string      `json:"flow,omitempty"`
	FlowRun     string      `json:"flow_run,omitempty"`
}

func newListed(o schedule.Overview) listedSchedule {
	set := func(t time.Time) *time.Time {
		if t.IsZero() {
			return nil
		}
		t = t.In(o.Zone())
		return &t
	}
	return listedSchedule{ID: o.ID, Rule: o.Rule(), Timezone: o.ZoneName(), Provider: o.Provider,
		Permissions: o.Permissions, Paused: o.Paused, Next: set(o.Next), Due: set(o.Due), Last: set(o.Last),
		Outcome: o.Outcome, Run: o.Run, Flow: o.Flow, FlowRun: o.FlowRun}
}

func (a *app) listCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "list", Annotations: frame.ReadOnly.Annotation(), Aliases: []string{"ls"},
		Short: "List the schedules with their next time and their last outcome",
		Long: `List the schedules with their timezone, their next time and the outcome of their last one. A
schedule without a timezone uses the system's.`,
		Example: `  perlica schedule list
  perlica schedule list --json | jq -r '.[] | select(.outcome == "outcome_unknown").run_id'`,
		Args: frame.Exactly(), ValidArgsFunction: frame.NoFiles,
		RunE: func(cmd *cobra.Command, _ []string) error {
			all, err := a.overviews(cmd.Context())
			if err != nil {
				return err
			}
			if asJSON {
				list := []listedSchedule{}
				for _, o := range all {
					list = append(list, newListed(o))
				}
				return a.PrintJSON(list)
			}
			if len(all) == 0 {
				a.Note("there are no schedules; see docs/schedules.md")
				return nil
			}
			return a.Table(table(all))
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON array")
	return cmd
}

// overviews returns overviews of all schedules. Without a log, no schedule has a last time.
func (a *app) overviews(ctx context.Context) (all []schedule.Overview, err error) {
	p, err := a.LocateToRead()
	if err != nil {
		return nil, err
	}
	list, err := a.schedules(p)
	if err != nil {
		return nil, err
	}
	for _, s := range list {
		if err := schedule.CheckFlow(p, s); err != nil {
			a.Note("warning: the flow of schedule " + s.ID + " cannot run: " + err.Error())
		}
	}
	log, _, err := a.Reader(ctx, p)
	if errors.As(err, &project.NoLogError{}) {
		for _, s := range list {
			o := schedule.Overview{Schedule: s}
			o.Next, o.Due, _ = s.Next(schedule.State{}, time.Now())
			all = append(all, o)
		}
		return all, nil
	}
	if err != nil {
		return nil, err
	}
	defer frame.CloseShown(log, &err)
	paths, err := p.Workspace.Context(p.Config.ContextID)
	if err != nil {
		return nil, err
	}
	return schedule.Looker{Log: log, Locks: paths.Locks}.Look(ctx, list, time.Now())
}

// table returns the table of the command list.
func table(all []schedule.Overview) frame.Grid {
	g := frame.Grid{Head: []string{"schedule", "times", "timezone", "next", "last"}}
	for _, o := range all {
		next := "never"
		switch {
		case o.Paused:
			next = "paused"
		case !o.Due.IsZero():
			next = shown(o.Due, o.Zone())
		}
		last := ""
		if !o.Last.IsZero() {
			last = shown(o.Last, o.Zone()) + " " + schedule.OutcomeWords(o.Outcome).Text
			if o.FlowRun != "" {
				last += " (" + o.FlowRun + ")"
			}
			if o.Run != "" {
				last += " (" + frame.ShortID(o.Run) + ")"
			}
			if o.Reason != nil {
				last += ": " + o.Reason.Text
			}
		}
		times := strings.TrimSuffix(strings.TrimPrefix(o.Rule(), "cron "), " "+o.Timezone)
		g.Add(o.ID, times, o.ZoneName(), next, last)
	}
	return g
}

// shown returns a time in a timezone, for people.
func shown(t time.Time, zone *time.Location) string {
	return t.In(zone).Format("2006-01-02 15:04:05 -0700")
}

func (a *app) nextCommand() *cobra.Command {
	var count int
	var since string
	cmd := &cobra.Command{
		Use: "next [ID]", Annotations: frame.ReadOnly.Annotation(),
		Short: "Print the next planned times",
		Long: `Print the next planned times of one schedule or of all, with the input's id. --since shows the
times after another moment, such as a day on which the clocks change.`,
		Example: `  perlica schedule next
  perlica schedule next morning --since 2027-03-27 -n 3`,
		Args: frame.Between(0, "ID"), ValidArgsFunction: frame.CompleteFirst(a.completeIDs),
		RunE: func(_ *cobra.Command, args []string) error {
			p, err := a.LocateToRead()
			if err != nil {
				return err
			}
			list, err := a.schedules(p)
			if err == nil && len(args) == 1 {
				list = make([]schedule.Schedule, 1)
				list[0], err = a.find(p, args[0])
			}
			if err != nil {
				return err
			}
			at := time.Now()
			if since != "" {
				if at, _, err = frame.ParseTimeRange(since, "", at); err != nil {
					return err
				}
			}
			if count < 1 || count > 10_000 {
				return frame.UsageErrorf("-n is a number from 1 to 10000, not %d", count)
			}
			return a.Write(func(w io.Writer) error { return writeNext(w, list, at, count) })
		},
	}
	cmd.Flags().IntVarP(&count, "count", "n", 1, "the `number` of times of each schedule")
	cmd.Flags().StringVar(&since, "since", "", "print the times after this `time`, such as 2027-03-27 or RFC 3339")
	return cmd
}

// writeNext writes the next planned times of each schedule.
func writeNext(w io.Writer, list []schedule.Schedule, from time.Time, count int) error {
	for _, s := range list {
		at := from
		for range count {
			next, ok := s.After(at)
			if !ok {
				if _, err := fmt.Fprintf(w, "never\t%s\n", s.ID); err != nil {
					return err
				}
				break
			}
			at = next
			_, err := fmt.Fprintf(w, "%s\t%s\n", shown(next.Add(s.Delay(next)), s.Zone()), s.Input(next))
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func (a *app) pauseCommand() *cobra.Command {
	return a.changeCommand("pause", "Pause a schedule",
		`Pause a schedule. It makes no input and misses nothing until 'perlica schedule resume'. A call
that is running goes on.`,
		func(ctx context.Context, r *kernel.Runner, s schedule.Schedule) error {
			return schedule.Pause(ctx, r.Log(), s, frame.UserName(a.Getenv))
		})
}

func (a *app) resumeCommand() *cobra.Command {
	return a.changeCommand("resume", "Resume a paused schedule",
		`Resume a paused schedule. Only its times from now on count.`,
		func(ctx context.Context, r *kernel.Runner, s schedule.Schedule) error {
			return schedule.Resume(ctx, r.Log(), s, frame.UserName(a.Getenv), time.Now())
		})
}

// changeCommand returns a command that changes the state of one schedule.
func (a *app) changeCommand(use, short, long string,
	change func(context.Context, *kernel.Runner, schedule.Schedule) error) *cobra.Command {
	return &cobra.Command{
		Use: use + " ID", Annotations: frame.PersonOnly.Annotation(), Short: short, Long: long,
		Example: "  perlica schedule " + use + " morning",
		Args:    frame.Exactly("ID"), ValidArgsFunction: frame.CompleteFirst(a.completeIDs),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.Writing(cmd.Context(), func(r *kernel.Runner, p *project.Project) error {
				s, err := a.find(p, args[0])
				if err != nil {
					return err
				}
				return change(cmd.Context(), r, s)
			})
		},
	}
}
