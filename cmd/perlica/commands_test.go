package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// TestCommandList compares the commands, their arguments and their flags with docs/commands.txt. Each change of them is
// then visible in the diff of this file. TestCompatible compares the file with those of the released versions.
func TestCommandList(t *testing.T) {
	root := newApp(version).root(nil)
	root.InitDefaultHelpCmd()
	want := "# The commands with their arguments and flags. Written by: " +
		"go test ./cmd/perlica -run TestCommandList -update\n" + described(root)
	page := filepath.Join("..", "..", "docs", "commands.txt")
	if *update {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if got, err := os.ReadFile(page); err != nil || string(got) != want {
		t.Errorf("docs/commands.txt (%v): run go test ./cmd/perlica -run TestCommandList -update, and read the diff", err)
	}
}

// described returns the description of a command and of the commands below. It leaves out hidden commands and flags. A
// deprecated command or flag still works, so it belongs to the description.
func described(cmd *cobra.Command) string {
	if cmd.Hidden && cmd.Deprecated == "" {
		return ""
	}
	text := "\n" + cmd.CommandPath() + "\n"
	if _, arguments, ok := strings.Cut(cmd.Use, " "); ok {
		text += "\targuments " + arguments + "\n"
	}
	for _, alias := range cmd.Aliases {
		text += "\talias " + alias + "\n"
	}
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if f.Hidden && f.Deprecated == "" {
			return
		}
		scope := ""
		if cmd.PersistentFlags().Lookup(f.Name) != nil {
			scope = ", also after the commands below"
		}
		text += fmt.Sprintf("\t--%s %s%s\n", f.Name, f.Value.Type(), scope)
		if f.Shorthand != "" {
			text += fmt.Sprintf("\t-%s means --%s\n", f.Shorthand, f.Name)
		}
	})
	for _, sub := range cmd.Commands() {
		text += described(sub)
	}
	return text
}
