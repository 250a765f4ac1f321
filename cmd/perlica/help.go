package main

import (
	"errors"
	"strings"

	"github.com/agext/levenshtein"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/perlica/perlica/cmd/perlica/frame"
)

// helpCommand returns the command 'perlica help'. 'perlica help X' with an unknown command X fails with the same error
// as 'perlica X'.
func helpCommand(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use: "help [COMMAND…]", Annotations: frame.ReadOnly.Annotation(),
		Short: "Show the help of a command",
		Long:  "Show the help of a command: the same as COMMAND --help.",
		Example: `  perlica help run
  perlica help log verify`,
		ValidArgsFunction: func(_ *cobra.Command, args []string, word string) (names []string, _ cobra.ShellCompDirective) {
			cmd, rest, err := root.Find(args)
			if err != nil || len(rest) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			for _, sub := range cmd.Commands() {
				if sub.IsAvailableCommand() && strings.HasPrefix(sub.Name(), word) {
					names = append(names, sub.Name()+"\t"+sub.Short)
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error {
			cmd, rest, err := root.Find(args)
			switch {
			case err != nil:
				return frame.ExitUsage.With(err)
			case cmd == root && len(rest) > 0:
				return unknownCommand(root, rest[0])
			case len(rest) > 0 && cmd.HasSubCommands():
				return cmd.ValidateArgs(rest)
			}
			cmd.InitDefaultHelpFlag()
			return cmd.Help()
		},
	}
}

// flagError adds a hint to the error of an unknown flag or an invalid value.
func flagError(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	var value *pflag.InvalidValueError
	bad := frame.ExitUsage.With(err)
	switch {
	case errors.As(err, &unknown):
		name := unknown.GetSpecifiedName()
		if run, _, err := cmd.Root().Find([]string{"run"}); err == nil && cmd == cmd.Root() {
			switch {
			case run.Flags().Lookup(name) != nil:
				return frame.WithHint(bad, "--%s is a flag of 'perlica run'", name)
			case len(name) == 1 && run.Flags().ShorthandLookup(name) != nil:
				return frame.WithHint(bad, "-%s is a flag of 'perlica run'", name)
			}
		}
		if name == "dry-run" {
			return frame.WithHint(bad, "'perlica policy check' says what would be allowed, and runs nothing")
		}
		if near := nearestFlag(cmd, name); near != "" {
			return frame.WithHint(bad, "did you mean --%s? See '%s --help'", near, cmd.CommandPath())
		}
	case errors.As(err, &value) && value.GetFlag().Value.Type() == "duration":
		return frame.WithHint(bad, "it is a number with a unit: 90s, 10m, 2h")
	}
	return frame.WithHint(bad, "see '%s --help'", cmd.CommandPath())
}

// nearestFlag returns the flag of cmd that is most similar to name, or "".
func nearestFlag(cmd *cobra.Command, name string) string {
	best, at := "", min(3, len(name))
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if d := levenshtein.Distance(name, f.Name, nil); d < at && !f.Hidden {
			best, at = f.Name, d
		}
	})
	return best
}
