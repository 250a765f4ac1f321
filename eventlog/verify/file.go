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
	"github.com/perlica/perlica/eventlog/message"
	"github.com/perlica/perlica/eventlog/store"
	"github.com/perlica/perlica/eventlog/tree"
)

// file is the file of a log, as a Source. It is the source with the most evidence. Besides events and checkpoints, it
// has the stored hashes, the list of open runs, the schema and the anchor.
type file struct {
	v      *verification
	reader *store.Reader
	conn   *sqlite.Conn // used by Head, Next and End
	there  *sqlite.Stmt // selects the next existing Seq

	lacks   map[string]bool // missing tables
	changed []string        // changed parts of the schema
	// size is the number of events at the start of the verification.
	size int64
	// covered is the largest size of a stored checkpoint at the start of the verification.
	covered int64
	// sizes is the number of different sizes among the stored checkpoints.
	sizes int64
	// numbered is the largest id of a stored checkpoint.
	numbered int64
	// stored is the number of stored checkpoints.
	stored  int64
	anchors int // number of lines of the anchor
	intents intents.Contents
	absent  []tree.Subtree
	// withheld has the Seq of each event that an import stored without its payload.
	withheld []int64
	// beyond is the number of events that the stored hashes cover, if that is more than size.
	beyond int64
	// next is the first Seq of the next stretch.
	next int64

	idle chan *scanner
}

// errEndless ends the reading of a broken file that yields events without end.
var errEndless = fmt.Errorf("%w: events come over and over", disk.ErrCorrupt)

// Log verifies a log's file with everything stored in it, and the anchor. It reads the whole log on all processor cores
// and writes nothing. Other processes may append at the same time. Log makes the checks of the function Check and
// returns the same kind of Report.
func Log(ctx context.Context, r *store.Reader, opt Options) (Report, error) {
	f := &file{reader: r, next: 1, idle: make(chan *scanner, runtime.GOMAXPROCS(0))}
	f.v = &verification{source: f, file: f, opt: opt}
	return f.v.finish(f.verifyFile(ctx))
}

// verifyFile verifies the log and, at the same time, makes SQLite check the file.
func (f *file) verifyFile(ctx context.Context) error {
	checking, cancel := context.WithCancel(ctx)
	defer cancel()
	whole := make(chan error, 1)
	go func() { whole <- f.reader.CheckIntegrity(checking) }()
	err := f.v.verifySource(ctx)
	if err != nil {
		cancel()
	}
	if broken := <-whole; disk.IsBroken(broken) {
		f.v.find(0, Unreadable, message.Of(broken))
	} else if err == nil {
		err = broken
	}
	return errors.Join(err, f.closeFile())
}

func (f *file) closeFile() (err error) {
	close(f.idle)
	for s := range f.idle {
		err = errors.Join(err, s.closeConn())
	}
	if f.there != nil {
		_ = f.there.Finalize() // eachRow returned its error
	}
	if f.conn != nil {
		err = errors.Join(err, f.conn.Close())
	}
	return disk.Explain(err)
}

// Head reads the size and the stored lists of the log. It reads the anchor before the size, because the anchor never
// covers more events than the log has at that time.
func (f *file) Head(ctx context.Context) (h Head, err error) {
	anchors, err := anchor.Read(f.reader.Path())
	if err != nil {
		return h, err
	}
	if fi, err := os.Stat(anchor.Path(f.reader.Path())); err == nil && fi.Size() > anchor.MaxBytes {
		f.v.warn(anchorLarge.With(fi.Size(), anchor.MaxBytes>>20))
	}
	f.readIntents()
	if f.conn, err = connect(f.reader); err != nil {
		return h, err
	}
	if err := f.checkTables(ctx); err != nil || f.lacks["entries"] || f.lacks["names"] {
		return h, err
	}
	if err := f.measure(); err != nil {
		return h, err
	}
	if f.there, _, err = f.conn.PrepareTransient(
		`SELECT seq FROM entries WHERE seq >= ? ORDER BY seq LIMIT 1`); err != nil {
		return h, disk.Explain(err)
	}
	h.Origin, err = f.reader.Origin(ctx)
	if err != nil && !disk.IsBroken(err) && !errors.Is(err, evidence.ErrCheckpoint) && len(f.lacks) == 0 {
		return h, err
	}
	f.addAnchors(anchors)
	f.checkPart()
	return h, nil
}

// isNamed reports whether the parameter "origin" is the name of the log in its newest checkpoint. That name is
// needed if the first event is damaged.
func (f *file) isNamed(ctx context.Context, origin string) bool {
	c, ok, err := f.reader.LastCheckpoint(ctx, 0)
	return err == nil && ok && c.Origin == origin
}

// addAnchors adds the lines of the anchor to the checkpoints that are compared.
func (f *file) addAnchors(anchors []anchor.Line) {
	for _, a := range anchors {
		line := lineOfAnchor.With(a.Number)
		switch {
		case a.Torn:
			f.v.warn(lineTorn.With(line))
		case a.Damage != nil:
			f.v.find(0, Anchor, lineUnreadable.With(line, a.Damage))
		default:
			f.v.seals = append(f.v.seals, seal{Checkpoint: a.Checkpoint, size: a.Size, where: line, kind: Anchor})
		}
	}
	f.anchors = len(anchors)
}

// Next returns the next stretch of the log. A stretch has whole groups of the tree's first stored level. If the next
// rows are missing, all of them are one stretch, however many there are.
func (f *file) Next(context.Context) (func(*Block) error, error) {
	first := f.next
	if first > max(f.size, min(f.covered, 1)) { // read one stretch of an empty log, too, for its checkpoints
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
		return f.readBlock(b, first)
	}, nil
}

// readBlock reads the stretch of b. The parameter "first" is the first Seq of the stretch.
func (f *file) readBlock(b *Block, first int64) (err error) {
	var s *scanner
	select {
	case s = <-f.idle:
	default:
		if s, err = newScanner(f); err != nil {
			return err
		}
	}
	err = s.fillBlock(b, first)
	select {
	case f.idle <- s:
		return err
	default: // enough scanners are idle
		return errors.Join(err, s.closeConn())
	}
}
