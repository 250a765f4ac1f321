package folder

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/gofrs/flock"
)

// Scratch is a folder of its own for a file that is not finished, on the disk on which it will
// lie. What a process that was killed left in one is removed by the next NewScratch beside it.
type Scratch struct {
	dir  string
	lock *flock.Flock // says that somebody works there; nil where the disk has no locks
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
			s.lock = nil // no one can take one: no one will take this for left behind
			return s, nil
		case held && gone == nil:
			return s, nil
		}
		// Somebody swept it before it was locked. If we die here it is swept, too.
		_ = s.lock.Close()
	}
}

// Path is the name of a file in the folder.
func (s *Scratch) Path(name string) string { return filepath.Join(s.dir, name) }

// Close removes the folder and all that is still in it.
func (s *Scratch) Close() error {
	var err error
	if s.lock != nil {
		err = s.lock.Close()
	}
	return errors.Join(err, os.RemoveAll(s.dir))
}

// sweepScratch removes the folders in dir in which no one works any more. It is done as well as
// can be: what stays is named for what it is.
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
