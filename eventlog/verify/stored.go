package verify

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"golang.org/x/mod/sumdb/tlog"
	"zombiezen.com/go/sqlite"

	"github.com/perlica/perlica/eventlog/disk"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/message"
	"github.com/perlica/perlica/eventlog/store"
	"github.com/perlica/perlica/eventlog/tree"
)

// checkPart reports an incomplete file that cannot be an import. Nobody appends to an import. It therefore has no
// anchor, and at most the one checkpoint of its export.
func (f *file) checkPart() {
	if f.v.opt.NoImport || len(f.absent) == 0 || f.anchors == 0 && f.sizes < 2 {
		return
	}
	a := f.absent[0]
	first := event.Seq(a.Seq)
	f.v.find(first, Deleted, noImport.With(rangeOf(first, event.Seq(a.Last()), eventMissing, eventsMissing)))
}

// checkTables compares the tables of the file with the tables that a log must have. checkAccess, Open and doctor report
// other changes of the schema.
func (f *file) checkTables(ctx context.Context) error {
	ours := store.Statements()
	strange := false
	f.lacks = map[string]bool{"names": true, "entries": true, "nodes": true, "open_runs": true, "checkpoints": true,
		"withheld": true, "absent": true, "events": true}
	err := query(f.conn, `SELECT name, sql, type FROM sqlite_schema WHERE type IN ('table', 'view') AND sql IS NOT NULL`,
		func(stmt *sqlite.Stmt) error {
			name, sql := stmt.ColumnText(0), stmt.ColumnText(1)
			delete(f.lacks, name)
			if slices.Contains(ours, sql) {
				return nil
			}
			strange = strange || name == "entries"
			f.v.find(0, Schema, tableOther.With(stmt.ColumnText(2), name))
			return nil
		})
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(f.lacks)) {
		f.v.find(0, Schema, tableMissing.With(name))
	}
	if strange { // Another definition of the table entries may permit a Seq that is not an integer.
		return query(f.conn, `SELECT count(*) FROM entries WHERE typeof(seq) <> 'integer'`, func(stmt *sqlite.Stmt) error {
			if n := stmt.ColumnInt64(0); n > 0 {
				f.v.find(0, Inserted, withoutNumber.With(n))
			}
			return nil
		})
	}
	f.changed, err = f.reader.CheckSchema(ctx)
	if disk.IsBroken(err) {
		return nil
	}
	return err
}

// checkAccess reports ways to change the log against its rules: a changed index or trigger, or a second name of the
// file. It warns about files that everyone can write to.
func (f *file) checkAccess() {
	for _, what := range f.changed {
		if !strings.HasPrefix(what, "the table") { // checkTables has reported the tables
			f.v.find(0, Schema, openToChanges.With(what))
		}
	}
	path := f.reader.Path()
	if fi, err := os.Stat(path); err == nil && f.v.opt.NoImport && store.Links(fi) > 1 {
		f.v.find(0, Schema, manyNames)
	}
	if exposed := disk.Exposed(path); exposed != "" {
		f.v.warn(writable.With(exposed))
	}
}

