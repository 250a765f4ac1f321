//go:build linux

package main

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// loginAgent writes a shell program that plays an agent's login. It returns the command line for this program.
func (w *world) loginAgent(lines ...string) string {
	w.t.Helper()
	path := filepath.Join(w.home, "agent")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+strings.Join(lines, "\n")), 0o700); err != nil {
		w.t.Fatal(err)
	}
	return path + " --acp"
}

// userLog returns the path of the user's own log.
func (w *world) userLog() string {
	return filepath.Join(w.home, ".perlica", "state", ".perlica_config", "contexts", "user", "eventlog.db")
}

// logins returns the payloads of the login events on the user's own log, in order.
func (w *world) logins() (list []string) {
	w.t.Helper()
	events, err := readLog(w.userLog())
	if err != nil {
		w.t.Fatal(err)
	}
	for _, e := range events {
		if strings.HasPrefix(string(e.Type), "acp.login.") {
			list = append(list, string(e.Type)+" "+string(e.Payload))
		}
	}
	return list
}

// TestLogin checks that an editor's arguments run the agent's command in the terminal. The command gets only the
// environment of an agent. Perlica returns the command's exit code, and the record has its start and its end.
func TestLogin(t *testing.T) {
	w := newWorld(t)
	w.env = append(w.env, "OTHER=other", "GIVEN=given")
	agent := w.loginAgent(`echo "args: $*"`, `test -t 0 && test -t 1 && test -t 2 && echo "on a terminal"`,
		`echo "env: $TERM $GIVEN ${OTHER:-none} ${PERLICA_AGENT_ID%%:*}"`,
		`read word; echo "typed: $word"`, `exit 7`)
	s := w.terminal(nil, "acp", "--agent", agent, "--env", "GIVEN", "--cli", "auth", "login", "--api-key",
		"hunter2hunter2", "--provider", "x")
	s.expect("this terminal is the agent's: ")
	s.expect("args: --acp --cli auth login --api-key hunter2hunter2 --provider x")
	s.expect("on a terminal")
	s.expect("env: xterm given none agent")
	s.press("secret\n")
	s.expect("typed: secret")
	s.exits(7)
	got := w.logins()
	if len(got) != 2 || !strings.Contains(got[0], `"--acp","--cli","auth","login","--api-key","`) ||
		strings.Contains(got[0], "hunter2") || !strings.Contains(got[0], `"cwd":`+strconv.Quote(w.project)) ||
		!strings.HasPrefix(got[1], "acp.login.ended ") || !strings.Contains(got[1], `"exit_code":7`) {
		t.Errorf("%q", got)
	}
	if entries, err := os.ReadDir(w.project); err != nil || len(entries) > 0 {
		t.Errorf("the project has %v (%v)", entries, err)
	}
	w.gone()
}

// TestLoginSignals checks that a signal from the terminal reaches the agent, which decides about its end. Perlica
// survives the signal. It passes on a signal that only Perlica got.
func TestLoginSignals(t *testing.T) {
	term := func(s *terminal) {
		if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Error(err)
		}
	}
	interrupt := func(s *terminal) { s.press("\x03") }
	for name, c := range map[string]struct {
		trap string
		send func(s *terminal)
		code int
		want string
	}{
		"Ctrl-C":            {"", interrupt, 130, `"exit_code":130,"signal":"SIGINT"`},
		"Ctrl-C is handled": {`trap 'echo bye; exit 3' INT`, interrupt, 3, `"exit_code":3`},
		"SIGTERM":           {"", term, 143, `"exit_code":143,"signal":"SIGTERM"`},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			s := w.terminal(nil, "acp", "--agent", w.loginAgent(c.trap, "echo ready", "read word"), "--login")
			s.expect("ready")
			c.send(s)
			s.exits(c.code)
			if got := w.logins(); len(got) != 2 || !strings.Contains(got[1], c.want) {
				t.Errorf("%q", got)
			}
			w.gone()
		})
	}
}

// TestLoginLeavesNothing checks that all processes of a login are ended, and that the person can use the terminal
// again.
func TestLoginLeavesNothing(t *testing.T) {
	w := newWorld(t)
	s := w.terminal(nil, "acp", "--agent", w.loginAgent("trap '' HUP", "setsid sleep 1000 &", "sleep 1000 &", "exit 0"),
		"login")
	s.exits(0)
	w.gone()
}

// TestLoginUnrecorded checks that no login command is started if its start cannot be recorded.
func TestLoginUnrecorded(t *testing.T) {
	w := newWorld(t)
	log := w.userLog()
	if err := os.MkdirAll(filepath.Dir(log), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(log, []byte(strings.Repeat("no log ", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	s := w.terminal(nil, "acp", "--agent", w.loginAgent("echo started"), "--login")
	s.exits(7)
	if strings.Contains(s.text(), "started") {
		t.Error(s.text())
	}
}

// TestEditorIsNoTerminal checks that 'perlica acp' explains its purpose to a person at a terminal.
func TestEditorIsNoTerminal(t *testing.T) {
	w := newWorld(t)
	s := w.terminal(nil, "acp")
	s.expect("this speaks a protocol with an editor, which starts it")
	s.exits(2)
	s = w.terminal(nil, "acp", "my-agent")
	s.expect(`takes no argument "my-agent"`)
	s.exits(2)
	if entries, err := os.ReadDir(w.home); err != nil ||
		slices.ContainsFunc(entries, func(e os.DirEntry) bool { return e.Name() != ".perlica" }) {
		t.Errorf("%v (%v)", entries, err)
	}
}

// TestTerminalLogin checks that a terminal login runs the agent's program with the login's arguments. The program must
// not run before the person has said yes.
func TestTerminalLogin(t *testing.T) {
	w := newWorld(t)
	agent := w.loginAgent(`if [ "$2" = --login ]; then echo "args: $* $REALM"; read word; exit 3; fi`,
		`tee -a "$HOME/wire" | perlica agent predictable --scenario '[initialize]`+"\n"+
			`@set authMethods [{"id":"tty","name":"Terminal","type":"terminal","args":["--login","a b"],"env":{"REALM":"here"}}]'`)
	w.config("[providers.mine.adapter]\ncommand = \"" + strings.Fields(agent)[0] + "\"\nargs = [\"--acp\"]\n")
	s := w.terminal(nil, "provider", "login", "mine")
	s.expect("REALM=here " + strings.Fields(agent)[0] + " --acp --login 'a b'")
	s.expect("Run this command of the agent's in this terminal? [y/N] ")
	s.press("n")
	s.exits(0)
	if got := w.logins(); len(got) != 0 {
		t.Errorf("%q", got)
	}
	s = w.terminal(nil, "provider", "login", "mine", "tty")
	s.expect("[y/N] ")
	s.press("y")
	s.expect("args: --acp --login a b here")
	s.press("secret\n")
	s.exits(3)
	if got := w.logins(); len(got) != 2 || !strings.Contains(got[1], `"exit_code":3`) {
		t.Errorf("%q", got)
	}
	w.start("provider", "test", "mine").exits(0)
	wire, err := os.ReadFile(filepath.Join(w.home, "wire"))
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(wire), `"terminal":true`); n != 2 || strings.Count(string(wire), `"initialize"`) != 3 {
		t.Errorf("logins in a terminal are announced %d times in %s", n, wire)
	}
	w.gone()
}
