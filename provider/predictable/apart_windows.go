package predictable

import "syscall"

// apart detaches a daemon from our console. It stays in our job object: there is no
// leaving one that does not allow it.
func apart(daemon bool) *syscall.SysProcAttr {
	const detached = 0x00000008
	if !daemon {
		return nil
	}
	return &syscall.SysProcAttr{CreationFlags: detached | syscall.CREATE_NEW_PROCESS_GROUP}
}
