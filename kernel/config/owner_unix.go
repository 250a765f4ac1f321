//go:build unix

package config

import (
	"io/fs"
	"os"
	"syscall"
)

// foreign says whether a workspace belongs neither to root nor to the owner of home:
// in a directory that many may write to, such as /tmp, somebody else could have left
// it to receive the record. Root, and a home that cannot be looked at, accept all.
func foreign(info fs.FileInfo, home string) bool {
	if home == "" {
		return false
	}
	h, err := os.Stat(home)
	if err != nil {
		return false
	}
	a, okA := info.Sys().(*syscall.Stat_t)
	b, okB := h.Sys().(*syscall.Stat_t)
	return okA && okB && a.Uid != b.Uid && a.Uid != 0 && b.Uid != 0
}
