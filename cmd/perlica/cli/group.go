package cli

import (
	"fmt"
	"strings"

	"github.com/agext/levenshtein"
	"github.com/spf13/cobra"

	"github.com/perlica/perlica/cmd/perlica/exitcode"
)

// Group is a command that only holds others: without a word it shows its help, and an
// unknown word is an error with a suggestion.
func Group(use, short, long string, commands ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use: use, Annotations: Reads.On(), Short: short, Long: long,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			err := exitcode.Usagef("there is no command '%s %s'", cmd.CommandPath(), args[0])
			if near := NearestCommand(cmd, args[0]); near != "" {
				return exitcode.WithHint(err, "did you mean '%s %s'?", cmd.CommandPath(), near)
			}
			return exitcode.WithHint(err, "see '%s --help'", cmd.CommandPath())
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(commands...)
	return cmd
}

// NearestCommand is the command below cmd that word most likely meant, or "".
func NearestCommand(cmd *cobra.Command, word string) string {
	best, at := "", 3
	for _, c := range cmd.Commands() {
		for _, name := range append([]string{c.Name()}, c.Aliases...) {
			d := levenshtein.Distance(word, name, nil)
			if d == 2 && len(word) < 5 && (word == "" || word[0] != name[0]) {
				continue // in a short word two other letters make another word
			}
			if d < at {
				best, at = name, d
			}
		}
	}
	return best
}

// Exactly is cobra.ExactArgs with the arguments' names in the error.
func Exactly(names ...string) cobra.PositionalArgs {
	return Between(len(names), names...)
}

// Between wants at least least of the named arguments, and no more than all.
func Between(least int, names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < least:
			return exitcode.WithHint(exitcode.Usagef("'%s' needs %s", cmd.CommandPath(), strings.Join(names[len(args):least], " and ")), "%s", cmd.UseLine())
		case len(args) > len(names):
			return exitcode.WithHint(exitcode.Usagef("'%s' takes no argument %q", cmd.CommandPath(), args[len(names)]), "%s", cmd.UseLine())
		}
		return nil
	}
}

// CompleteFirst gives a shell the values of a command's first argument.
func CompleteFirst(f cobra.CompletionFunc) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return f(cmd, args, word)
	}
}

// CompleteFlag gives a shell the values of a flag, which must exist.
func CompleteFlag(cmd *cobra.Command, flag string, f cobra.CompletionFunc) {
	if err := cmd.RegisterFlagCompletionFunc(flag, f); err != nil {
		panic(fmt.Sprintf("completion of --%s: %v", flag, err))
	}
}

// NoFiles is the completion of a command without arguments.
var NoFiles = cobra.NoFileCompletions
