//go:build unix

package filelock

import (
	"os"
	"syscall"
)

// removed reports whether the file was removed from its folder.
func removed(fi os.FileInfo) bool {
	st, ok := fi.Sys().(*syscall.Stat_t)
	return !ok || st.Nlink == 0
}
