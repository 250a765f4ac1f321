package logtrust

import (
	"errors"
	"io/fs"
	"os"
)

// files says which files a log is: SQLite takes for a part of the database what lies in the
// write-ahead log (-wal) beside it, so that one from elsewhere would bring its own events.
type files struct {
	File string `json:"file,omitempty"` // the database's identity; empty: the system tells none
	WAL  string `json:"wal,omitempty"`  // that of the write-ahead log with which it was last opened

	frames bool // something is in the write-ahead log
}

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
