package eventlog

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"slices"

	"github.com/jmoiron/sqlx"
	"golang.org/x/mod/sumdb/tlog"
)

// nodeHeight is the distance of the levels whose hashes are stored: the leaves with their
// events, then every 256 of them, every 65,536, and so on. Any other hash of the tree
// follows from at most 128 stored ones.
const nodeHeight = 8

// A node is the root of the 2^level leaves from n·2^level on, counted from 0.
type node struct {
	level int
	n     int64
	hash  tlog.Hash
}

// frontier is the compact range of an RFC 6962 tree: the roots of its complete
// subtrees, widest first. There is one for each bit that is set in size.
type frontier struct {
	size  int64
	roots []tlog.Hash
	nodes []node // of the stored levels, completed by add
}

// add appends one leaf.
func (f *frontier) add(leaf tlog.Hash) { f.addNode(0, leaf) }

// addNode appends a complete subtree of 2^level leaves; size must be a multiple of that.
// Every further one bit of the old size is a subtree that the new one completes.
func (f *frontier) addNode(level int, hash tlog.Hash) {
	at := level
	for n := f.size >> level; n&1 == 1; n >>= 1 {
		last := len(f.roots) - 1
		hash = tlog.NodeHash(f.roots[last], hash)
		f.roots = f.roots[:last]
		if at++; at%nodeHeight == 0 {
			f.nodes = append(f.nodes, node{at, n >> 1, hash})
		}
	}
	f.roots = append(f.roots, hash)
	f.size += 1 << level
}

// root returns the tree's hash (RFC 6962, section 2.1).
func (f *frontier) root() tlog.Hash {
	if f.size == 0 {
		h, _ := tlog.TreeHash(0, nil)
		return h
	}
	h := f.roots[len(f.roots)-1]
	for i := len(f.roots) - 2; i >= 0; i-- {
		h = tlog.NodeHash(f.roots[i], h)
	}
	return h
}

// clone returns a copy that can grow on its own.
func (f *frontier) clone() frontier {
	return frontier{size: f.size, roots: slices.Clone(f.roots)}
}

// hashes reads the stored hashes of a log's tree and computes the others from them. It
// implements tlog.HashReader.
type hashes struct {
	ctx context.Context // of the one call that a hashes lives in
	db  sqlx.QueryerContext
	old bool // the file has no nodes: all is computed from the leaves
}

// ReadHashes returns the hashes with the given storage indexes.
func (h hashes) ReadHashes(indexes []int64) ([]tlog.Hash, error) {
	list := make([]tlog.Hash, len(indexes))
	for i, x := range indexes {
		level, n := tlog.SplitStoredHashIndex(x)
		var err error
		if list[i], err = h.subtree(level, n); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// subtree returns the root of the 2^level leaves from n·2^level on. In a part of a log it
// may be one that the part has instead of the leaves, or be made of such.
func (h hashes) subtree(level int, n int64) (tlog.Hash, error) {
	below := level % nodeHeight
	stored, count := level-below, int64(1)<<below
	list, err := h.stored(stored, n<<below, count)
	var missing *missingError
	if errors.As(err, &missing) && !h.old {
		return h.ofPart(level, n, err)
	}
	if err != nil {
		return tlog.Hash{}, err
	}
	return fold(list), nil
}

// fold returns the root of a complete subtree whose leaves, a power of two of them, are list.
// It overwrites list.
func fold(list []tlog.Hash) tlog.Hash {
	for ; len(list) > 1; list = list[:len(list)/2] {
		for i := range len(list) / 2 {
			list[i] = tlog.NodeHash(list[2*i], list[2*i+1])
		}
	}
	return list[0]
}

// stored returns count hashes of a stored level from number first on.
func (h hashes) stored(level int, first, count int64) ([]tlog.Hash, error) {
	if h.old && level > 0 {
		list := make([]tlog.Hash, count)
		for i := range list {
			below, err := h.stored(level-nodeHeight, (first+int64(i))<<nodeHeight, 1<<nodeHeight)
			if err != nil {
				return nil, err
			}
			list[i] = fold(below)
		}
		return list, nil
	}
	query, args := `SELECT hash FROM nodes WHERE level = ? AND n >= ? AND n < ? ORDER BY n`, []any{level, first, first + count}
	if level == 0 {
		query, args = `SELECT leaf FROM events WHERE seq > ? AND seq <= ? ORDER BY seq`, []any{first, first + count}
	}
	var rows [][]byte
	if err := sqlx.SelectContext(h.ctx, h.db, &rows, query, args...); err != nil {
		return nil, explain(err)
	}
	if int64(len(rows)) != count {
		return nil, &missingError{level, first}
	}
	list := make([]tlog.Hash, count)
	for i, row := range rows {
		if len(row) != tlog.HashSize {
			return nil, fmt.Errorf("%w: a hash of the tree has the wrong length (level %d, number %d)", ErrCorrupt, level, first+int64(i))
		}
		list[i] = tlog.Hash(row)
	}
	return list, nil
}

// frontier returns the compact range of the first size leaves.
func (h hashes) frontier(size int64) (frontier, error) {
	f := frontier{size: size}
	for level := bits.Len64(uint64(size)) - 1; level >= 0; level-- {
		if size>>level&1 == 0 {
			continue
		}
		root, err := h.subtree(level, size>>level-1)
		if err != nil {
			return frontier{}, err
		}
		f.roots = append(f.roots, root)
	}
	return f, nil
}

// size returns the number of the last event.
func (h hashes) size() (int64, error) {
	var size int64
	query := `SELECT coalesce(max(seq), 0) FROM events`
	if !h.old { // a part of a log may end with what is absent
		query = `
		SELECT max(
			coalesce((SELECT max(seq) FROM events), 0),
			coalesce((SELECT seq + (1 << level) - 1 FROM absent ORDER BY seq DESC LIMIT 1), 0))`
	}
	err := explain(sqlx.GetContext(h.ctx, h.db, &size, query))
	if err != nil && isScan(err) || size < 0 {
		return 0, fmt.Errorf("%w: the number of its last event is none", ErrCorrupt)
	}
	return size, err
}
