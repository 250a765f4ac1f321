package logtrust

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"github.com/perlica/perlica/eventlog/disk"
)

// files identifies the files of a log: the database and its write-ahead log (-wal). SQLite treats a write-ahead log
// next to a database as a part of it. So a foreign write-ahead log would add foreign events.
type files struct {
	// File is the identity of the database file. Empty means that the system cannot identify files.
	File string `json:"file,omitempty"`
	// WAL is the identity of the write-ahead log at the last opening.
	WAL string `json:"wal,omitempty"`

	frames bool // true if the write-ahead log is not empty
}

// look returns the identities of the files at path.
func look(path string) (f files, err error) {
	if f.File, err = identity(path); err != nil {
		return f, err
	}
	info, err := os.Stat(path + "-wal")
	if err == nil {
		f.frames = info.Size() > 0
		f.WAL, err = identity(path + "-wal")
	}
	if errors.Is(err, fs.ErrNotExist) { // another process may have removed it when it closed the log
		f.WAL, f.frames, err = "", false, nil
	}
	return f, err
}

// match reports whether the present files are the files of this entry. The parameter "now" has the present files. An
// empty write-ahead log does not matter.
func (f files) match(now files) bool {
	return f.File == now.File && (!now.frames || f.WAL != "" && f.WAL == now.WAL)
}

// readEntry returns the stored entry of the log at path. ok is false if there is no readable entry.
func (s Store) readEntry(path string) (entry, bool) {
	path = real(path)
	var e entry
	if b, err := os.ReadFile(s.file(path)); err == nil && json.Unmarshal(b, &e) == nil && e.Path == path {
		return e, true
	}
	return readBeside(path)
}

// readBeside returns the entry in the log's own folder. ok is false if the entry does not prove that the log was made
// here.
func readBeside(path string) (e entry, ok bool) {
	name := besideName(path)
	if disk.Check(name) != nil { // a cloned repository may bring a pipe
		return entry{}, false
	}
	b, err := os.ReadFile(name)
	return e, err == nil && json.Unmarshal(b, &e) == nil && e.isProof(path)
}

// isProof reports whether an entry in the log's folder proves that the log was made here. The proof is the identity of
// the log's file. An entry from a clone cannot contain it, because the identity arises when the file is created.
func (e *entry) isProof(path string) bool {
	e.Path, e.Keys = path, nil // the entry may come from a clone, which may claim anything
	now, err := identity(path)
	return err == nil && now != "" && e.File == now
}

// besideName returns the path of the entry in the log's folder. It is used if the state directory cannot be written.
func besideName(path string) string { return strings.TrimSuffix(path, filepath.Ext(path)) + ".known" }

// writeEntry stores an entry in the state directory. If that fails, it stores the entry in the log's folder.
func (s Store) writeEntry(e entry) error {
	b, err := json.Marshal(e)
	if err != nil {
		return err
	}
	err = os.MkdirAll(s.Dir, 0o700)
	if err == nil {
		err = replace(s.file(e.Path), append(b, '\n'))
	}
	if err != nil && e.File != "" && replace(besideName(e.Path), append(b, '\n')) == nil {
		return nil
	}
	return err
}

// Logs returns the path and the name of each log that was opened or trusted here. The name is empty if the log was
// empty. The logs may no longer exist.
func (s Store) Logs() (list []Log, err error) {
	entries, err := s.entries()
	for _, e := range entries {
		list = append(list, Log{Path: e.Path, Origin: e.Origin})
	}
	sort.Slice(list, func(i, j int) bool { return list[i].Path < list[j].Path })
	return list, err
}

// entries returns all entries in the state directory. It skips damaged entries, because the next opening checks their
// logs again.
func (s Store) entries() (list []entry, err error) {
	files, err := os.ReadDir(s.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, f := range files {
		var e entry
		b, err := os.ReadFile(filepath.Join(s.Dir, f.Name()))
		if err == nil && !strings.HasPrefix(f.Name(), unfinished) && json.Unmarshal(b, &e) == nil && e.Path != "" {
			list = append(list, e)
		}
	}
	return list, err
}

func (s Store) file(path string) string {
	sum := sha256.Sum256([]byte(path))
	return filepath.Join(s.Dir, hex.EncodeToString(sum[:]))
}

func real(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	if p, err := filepath.EvalSymlinks(path); err == nil {
		return p
	}
	return path
}

// unfinished is the prefix of files that are still being written.
const unfinished = ".new-"

// replace replaces a file atomically. It does not wait for the disk. If a power failure loses the entry, the log's
// signatures prove again that the log is known.
func replace(path string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), unfinished+"*")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name()) // nothing uses the unfinished file
	}
	return err
}
