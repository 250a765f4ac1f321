package verify

import (
	"fmt"

	"golang.org/x/mod/sumdb/tlog"
	"zombiezen.com/go/sqlite"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/fault"
	"github.com/perlica/perlica/eventlog/tree"
)

// judge holds the tree against one checkpoint. One whose root is another may be wrong itself,
// or the log is: that is decided by those behind it.
func (v *verification) judge(s *seal) {
	switch {
	case s.fault == "" && v.origin != "" && s.Origin != v.origin && (len(v.bad) == 0 || v.bad[0].Seq > 1):
		s.fault = "it is one of another log: " + s.Origin
		fallthrough
	case s.fault != "":
		v.find(0, s.kind, "%s does not hold: %s", s.where, s.fault)
	case s.size < v.tree.Size, s.size == 0:
		v.unchecked(s)
	case v.tree.Root() == s.Root:
		v.holds(s)
	case v.damaged, v.lost:
		v.unchecked(s)
	case len(v.wrong) < maxFindings:
		v.wrong = append(v.wrong, *s)
	default:
		v.moreWrong++
	}
}

// unchecked counts a checkpoint that cannot be checked, once for its size: of one that was cosigned
// there are several. They come by size.
func (v *verification) unchecked(s *seal) {
	last, n := &v.skipped, &v.rep.Unchecked
	switch {
	case s.where == keptElsewhere:
		v.warn("%s could not be checked: of its %d events some are absent or damaged", s.where, s.size)
		return
	case s.kind == Anchor:
		last, n = &v.skippedAnchor, &v.rep.UncheckedAnchors
	}
	if *n == 0 || *last != s.size {
		*n++
	}
	*last = s.size
}

// holds takes in a checkpoint that holds. Whatever before it did not is wrong itself.
func (v *verification) holds(s *seal) {
	for i := range v.wrong {
		v.find(0, v.wrong[i].kind, "%s does not hold: its root is not that of the first %d events, which %s covers, too", v.wrong[i].where, v.wrong[i].size, s.where)
	}
	for _, n := range v.stray {
		if (n.N+1)<<n.Level <= s.size {
			v.find(0, Tree, "the stored hash over %s is wrong, or missing", below(n))
		}
	}
	v.wrong, v.moreWrong, v.stray = v.wrong[:0], 0, v.stray[:0]
	v.good = s.size
	v.signatures.count(s)
	switch s.kind {
	case Anchor:
		v.rep.Anchors++
	default:
		if s.where != keptElsewhere {
			v.rep.Checkpoints++
		}
	}
	if s.known && (s.wanted || !v.opt.RequireSignature) {
		v.rep.Signed = s.size
	}
}

// below names the events below a node.
func below(n tree.Node) string {
	return fmt.Sprintf("events %d to %d", n.N<<n.Level+1, (n.N+1)<<n.Level)
}

// end verifies what is left when all events have been seen.
func (v *verification) end() error {
	v.broken = v.damaged || v.lost
	v.rewritten()
	if err := v.shortened(); err != nil {
		return err
	}
	v.compareRuns()
	switch {
	case v.reader.Version >= 2 && !v.lacks["nodes"]:
		return v.nodes()
	case v.reader.Version < 2 && !v.lacks["tree"]:
		return v.oldTree()
	}
	return nil
}

// rewritten reports the checkpoints and stored hashes that did not hold, with none behind them
// that does: events were changed together with their leaves.
func (v *verification) rewritten() {
	reported := map[Damage]bool{}
	for i := range v.wrong {
		s := &v.wrong[i]
		if reported[s.kind] {
			continue
		}
		reported[s.kind] = true
		more := 0
		for _, other := range v.wrong[i+1:] {
			if other.kind == s.kind {
				more++
			}
		}
		and := ""
		if more += v.moreWrong; more > 0 {
			and = fmt.Sprintf(", nor do %d behind it", more)
		}
		v.find(event.Seq(v.good+1), s.kind, "%s does not hold%s: of events %d to %d not all are as they were written", s.where, and, v.good+1, s.size)
	}
	for _, n := range v.stray {
		v.misplaced(n)
	}
}

