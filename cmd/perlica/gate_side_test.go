package main

import (
	"slices"
	"testing"

	"github.com/spf13/cobra"

	"github.com/perlica/perlica/cmd/perlica/frame"
	"github.com/perlica/perlica/policy/shell"
)

// everyCommand calls f with each command and with its words on the command line.
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

// TestEveryCommandHasASide checks that every command has an Access.
func TestEveryCommandHasASide(t *testing.T) {
	everyCommand(t, func(cmd *cobra.Command, _ []string) {
		switch frame.AccessOf(cmd) {
		case frame.ReadOnly, frame.PersonOnly, frame.AnswersQuestion, frame.StartsRun:
		default:
			t.Errorf("'%s' is on no side: annotate it with reads, acts, answers or runs", cmd.CommandPath())
		}
	})
}

// TestSidesOfPersons checks the Access of the commands that an agent must never use.
func TestSidesOfPersons(t *testing.T) {
	persons := map[string]frame.Access{
		"perlica chat": frame.PersonOnly, "perlica acp": frame.PersonOnly, "perlica phone": frame.PersonOnly,
		"perlica demo": frame.PersonOnly,
		"perlica send": frame.PersonOnly, "perlica cancel": frame.PersonOnly, "perlica init": frame.PersonOnly,
		"perlica config trust": frame.PersonOnly, "perlica provider default": frame.PersonOnly,
		"perlica pending allow": frame.AnswersQuestion, "perlica pending deny": frame.AnswersQuestion,
		"perlica pending choose":          frame.AnswersQuestion,
		"perlica policy approvals revoke": frame.PersonOnly, "perlica log prune": frame.PersonOnly,
		"perlica log resolve": frame.PersonOnly, "perlica log open": frame.PersonOnly,
		"perlica log import": frame.PersonOnly, "perlica log checkpoint": frame.PersonOnly,
		"perlica log key rotate": frame.PersonOnly,
		"perlica service":        frame.PersonOnly, "perlica service pair": frame.PersonOnly,
		"perlica service unpair": frame.PersonOnly, "perlica service channel enable": frame.PersonOnly,
		"perlica service channel disable": frame.PersonOnly, "perlica session new": frame.PersonOnly,
		"perlica session use": frame.PersonOnly,
		"perlica web":         frame.PersonOnly, "perlica web pair": frame.PersonOnly, "perlica web revoke": frame.PersonOnly,
		"perlica web token": frame.PersonOnly, "perlica session rename": frame.PersonOnly,
		"perlica session delete": frame.PersonOnly,
	}
	everyCommand(t, func(cmd *cobra.Command, _ []string) {
		if want, ok := persons[cmd.CommandPath()]; ok {
			delete(persons, cmd.CommandPath())
			if got := frame.AccessOf(cmd); got != want {
				t.Errorf("'%s' is on the side %q, not %q", cmd.CommandPath(), got, want)
			}
		}
	})
	for path := range persons {
		t.Errorf("there is no '%s'", path)
	}
}

// TestSidesAgreeWithThePolicy compares two checks of commands. Package frame refuses some commands to an agent's
// process. The policy judges a command by its words, and must refuse the same commands.
func TestSidesAgreeWithThePolicy(t *testing.T) {
	refused := func(words []string) bool {
		command := shell.Command{Argv: append([]string{"perlica"}, words...)}
		return shell.Judge(command, shell.Place{}).Verdict.Tier == shell.Refused
	}
	everyCommand(t, func(cmd *cobra.Command, words []string) {
		if len(words) == 0 {
			return // Without words, perlica is the chat, the bridge or a run, which have other rules.
		}
		if slices.Equal(words, []string{"sandbox", "enter"}) {
			return // Perlica itself starts 'sandbox enter' in a sandbox, and it becomes the agent.
		}
		person := frame.AccessOf(cmd) == frame.PersonOnly || frame.AccessOf(cmd) == frame.AnswersQuestion
		for _, name := range append([]string{cmd.Name()}, cmd.Aliases...) {
			words[len(words)-1] = name
			if refused(words) != person {
				t.Errorf("%q is on the side %q; package shell says %v", words, frame.AccessOf(cmd), !person)
			}
		}
	})
	for _, words := range [][]string{{"acp", "--provider", "claude", "--cli", "--help"}, {"run", "-c", "x"},
		{"run", "-s", "x", "y"}, {"--service"}} {
		if !refused(words) {
			t.Errorf("package shell lets %q pass", words)
		}
	}
}
