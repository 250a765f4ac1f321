// Package hook has the commands for the programs that the user wrote into the configuration: hooks and policy programs.
package hook

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/perlica/perlica/cmd/perlica/frame"
	"github.com/perlica/perlica/cmd/perlica/screen"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/store"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/kernel/hook"
	"github.com/perlica/perlica/kernel/program"
	"github.com/perlica/perlica/kernel/project"
)

// app is one invocation of perlica. Its methods are the commands of this package.
type app struct{ *frame.App }

// Command returns the command hook with its subcommands.
func Command(c *frame.App) *cobra.Command {
	a := &app{c}
	return frame.Group("hook", "List, test and serve your own programs for events and questions",
		`A hook is a program of yours that gets events of the record. A policy program is a program of
yours that judges a request of the agent before a person is asked. Both stand in the
configuration. See docs/hooks.md.`,
		a.listCommand(), a.testCommand(), a.deliverCommand())
}

// listed is a program of the configuration, as the command hook list prints it.
type listed struct {
	Number  int            `json:"number"`
	Kind    string         `json:"kind"` // "hook" or "policy"
	Command []string       `json:"command"`
	On      []event.Type   `json:"on,omitempty"`
	Timeout string         `json:"timeout"`
	Origin  string         `json:"origin"`
	Files   []program.File `json:"files"`
	// Trusted is false if Perlica would not start the program. Problem then has the reason.
	Trusted bool         `json:"trusted"`
	Problem string       `json:"problem,omitempty"`
	Failure *lastFailure `json:"last_failure,omitempty"`

	hook  hook.Hook
	judge hook.Judge
}

// lastFailure is the newest recorded failure of a program.
type lastFailure struct {
	Time time.Time   `json:"time"`
	Run  event.RunID `json:"run_id,omitempty"`
	Why  string      `json:"why"`
}

// programs returns the programs of a project, the hooks first.
func programs(p *project.Project) (list []listed) {
	store := p.Programs()
	add := func(l listed, c program.Command) {
		l.Number, l.Command = len(list)+1, hook.Shown(c)
		files, err := store.Files(c)
		l.Files, l.Trusted = files, err == nil
		for _, f := range files {
			if !f.Trusted {
				l.Trusted, l.Problem = false, f.Path+" is not trusted"
			}
		}
		if err != nil {
			l.Problem = err.Error()
		}
		list = append(list, l)
	}
	for _, h := range p.Hooks() {
		add(listed{Kind: hook.KindHook, On: h.On, Timeout: h.Timeout.String(), Origin: h.Origin, hook: h}, h.Command)
	}
	for _, j := range p.Judges() {
		add(listed{Kind: hook.KindPolicy, Timeout: j.Timeout.String(), Origin: j.Origin, judge: j}, j.Command)
	}
	return list
}

func (a *app) listCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Annotations: frame.ReadOnly.Annotation(),
		Short: "List the hooks and the policy programs",
		Long: `List the hooks and the policy programs of the configuration, whether each would start, and its
last failure on record.`,
		Example: `  perlica hook list
  perlica hook list --json | jq '.[] | select(.trusted | not)'`,
		Args: frame.Exactly(), ValidArgsFunction: frame.NoFiles,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.list(cmd.Context(), asJSON) },
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON array")
	return cmd
}

func (a *app) list(ctx context.Context, asJSON bool) error {
	p, err := a.Locate(nil)
	if err != nil {
		return err
	}
	for _, w := range p.Config.Withheld {
		a.Note("not trusted yet, left aside: " + w + " (perlica config trust)")
	}
	list := programs(p)
	if err := a.addFailures(ctx, p, list); err != nil {
		return err
	}
	if asJSON {
		return a.PrintJSON(slices.Concat([]listed{}, list))
	}
	if len(list) == 0 {
		a.Note("no hook and no policy program is configured; see docs/hooks.md")
		return nil
	}
	g := frame.Grid{Head: []string{"#", "KIND", "PROGRAM", "ON", "STARTS", "LAST FAILURE"}}
	for _, l := range list {
		starts, failure := "yes", ""
		if !l.Trusted {
			starts = "no: " + l.Problem
		}
		if l.Failure != nil {
			failure = frame.FormatAge(l.Failure.Time, time.Now()) + ": " + l.Failure.Why
		}
		var on []string
		for _, t := range l.On {
			on = append(on, string(t))
		}
		g.Add(strconv.Itoa(l.Number), l.Kind, strings.Join(l.Command, " "), cmp.Or(strings.Join(on, ", "), "questions"),
			starts, failure)
	}
	return a.Table(g)
}

// addFailures adds the last failure of each program. If there is no log yet, it adds nothing.
func (a *app) addFailures(ctx context.Context, p *project.Project, list []listed) (err error) {
	log, _, err := a.Reader(ctx, p)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer frame.CloseShown(log, &err)
	return newestFailures(ctx, log, list)
}