// measure reads the size of the log, its lists and its absent parts.
func (f *file) measure() (err error) {
	one := func(to *int64) func(*sqlite.Stmt) error {
		return func(stmt *sqlite.Stmt) error { *to = stmt.ColumnInt64(0); return nil }
	}
	if err := query(f.conn, fmt.Sprintf(
		`SELECT coalesce(max(seq), 0) FROM entries WHERE seq <= %d AND typeof(seq) = 'integer'`, tree.MaxSeq),
		one(&f.size)); err != nil {
		return err
	}
	f.size = max(f.size, 0)
	err = query(f.conn, fmt.Sprintf(`SELECT seq FROM entries WHERE seq < 1 OR seq > %d LIMIT %d`, tree.MaxSeq,
		2*maxFindings), func(stmt *sqlite.Stmt) error {
		seq, at := stmt.ColumnInt64(0), int64(0)
		if seq > tree.MaxSeq {
			at = f.size + 1
		}
		f.v.find(event.Seq(at), Inserted, impossibleNumber.With(seq))
		return nil
	})
	if err != nil {
		return err
	}
	if err := f.measureNotes(); err != nil && !disk.IsBroken(err) {
		return err
	}
	if !f.lacks["open_runs"] && !f.lacks["withheld"] {
		if err := f.readDerived(); disk.IsBroken(err) {
			f.v.find(0, Unreadable, runsUnreadable.With(err))
		} else if err != nil {
			return err
		}
	}
	if f.lacks["absent"] {
		return nil
	}
	err = query(f.conn, `SELECT seq, level, hash FROM absent ORDER BY seq`, func(stmt *sqlite.Stmt) error {
		f.addAbsent(stmt)
		return nil
	})
	if err != nil {
		return err
	}
	if n := len(f.absent); n > 0 {
		f.size = max(f.size, f.absent[n-1].Last())
	}
	if f.lacks["nodes"] {
		return nil
	}
	return f.readNodes()
}

// measureNotes reads the numbers and sizes of the stored checkpoints. It reports checkpoints with an impossible size.
func (f *file) measureNotes() error {
	if f.lacks["checkpoints"] {
		return nil
	}
	return query(f.conn, `
		SELECT coalesce(max(size), 0), count(DISTINCT size), count(*) FILTER (WHERE size < 1), coalesce(max(id), 0), count(*)
		FROM checkpoints`, func(stmt *sqlite.Stmt) error {
		f.covered, f.sizes, f.numbered, f.stored = stmt.ColumnInt64(0), stmt.ColumnInt64(1), stmt.ColumnInt64(3),
			stmt.ColumnInt64(4)
		if n := stmt.ColumnInt64(2); n > 0 {
			f.v.find(0, Checkpoint, checkpointSizes.With(n))
		}
		return nil
	})
}

// addAbsent adds the subtree in a row of the table absent.
func (f *file) addAbsent(stmt *sqlite.Stmt) {
	a := tree.Subtree{Seq: stmt.ColumnInt64(0), Level: stmt.ColumnInt(1)}
	n := len(f.absent)
	ok := stmt.ColumnLen(2) == len(a.Hash) && stmt.ColumnBytes(2, a.Hash[:]) == len(a.Hash) &&
		wellFormed(a) && (n == 0 || a.Seq > f.absent[n-1].Last())
	if !ok {
		f.v.find(0, Tree, notSubtree.With(a.Seq))
		return
	}
	f.absent = append(f.absent, a)
	if f.v.opt.NoImport {
		first := event.Seq(a.Seq)
		f.v.find(first, Deleted, absentNoImport.With(rangeOf(first, event.Seq(a.Last()), eventMissing, eventsMissing)))
	}
}

// readDerived reads the list of open runs and the list of withheld payloads.
func (f *file) readDerived() error {
	stored := map[event.RunID]event.Seq{}
	err := query(f.conn, `SELECT run_id, seq FROM open_runs`, func(stmt *sqlite.Stmt) error {
		if len(stored) == maxStored {
			return fmt.Errorf("%w: it lists more than %d open runs", disk.ErrCorrupt, maxStored)
		}
		stored[event.RunID(stmt.ColumnText(0))] = event.Seq(stmt.ColumnInt64(1))
		return nil
	})
	if err != nil {
		return err
	}
	f.v.runs.stored = stored
	if !f.v.opt.NoImport {
		return query(f.conn, `SELECT seq FROM withheld ORDER BY seq`, func(stmt *sqlite.Stmt) error {
			f.withheld = append(f.withheld, stmt.ColumnInt64(0))
			return nil
		})
	}
	// Only an import may have rows in the table withheld. Leave out the rows with a missing payload here, because other
	// findings report that payload.
	return query(f.conn, `
		SELECT count(*), min(seq)
		FROM withheld
		WHERE seq NOT IN (SELECT seq FROM entries WHERE payload IS NULL)`, func(stmt *sqlite.Stmt) error {
		if n := stmt.ColumnInt64(0); n > 0 {
			f.v.find(event.Seq(stmt.ColumnInt64(1)), Deleted, withheldNoImport.With(n))
		}
		return nil
	})
}

