package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// sandboxed skips a test on a machine without sandboxes.
func sandboxed(t *testing.T) {
	t.Helper()
	ok, err := canSandbox()
	if err != nil {
		t.Fatal(err)
	}
	if !ok {
		t.Skip("NOT TESTED: the sandbox: this machine cannot start one")
	}
}

// TestChatOffersTheSandbox checks that the chat names the sandbox in its first line and offers protect once, if no
// setting names a sandbox. Mutants: the offer comes twice; it comes although the configuration has decided.
func TestChatOffersTheSandbox(t *testing.T) {
	sandboxed(t)
	w := newWorld(t)
	check := func(first string, offers bool) {
		t.Helper()
		s := w.chat()
		s.bye()
		if text := sgr.ReplaceAllString(s.text(), ""); !strings.Contains(text, first) ||
			strings.Contains(text, "this machine can keep agents from Perlica's files") != offers {
			t.Errorf("the chat shows %q, want %q and an offer: %t", text, first, offers)
		}
	}
	if err := os.Remove(w.offered()); err != nil {
		t.Fatal(err)
	}
	const off = "a new session with predictable, sandbox off; /help"
	w.env = append(w.env, "PERLICA_SANDBOX=off")
	check(off, false)
	w.env[len(w.env)-1] = "PERLICA_SANDBOX="
	check(off, true)
	check(off, false)
	w.env[len(w.env)-1] = "PERLICA_SANDBOX=project"
	check("a new session with predictable, sandbox project; /help", false)
	w.audit()
}

// TestServersNeedTheirSandbox checks that a server ends at its start if this machine cannot provide the configured
// sandbox. A server without this check waits for its first input.
func TestServersNeedTheirSandbox(t *testing.T) {
	for _, args := range [][]string{{"service"}, {"web", "--listen", "127.0.0.1:0"}, {"acp", "--provider", "predictable"}} {
		t.Run(args[0], func(t *testing.T) {
			w := newWorld(t)
			program, err := exec.LookPath("perlica")
			if err != nil {
				t.Fatal(err)
			}
			w.env = append(w.env, "PERLICA_SANDBOX=project", "PATH="+filepath.Dir(program))
			j := w.run(args...)
			j.exits(2)
			if said := j.stderr.String(); !strings.Contains(said, "sandbox project is not available") {
				t.Errorf("it said %q", said)
			}
		})
	}
}
