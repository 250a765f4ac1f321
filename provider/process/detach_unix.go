//go:build unix

package process

import (
	"os"
	"os/exec"
	"strconv"
	"syscall"
)

// detach gives the process a session of its own, so that it outlives this process and its terminal. The process gets no
// descriptor that this process has inherited itself.
func detach(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	list, _ := os.ReadDir("/dev/fd") // without this folder, nothing more can be done
	for _, fd := range list {
		if n, err := strconv.Atoi(fd.Name()); err == nil && n > 2 {
			syscall.CloseOnExec(n)
		}
	}
}