// readNodes reads the stored hashes of the tree. In a part of a log, some of these cannot be computed from the
// events.
func (f *file) readNodes() error {
	f.v.nodes = map[place]tlog.Hash{}
	err := query(f.conn, `SELECT level, n, hash FROM nodes`, func(stmt *sqlite.Stmt) error {
		level, n := stmt.ColumnInt64(0), stmt.ColumnInt64(1)
		var h tlog.Hash
		switch {
		case len(f.v.nodes) == maxStored:
			return fmt.Errorf("%w: there are more than %d", disk.ErrCorrupt, maxStored)
		case level <= 0 || level >= tree.MaxLevel || level%tree.NodeHeight != 0 || n < 0 || n >= tree.MaxSeq>>level:
			f.v.find(0, Tree, nodeMisplaced.With(level, n))
		case (n+1)<<level > f.size:
			f.beyond = max(f.beyond, (n+1)<<level)
		case stmt.ColumnLen(2) == len(h) && stmt.ColumnBytes(2, h[:]) == len(h):
			f.v.nodes[place{int(level), n}] = h
		}
		return nil
	})
	if f.v.hasNodes = err == nil && len(f.absent) == 0; disk.IsBroken(err) {
		f.v.find(0, Unreadable, nodesUnreadable.With(err))
		return nil
	}
	return err
}

// End compares the derived tables with the events.
func (f *file) End(ctx context.Context) error {
	f.v.compareRuns()
	f.checkAccess()
	f.finishStructure()
	if err := f.compareIntents(); err != nil {
		return err
	}
	if f.v.opt.Place != nil && len(f.lacks) == 0 {
		if err := f.v.opt.Place(ctx, f.reader); err != nil && !disk.IsBroken(err) {
			f.v.find(0, Misplaced, message.Of(err))
		}
	}
	if f.beyond > f.size {
		f.v.find(event.Seq(f.size+1), Truncated, shorterThanHash.With(f.size, f.beyond))
	}
	if len(f.v.gone) == 0 {
		return nil
	}
	// A missing payload may have been pruned after the start of the verification. So also apply the later log.pruned
	// events.
	for e, err := range f.reader.Events(ctx, event.Query{After: event.Seq(f.size), Types: []event.Type{event.LogPruned}}) {
		if disk.IsBroken(err) {
			return nil // an unreadable event explains nothing
		}
		if err != nil {
			return err
		}
		if e.Class == event.Fact && e.PayloadMatches() {
			f.v.applyPruning(&e)
		}
	}
	return nil
}

// warnDropped warns about checkpoints that seem to have been removed. In an intact log, the ids of stored checkpoints
// are consecutive. Each signed line of the anchor and each end of a run has a stored checkpoint.
func (f *file) warnDropped() {
	if f.v.rep.Withheld > 0 && (f.sizes > 1 || f.v.rep.Anchors > 0) {
		defer f.v.warn(withheldWritten)
	}
	if len(f.absent) > 0 {
		return
	}
	if f.v.opt.NoImport && f.v.runs.ended > 0 && f.sizes == 0 && f.anchors == 0 {
		f.v.warn(noEvidence)
		return
	}
	if f.numbered > f.stored {
		f.v.warn(checkpointsMissing.With(f.numbered, f.stored))
	}
	if n := f.v.signatures.lone; n > 0 {
		f.v.warn(linesAlone.With(n))
	}
	if s := f.v.signatures.newest; f.v.opt.NoImport && s > 0 && int64(f.v.runs.last) > s {
		f.v.warn(endUnsealed.With(s))
	}
}
