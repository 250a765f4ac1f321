//go:build linux

package hubtest

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// Small puts the server's folder on a disk of a few megabytes. It skips the test if this process
// may not mount one. The server must not have data yet.
func (s *Server) Small(t testing.TB, megabytes string) {
	t.Helper()
	if err := syscall.Mount("none", s.dir, "tmpfs", 0, "size="+megabytes+"m"); err != nil {
		t.Skip("a small disk cannot be mounted: ", err)
	}
	t.Cleanup(func() {
		s.Kill()
		_ = syscall.Unmount(s.dir, syscall.MNT_DETACH) // after an error, the disk stays until the machine restarts
	})
	if o := owner(); o != nil {
		if err := os.Chown(s.dir, int(o.Uid), int(o.Gid)); err != nil {
			t.Fatal(err)
		}
	}
}

// Fill fills a Small disk except for a megabyte until "free" is called.
func (s *Server) Fill(t testing.TB) (free func()) {
	t.Helper()
	path := filepath.Join(s.dir, "filling")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for size := 1 << 20; size > 0; {
		if _, err := f.Write(make([]byte, size)); errors.Is(err, syscall.ENOSPC) {
			size /= 2
		} else if err != nil {
			t.Fatal(err)
		}
	}
	info, err := f.Stat()
	if err == nil {
		err = f.Truncate(info.Size() - 1<<20)
	}
	if err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
}

// Ended reports whether the server has ended.
func (s *Server) Ended() bool {
	select {
	case <-s.gone:
		return true
	default:
		return false
	}
}
