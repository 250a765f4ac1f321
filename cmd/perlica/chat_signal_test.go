//go:build linux

package main

import (
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// shell starts an interactive shell on a terminal. In the shell, "$PERLICA_TEST" is the path of perlica.
func (w *world) shell() *terminal {
	w.t.Helper()
	bash, err := exec.LookPath("bash")
	if err != nil {
		w.t.Skip("no bash")
	}
	s := w.terminal(func(cmd *exec.Cmd) {
		cmd.Args = []string{"bash", "--norc", "--noprofile", "--noediting", "-i"}
		cmd.Path, cmd.Err = bash, nil
		cmd.Env = append(cmd.Env, "PS1=shell: ", "PERLICA_TEST="+cmdPath(w.t))
	})
	s.expect("shell: ")
	return s
}

// suspend presses Ctrl-Z. The shell must get its terminal in the old mode, without any rest of the status line.
func (s *terminal) suspend(status ...string) {
	s.w.t.Helper()
	for _, text := range status {
		s.expect("\r" + text)
	}
	from := len(s.text())
	s.press("\x1a")
	s.expect("Stopped")
	if all := s.text(); len(status) > 0 {
		gone := strings.LastIndex(all, "\r\x1b[K")
		if drawn := strings.LastIndex(all, "\r"+status[0]); gone < from || gone < drawn {
			s.w.t.Errorf("the status line stays: %q", all[max(drawn, 0):])
		}
	}
	s.expect("shell: ")
	s.press("stty -a | grep -ow -- -*icanon\n")
	s.expect("\nicanon")
	s.expect("shell: ")
}

// leaveShell ends the shell.
func (s *terminal) leaveShell() {
	s.w.t.Helper()
	s.expect("shell: ")
	s.press("exit\n")
	s.exits(0)
}

// TestChatSuspend checks that Ctrl-Z stops the chat and that the shell can use the terminal. Afterwards the chat
// continues at the same place.
func TestChatSuspend(t *testing.T) {
	w := newWorld(t)
	s := w.shell()
	s.press("\"$PERLICA_TEST\" chat\n")
	s.prompt("")
	s.press("kept")
	s.prompt("kept")
	s.suspend()
	s.press("fg\n")
	s.prompt("kept")
	s.press(" on\r")
	s.expect("You said: kept on")
	s.prompt("")
	s.press("@hang\r") // the same during a turn
	s.suspend("predictable is working")
	s.press("fg\n")
	s.expect("\rpredictable is working")
	s.press("\x03")
	s.expect("stopped: interrupted")
	s.prompt("")
	s.press(question + "\r") // the same at a question, which is then asked again
	s.ask("Run it")
	s.suspend("a question waits")
	s.press("fg\n")
	s.ask("Run it", "1 ✓ once      “Allow once”")
	s.press("y")
	s.expect("permission: allow-once")
	s.prompt("")
	s.press("\x04")
	s.leaveShell()
	w.audit()
}

// TestTerminalSuspend checks Ctrl-Z at a question of the command run, also while a person types a word.
func TestTerminalSuspend(t *testing.T) {
	w := newWorld(t)
	s := w.shell()
	s.press(`"$PERLICA_TEST" run '@ask execute "Clean up" command="rm -rf /"'` + "\n")
	s.ask("predictable asks: Clean up")
	s.suspend("a question waits")
	s.press("fg\n")
	s.ask("predictable asks: Clean up")
	s.press("y")
	s.expect("Esc to go back: ")
	s.press("half a word")
	s.suspend()
	s.press("fg\n")
	s.ask("predictable asks: Clean up")
	w.logged(0, "interaction.answered")
	s.press("n")
	s.expect("permission: reject-once")
	s.leaveShell()
	w.audit()
}

// cmdPath returns the path of perlica.
func cmdPath(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("perlica")
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// TestChatSignalled sends a signal that ends the chat at once. The terminal must have its old mode afterwards,
// because BeforeFatalSignal restores it.
func TestChatSignalled(t *testing.T) {
	for name, sig := range map[string]syscall.Signal{"SIGQUIT": syscall.SIGQUIT, "SIGUSR1": syscall.SIGUSR1} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			s := w.shell()
			s.press("sh -c 'echo pid is $$; exec \"$PERLICA_TEST\"'; stty -a | grep -ow -- -*icanon\n")
			pid, err := strconv.Atoi(s.finds(`pid is (\d+)`)[1])
			if err != nil {
				t.Fatal(err)
			}
			s.prompt("")
			if err := syscall.Kill(pid, sig); err != nil {
				t.Fatal(err)
			}
			s.finds(`(?:^|[^-])icanon`) // In raw mode stty prints "-icanon".
			s.leaveShell()
		})
	}
}
