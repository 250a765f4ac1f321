package process

import (
	"os/exec"
	"syscall"
)

// detach gives the process a group of its own, so that it outlives this process and its console.
func detach(cmd *exec.Cmd) {
	const detachedProcess = 0x8 // DETACHED_PROCESS
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP | detachedProcess}
}
