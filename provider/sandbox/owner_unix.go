//go:build unix

package sandbox

import (
	"io/fs"
	"os"
	"slices"
	"syscall"
)

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
