package main

import (
	"testing"

	"github.com/spf13/cobra"
)

// TestCommandAlone checks that a command is the same when it is built alone and when all commands are built.
func TestCommandAlone(t *testing.T) {
	built := map[string]bool{}
	for _, want := range newApp(version).root(nil).Commands() {
		if built[want.Name()] {
			t.Errorf("%s is built under two names", want.Name())
		}
		built[want.Name()] = true
		if want.Name() == "completion" { // This command differs, because its scripts contain all other commands.
			continue
		}
		root := newApp(version).root([]string{want.Name()})
		if n := len(root.Commands()); n != 1 {
			t.Errorf("%s: %d commands were built", want.Name(), n)
		}
		got, _, err := root.Find([]string{want.Name()})
		if err != nil || usages(got) != usages(want) {
			t.Errorf("%s: %v, and its help is\n%s\nwhere among the others it is\n%s", want.Name(), err, usages(got),
				usages(want))
		}
	}
}

// usages returns the help texts of a command and of all its subcommands.
func usages(cmd *cobra.Command) string {
	text := cmd.CommandPath() + "\n" + cmd.UsageString()
	for _, c := range cmd.Commands() {
		text += usages(c)
	}
	return text
}
