package store

import (
	"context"
	"errors"
	"fmt"
	"math/bits"

	"github.com/jmoiron/sqlx"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/perlica/perlica/eventlog/fault"
	"github.com/perlica/perlica/eventlog/tree"
)

// Hashes reads the stored hashes of a log's tree and computes the others from them. It
// implements tlog.HashReader.
type Hashes struct {
	Ctx context.Context // of the one call that a hashes lives in
	DB  sqlx.QueryerContext
	Old bool // the file has no nodes: all is computed from the leaves
}

// ReadHashes returns the hashes with the given storage indexes.
func (h Hashes) ReadHashes(indexes []int64) ([]tlog.Hash, error) {
	list := make([]tlog.Hash, len(indexes))
	for i, x := range indexes {
		level, n := tlog.SplitStoredHashIndex(x)
		var err error
		if list[i], err = h.Subtree(level, n); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// Subtree returns the root of the 2^level leaves from n·2^level on. In a part of a log it
// may be one that the part has instead of the leaves, or be made of such.
func (h Hashes) Subtree(level int, n int64) (tlog.Hash, error) {
	below := level % tree.NodeHeight
	stored, count := level-below, int64(1)<<below
	list, err := h.Stored(stored, n<<below, count)
	var missing *missingError
	if errors.As(err, &missing) && !h.Old {
		return h.ofPart(level, n, err)
	}
	if err != nil {
		return tlog.Hash{}, err
	}
	return tree.Fold(list), nil
}

// Stored returns count hashes of a stored level from number first on.
func (h Hashes) Stored(level int, first, count int64) ([]tlog.Hash, error) {
	if h.Old && level > 0 {
		list := make([]tlog.Hash, count)
		for i := range list {
			below, err := h.Stored(level-tree.NodeHeight, (first+int64(i))<<tree.NodeHeight, 1<<tree.NodeHeight)
			if err != nil {
				return nil, err
			}
			list[i] = tree.Fold(below)
		}
		return list, nil
	}
	query, args := `SELECT hash FROM nodes WHERE level = ? AND n >= ? AND n < ? ORDER BY n`, []any{level, first, first + count}
	if level == 0 {
		query, args = `SELECT leaf FROM events WHERE seq > ? AND seq <= ? ORDER BY seq`, []any{first, first + count}
	}
	var rows [][]byte
	if err := sqlx.SelectContext(h.Ctx, h.DB, &rows, query, args...); err != nil {
		return nil, fault.Explain(err)
	}
	if int64(len(rows)) != count {
		return nil, &missingError{level, first}
	}
	list := make([]tlog.Hash, count)
	for i, row := range rows {
		if len(row) != tlog.HashSize {
			return nil, fmt.Errorf("%w: a hash of the tree has the wrong length (level %d, number %d)", fault.ErrCorrupt, level, first+int64(i))
		}
		list[i] = tlog.Hash(row)
	}
	return list, nil
}

// Frontier returns the compact range of the first size leaves.
func (h Hashes) Frontier(size int64) (tree.Range, error) {
	f := tree.Range{Size: size}
	for level := bits.Len64(uint64(size)) - 1; level >= 0; level-- {
		if size>>level&1 == 0 {
			continue
		}
		root, err := h.Subtree(level, size>>level-1)
		if err != nil {
			return tree.Range{}, err
		}
		f.Roots = append(f.Roots, root)
	}
	return f, nil
}

// Size returns the number of the last event.
func (h Hashes) Size() (int64, error) {
	var size int64
	query := `SELECT coalesce(max(seq), 0) FROM events`
	if !h.Old { // a part of a log may end with what is absent
		query = `
		SELECT max(
			coalesce((SELECT max(seq) FROM events), 0),
			coalesce((SELECT seq + (1 << level) - 1 FROM absent ORDER BY seq DESC LIMIT 1), 0))`
	}
	err := fault.Explain(sqlx.GetContext(h.Ctx, h.DB, &size, query))
	if err != nil && fault.IsScan(err) || size < 0 {
		return 0, fmt.Errorf("%w: the number of its last event is none", fault.ErrCorrupt)
	}
	return size, err
}
