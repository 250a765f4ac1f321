//go:build unix

package sandbox

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// isSystems reports whether only the system can replace a program. It looks at the program and all folders above,
// before and after links. Root can write everywhere, so its program must lie in a folder of the system and belong to
// root.
func isSystems(program string) bool {
	real, err := filepath.EvalSymlinks(program)
	if err != nil {
		return false
	}
	for _, path := range []string{program, real} {
		top, _, _ := strings.Cut(path[1:], "/")
		if os.Getuid() == 0 && !slices.Contains(system, top) {
			return false
		}
		for ; ; path = filepath.Dir(path) {
			info, err := os.Stat(path)
			if err != nil || isReplaceable(path, info) {
				return false
			}
			if path == "/" {
				break
			}
		}
	}
	return true
}

// isReplaceable reports whether an agent of this user could change a file or the entries of a folder.
func isReplaceable(path string, info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !ok || info.Mode()&0o002 != 0:
		return true
	case os.Getuid() != 0:
		return int(st.Uid) == os.Getuid() || unix.Access(path, unix.W_OK) == nil
	}
	return st.Uid != 0 || info.Mode()&0o020 != 0 && info.Mode()&fs.ModeSticky == 0
}

// isOpen reports whether the user, without the rights of root, may pass through a folder.
func isOpen(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return true
	}
	groups, _ := os.Getgroups() // without them the other rights decide
	switch {
	case int(st.Uid) == os.Getuid():
		return info.Mode()&0o100 != 0
	case int(st.Gid) == os.Getgid(), slices.Contains(groups, int(st.Gid)):
		return info.Mode()&0o010 != 0
	}
	return info.Mode()&0o001 != 0
}
