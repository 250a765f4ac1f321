package logtrust

import (
	"fmt"
	"os"
	"syscall"
)

// identity tells the file at path from every other that was or will be there: device, inode and the
// time at which it was made, since inodes are used again.
func identity(path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return "", nil
	}
	return fmt.Sprintf("%d:%d:%d.%09d", st.Dev, st.Ino, st.Birthtimespec.Sec, st.Birthtimespec.Nsec), nil
}
