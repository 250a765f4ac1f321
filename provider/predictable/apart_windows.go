package predictable

import "syscall"

// apart detaches a daemon from our console. The daemon stays in our job object, because a process cannot
// leave a job that does not permit it.
func apart(daemon bool) *syscall.SysProcAttr {
	const detached = 0x00000008
	if !daemon {
		return nil
	}
	return &syscall.SysProcAttr{CreationFlags: detached | syscall.CREATE_NEW_PROCESS_GROUP}
}
