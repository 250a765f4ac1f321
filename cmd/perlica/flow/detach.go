package flow

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/perlica/perlica/cmd/perlica/frame"
	"github.com/perlica/perlica/kernel/agents"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/kernel/flow"
	"github.com/perlica/perlica/provider/process"
)

// detach records the start of the flow run, starts a process that drives it, and returns. name is the argument of the
// command cmd.
func (a *app) detach(ctx context.Context, cmd *cobra.Command, d *driving, name string) error {
	if !d.limited {
		if err := a.CheckDetached(); err != nil {
			return err
		}
	}
	driver := flow.Driver{Log: d.r.Log(), By: frame.UserName(a.Getenv), Permissions: d.f.Permissions,
		Team: d.calls, Limited: d.limited}
	s, err := driver.Begin(ctx, d.file, d.id, d.inputs)
	if err == nil {
		err = d.r.Log().Sync()
	}
	if err != nil {
		return a.explain(err, d)
	}
	out := &printer{a: a, asJSON: d.f.Json, status: d.say.Status}
	if s.Finished != nil {
		out.write(change{Type: "flow.ended", ID: s.ID, State: s.Outcome()}, endText(s))
		if s.Finished.Outcome != fact.FlowDone {
			return frame.ExitFailure.With(nil)
		}
		return out.err
	}
	inputs, err := json.Marshal(d.inputs)
	if err != nil {
		return err
	}
	argv := append([]string{d.p.Resolver().Self, "flow", "run", "--detached", "--id=" + d.id}, passedOn(cmd)...)
	env := a.Environ
	if !d.limited {
		env = a.ProgramEnv()
	}
	if _, err := process.StartDetached(append(argv, "--", name), "", env, inputs); err != nil {
		return frame.WithHint(frame.ExitFailure.With(fmt.Errorf("no process drives the flow run: %w", err)),
			"without --detach, this terminal drives it: %s", d.again)
	}
	out.write(change{Type: "flow.detached", ID: s.ID, State: string(flow.Running)},
		"flow run "+s.ID+" goes on by itself")
	a.Note("to see it: perlica flow show " + s.ID)
	a.Note("to follow it, and to continue it if its process has died: " + d.again)
	return out.err
}

// passedOn returns the flags of this command that the detached process also needs.
func passedOn(cmd *cobra.Command) (args []string) {
	cmd.Flags().Visit(func(f *pflag.Flag) {
		switch f.Name {
		case "id", "input", "detach", "detached", "json", "wait":
			return
		}
		values := []string{f.Value.String()}
		if list, ok := f.Value.(pflag.SliceValue); ok {
			values = list.GetSlice()
		}
		for _, v := range values {
			args = append(args, "--"+f.Name+"="+v)
		}
	})
	return args
}

// continueCommand returns the line of a shell that continues the flow run with this id.
func continueCommand(cmd *cobra.Command, id, name string) string {
	words := append([]string{"perlica", "flow", "run"}, passedOn(cmd)...)
	inputs, _ := cmd.Flags().GetStringArray("input") // This cannot fail, because the flag exists.
	for _, in := range inputs {
		words = append(words, "--input", in)
	}
	return agents.CommandLine(append(words, "--id", id, name))
}
