package verify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"golang.org/x/mod/sumdb/note"
	"zombiezen.com/go/sqlite"

	"github.com/perlica/perlica/eventlog/anchor"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/evidence"
	"github.com/perlica/perlica/eventlog/fault"
	"github.com/perlica/perlica/eventlog/store"
	"github.com/perlica/perlica/eventlog/tree"
)

// seal is a checkpoint that the log is held against, wherever it lies.
type seal struct {
	evidence.Checkpoint
	size   int64 // where it is looked at: that of the checkpoint, unless that is damaged
	where  string
	kind   Damage // what it is if it does not hold
	known  bool   // one of the known keys signed it
	wanted bool   // one of Options.Signers did
	bare   bool   // a line of the anchor without the signature that is stored for its size
	fault  string // why it is none, whatever the log is
}

// keptElsewhere is where Options.Since is from.
const keptElsewhere = "the checkpoint kept elsewhere"

// errEndless ends the reading of a file that is so broken that it would not end.
var errEndless = fmt.Errorf("%w: events come over and over", fault.ErrCorrupt)

// open finds out what there is to verify.
func (v *verification) open(ctx context.Context, anchors []anchor.Line) (err error) {
	if v.conn, err = connect(v.reader); err != nil {
		return err
	}
	v.verifiers = note.VerifierList(v.opt.Keys...)
	v.since = v.opt.Since
	if err := v.tables(ctx); err != nil || v.lacks["events"] {
		return err
	}
	if err := v.measure(); err != nil {
		return err
	}
	v.origin, err = v.reader.Origin(ctx)
	if err != nil && !fault.IsBroken(err) && !errors.Is(err, evidence.ErrCheckpoint) && len(v.lacks) == 0 {
		return err
	}
	if err := v.remember(ctx); err != nil {
		return err
	}
	v.anchored(anchors)
	v.anchors = len(anchors)
	v.partial(v.anchors)
	return nil
}

// partial looks for what a part of a log cannot have. Nothing was ever appended to one, so that
// it has no anchor, and one checkpoint at most, which came with it.
func (v *verification) partial(anchors int) {
	if v.opt.NoImport || len(v.absent) == 0 || anchors == 0 && v.sizes < 2 {
		return
	}
	a := v.absent[0]
	v.find(a.Seq, Deleted, "%s missing: the file says that they did not come with it, but with its anchor or checkpoints it is no import", spanOf(a.Seq, event.Seq(a.Last())))
}

// tables compares the tables with those of a log. What else was changed is doctor's business,
// and Open's, which refuses it.
func (v *verification) tables(ctx context.Context) error {
	ours := store.Statements()
	strange := false
	v.lacks = map[string]bool{"events": true, "tree": true}
	if v.reader.Version >= 2 {
		v.lacks = map[string]bool{"events": true, "nodes": true, "open_runs": true, "checkpoints": true, "withheld": true, "absent": true}
	}
	err := query(v.conn, `SELECT name, sql, type FROM sqlite_schema WHERE type IN ('table', 'view') AND sql IS NOT NULL`, func(stmt *sqlite.Stmt) error {
		name, sql := stmt.ColumnText(0), stmt.ColumnText(1)
		delete(v.lacks, name)
		if slices.Contains(ours, sql) || v.reader.Version < 2 && name == "tree" {
			return nil
		}
		strange = strange || name == "events"
		v.find(0, Schema, "the %s %s is not that of a log", stmt.ColumnText(2), name)
		return nil
	})
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(v.lacks)) {
		v.find(0, Schema, "the table %s is missing", name)
	}
	if strange { // a number may then be anything
		return query(v.conn, `SELECT count(*) FROM events WHERE typeof(seq) <> 'integer'`, func(stmt *sqlite.Stmt) error {
			if n := stmt.ColumnInt64(0); n > 0 {
				v.find(0, Inserted, "%d events have no number", n)
			}
			return nil
		})
	}
	faults, err := v.reader.CheckSchema(ctx)
	if err != nil && !fault.IsBroken(err) {
		return err
	}
	for _, f := range faults {
		if !strings.HasPrefix(f, "the table") {
			v.warn("%s; the log can be changed or added to as it must not be", f)
		}
	}
	return nil
}

