// Package trail is the debug trail: what a developer reads when something went
// wrong. It is no evidence; that is what package eventlog keeps.
//
// It promises never to fail its caller: a full disk, an unwritable directory or a
// value that cannot be encoded costs lines, which [Trail.Lost] counts, and nothing
// else. It promises to mask what looks like a secret ([redact.Text]), and that its
// directory stays below a limit. It refuses to touch a file of a living process.
//
// Each process writes a file of its own, one JSON object a line:
//
//	perlica-<start, UTC>-<pid>.jsonl      perlica-20261121T031517.042-4711.jsonl
//
// A second trail of the same process and millisecond gets a "-2" behind the pid.
// A file that would grow over its limit is renamed by lumberjack, which names what
// it sets aside by the time of the rotation, not by a number:
//
//	perlica-20261121T031517.042-4711-2026-11-21T04-00-00.000.jsonl
//
// Beside it lies perlica-<start>-<pid>.lock, locked as long as the process lives and
// removed by Close. Directories are 0700, files 0600.
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

// Options say where a trail lies and how large it may grow. The zero value of a
// limit is its default.
type Options struct {
	Dir        string           // "" turns the trail off: nothing is written, nothing counts as lost
	MaxSizeMB  int              // of one file; default 10
	MaxFiles   int              // of one process, the living one included; default 5, at least 2
	MaxTotalMB int              // of all trail files in Dir; default 200
	Level      slog.Leveler     // default slog.LevelInfo
	Redactor   *redact.Redactor // what is masked beside what redact.Text masks; nil: nothing
	Now        func() time.Time // default time.Now; names files and ages locks
}

const (
	megabyte    = 1 << 20
	startLayout = "20060102T150405.000"
	maxNames    = 100 // trails of one process that start in the same millisecond
)

// Trail is one process's debug trail. It is safe for concurrent use.
type Trail struct {
	opts   Options
	logger *slog.Logger
	lost   atomic.Int64

	mu     sync.Mutex         // guards what follows; the trail's own I/O happens under it
	file   *lumberjack.Logger // nil until the first line
	lock   *flock.Flock
	stem   string // file name without its extension
	since  int64  // bytes written since the last sweep
	torn   bool   // the last line was cut off by an error
	closed bool
}

// Open returns a trail and cannot fail. It touches no file: the directory is made
// and swept, and the file created, when the first line is written.
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
	o.MaxFiles = max(o.MaxFiles, 2) // lumberjack takes "no backups" for "all backups"
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

// Logger returns the trail's logger. Its lines are redacted and its long values
// cut; they are with the operating system, not synced, when a call returns.
func (t *Trail) Logger() *slog.Logger { return t.logger }

// Lost returns how many lines could not be written so far.
func (t *Trail) Lost() int64 { return t.lost.Load() }

// Close ends the trail, waits for a line being written and gives up the lock. Later
// calls return nil; lines written later are lost. The goroutine with which
// lumberjack deletes old files lives as long as the process.
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

// write appends one whole line, or counts it as lost.
func (t *Trail) write(line []byte) {
	if t.opts.Dir == "" {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed || t.start() != nil {
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
		t.sweep()
	}
}

func (t *Trail) maxSize() int64 { return int64(t.opts.MaxSizeMB) * megabyte }

// start creates the file once; after an error the next line tries again.
func (t *Trail) start() error {
	if t.file != nil {
		return nil
	}
	if err := os.MkdirAll(t.opts.Dir, 0o700); err != nil {
		return err
	}
	t.sweep()
	if err := t.claim(); err != nil {
		return err
	}
	t.file = &lumberjack.Logger{
		Filename:   filepath.Join(t.opts.Dir, t.stem+fileExt),
		MaxSize:    t.opts.MaxSizeMB,
		MaxBackups: t.opts.MaxFiles - 1,
	}
	return nil
}

// claim chooses a name no one has and locks it.
func (t *Trail) claim() error {
	base := fmt.Sprintf("%s%s-%d", namePrefix, t.opts.Now().UTC().Format(startLayout), os.Getpid())
	stem := base
	for i := 2; ; i++ {
		path := filepath.Join(t.opts.Dir, stem+lockExt)
		f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if err == nil {
			f.Close() // nothing was written
			t.stem, t.lock = stem, flock.New(path)
			// Without locks on this file system others cannot lock it either,
			// and what cannot be locked is not swept.
			_, _ = t.lock.TryLock()
			return nil
		}
		if !os.IsExist(err) || i > maxNames {
			return err
		}
		stem = fmt.Sprintf("%s-%d", base, i)
	}
}
