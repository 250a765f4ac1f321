package log

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/perlica/perlica/cmd/perlica/frame"
	"github.com/perlica/perlica/cmd/perlica/screen"
	"github.com/perlica/perlica/eventlog/disk"
	logexport "github.com/perlica/perlica/eventlog/export"
	"github.com/perlica/perlica/eventlog/store"
	"github.com/perlica/perlica/eventlog/verify"
)

// subject is the log or the export that the command verifies.
type subject struct {
	io.Closer
	file   string // name of the file, as shown to the user
	export bool   // true if the file is an export
	origin string // origin of the log, which is its name in checkpoints; empty if it cannot be read
	size   int64
	check  func(context.Context, verify.Options) (verify.Report, error)
}

// toVerify opens the log or the export that the arguments name.
func (a *app) toVerify(ctx context.Context, args []string) (subject, error) {
	if len(args) > 0 {
		if s, err := a.exportToVerify(args[0]); s.export || err != nil {
			return s, err
		}
	}
	log, file, err := a.logToVerify(ctx, args)
	if err != nil {
		return subject{file: file}, err
	}
	s := subject{Closer: log, file: file, check: func(ctx context.Context, opt verify.Options) (verify.Report,
		error) {
		return verify.Log(ctx, log, opt)
	}}
	s.origin, _ = log.Origin(ctx) // The verification reports this error.
	s.size, _, _ = log.Head(ctx)  // The verification reports this error.
	return s, nil
}

// exportToVerify opens the named file if it is an export.
func (a *app) exportToVerify(name string) (s subject, err error) {
	s.file, s.Closer = name, io.NopCloser(nil)
	in := a.Stdin
	if name == "-" {
		s.file = "standard input"
	} else {
		info, err := os.Stat(name)
		if err != nil || !info.Mode().IsRegular() {
			return s, nil // A file that is no export is verified as a log, and may be a damaged one.
		}
		f, err := os.Open(name)
		if err != nil {
			return s, nil
		}
		in, s.Closer = f, f
	}
	buffered := bufio.NewReader(in)
	begin, _ := buffered.Peek(512) // A file with fewer bytes gives fewer bytes.
	if s.export = logexport.IsExport(string(begin)); !s.export {
		if name == "-" {
			return s, frame.WithHint(errors.New("standard input is no export of a log"),
				"standard input takes an export of 'perlica log export'; for a log, name its file")
		}
		return s, s.Close()
	}
	src, err := logexport.NewSource(buffered)
	if bad, ok := errors.AsType[*logexport.ImportError](err); ok && !errors.Is(err, disk.ErrVersion) {
		err = fmt.Errorf("%w: line %d: %w", disk.ErrCorrupt, bad.Line, bad.Err)
	}
	if err != nil {
		return s, errors.Join(err, s.Close())
	}
	s.origin, s.size = src.Header().Origin, src.Header().Size
	s.check = func(ctx context.Context, opt verify.Options) (verify.Report, error) {
		return verify.Check(ctx, src, opt)
	}
	return s, nil
}

func (a *app) logToVerify(ctx context.Context, args []string) (*store.Reader, string, error) {
	if len(args) > 0 {
		if info, err := os.Stat(args[0]); err == nil && info.IsDir() {
			return nil, args[0], frame.WithHint(fmt.Errorf("%s is a folder", args[0]),
				"a log is the file eventlog.db in the folder of its context")
		}
		log, err := store.OpenReader(ctx, args[0])
		switch {
		case errors.Is(err, fs.ErrNotExist):
			err = noLogAtError{args[0]}
		case errors.Is(err, disk.ErrForeign):
			err = frame.WithHint(err, "a file of 'perlica log prove' is checked with --proof, a checkpoint with --since")
		}
		return log, args[0], frame.ExplainUnreadable(err, args[0])
	}
	p, err := a.LocateToRead()
	if err != nil {
		return nil, "", err
	}
	log, paths, err := a.Reader(ctx, p)
	file := paths.EventLog
	if rel, rerr := filepath.Rel(p.Dir, file); rerr == nil {
		file = rel
	}
	return log, file, err
}

// noLogAtError means that a named file is empty or is not a log. It counts as fs.ErrNotExist.
type noLogAtError struct{ path string }

func (e noLogAtError) Error() string { return "there is no event log at " + e.path }
func (noLogAtError) Unwrap() error   { return fs.ErrNotExist }

// verifyWithProgress verifies the log. On a terminal it shows the progress.
func (a *app) verifyWithProgress(ctx context.Context, log subject, opt verify.Options) (verify.Report, error) {
	status := screen.NewStatusLine(a.Stderr, screen.StatusWidth(a.Stderr, a.Getenv), a.Styles(a.Stderr),
		screen.SystemClock())
	defer func() { _ = status.Close() }() // If the terminal is closed, there is no line to remove.
	shown := int64(0)
	opt.Progress = func(n int64) {
		if n-shown >= 10_000 {
			shown = n
			status.Set(fmt.Sprintf("verifying: %d of %d events", n, log.size))
		}
	}
	return log.check(ctx, opt)
}
