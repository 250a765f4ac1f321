package interaction

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"
)

// ErrSocketPath says that the folder for sockets has a path that is too long for them.
var ErrSocketPath = errors.New("the path is too long for a socket")

// TryListen listens on a socket in dir for a moment. The error says why other processes
// could not wake one that asks. Where dir does not exist yet only the length of the path
// is judged, and the error is nil.
func TryListen(dir string) error {
	path := socketPath(dir, rand.Text())
	// The system's limit counts a zero byte at the end.
	if limit := len(syscall.RawSockaddrUnix{}.Path) - 1; len(path) > limit {
		return fmt.Errorf("interaction: %w: %s has %d bytes, %d are possible", ErrSocketPath, filepath.Dir(path), len(filepath.Dir(path)), limit-len(path)+len(filepath.Dir(path)))
	}
	info, err := os.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("interaction: the folder for sockets: %w", err)
	}
	if !info.IsDir() {
		return fmt.Errorf("interaction: the folder for sockets: %w", &fs.PathError{Op: "open", Path: dir, Err: syscall.ENOTDIR})
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return fmt.Errorf("interaction: listen for answers: %w", err)
	}
	return l.Close() // removes the socket
}
