package disk

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/gofrs/flock"
)

// Scratch is a private folder for an unfinished file. It is on the same disk as the finished file. If the process is
// killed, the next NewScratch in the same folder removes the remains.
type Scratch struct {
	dir string
	// lock marks the folder as used. It is nil if the disk has no locks.
	lock *flock.Flock
}

const (
	ScratchPrefix = ".perlica-unfinished-"
	scratchLock   = "lock"
)

// NewScratch makes a folder in dir that only its owner may enter.
func NewScratch(dir string) (*Scratch, error) {
	sweepScratch(dir)
	for {
		own, err := os.MkdirTemp(dir, ScratchPrefix)
		if err != nil {
			return nil, err
		}
		s := &Scratch{dir: own, lock: flock.New(filepath.Join(own, scratchLock))}
		held, err := s.lock.TryLock()
		_, gone := os.Lstat(own)
		switch {
		case err != nil && gone == nil:
			s.lock = nil // The disk has no locks, so sweepScratch does not remove the folder.
			return s, nil
		case held && gone == nil:
			return s, nil
		}
		// Another process removed the folder before this process could lock it. Try again. If this process dies here, the
		// next NewScratch removes the folder.
		_ = s.lock.Close()
	}
}

// Path returns the path of a file in the folder.
func (s *Scratch) Path(name string) string { return filepath.Join(s.dir, name) }

// Close removes the folder and its files.
func (s *Scratch) Close() error {
	var err error
	if s.lock != nil {
		err = s.lock.Close()
	}
	return errors.Join(err, os.RemoveAll(s.dir))
}

// sweepScratch removes the unused scratch folders in dir. It ignores errors: a folder that remains only costs disk
// space, and its name tells a person its purpose.
func sweepScratch(dir string) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if !e.IsDir() || !strings.HasPrefix(e.Name(), ScratchPrefix) {
			continue
		}
		name := filepath.Join(dir, e.Name())
		lock := flock.New(filepath.Join(name, scratchLock))
		idle, err := lock.TryLock()
		if cerr := lock.Close(); err == nil && cerr == nil && idle {
			_ = os.RemoveAll(name)
		}
	}
}
