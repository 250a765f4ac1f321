package sandbox

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ruleset is the kernel's struct landlock_ruleset_attr.
type ruleset struct{ files, network, scoped uint64 }

// newRuleset makes a set of rules that says nothing about files. With rules about files, bwrap could not mount.
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

// Restrict takes from the calling thread, and from all processes that it starts, Perlica's inherited files, the session
// keyring, and abstract sockets and signals of other programs. Landlock closes the last two for a Scoped sandbox. The
// thread stays so, so it must be locked and must end with its goroutine.
func (b *Sandbox) Restrict() error {
	if b == nil {
		return nil
	}
	if err := closeInherited(); err != nil {
		return err
	}
	runtime.LockOSThread() // never unlocked
	_, err := unix.KeyctlInt(unix.KEYCTL_JOIN_SESSION_KEYRING, 0, 0, 0, 0)
	if err != nil && !errors.Is(err, unix.ENOSYS) && !errors.Is(err, unix.EPERM) { // with these the agent has no keyring
		return os.NewSyscallError("keyctl", err)
	}
	if !b.Scoped {
		return nil
	}
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

// closeInherited marks all files of this process, so that no program that it starts inherits one by accident. Perlica's
// own files are marked already. Another program may have left Perlica an open folder, through which an agent could
// reach covered files.
func closeInherited() error {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return fmt.Errorf("the open files cannot be listed: %w", err)
	}
	for _, e := range entries {
		if fd, err := strconv.Atoi(e.Name()); err == nil && fd > 2 {
			unix.CloseOnExec(fd)
		}
	}
	return nil
}
