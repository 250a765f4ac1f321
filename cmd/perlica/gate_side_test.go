package main

import (
	"testing"

	"github.com/spf13/cobra"

	"github.com/perlica/perlica/policy"
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

// TestEveryCommandHasASide holds that whoever adds a command says what an agent may do with it.
func TestEveryCommandHasASide(t *testing.T) {
	everyCommand(t, func(cmd *cobra.Command, _ []string) {
		switch sideOf(cmd) {
		case reads, acts, answers, runs:
		default:
			t.Errorf("'%s' is on no side: annotate it with reads, acts, answers or runs", cmd.CommandPath())
		}
	})
}

// TestSidesOfPersons holds what an agent must never do.
func TestSidesOfPersons(t *testing.T) {
	persons := map[string]side{
		"perlica chat": acts, "perlica phone": acts, "perlica init": acts, "perlica config trust": acts, "perlica provider default": acts,
		"perlica pending allow": answers, "perlica pending deny": answers, "perlica pending choose": answers,
		"perlica policy approvals revoke": acts, "perlica log prune": acts, "perlica log resolve": acts, "perlica log open": acts,
		"perlica log import": acts, "perlica log checkpoint": acts, "perlica log key rotate": acts,
		"perlica service": acts, "perlica service pair": acts, "perlica service unpair": acts, "perlica service channel enable": acts,
		"perlica service channel disable": acts, "perlica session new": acts, "perlica session use": acts,
		"perlica session rename": acts, "perlica session delete": acts,
	}
	everyCommand(t, func(cmd *cobra.Command, _ []string) {
		if want, ok := persons[cmd.CommandPath()]; ok {
			delete(persons, cmd.CommandPath())
			if got := sideOf(cmd); got != want {
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
	everyCommand(t, func(cmd *cobra.Command, words []string) {
		if len(words) == 0 {
			return // the chat, the bridge or a run, as the terminal has it
		}
		person := sideOf(cmd) == acts || sideOf(cmd) == answers
		for _, name := range append([]string{cmd.Name()}, cmd.Aliases...) {
			words[len(words)-1] = name
			if policy.OwnCommand(words) != person {
				t.Errorf("%q is on the side %q; policy.OwnCommand says %v", words, sideOf(cmd), !person)
			}
		}
	})
	for _, words := range [][]string{{"run", "-c", "x"}, {"run", "-s", "x", "y"}, {"--service"}} {
		if !policy.OwnCommand(words) {
			t.Errorf("policy.OwnCommand lets %q pass", words)
		}
	}
}
