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
	backupLayout = "2006-01-02T15-04-05.000" // the layout of the times in lumberjack's file names

	// maxDirFiles limits the number of files, because many short runs leave one file each.
	maxDirFiles = 100

	// starting is an age. A younger lock file counts as locked, because its process possibly has not locked it yet.
	starting = time.Minute
)

// sweepFiles deletes the oldest files of ended processes, and the rotated files of this process. It stops when the
// directory has space for one more full file. It ignores errors, because they only cost disk space.
func (t *Trail) sweepFiles() {
	entries, err := os.ReadDir(t.opts.Dir)
	if err != nil {
		return
	}
	living := t.livingStems(entries)
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

// stemOf returns the beginning of a file name that is the same for all files of one trail. ok is false if the file
// does not belong to a trail.
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

// livingStems returns the stems of running processes: a process holds the lock of each stem. It removes the lock files
// of ended processes.
func (t *Trail) livingStems(entries []os.DirEntry) map[string]bool {
	alive := map[string]bool{}
	for _, e := range entries {
		stem, ok := strings.CutSuffix(e.Name(), lockExt)
		if !ok || !strings.HasPrefix(stem, namePrefix) {
			continue
		}
		if stem == t.stem || t.isLocked(e) {
			alive[stem] = true
		}
	}
	return alive
}

func (t *Trail) isLocked(e os.DirEntry) bool {
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

// release unlocks a lock file and removes it. Another process may lock the file between the two steps. That does no
// harm, because no process will use the name again.
func release(lock *flock.Flock) {
	_ = lock.Close()
	_ = os.Remove(lock.Path())
}

// Usage returns the number of trail files in dir and their total size in bytes. Both are zero if
// dir does not exist.
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
			continue // The file was deleted in between.
		}
		if err != nil {
			return files, bytes, err
		}
		files, bytes = files+1, bytes+info.Size()
	}
	return files, bytes, nil
}
