package verify

import (
	"context"
	"errors"
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

// file is the file of a log, as a Source. It is the source with the most evidence. Besides events and checkpoints, it
// has the stored hashes, the list of open runs, the schema and the anchor.
type file struct {
	v      *verification
	reader *store.Reader
	conn   *sqlite.Conn // of the first scanner; used by Head
	structure

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

	jobs []func(*scanner, *Block) error // the parts of the file that Next did not return yet
	all  []*scanner
	idle chan *scanner
}

// Log verifies a log's file with everything stored in it, and the anchor. It reads the whole log on all processor cores
// and writes nothing. Other processes may append at the same time. Log makes the checks of the function Check and
// returns the same kind of Report.
func Log(ctx context.Context, r *store.Reader, opt Options) (Report, error) {
	f := &file{reader: r}
	f.v = &verification{source: f, file: f, opt: opt}
	err := f.v.verifySource(ctx)
	return f.v.finish(errors.Join(err, f.closeFile()))
}

func (f *file) closeFile() (err error) {
	for _, s := range f.all {
		err = errors.Join(err, s.closeConn())
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
	if err := f.openScanners(); err != nil {
		return h, err
	}
	if err := f.checkTables(ctx); err != nil || f.lacks["entries"] || f.lacks["names"] {
		return h, err
	}
	if err := f.measure(); err != nil {
		return h, err
	}
	if err := f.plan(); err != nil {
		return h, err
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

// openScanners opens one connection for each processor core. All connections read the same commit. If other processes
// commit all the time, openScanners opens only one connection.
func (f *file) openScanners() error {
	watch, err := connect(f.reader)
	if err != nil {
		return err
	}
	defer func() { _ = watch.Close() }() // only read
	version := func() (n int64, err error) {
		err = query(watch, `PRAGMA data_version`, func(stmt *sqlite.Stmt) error { n = stmt.ColumnInt64(0); return nil })
		return n, err
	}
	for range max(runtime.GOMAXPROCS(0), 1) {
		conn, err := connect(f.reader)
		if err != nil {
			return err
		}
		f.all = append(f.all, &scanner{f: f, conn: conn})
	}
	f.conn = f.all[0].conn
	for try := 0; ; try++ {
		before, err := version()
		if err != nil {
			return err
		}
		for _, s := range f.all {
			if err := s.begin(); err != nil {
				return err
			}
		}
		after, err := version()
		if err != nil || before == after || len(f.all) == 1 {
			return err
		}
		for _, s := range f.all {
			if err := query(s.conn, `ROLLBACK`, nil); err != nil {
				return err
			}
		}
		if try == 20 {
			for _, s := range f.all[1:] {
				_ = s.closeConn() // only read
			}
			f.all = f.all[:1]
		}
	}
}

// begin begins a transaction, so that the scanner reads one commit from now on.
func (s *scanner) begin() error {
	if err := query(s.conn, `BEGIN`, nil); err != nil {
		return err
	}
	return query(s.conn, `SELECT count(*) FROM sqlite_schema`, nil)
}

// Next returns the next part of the file: a tree or a list of its pages, and later the stretches of the events.
func (f *file) Next(context.Context) (func(*Block) error, error) {
	if len(f.jobs) == 0 {
		return nil, io.EOF
	}
	job := f.jobs[0]
	f.jobs = f.jobs[1:]
	return func(b *Block) error {
		s := <-f.idle
		defer func() { f.idle <- s }()
		return job(s, b)
	}, nil
}
