package store

import (
	"os"

	"golang.org/x/sys/unix"
)

// folders tells when something in a set of folders is written to, made, removed or closed
// after writing.
type folders struct {
	changed chan struct{} // capacity 1

	file *os.File
	done chan struct{} // closed when no one listens to the system any more
}

// watchFolders returns nil where the system does not tell, or not now: it lends few of these.
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

// listen ends when the file is closed. What happened does not matter, only that it did.
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

func (f *folders) close() {
	_ = f.file.Close() // nothing was written
	<-f.done
}
