//go:build linux || darwin || freebsd || dragonfly

package disk

import "golang.org/x/sys/unix"

// FreeSpace returns how many bytes an ordinary user may still write to the file system that holds
// path.
func FreeSpace(path string) (uint64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(path, &st); err != nil {
		return 0, err
	}
	return uint64(max(st.Bavail, 0)) * uint64(st.Bsize), nil
}
