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

// TryListen listens on a socket in dir for a moment. The error says why other processes
// could not wake one that asks. Where the folder does not exist yet there is nothing to say.
func TryListen(dir string) error {
	path := socketPath(dir, rand.Text())
	dir = filepath.Dir(path)
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
