package verify

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"

	"zombiezen.com/go/sqlite"

	"github.com/perlica/perlica/eventlog/anchor"
	"github.com/perlica/perlica/eventlog/disk"
	"github.com/perlica/perlica/eventlog/evidence"
	"github.com/perlica/perlica/eventlog/intents"
	"github.com/perlica/perlica/eventlog/store"
	"github.com/perlica/perlica/eventlog/tree"
)

// file is a log's file, the source that has most: beside events and checkpoints the stored hashes, the
// list of open runs, tables and indexes as they must be, and the anchor beside it.
type file struct {
	v      *verification
	reader *store.Reader
	conn   *sqlite.Conn // of Head, Next and End
	there  *sqlite.Stmt // the next number that is there

	lacks    map[string]bool // the tables that are not there
	changed  []string        // what of the schema is not as it was made
	size     int64           // how far the log goes, as it was at the start
	covered  int64           // the greatest size of a stored checkpoint then
	sizes    int64           // how many sizes they have
	numbered int64           // the greatest number of one
	stored   int64           // how many there are
	anchors  int             // lines of the anchor
	intents  intents.Contents
	absent   []tree.Subtree
	withheld []int64 // the events whose payloads are said not to have come
	beyond   int64   // how far the stored hashes go, if that is farther
	next     int64   // the number that the next stretch begins with

	idle chan *scanner
}

// errEndless ends the reading of a file that is so broken that it would not end.
var errEndless = fmt.Errorf("%w: events come over and over", disk.ErrCorrupt)

// Log verifies the log's file with all that is stored in it, and the anchor beside it. It reads the
// whole log on all cores, and writes nothing; others may append at the same time. Otherwise it is
// Check.
func Log(ctx context.Context, r *store.Reader, opt Options) (Report, error) {
	f := &file{reader: r, next: 1, idle: make(chan *scanner, runtime.GOMAXPROCS(0))}
	f.v = &verification{source: f, file: f, opt: opt}
	return f.v.finish(f.verify(ctx))
}

// verify verifies the log, and has SQLite look through the file at the same time.
func (f *file) verify(ctx context.Context) error {
	checking, cancel := context.WithCancel(ctx)
	defer cancel()
	whole := make(chan error, 1)
	go func() { whole <- f.reader.CheckIntegrity(checking) }()
	err := f.v.verify(ctx)
	if err != nil {
		cancel()
	}
	if broken := <-whole; disk.IsBroken(broken) {
		f.v.find(0, Unreadable, "%v", broken)
	} else if err == nil {
		err = broken
	}
	return errors.Join(err, f.close())
}

func (f *file) close() (err error) {
	close(f.idle)
	for s := range f.idle {
		err = errors.Join(err, s.close())
	}
	if f.there != nil {
		_ = f.there.Finalize() // eachRow returned what went wrong
	}
	if f.conn != nil {
		err = errors.Join(err, f.conn.Close())
	}
	return disk.Explain(err)
}

// Head finds out what there is to verify. The anchor is read before the size: it is never ahead of
// its log.
func (f *file) Head(ctx context.Context) (h Head, err error) {
	anchors, err := anchor.Read(f.reader.Path())
	if err != nil {
		return h, err
	}
	if fi, err := os.Stat(anchor.Path(f.reader.Path())); err == nil && fi.Size() > anchor.MaxBytes {
		f.v.warn("the anchor has %d bytes: only the last %d MiB of it were read, and its lines are counted from there", fi.Size(), anchor.MaxBytes>>20)
	}
	f.readIntents()
	if f.conn, err = connect(f.reader); err != nil {
		return h, err
	}
	if err := f.tables(ctx); err != nil || f.lacks["events"] {
		return h, err
	}
	if err := f.measure(); err != nil {
		return h, err
	}
	if f.there, _, err = f.conn.PrepareTransient(`SELECT seq FROM events WHERE seq >= ? ORDER BY seq LIMIT 1`); err != nil {
		return h, disk.Explain(err)
	}
	h.Origin, err = f.reader.Origin(ctx)
	if err != nil && !disk.IsBroken(err) && !errors.Is(err, evidence.ErrCheckpoint) && len(f.lacks) == 0 {
		return h, err
	}
	f.anchored(anchors)
	f.partial()
	return h, nil
}

// named reports whether the log's newest checkpoint names it so: its first event may be damaged.
func (f *file) named(ctx context.Context, origin string) bool {
	c, ok, err := f.reader.LastCheckpoint(ctx, 0)
	return err == nil && ok && c.Origin == origin
}

// anchored takes in the lines of the anchor.
func (f *file) anchored(anchors []anchor.Line) {
	for _, a := range anchors {
		switch {
		case a.Torn:
			f.v.warn("%s is torn: a crash cut it short", a)
		case a.Damage != "":
			f.v.find(0, Anchor, "%s cannot be read: %s", a, a.Damage)
		default:
			f.v.seals = append(f.v.seals, seal{Checkpoint: a.Checkpoint, size: a.Size, where: a.String(), kind: Anchor})
		}
	}
	f.anchors = len(anchors)
}

// Next hands out groups of the tree's first stored level. A stretch without any row is one, however
// long it is.
func (f *file) Next(context.Context) (func(*Block) error, error) {
	first := f.next
	if first > max(f.size, min(f.covered, 1)) { // of an empty log there may be checkpoints
		return nil, io.EOF
	}
	last, hole, there := min((first-1)/blockEvents*blockEvents+blockEvents, f.size), false, f.size+1
	err := eachRow(f.there, func(stmt *sqlite.Stmt) error { there = stmt.ColumnInt64(0); return nil }, first)
	switch {
	case disk.IsBroken(err):
	case err != nil:
		return nil, err
	case there > last:
		hole = true
		if last = f.size; there <= f.size {
			last = (there - 1) / blockEvents * blockEvents
		}
	}
	f.next = max(first, last) + 1
	return func(b *Block) error {
		b.last, b.hole = last, hole
		return f.read(b, first)
	}, nil
}

// read reads a stretch from its first number on.
func (f *file) read(b *Block, first int64) (err error) {
	var s *scanner
	select {
	case s = <-f.idle:
	default:
		if s, err = newScanner(f); err != nil {
			return err
		}
	}
	err = s.fill(b, first)
	select {
	case f.idle <- s:
		return err
	default: // others came in between
		return errors.Join(err, s.close())
	}
}
