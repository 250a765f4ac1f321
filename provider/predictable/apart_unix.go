//go:build unix

package predictable

import "syscall"

// apart gives a daemon its own session and process group.
func apart(daemon bool) *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: daemon} }