func newestFailures(ctx context.Context, log *store.Reader, list []listed) error {
	for e, err := range log.Events(ctx, event.Query{Types: []event.Type{event.HookFailed}, Newest: true, Limit: 1000}) {
		if err != nil {
			return err
		}
		f, err := fact.Decode[fact.HookFailed](e)
		if err != nil {
			continue // a pruned event has no payload
		}
		for i := range list {
			if l := &list[i]; l.Failure == nil && l.Kind == f.Kind && slices.Equal(l.Command, f.Command) {
				l.Failure = &lastFailure{Time: e.Time, Run: e.Run, Why: f.Why}
			}
		}
	}
	return nil
}

func (a *app) testCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "test NUMBER", Annotations: frame.PersonOnly.Annotation(),
		Short: "Start one program with an example, and show its output",
		Long: `Start the program with this number in 'perlica hook list'. A hook gets the newest event of its
types on record, or an example. A policy program gets a question about the command make.
Nothing is recorded, and no question is answered.`,
		Example: `  perlica hook test 1`,
		Args:    frame.Exactly("NUMBER"), ValidArgsFunction: frame.NoFiles,
		RunE: func(cmd *cobra.Command, args []string) error { return a.test(cmd.Context(), args[0]) },
	}
	return cmd
}

func (a *app) test(ctx context.Context, number string) error {
	p, err := a.Locate(nil)
	if err != nil {
		return err
	}
	list := programs(p)
	n, err := strconv.Atoi(number)
	if err != nil || n < 1 || n > len(list) {
		return frame.WithHint(frame.UsageErrorf("there is no program %q", number), "see 'perlica hook list'")
	}
	l := list[n-1]
	var res program.Result
	said := ""
	if l.Kind == hook.KindHook {
		var sample event.Event
		if sample, err = a.sample(ctx, p, l.On); err != nil {
			return err
		}
		res, err = l.hook.Test(ctx, p.Programs(), sample)
	} else if res, said, err = l.judge.Test(ctx, p.Programs(), p.Dir); said != "" {
		said = "the answer counts as: " + said + "\n"
	}
	werr := a.Write(func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "%s%s%stime: %s\n", screen.Sanitize(string(res.Stdout)),
			screen.Sanitize(res.Stderr), said, res.Took.Round(time.Millisecond))
		return err
	})
	if err != nil {
		return errors.Join(frame.ExitFailure.With(fmt.Errorf("%s: %w", l.Command[0], err)), werr)
	}
	return werr
}

// sample returns the newest event of the types, or an example without a payload.
func (a *app) sample(ctx context.Context, p *project.Project, types []event.Type) (e event.Event, err error) {
	log, _, err := a.Reader(ctx, p)
	if err == nil {
		defer frame.CloseShown(log, &err)
		var ok bool
		if e, ok, err = log.Last(ctx, event.Query{Types: types}); ok || err != nil {
			return e, err
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return e, err
	}
	e = event.NewFact(types[0], "perlica", event.Refs{}, struct{}{})
	e.Time = time.Now()
	return e, nil
}

func (a *app) deliverCommand() *cobra.Command {
	var quiet bool
	var after int64
	var team string
	cmd := &cobra.Command{
		Use: "deliver", Annotations: frame.ReadOnly.Annotation(),
		Short: "Deliver the events that hooks did not get yet",
		Long: `Start each hook for the events that it did not get yet, and end. A Perlica that writes an event
for a hook starts this command in the background, with --quiet. You need it only after a crash
or a power failure, or to wait for the hooks. With --quiet it leaves a hook to another process
that delivers to it.`,
		Example: `  perlica hook deliver`,
		Args:    frame.Exactly(), ValidArgsFunction: frame.NoFiles,
		RunE: func(cmd *cobra.Command, _ []string) error {
			started, err := a.deliver(cmd.Context(), event.Seq(after), team, !quiet)
			if err != nil || quiet {
				return err
			}
			return a.Say("Programs started: %d.", started)
		},
	}
	cmd.Flags().BoolVarP(&quiet, "quiet", "q", false, "print nothing except errors, and wait for no other process")
	cmd.Flags().Int64Var(&after, "after", -1, "a hook that got no event yet gets those after this `number`")
	cmd.Flags().StringVar(&team, "team", "", "deliver the events of the log of this `team`")
	for _, name := range []string{"after", "team"} {
		_ = cmd.Flags().MarkHidden(name) // This cannot fail, because the flag exists.
	}
	return cmd
}

func (a *app) deliver(ctx context.Context, after event.Seq, team string, wait bool) (started int, err error) {
	locate := a.Locate
	if !a.Attended() { // Without a person here, an agent may have set the variable that trusts the project.
		locate = a.LocateWithoutTrust
	}
	p, err := locate(nil)
	if team != "" {
		dir, derr := os.Getwd()
		if derr != nil {
			return 0, derr
		}
		p, err = project.ForTeam(dir, a.Environ, nil, team)
	}
	if err != nil || len(p.Config.Hooks) == 0 {
		return 0, err
	}
	p.Delivers = true
	r, done, err := a.Open(ctx, p)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, done()) }()
	d, err := p.Deliverer(r)
	if err != nil {
		return 0, err
	}
	d.After, d.Wait = after, wait
	return d.Deliver(ctx)
}