// measure reads how far the log goes and which parts of it are absent, at one moment.
func (v *verification) measure() (err error) {
	if err := query(v.conn, `BEGIN`, nil); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, query(v.conn, `ROLLBACK`, nil)) }()
	one := func(to *int64) func(*sqlite.Stmt) error {
		return func(stmt *sqlite.Stmt) error { *to = stmt.ColumnInt64(0); return nil }
	}
	if err := query(v.conn, fmt.Sprintf(`SELECT coalesce(max(seq), 0) FROM events WHERE seq <= %d AND typeof(seq) = 'integer'`, tree.MaxSeq), one(&v.size)); err != nil {
		return err
	}
	v.size = max(v.size, 0)
	err = query(v.conn, fmt.Sprintf(`SELECT seq FROM events WHERE seq < 1 OR seq > %d LIMIT %d`, tree.MaxSeq, 2*maxFindings), func(stmt *sqlite.Stmt) error {
		seq, at := stmt.ColumnInt64(0), int64(0)
		if seq > tree.MaxSeq {
			at = v.size + 1
		}
		v.find(event.Seq(at), Inserted, "an event has the impossible number %d", seq)
		return nil
	})
	if err != nil || v.reader.Version < 2 {
		return err
	}
	if err := v.measureNotes(); err != nil && !fault.IsBroken(err) {
		return err
	}
	if !v.lacks["open_runs"] && !v.lacks["withheld"] {
		if err := v.derived(); fault.IsBroken(err) {
			v.find(0, Unreadable, "the list of open runs: %v", err)
		} else if err != nil {
			return err
		}
	}
	if v.lacks["absent"] {
		return nil
	}
	err = query(v.conn, `SELECT seq, level, hash FROM absent ORDER BY seq`, func(stmt *sqlite.Stmt) error {
		v.without(stmt)
		return nil
	})
	if err != nil {
		return err
	}
	if n := len(v.absent); n > 0 {
		v.size = max(v.size, v.absent[n-1].Last())
	}
	return nil
}

// measureNotes reads which sizes checkpoints are stored for. They are looked at in their places,
// and so are none that has no place.
func (v *verification) measureNotes() error {
	if v.lacks["checkpoints"] {
		return nil
	}
	return query(v.conn, `
		SELECT coalesce(max(size), 0), count(DISTINCT size), count(*) FILTER (WHERE size < 1), coalesce(max(id), 0), count(*)
		FROM checkpoints`, func(stmt *sqlite.Stmt) error {
		v.covered, v.sizes, v.numbered, v.stored = stmt.ColumnInt64(0), stmt.ColumnInt64(1), stmt.ColumnInt64(3), stmt.ColumnInt64(4)
		if n := stmt.ColumnInt64(2); n > 0 {
			v.find(0, Checkpoint, "%d checkpoints of the file are stored for an impossible number of events", n)
		}
		return nil
	})
}

// without takes in a row of absent.
func (v *verification) without(stmt *sqlite.Stmt) {
	a := tree.Subtree{Seq: event.Seq(stmt.ColumnInt64(0)), Level: stmt.ColumnInt(1)}
	n := len(v.absent)
	ok := stmt.ColumnLen(2) == len(a.Hash) && stmt.ColumnBytes(2, a.Hash[:]) == len(a.Hash) &&
		a.Seq > 0 && a.Seq <= tree.MaxSeq && a.Level >= 0 && a.Level < tree.MaxLevel && int64(a.Seq-1)&(1<<a.Level-1) == 0 &&
		(n == 0 || int64(a.Seq) > v.absent[n-1].Last())
	if !ok {
		v.find(0, Tree, "what is absent from event %d on is no part of a tree", a.Seq)
		return
	}
	v.absent = append(v.absent, a)
	if v.opt.NoImport {
		v.find(a.Seq, Deleted, "%s missing; the file says that they did not come, as of an import, which it is not", spanOf(a.Seq, event.Seq(a.Last())))
	}
}

// remember takes in the checkpoint that was kept elsewhere.
func (v *verification) remember(ctx context.Context) error {
	c := v.since
	if c == nil {
		return nil
	}
	if v.origin != "" && c.Origin != v.origin {
		// The first event may be damaged; what is signed tells the origin, too.
		last, ok, err := v.reader.LastCheckpoint(ctx, 0)
		if err != nil || !ok || last.Origin != c.Origin {
			return fmt.Errorf("eventlog: %w: %s, not %s", ErrOtherLog, c.Origin, v.origin)
		}
	}
	s := seal{Checkpoint: *c, size: c.Size, where: keptElsewhere, kind: Checkpoint}
	if c.Note != "" {
		v.sign(&s)
		if s.fault != "" {
			return fmt.Errorf("eventlog: %w: %s", evidence.ErrCheckpoint, s.fault)
		}
	}
	v.seals = append(v.seals, s)
	return nil
}

// anchored takes in the lines of the anchor. Their signatures are verified by the workers.
func (v *verification) anchored(anchors []anchor.Line) {
	for _, a := range anchors {
		switch {
		case a.Torn:
			v.warn("%s is torn: a crash cut it short", a)
		case a.Damage != "":
			v.find(0, Anchor, "%s cannot be read: %s", a, a.Damage)
		default:
			v.seals = append(v.seals, seal{Checkpoint: a.Checkpoint, size: a.Size, where: a.String(), kind: Anchor})
		}
	}
	slices.SortStableFunc(v.seals, func(a, b seal) int { return cmp.Compare(a.size, b.size) })
}

