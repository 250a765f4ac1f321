package store

import (
	"database/sql"
	"errors"
	"fmt"

	"github.com/jmoiron/sqlx"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/fault"
	"github.com/perlica/perlica/eventlog/tree"
)

// A part of a log is a file that was imported from an export of some of its events. For
// those that did not come it has the hashes of the widest complete subtrees that hold
// nothing else, so that the root follows from the part alone.

// missingError says that hashes of the tree are not where they should be.
type missingError struct {
	level int
	First int64
}

func (e *missingError) Error() string {
	return fmt.Sprintf("%v: hashes of its tree are missing (level %d, from %d on)", fault.ErrCorrupt, e.level, e.First)
}

func (e *missingError) Unwrap() error { return fault.ErrCorrupt }

// ofPart is subtree where not all that it is made of is stored. Of a whole log that is
// damage, which missing describes.
func (h Hashes) ofPart(level int, n int64, missing error) (tlog.Hash, error) {
	from := n << level
	a, ok, err := h.AbsentAt(from)
	switch {
	case err != nil:
		return tlog.Hash{}, err
	case !ok:
		return tlog.Hash{}, missing
	}
	first, end := a.Span()
	switch {
	case first == from && a.Level == level:
		return a.Hash, nil
	case first <= from && from < end && a.Level >= level:
		return tlog.Hash{}, fmt.Errorf("%w: events %d to %d are not in it, and what is known of them is no more than one hash", fault.ErrPart, first+1, end)
	case level == 0:
		return tlog.Hash{}, missing
	}
	left, err := h.Subtree(level-1, 2*n)
	if err != nil {
		return tlog.Hash{}, err
	}
	right, err := h.Subtree(level-1, 2*n+1)
	if err != nil {
		return tlog.Hash{}, err
	}
	return tlog.NodeHash(left, right), nil
}

// AbsentAt returns the last absence that begins with leaf number from or before it, or else
// the first of all; ok is false if nothing is absent.
func (h Hashes) AbsentAt(from int64) (a tree.Subtree, ok bool, err error) {
	var row struct {
		Seq   int64
		Level int
		Hash  []byte
	}
	err = sqlx.GetContext(h.Ctx, h.DB, &row, `
		SELECT seq, level, hash
		FROM absent
		WHERE seq = coalesce((SELECT max(seq) FROM absent WHERE seq <= ?), (SELECT min(seq) FROM absent))`, from+1)
	if errors.Is(err, sql.ErrNoRows) {
		return a, false, nil
	}
	if err != nil {
		return a, false, fault.Explain(err)
	}
	if row.Seq < 1 || row.Level < 0 || row.Level > tree.MaxLevel || len(row.Hash) != tlog.HashSize {
		return a, false, fmt.Errorf("%w: what it says of absent event %d cannot be", fault.ErrCorrupt, row.Seq)
	}
	return tree.Subtree{Seq: event.Seq(row.Seq), Level: row.Level, Hash: tlog.Hash(row.Hash)}, true, nil
}
