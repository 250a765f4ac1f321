package logtrust

import (
	"fmt"
	"os"
	"syscall"
	"time"
)

// identity distinguishes the file at path from every other file, past or future. It combines device, inode and
// creation time, because the system reuses inodes.
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

// changed returns the time at which the system last noted a change of the file, or the zero time.
func changed(info os.FileInfo) time.Time {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return time.Unix(st.Ctimespec.Unix())
	}
	return time.Time{}
}
