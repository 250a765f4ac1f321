// Package trail writes the debug trail for developers. The trail is not evidence. Package eventlog records the
// evidence.
//
// The package promises that its caller never gets an error. A full disk, an unwritable directory or a value that
// cannot be encoded only costs lines, and [Trail.Lost] counts these. The package masks secrets ([redact.Text]) and
// limits the size of its directory. It never deletes the current file of a living process.
//
// Each process writes its own file, with one JSON object on each line:
//
//	perlica-<start, UTC>-<pid>.jsonl      perlica-20261121T031517.042-4711.jsonl
//
// A second trail of the same process in the same millisecond has "-2" after the pid. lumberjack rotates a file that
// reaches its limit. The name of a rotated file contains the time of the rotation:
//
//	perlica-20261121T031517.042-4711-2026-11-21T04-00-00.000.jsonl
//
// The process holds a lock on perlica-<start>-<pid>.lock as long as it lives. Close removes that file. Directories
// have mode 0700, and files have mode 0600.
package trail

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gofrs/flock"
	"github.com/perlica/perlica/eventlog/redact"
	"gopkg.in/natefinch/lumberjack.v2"
)

// Options are the directory and the limits of a trail. A zero limit means the default.
type Options struct {
	// Dir is the directory. If Dir is empty, nothing is written, and no line counts as lost.
	Dir string
	// MaxSizeMB is the maximum size of one file in megabytes. The default is 10.
	MaxSizeMB int
	// MaxFiles is the maximum number of files of one process, including the current file. The default is 5. The
	// minimum is 2.
	MaxFiles int
	// MaxTotalMB is the maximum size of all trail files in Dir in megabytes. The default is 200.
	MaxTotalMB int
	// Level is the lowest level that is written. The default is slog.LevelInfo.
	Level slog.Leveler
	// Redactor masks the user's own patterns in addition to the secrets of redact.Text. It may be nil.
	Redactor *redact.Redactor
	// Now returns the time for file names and for the age of locks. The default is time.Now.
	Now func() time.Time
}

const (
	megabyte    = 1 << 20
	startLayout = "20060102T150405.000"
	maxNames    = 100 // maximum number of trails of one process that start in the same millisecond
)

// Trail is the debug trail of one process. It is safe for concurrent use.
type Trail struct {
	opts   Options
	logger *slog.Logger
	lost   atomic.Int64

	mu   sync.Mutex         // guards the fields below; also held while a line is written
	file *lumberjack.Logger // nil until the first line
	lock *flock.Flock
	// stem is the file name without its extension.
	stem  string
	since int64 // bytes written since the last sweep
	// torn means that an error cut off the last line, so the next line needs a newline before it.
	torn   bool
	closed bool
}

// Open returns a trail. It cannot fail, because it touches no file. The first line creates the directory, sweeps it
// and creates the file.
func Open(o Options) *Trail {
	o = o.withDefaults()
	t := &Trail{opts: o}
	t.logger = slog.New(newHandler(t, o.Level))
	return t
}

func (o Options) withDefaults() Options {
	if o.MaxSizeMB <= 0 {
		o.MaxSizeMB = 10
	}
	if o.MaxFiles <= 0 {
		o.MaxFiles = 5
	}
	o.MaxFiles = max(o.MaxFiles, 2) // One backup at least: lumberjack keeps all of them if its limit is 0.
	if o.MaxTotalMB <= 0 {
		o.MaxTotalMB = 200
	}
	if o.Level == nil {
		o.Level = slog.LevelInfo
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

// Logger returns the trail's logger. It masks secrets and shortens long values. When a call of the logger returns,
// the operating system has the line, but the line may not be on the disk.
func (t *Trail) Logger() *slog.Logger { return t.logger }

// Lost returns how many lines could not be written so far.
func (t *Trail) Lost() int64 { return t.lost.Load() }

// Close waits for the current line, closes the file and releases the lock. Later calls return nil, and later lines
// are lost. lumberjack's goroutine for deleting old files ends only with the process.
func (t *Trail) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil
	}
	t.closed = true
	if t.file == nil {
		return nil
	}
	err := t.file.Close()
	release(t.lock)
	if err != nil {
		return fmt.Errorf("trail: close: %w", err)
	}
	return nil
}

// writeLine appends one whole line, or counts it as lost.
func (t *Trail) writeLine(line []byte) {
	if t.opts.Dir == "" {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed || t.createFile() != nil {
		t.lost.Add(1)
		return
	}
	if t.torn {
		line = append([]byte{'\n'}, line...)
	}
	n, err := t.file.Write(line)
	if err != nil {
		t.torn = t.torn || n > 0
		t.lost.Add(1)
		return
	}
	t.torn = false
	if t.since += int64(n); t.since > t.maxSize() {
		t.since = 0
		t.sweepFiles()
	}
}

func (t *Trail) maxSize() int64 { return int64(t.opts.MaxSizeMB) * megabyte }

// createFile creates the file, unless it exists. After an error the next line tries again.
func (t *Trail) createFile() error {
	if t.file != nil {
		return nil
	}
	if err := os.MkdirAll(t.opts.Dir, 0o700); err != nil {
		return err
	}
	t.sweepFiles()
	if err := t.claimName(); err != nil {
		return err
	}
	t.file = &lumberjack.Logger{
		Filename:   filepath.Join(t.opts.Dir, t.stem+fileExt),
		MaxSize:    t.opts.MaxSizeMB,
		MaxBackups: t.opts.MaxFiles - 1,
	}
	return nil
}

// claimName chooses an unused name and locks its lock file.
func (t *Trail) claimName() error {
	base := fmt.Sprintf("%s%s-%d", namePrefix, t.opts.Now().UTC().Format(startLayout), os.Getpid())
	stem := base
	for i := 2; ; i++ {
		path := filepath.Join(t.opts.Dir, stem+lockExt)
		f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if err == nil {
			f.Close() // nothing was written
			t.stem, t.lock = stem, flock.New(path)
			// Ignore the error of a file system without locks. Other processes cannot lock the file there either, and
			// they delete only files that they can lock.
			_, _ = t.lock.TryLock()
			return nil
		}
		if !os.IsExist(err) || i > maxNames {
			return err
		}
		stem = fmt.Sprintf("%s-%d", base, i)
	}
}
