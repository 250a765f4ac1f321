//go:build unix

package predictable

import "syscall"

// apart puts a daemon into a session, and so a process group, of its own.
func apart(daemon bool) *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: daemon} }
