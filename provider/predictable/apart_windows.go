package predictable

import "syscall"

// apart detaches a daemon from the console of this process. The daemon stays in the same job object, because a process
// cannot leave a job that does not permit this.
func apart(daemon bool) *syscall.SysProcAttr {
	const detached = 0x00000008
	if !daemon {
		return nil
	}
	return &syscall.SysProcAttr{CreationFlags: detached | syscall.CREATE_NEW_PROCESS_GROUP}
}
