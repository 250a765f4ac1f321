//go:build unix

package process

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// signalGroup signals a process group. The caller must know that the number still belongs to the group.
// SIGTERM is followed by SIGCONT, because a stopped group would not receive it.
func signalGroup(pgid int, sig syscall.Signal) error {
	if pgid <= 1 {
		return nil // kill(2) treats the groups 0 and 1 in a special way
	}
	err := syscall.Kill(-pgid, sig)
	if err == nil && sig == syscall.SIGTERM {
		syscall.Kill(-pgid, syscall.SIGCONT)
	}
	if errors.Is(err, syscall.ESRCH) {
		return nil
	}
	return err
}

func signalName(st *os.ProcessState) string {
	if ws, ok := st.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return unix.SignalName(ws.Signal())
	}
	return ""
}

// fromShell splits the exit code that bwrap reports for a program inside. A signal has the code -1.
func fromShell(code int) (int, string) {
	if name := unix.SignalName(syscall.Signal(code - 128)); code > 128 && name != "" {
		return -1, name
	}
	return code, ""
}

// shellCode returns the exit code that a shell would report.
func shellCode(st *os.ProcessState) int {
	if ws, ok := st.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return 128 + int(ws.Signal())
	}
	return st.ExitCode()
}
