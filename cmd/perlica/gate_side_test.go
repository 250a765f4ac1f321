package main

import (
	"testing"

	"github.com/spf13/cobra"

	"github.com/perlica/perlica/cmd/perlica/cli"
	"github.com/perlica/perlica/policy/shell"
)

// everyCommand walks the tree of commands, as the command line has it.
func everyCommand(t *testing.T, f func(cmd *cobra.Command, words []string)) {
	t.Helper()
	n := 0
	var walk func(cmd *cobra.Command, words []string)
	walk = func(cmd *cobra.Command, words []string) {
		n++
		f(cmd, words)
		for _, c := range cmd.Commands() {
			walk(c, append(words[:len(words):len(words)], c.Name()))
		}
	}
	root := newApp(version).root(nil)
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	walk(root, nil)
	if n < 60 {
		t.Fatalf("only %d commands were found", n)
	}
}

// TestEveryCommandHasASide holds that anyone who adds a command says what an agent may do with it.
func TestEveryCommandHasASide(t *testing.T) {
	everyCommand(t, func(cmd *cobra.Command, _ []string) {
		switch cli.SideOf(cmd) {
		case cli.Reads, cli.Acts, cli.Answers, cli.Runs:
		default:
			t.Errorf("'%s' is on no side: annotate it with reads, acts, answers or runs", cmd.CommandPath())
		}
	})
}

// TestSidesOfPersons holds what an agent must never do.
func TestSidesOfPersons(t *testing.T) {
	persons := map[string]cli.Side{
		"perlica chat": cli.Acts, "perlica acp": cli.Acts, "perlica phone": cli.Acts, "perlica send": cli.Acts, "perlica cancel": cli.Acts, "perlica init": cli.Acts, "perlica config trust": cli.Acts, "perlica provider default": cli.Acts,
		"perlica pending allow": cli.Answers, "perlica pending deny": cli.Answers, "perlica pending choose": cli.Answers,
		"perlica policy approvals revoke": cli.Acts, "perlica log prune": cli.Acts, "perlica log resolve": cli.Acts, "perlica log open": cli.Acts,
		"perlica log import": cli.Acts, "perlica log checkpoint": cli.Acts, "perlica log key rotate": cli.Acts,
		"perlica service": cli.Acts, "perlica service pair": cli.Acts, "perlica service unpair": cli.Acts, "perlica service channel enable": cli.Acts,
		"perlica service channel disable": cli.Acts, "perlica session new": cli.Acts, "perlica session use": cli.Acts,
		"perlica web": cli.Acts, "perlica web pair": cli.Acts, "perlica web revoke": cli.Acts, "perlica web token": cli.Acts, "perlica session rename": cli.Acts, "perlica session delete": cli.Acts,
	}
	everyCommand(t, func(cmd *cobra.Command, _ []string) {
		if want, ok := persons[cmd.CommandPath()]; ok {
			delete(persons, cmd.CommandPath())
			if got := cli.SideOf(cmd); got != want {
				t.Errorf("'%s' is on the side %q, not %q", cmd.CommandPath(), got, want)
			}
		}
	})
	for path := range persons {
		t.Errorf("there is no '%s'", path)
	}
}

// TestSidesAgreeWithThePolicy holds that what an agent's process is refused, its request is, too: the
// policy judges the words of a command, this package what it is.
func TestSidesAgreeWithThePolicy(t *testing.T) {
	refused := func(words []string) bool {
		command := shell.Command{Argv: append([]string{"perlica"}, words...)}
		return shell.Judge(command, shell.Place{}).Verdict.Tier == shell.Refused
	}
	everyCommand(t, func(cmd *cobra.Command, words []string) {
		if len(words) == 0 {
			return // the chat, the bridge or a run, as the terminal has it
		}
		person := cli.SideOf(cmd) == cli.Acts || cli.SideOf(cmd) == cli.Answers
		for _, name := range append([]string{cmd.Name()}, cmd.Aliases...) {
			words[len(words)-1] = name
			if refused(words) != person {
				t.Errorf("%q is on the side %q; package shell says %v", words, cli.SideOf(cmd), !person)
			}
		}
	})
	for _, words := range [][]string{{"acp", "--provider", "claude", "--cli", "--help"}, {"run", "-c", "x"}, {"run", "-s", "x", "y"}, {"--service"}} {
		if !refused(words) {
			t.Errorf("package shell lets %q pass", words)
		}
	}
}
