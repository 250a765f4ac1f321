//go:build unix

package predictable

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// TestSpawn checks the real child processes that @spawn starts.
func TestSpawn(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, script := range []string{"@spawn 1h", "@spawn 1h daemon", "@spawn 1h stubborn daemon",
		"@spawn 1h stubborn stdout"} {
		c := open(t, Options{Self: []string{self}})
		text, m, _ := c.prompt(script)
		pid, err := strconv.Atoi(strings.TrimSpace(strings.TrimPrefix(text, "spawned: ")))
		if err != nil || pid <= 0 {
			t.Fatalf("%s: %q %s", script, text, m.Error)
		}
		group, err := syscall.Getpgid(pid)
		if err != nil || (group == pid) != strings.Contains(script, "daemon") {
			t.Errorf("%s: group %d of %d: %v", script, group, pid, err)
		}
		if strings.Contains(script, "stubborn") {
			if !ignoresTerm(t, pid) {
				t.Errorf("%s: SIGTERM would end it", script)
			}
		}
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Errorf("%s: %v", script, err)
		}
	}
	c := open(t, Options{Self: []string{"/nonexistent"}})
	if _, m, _ := c.prompt("@spawn 1s"); !strings.Contains(string(m.Error), "@spawn") {
		t.Errorf("%s %s", m.Result, m.Error)
	}
}

// TestProcess runs the agent as a process and checks its exit codes, its end by SIGKILL, and @ignore term.
func TestProcess(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	run := func(scenario string) *exec.ExitError {
		var e *exec.ExitError
		if err := exec.Command(self, "--scenario", scenario).Run(); err != nil && !errors.As(err, &e) {
			t.Fatal(err)
		}
		return e
	}
	if e := run("[start]\n@exit 42"); e == nil || e.ExitCode() != 42 {
		t.Errorf("exit: %v", e)
	}
	if e := run("[start]\n@kill"); e == nil || e.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Errorf("kill: %v", e)
	}
	if e := run(""); e != nil {
		t.Errorf("end of input: %v", e)
	}

	cmd := exec.Command(self, "--scenario", "[start]\n@ignore term\n@line ready\n[eof]\n@exit 9")
	in, _ := cmd.StdinPipe()
	out, _ := cmd.StdoutPipe()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if l, err := bufio.NewReader(out).ReadString('\n'); l != "ready\n" {
		t.Fatal(l, err)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	in.Close()
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 9 {
		t.Errorf("term: %v", err)
	}
}

// ignoresTerm reports whether a process ignores SIGTERM. On systems other than Linux it can only send the signal and
// check that the process exists.
func ignoresTerm(t *testing.T, pid int) bool {
	if runtime.GOOS != "linux" {
		return syscall.Kill(pid, syscall.SIGTERM) == nil
	}
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		t.Fatal(err)
	}
	_, mask, _ := strings.Cut(string(b), "SigIgn:\t")
	n, err := strconv.ParseUint(mask[:16], 16, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n&(1<<(syscall.SIGTERM-1)) != 0
}
