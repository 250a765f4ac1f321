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
		Short: "The built-in agent: obeys the prompt, byte for byte",
		Long: `An ACP agent that calls no model. It echoes what it is sent, and does what lines
that begin with @ tell it: stream, ask, fail, fall silent, crash. See docs/predictable.md
for all of them. Made for trying Perlica, and any other ACP client.`,
		Args: frame.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if opt.Scenario == "" {
				opt.Scenario = a.Getenv(predictable.EnvScenario)
			}
			return builtin.Serve(cmd.Context(), opt)
		},
	}
	pred.Flags().StringVar(&opt.Scenario, "scenario", "", "a `file` with a scenario, or the scenario itself")
	pred.Flags().StringVar(&opt.State, "state", "",
		"keep sessions in this `directory`, so that later processes can load them")
	return frame.Group("agent", "Be an ACP agent on standard input and output",
		"Be an ACP agent on standard input and output: Perlica itself, or any other client, starts it.",
		pred, modelCommand(a), replayCommand(a))
}
