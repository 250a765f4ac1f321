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

// ruleset has the memory layout of the kernel's struct landlock_ruleset_attr.
type ruleset struct{ files, network, scoped uint64 }

// newRuleset creates a Landlock ruleset for abstract sockets and signals. It has no rules about files, because bwrap
// could not mount anything under such rules.
func newRuleset() (fd int, ok bool) {
	r := ruleset{scoped: unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL}
	n, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&r)), unsafe.Sizeof(r), 0)
	return int(n), errno == 0
}

// canScope reports whether Landlock can close abstract sockets and signals of other programs. This needs Linux 6.12,
// and a bwrap without the set-user-id bit, because this bit has no effect under Landlock.
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

// Restrict prepares the calling thread for starting an agent. The processes that it starts then have no files that
// Perlica inherited and no session keyring of the user. For a Scoped sandbox, Landlock also closes abstract sockets and
// signals of other programs. Restrict locks the goroutine to its thread and changes this thread for good. So the
// goroutine must end, and the thread with it.
func (b *Sandbox) Restrict() error {
	if b == nil {
		return nil
	}
	if err := closeInherited(); err != nil {
		return err
	}
	runtime.LockOSThread() // Restrict never unlocks the thread, so Go ends the thread with its goroutine
	_, err := unix.KeyctlInt(unix.KEYCTL_JOIN_SESSION_KEYRING, 0, 0, 0, 0)
	if err != nil && !errors.Is(err, unix.ENOSYS) && !errors.Is(err, unix.EPERM) { // these mean: no keyrings
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

// closeInherited sets close-on-exec for all open files of this process. Go does this for files that Perlica opens
// itself. But the program that started Perlica may have left a folder open, through which an agent could reach hidden
// files.
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
