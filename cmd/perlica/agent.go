package main

import (
	"github.com/spf13/cobra"

	"github.com/perlica/perlica/cmd/perlica/builtin"
	"github.com/perlica/perlica/cmd/perlica/frame"
	"github.com/perlica/perlica/provider/predictable"
)

func agentCommand(a *frame.App) *cobra.Command {
	var opt predictable.Options
	pred := &cobra.Command{
		Use: "predictable", Annotations: frame.ReadOnly.Annotation(),
		Short: "Obey the lines of the prompt, without a model",
		Long: `An ACP agent that calls no model, for tests of Perlica and of other ACP clients. It echoes
the prompt and obeys lines that begin with @: it streams, asks, fails, falls silent or
crashes. See docs/predictable.md for all of these lines.`,
		Args: frame.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if opt.Scenario == "" {
				opt.Scenario = a.Getenv(predictable.EnvScenario)
			}
			return builtin.Serve(cmd.Context(), opt)
		},
	}
	pred.Flags().StringVar(&opt.Scenario, "scenario", "",
		"a `file` with a scenario (lines that the agent obeys), or the scenario itself")
	pred.Flags().StringVar(&opt.State, "state", "",
		"keep sessions in this `directory`, so that later processes can load them")
	return frame.Group("agent", "Run a built-in ACP agent on standard input and output",
		"The agents that are built into Perlica. They speak ACP on standard input and output. Perlica\n"+
			"starts them itself, and every other ACP client can.",
		pred, modelCommand(a), replayCommand(a))
}
