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

// isSystems reports whether no agent of this user could have replaced a program. It checks the rights on the program
// and on all folders above it, before and after links. If the user is root, the program must also lie in one of the
// folders in system, because root can write everywhere.
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

// isReplaceable reports whether an agent of this user could change the file, or the entries of the folder, at a path.
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

// isOpen reports whether the mode of a folder lets this user reach the files in it. It ignores the rights of root.
func isOpen(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return true
	}
	groups, _ := os.Getgroups() // without the groups, the other rights of the folder decide
	switch {
	case int(st.Uid) == os.Getuid():
		return info.Mode()&0o100 != 0
	case int(st.Gid) == os.Getgid(), slices.Contains(groups, int(st.Gid)):
		return info.Mode()&0o010 != 0
	}
	return info.Mode()&0o001 != 0
}
