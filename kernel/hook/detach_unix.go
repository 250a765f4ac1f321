//go:build unix

package hook

import (
	"os/exec"
	"syscall"
)

// detach gives the process a session of its own, so that it outlives this process and its terminal.
func detach(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }
