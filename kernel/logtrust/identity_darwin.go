package logtrust

import (
	"fmt"
	"os"
	"syscall"
	"time"
)

// identity returns a text that no other file has or will have. It combines device, inode and creation time, because the
// system reuses inodes.
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

// changed returns the time of the file's last change, which only the system can set. It returns the zero time if the
// time is unknown.
func changed(info os.FileInfo) time.Time {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return time.Unix(st.Ctimespec.Unix())
	}
	return time.Time{}
}
