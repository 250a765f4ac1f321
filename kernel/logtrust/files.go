package logtrust

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/perlica/perlica/eventlog/disk"
)

// files says which files a log is: SQLite takes for a part of the database what lies in the
// write-ahead log (-wal) beside it, so that one from elsewhere would bring its own events.
type files struct {
	File string `json:"file,omitempty"` // the database's identity; empty: the system tells none
	WAL  string `json:"wal,omitempty"`  // that of the write-ahead log with which it was last opened

	frames bool // something is in the write-ahead log
}

// look says which files lie at path.
func look(path string) (f files, err error) {
	if f.File, err = identity(path); err != nil {
		return f, err
	}
	info, err := os.Stat(path + "-wal")
	if err == nil {
		f.frames = info.Size() > 0
		f.WAL, err = identity(path + "-wal")
	}
	if errors.Is(err, fs.ErrNotExist) { // or was removed with the end of another process
		f.WAL, f.frames, err = "", false, nil
	}
	return f, err
}

// hold reports whether now are the log's files. An empty write-ahead log is as good as none.
func (f files) hold(now files) bool {
	return f.File == now.File && (!now.frames || f.WAL != "" && f.WAL == now.WAL)
}

// read returns what is kept of the log at path; a file that cannot be read counts as none.
func (s Store) read(path string) (entry, bool) {
	path = real(path)
	var e entry
	if b, err := os.ReadFile(s.file(path)); err == nil && json.Unmarshal(b, &e) == nil && e.Path == path {
		return e, true
	}
	return readBeside(path)
}

// readBeside reads the entry that lies beside a log.
func readBeside(path string) (e entry, ok bool) {
	name := besideName(path)
	if disk.Check(name) != nil { // a clone may bring a pipe
		return entry{}, false
	}
	b, err := os.ReadFile(name)
	return e, err == nil && json.Unmarshal(b, &e) == nil && e.isProof(path)
}

// isProof reports whether an entry that lies beside its log says that the log was made here. It may have come
// with a clone, but the identity of a file that did not exist yet nobody can write down.
func (e *entry) isProof(path string) bool {
	e.Path, e.Keys = path, nil // a clone may say anything
	now, err := identity(path)
	return err == nil && now != "" && e.File == now
}

// besideName is where the entry of a log is kept if the user's state cannot be written.
func besideName(path string) string { return strings.TrimSuffix(path, filepath.Ext(path)) + ".known" }

// write keeps an entry: in the user's state, otherwise beside the log.
func (s Store) write(e entry) error {
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

// Logs returns the logs that were opened or trusted here, by path; of each its path and, unless it
// was empty, its name. They may be gone.
func (s Store) Logs() (list []Log, err error) {
	entries, err := s.entries()
	for _, e := range entries {
		list = append(list, Log{Path: e.Path, Origin: e.Origin})
	}
	slices.SortFunc(list, func(a, b Log) int { return strings.Compare(a.Path, b.Path) })
	return list, err
}

// entries returns all that is kept. A file that is damaged is passed over: its log is looked at again
// when it is opened next.
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

// unfinished is how the name of a file begins that is still being written, or never was to its end.
const unfinished = ".new-"

// replace puts a whole file in the place of another. It does not wait for the disk: what a power
// failure takes is found out anew from the log's signatures.
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
		_ = os.Remove(f.Name()) // it was not used
	}
	return err
}
