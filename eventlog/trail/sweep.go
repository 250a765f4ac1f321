package trail

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gofrs/flock"
)

const (
	namePrefix   = "perlica-"
	fileExt      = ".jsonl"
	lockExt      = ".lock"
	backupLayout = "2006-01-02T15-04-05.000" // lumberjack's

	// maxDirFiles keeps a sweep short where many small runs leave a file each.
	maxDirFiles = 100

	// starting is how long a lock file that no one holds may belong to a process
	// between creating and locking it.
	starting = time.Minute
)

// sweep deletes the oldest files of processes that are gone, and of what this
// process set aside, until there is room for one more full file. Its errors cost
// disk space only and are ignored.
func (t *Trail) sweep() {
	entries, err := os.ReadDir(t.opts.Dir)
	if err != nil {
		return
	}
	living := t.living(entries)
	var (
		gone         []os.FileInfo
		total, count int64
	)
	for _, e := range entries {
		stem, ok := stemOf(e.Name())
		if !ok || !e.Type().IsRegular() {
			continue
		}
		info, err := e.Info()
		if err != nil {
			continue
		}
		total, count = total+info.Size(), count+1
		own := stem == t.stem && e.Name() != t.stem+fileExt
		if own || !living[stem] {
			gone = append(gone, info)
		}
	}
	slices.SortFunc(gone, olderFirst)
	room := max(int64(t.opts.MaxTotalMB)*megabyte-t.maxSize(), 0)
	for _, info := range gone {
		if total <= room && count < maxDirFiles {
			return
		}
		if os.Remove(filepath.Join(t.opts.Dir, info.Name())) == nil {
			total, count = total-info.Size(), count-1
		}
	}
}

func olderFirst(a, b os.FileInfo) int {
	if c := a.ModTime().Compare(b.ModTime()); c != 0 {
		return c
	}
	return strings.Compare(a.Name(), b.Name())
}

// stemOf returns what identifies the trail that a file belongs to; ok is false for
// files that are not the trail's.
func stemOf(name string) (stem string, ok bool) {
	stem, ok = strings.CutSuffix(name, fileExt)
	if !ok || !strings.HasPrefix(stem, namePrefix) {
		return "", false
	}
	if cut := len(stem) - len(backupLayout) - 1; cut > 0 && stem[cut] == '-' {
		if _, err := time.Parse(backupLayout, stem[cut+1:]); err == nil {
			stem = stem[:cut]
		}
	}
	_, _, ok = strings.Cut(stem[len(namePrefix):], "-")
	return stem, ok
}

// living returns the stems whose lock is held, and clears away the locks of the dead.
func (t *Trail) living(entries []os.DirEntry) map[string]bool {
	alive := map[string]bool{}
	for _, e := range entries {
		stem, ok := strings.CutSuffix(e.Name(), lockExt)
		if !ok || !strings.HasPrefix(stem, namePrefix) {
			continue
		}
		if stem == t.stem || t.held(e) {
			alive[stem] = true
		}
	}
	return alive
}

func (t *Trail) held(e os.DirEntry) bool {
	info, err := e.Info()
	if err != nil || t.opts.Now().Sub(info.ModTime()) < starting {
		return err == nil
	}
	lock := flock.New(filepath.Join(t.opts.Dir, e.Name()), flock.SetFlag(os.O_RDONLY))
	if ok, err := lock.TryLock(); err != nil || !ok {
		return !os.IsNotExist(err)
	}
	release(lock)
	return false
}

// release removes a lock that this process holds. The name is never used again, so
// it does not matter who sees the file between the two steps.
func release(lock *flock.Flock) {
	_ = lock.Close()
	_ = os.Remove(lock.Path())
}

// Usage returns how many files the trails in dir have and how many bytes they take. A
// folder that is not there holds none.
func Usage(dir string) (files int, bytes int64, err error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, 0, nil
	}
	if err != nil {
		return 0, 0, err
	}
	for _, e := range entries {
		if _, ok := stemOf(e.Name()); !ok || !e.Type().IsRegular() {
			continue
		}
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue // swept in the meantime
		}
		if err != nil {
			return files, bytes, err
		}
		files, bytes = files+1, bytes+info.Size()
	}
	return files, bytes, nil
}