// sealed collects the checkpoints of the sizes that end in the block, and verifies their
// signatures: those stored with the log, then the lines of the anchor. A line that is that of
// a stored one needs no second look.
func (v *verification) sealed(s *scanner, b *block) error {
	if s.notes != nil {
		err := eachRow(s.notes, func(stmt *sqlite.Stmt) error {
			b.seals = append(b.seals, v.storedSeal(stmt))
			return nil
		}, b.first, b.last)
		if err != nil && !fault.IsBroken(err) {
			return err
		}
	}
	stored := len(b.seals)
	at, _ := slices.BinarySearchFunc(v.seals, b.first, func(s seal, size int64) int { return cmp.Compare(s.size, size) })
	for _, a := range v.seals[at:] {
		if a.size > b.last {
			break
		}
		if a.kind == Anchor {
			v.compare(&a, b.seals[:stored])
		}
		b.seals = append(b.seals, a)
	}
	if len(b.seals) > stored {
		slices.SortStableFunc(b.seals, func(a, b seal) int { return cmp.Compare(a.size, b.size) })
	}
	return nil
}

// compare holds a line of the anchor against the checkpoints stored for the same size, of
// which it must be one if there are any; else its own signature counts.
func (v *verification) compare(a *seal, stored []seal) {
	i, _ := slices.BinarySearchFunc(stored, a.size, func(s seal, size int64) int { return cmp.Compare(s.size, size) })
	line, any := anchor.Format(a.Checkpoint), false
	for ; i < len(stored) && stored[i].size == a.size; i++ {
		a.bare = a.bare || a.Note == "" && stored[i].known
		if stored[i].fault == "" && anchor.Format(stored[i].Checkpoint) == line {
			a.known, a.wanted = stored[i].known, stored[i].wanted
			return
		}
		any = any || stored[i].fault == ""
	}
	if a.Note == "" {
		return
	}
	if v.sign(a); any && a.fault == "" {
		a.fault = "it is not the checkpoint that is stored for as many events"
	}
}

// storedSeal reads a row of checkpoints.
func (v *verification) storedSeal(stmt *sqlite.Stmt) seal {
	s := seal{size: stmt.ColumnInt64(1), kind: Checkpoint}
	s.where = fmt.Sprintf("checkpoint %d of the file", stmt.ColumnInt64(0))
	s.Note = stmt.ColumnText(2)
	if v.sign(&s); s.fault == "" && s.Size != s.size {
		s.fault = fmt.Sprintf("it covers %d events and is stored for %d", s.Size, s.size)
	}
	return s
}

// sign reads the note of s and verifies the signatures of known keys.
func (v *verification) sign(s *seal) {
	n, err := note.Open([]byte(s.Note), v.verifiers)
	var unverified *note.UnverifiedNoteError
	var invalid *note.InvalidSignatureError
	switch {
	case errors.As(err, &unverified):
		n = unverified.Note
	case errors.As(err, &invalid):
		s.fault = fmt.Sprintf("its signature by %s does not hold", evidence.KeyName(invalid.Name, invalid.Hash))
		return
	case err != nil:
		s.fault = err.Error()
		return
	}
	c, err := evidence.ParseCheckpointText(n.Text)
	if err != nil {
		s.fault = err.Error()
		return
	}
	c.Note = s.Note
	s.Checkpoint, s.known = c, len(n.Sigs) > 0
	s.wanted = slices.ContainsFunc(n.Sigs, func(sig note.Signature) bool {
		return slices.ContainsFunc(v.opt.Signers, func(k note.Verifier) bool { return k.Name() == sig.Name && k.KeyHash() == sig.Hash })
	})
	for _, u := range n.UnverifiedSigs {
		v.unknown.count(evidence.KeyName(u.Name, u.Hash))
	}
}

// strangers counts the signatures of keys that are not known.
type strangers struct {
	mu sync.Mutex // guards n
	n  map[string]int
}

func (s *strangers) count(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.n == nil {
		s.n = map[string]int{}
	}
	if _, ok := s.n[key]; ok || len(s.n) < maxFindings {
		s.n[key]++
	}
}

// list has a sentence for each of the keys.
func (s *strangers) list() (lines []string) {
	for key, n := range s.n {
		what := "a signature"
		if n > 1 {
			what = fmt.Sprintf("%d signatures", n)
		}
		lines = append(lines, fmt.Sprintf("%s by a key that is not known here: %s", what, key))
	}
	slices.Sort(lines)
	return lines
}