// shortened compares the end of the log with the checkpoints.
func (v *verification) shortened() error {
	reported := v.size
	for i := len(v.seals) - 1; i >= 0; i-- {
		if s := &v.seals[i]; s.size > reported && s.fault == "" {
			v.find(event.Seq(v.size+1), Truncated, "the log ends with event %d, and %s covers %d", v.size, s.where, s.size)
			reported = s.size
		}
	}
	if v.covered <= reported {
		return nil
	}
	// None of them was held against the tree, which has no such size.
	covered := reported
	err := query(v.conn, fmt.Sprintf(`SELECT id, size, note FROM checkpoints WHERE size > ? AND size <= ? ORDER BY size DESC LIMIT %d`, maxFindings), func(stmt *sqlite.Stmt) error {
		s := v.storedSeal(stmt)
		if s.fault != "" {
			v.find(0, s.kind, "%s does not hold: %s", s.where, s.fault)
			return nil
		}
		covered = max(covered, s.size)
		return nil
	}, reported, v.covered)
	if covered > reported {
		v.find(event.Seq(v.size+1), Truncated, "the log ends with event %d, and a checkpoint in the file covers %d", v.size, covered)
	}
	if fault.IsBroken(err) {
		return nil // that was found already
	}
	return err
}

// nodes compares the upper levels of the tree with what is stored. In a part of a log not all
// of them follow from what is there.
func (v *verification) nodes() error {
	part := len(v.absent) > 0
	stored := map[[2]int64]tlog.Hash{}
	beyond, limit := int64(0), v.size>>tree.NodeHeight
	err := query(v.conn, `SELECT level, n, hash FROM nodes WHERE level <> ? OR n >= ? OR n < 0`, func(stmt *sqlite.Stmt) error {
		level, n := stmt.ColumnInt64(0), stmt.ColumnInt64(1)
		var h tlog.Hash
		switch {
		case level <= 0 || level >= tree.MaxLevel || level%tree.NodeHeight != 0 || n < 0 || n >= tree.MaxSeq>>level:
			v.find(0, Tree, "a hash is stored at an impossible place: level %d, number %d", level, n)
		case (n+1)<<level > v.size:
			beyond = max(beyond, (n+1)<<level) // others may have appended since
		case stmt.ColumnLen(2) == len(h) && stmt.ColumnBytes(2, h[:]) == len(h):
			stored[[2]int64{level, n}] = h
		}
		return nil
	}, tree.NodeHeight, limit)
	if fault.IsBroken(err) {
		v.find(0, Unreadable, "the stored hashes of the tree cannot be read: %v", err)
		return nil
	}
	if err != nil {
		return err
	}
	for _, n := range v.high {
		if h, ok := stored[[2]int64{int64(n.Level), n.N}]; h != n.Hash && (ok || !part) {
			v.misplaced(n)
		}
	}
	return v.tooMany(beyond)
}

// misplaced reports a stored hash that is missing or does not follow. With a checkpoint behind it
// that holds it is itself wrong.
func (v *verification) misplaced(n tree.Node) {
	if (n.N+1)<<n.Level <= v.good {
		v.find(0, Tree, "the stored hash over %s is wrong, or missing", below(n))
		return
	}
	first := max(n.N<<n.Level, v.good) + 1
	v.find(event.Seq(first), Tree, "the stored hash over %s does not follow from them: from event %d on they are not all as they were written, or it is not", below(n), first)
}

// tooMany looks for stored hashes over events that the log does not have.
func (v *verification) tooMany(beyond int64) error {
	if beyond == 0 {
		return nil
	}
	var now int64 // read behind them: others may append between the two
	err := query(v.conn, `SELECT coalesce(max(seq), 0) FROM events`, func(stmt *sqlite.Stmt) error { now = stmt.ColumnInt64(0); return nil })
	if err == nil && beyond > max(now, v.size) {
		v.find(event.Seq(v.size+1), Truncated, "the log ends with event %d, and a stored hash covers %d", v.size, beyond)
	}
	return err
}

// oldTree compares the tree with what schema version 1 stored of it: its size and frontier.
func (v *verification) oldTree() error {
	if v.broken {
		return nil
	}
	err := query(v.conn, `SELECT size, frontier FROM tree`, func(stmt *sqlite.Stmt) error {
		size, b := stmt.ColumnInt64(0), make([]byte, stmt.ColumnLen(1))
		stmt.ColumnBytes(1, b)
		switch {
		case size > v.size: // nothing of that version appends any more
			v.find(event.Seq(v.size+1), Truncated, "the log ends with event %d, and the tree in the file has %d", v.size, size)
		case size < v.size:
			v.find(event.Seq(size+1), Inserted, "the tree in the file ends with event %d, and the log with %d", size, v.size)
		case string(b) != string(v.frontier()):
			v.find(event.Seq(v.good+1), Tree, "the tree in the file does not follow from the events: not all are as they were written, or it is not")
		}
		return nil
	})
	if fault.IsBroken(err) {
		v.find(0, Unreadable, "the tree in the file cannot be read: %v", err)
		return nil
	}
	return err
}

// frontier returns the roots as schema version 1 stored them.
func (v *verification) frontier() (b []byte) {
	for _, h := range v.tree.Roots {
		b = append(b, h[:]...)
	}
	return b
}
