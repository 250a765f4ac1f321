//go:build unix

package process

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// signalGroup signals a process group. The caller knows that its number is still
// the group's. A stopped group is continued, or it would never see the signal.
func signalGroup(pgid int, sig syscall.Signal) error {
	if pgid <= 1 {
		return nil // 0 and 1 mean others
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

// shellCode is what a shell makes of how a process ended.
func shellCode(st *os.ProcessState) int {
	if ws, ok := st.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return 128 + int(ws.Signal())
	}
	return st.ExitCode()
}
