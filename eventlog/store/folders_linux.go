package store

import (
	"os"

	"golang.org/x/sys/unix"
)

// folders reports changes in a set of folders: a file is written, made, removed or closed after writing.
type folders struct {
	changed chan struct{} // capacity 1

	file *os.File
	// done is closed when the listening goroutine has ended.
	done chan struct{}
}

// watchFolders returns nil if the system does not report changes, or if the user has no watches left.
func watchFolders(paths ...string) *folders {
	fd, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	if err != nil {
		return nil
	}
	f := &folders{changed: make(chan struct{}, 1), file: os.NewFile(uintptr(fd), "inotify"), done: make(chan struct{})}
	for _, path := range paths {
		const events = unix.IN_MODIFY | unix.IN_CLOSE_WRITE | unix.IN_CREATE | unix.IN_DELETE | unix.IN_MOVED_TO | unix.IN_MOVE_SELF
		if _, err := unix.InotifyAddWatch(fd, path, events); err != nil {
			_ = f.file.Close()
			return nil
		}
	}
	go f.listen()
	return f
}

// listen reads the reports of the system until the watch is closed. It reports only that a change happened.
func (f *folders) listen() {
	defer close(f.done)
	for buf := make([]byte, 16<<10); ; {
		if _, err := f.file.Read(buf); err != nil {
			return
		}
		select {
		case f.changed <- struct{}{}:
		default:
		}
	}
}

func (f *folders) closeWatch() {
	_ = f.file.Close() // only read
	<-f.done
}
