package process

import (
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestWaitingTakesNoProcessor checks that while an agent runs, no goroutine waits for its end in a system call. Such a
// goroutine would occupy one of the runtime's processors.
func TestWaitingTakesNoProcessor(t *testing.T) {
	fd, err := unix.PidfdOpen(unix.Getpid(), unix.PIDFD_NONBLOCK)
	if err != nil {
		t.Skip("the system has no pidfds that can be polled:", err)
	}
	if err := unix.Close(fd); err != nil {
		t.Fatal(err)
	}
	p, r := procStart(t, procSpec("proc-echo"))
	for {
		procEcho(t, p, r)
		watch := watching(t)
		if strings.Contains(watch, "unix.Waitid") {
			t.Fatalf("the agent lives:\n%s", watch)
		}
		if strings.Contains(watch, "pollExit") && strings.Contains(watch, "[IO wait") {
			break
		}
	}
	procEnd(t, p)
}

// watching returns the stack of the goroutine that waits for the agent's end.
func watching(t *testing.T) string {
	t.Helper()
	buf := make([]byte, 1<<20)
	buf = buf[:runtime.Stack(buf, true)]
	for stack := range strings.SplitSeq(string(buf), "\n\n") {
		if strings.Contains(stack, "(*Process).watch") {
			return stack
		}
	}
	t.Fatalf("no goroutine waits:\n%s", buf)
	return ""
}

// TestAwaitTheEnded checks that waiting for an ended process returns, whether the poller reports the end early or late.
func TestAwaitTheEnded(t *testing.T) {
	cmd := exec.Command("true")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for range 500 {
		awaitExit(cmd.Process.Pid) // this does not reap the process
		runtime.Gosched()
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}
