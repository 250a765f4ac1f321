package store

import (
	"context"
	"errors"
	"fmt"
	"math/bits"

	"github.com/jmoiron/sqlx"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/perlica/perlica/eventlog/disk"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/tree"
)

// Hashes reads the stored hashes of a log's tree and computes the other hashes. It implements tlog.HashReader.
type Hashes struct {
	// Ctx is the context of the call that uses this Hashes.
	Ctx context.Context
	DB  sqlx.QueryerContext
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

// Subtree returns the root of the n-th subtree with 2^level leaves, counted from 0. In a part of a log, the leaves may
// be absent. The file then has this root, or the roots of smaller subtrees.
func (h Hashes) Subtree(level int, n int64) (tlog.Hash, error) {
	below := level % tree.NodeHeight
	stored, count := level-below, int64(1)<<below
	list, err := h.Stored(stored, n<<below, count)
	var missing *missingError
	if errors.As(err, &missing) {
		return h.ofPart(level, n, err)
	}
	if err != nil {
		return tlog.Hash{}, err
	}
	return tree.Fold(list), nil
}

// Stored returns hashes of a stored level. The parameter "first" is the number of the first hash, and "count" is the
// number of hashes.
func (h Hashes) Stored(level int, first, count int64) ([]tlog.Hash, error) {
	query, args := `SELECT hash FROM nodes WHERE level = ? AND n >= ? AND n < ? ORDER BY n`,
		[]any{level, first, first + count}
	if level == 0 {
		query, args = `SELECT leaf FROM entries WHERE seq > ? AND seq <= ? ORDER BY seq`, []any{first, first + count}
	}
	var rows [][]byte
	if err := sqlx.SelectContext(h.Ctx, h.DB, &rows, query, args...); err != nil {
		return nil, disk.Explain(err)
	}
	if int64(len(rows)) != count {
		return nil, &missingError{level, first}
	}
	list := make([]tlog.Hash, count)
	for i, row := range rows {
		if len(row) != tlog.HashSize {
			return nil, fmt.Errorf("%w: a hash of the tree has the wrong length (level %d, number %d)", disk.ErrCorrupt, level,
				first+int64(i))
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

// Size returns the Seq of the last event. In a part of a log, the last event may be in an absent subtree.
func (h Hashes) Size() (int64, error) {
	var size int64
	err := disk.Explain(sqlx.GetContext(h.Ctx, h.DB, &size, `
		SELECT max(
			coalesce((SELECT max(seq) FROM entries), 0),
			coalesce((SELECT seq + (1 << level) - 1 FROM absent ORDER BY seq DESC LIMIT 1), 0))`))
	if err != nil && disk.IsScan(err) || size < 0 {
		return 0, fmt.Errorf("%w: the number of its last event is invalid", disk.ErrCorrupt)
	}
	return size, err
}

// Intent returns the intent for an input. That is the event llm.requested, which is on disk before the prompt leaves.
// ok is false if the input was not called. Intent also searches among the runs, which have another index and table.
// Damage of one index therefore cannot cause a second call. The error wraps ErrCorrupt if the two searches disagree.
func (r *Reader) Intent(ctx context.Context, id event.InputID) (e event.Event, ok bool, err error) {
	q := event.Query{Input: id, Types: []event.Type{event.Requested}}
	e, ok, err = r.Last(ctx, q)
	if err == nil && !ok {
		if err = r.checkUncalled(ctx, id); err != nil {
			// Another process may have added the intent between the two queries. In that case the index has the
			// intent now.
			if again, found, lerr := r.Last(ctx, q); lerr == nil && found {
				e, ok, err = again, true, nil
			}
		}
	}
	if err == nil && ok && (e.Input != id || e.Type != event.Requested || e.Leaf() != e.LeafHash) {
		err = fmt.Errorf("%w: its index of inputs names event %[3]d for the input %[2]q, and that event has another input",
			disk.ErrCorrupt, id, e.Seq)
	}
	return e, ok && err == nil, err
}

// checkUncalled returns an error if the log has a run for the input, although the index of inputs does not have the
// input.
func (r *Reader) checkUncalled(ctx context.Context, id event.InputID) error {
	var runs []struct {
		Run  event.RunID `db:"run_id"`
		Type event.Type
	}
	err := r.db.SelectContext(ctx, &runs, `
		SELECT `+NameOf("run_id")+` AS run_id, `+NameOf("type")+` AS type
		FROM entries INDEXED BY events_one_outcome_per_run
		WHERE `+NameOf("input_id")+` = ?1 AND `+isOutcome+`
		UNION
		SELECT x.run_id, `+NameOf("intent.type")+`
		FROM open_runs AS x
		CROSS JOIN entries AS intent ON intent.seq = x.seq
		WHERE `+NameOf("intent.input_id")+` = ?1`, string(id))
	if err != nil {
		return disk.Explain(err)
	}
	for _, run := range runs {
		if run.Type == event.ProviderError { // a run that failed before its intent was not called
			var seq event.Seq
			err := r.db.GetContext(ctx, &seq, `
				SELECT coalesce(max(seq), 0)
				FROM entries INDEXED BY events_run
				WHERE run_id = `+idOf+` AND `+isFact+` AND `+IsIntent, string(run.Run))
			if err != nil {
				return disk.Explain(err)
			}
			if seq == 0 {
				continue
			}
		}
		return fmt.Errorf("%w: run %s was made for the input %q, and the index of inputs does not have it", disk.ErrCorrupt,
			run.Run, id)
	}
	return nil
}
