package sandbox

import (
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ruleset is the kernel's struct landlock_ruleset_attr.
type ruleset struct{ files, network, scoped uint64 }

// newRuleset makes a set of rules without files: a set with files would forbid bwrap its mounts.
func newRuleset() (fd int, ok bool) {
	r := ruleset{scoped: unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL}
	n, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&r)), unsafe.Sizeof(r), 0)
	return int(n), errno == 0
}

// canScope reports whether the kernel scopes abstract sockets and signals (Linux 6.12). A bwrap that needs the
// set-user-id bit loses it under Landlock.
func canScope(bwrap string) bool {
	info, err := os.Stat(bwrap)
	if err != nil || info.Mode()&os.ModeSetuid != 0 {
		return false
	}
	fd, ok := newRuleset()
	if ok {
		_ = unix.Close(fd) // nothing was written
	}
	return ok
}

// Restrict keeps the calling thread, and all processes that it starts, from abstract sockets and signals of other
// programs. The thread stays so, so it must be locked and must end with its goroutine. Restrict does nothing for a
// sandbox that is not Scoped.
func (b *Sandbox) Restrict() error {
	if b == nil || !b.Scoped {
		return nil
	}
	runtime.LockOSThread() // never unlocked
	fd, ok := newRuleset()
	if !ok {
		return os.NewSyscallError("landlock_create_ruleset", unix.EINVAL)
	}
	defer func() { _ = unix.Close(fd) }() // nothing was written
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return os.NewSyscallError("prctl", err)
	}
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(fd), 0, 0); errno != 0 {
		return os.NewSyscallError("landlock_restrict_self", errno)
	}
	return nil
}
