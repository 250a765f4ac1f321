package trail

import (
	"errors"
	"io/fs"
	"os"
)

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
