package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/perlica/perlica/provider"
)

// unknownCommand is what a first word that is no command leads to. It is never a prompt.
func unknownCommand(root *cobra.Command, word string) error {
	err := usageErr("there is no command %q", word)
	if near := nearestCommand(root, word); near != "" {
		return withHint(err, "did you mean 'perlica %s'?", near)
	}
	if strings.ContainsRune(word, ' ') {
		return withHint(err, "to send a text: perlica run %q", word)
	}
	return withHint(err, "to send a text: perlica run …; for the commands: perlica --help")
}

// checkExclusive names the flags that were given although they exclude each other.
func checkExclusive(cmd *cobra.Command) (err error) {
	cmd.Flags().Visit(func(fl *pflag.Flag) {
		for _, group := range fl.Annotations["cobra_annotation_mutually_exclusive"] {
			var given []string
			for _, name := range strings.Fields(group) {
				if cmd.Flags().Changed(name) {
					given = append(given, "--"+name)
				}
			}
			if len(given) > 1 {
				err = usageErr("%s exclude each other", strings.Join(given, " and "))
			}
		}
	})
	return err
}

// completeRunFlags gives shells the values of the flags of run, as far as a command has them.
func (a *app) completeRunFlags(cmd *cobra.Command) {
	fixed := func(values ...string) cobra.CompletionFunc {
		return cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)
	}
	for flag, f := range map[string]cobra.CompletionFunc{
		"permissions":   fixed("ask", "reads", "deny", "allow"),
		"output-format": fixed("text", "json", "stream-json"),
		"provider":      a.completeProviders,
		"session":       a.completeSessions,
	} {
		if cmd.Flags().Lookup(flag) == nil {
			continue // the chat has fewer
		}
		if err := cmd.RegisterFlagCompletionFunc(flag, f); err != nil {
			panic(fmt.Sprintf("completion of --%s: %v", flag, err)) // a flag that does not exist
		}
	}
}

func (a *app) completeProviders(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	var names []string
	for _, k := range provider.Registry() {
		names = append(names, k.ID+"\t"+k.Name)
	}
	if p, err := a.locate(nil); err == nil {
		for id := range p.Config.Providers {
			names = append(names, id)
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
