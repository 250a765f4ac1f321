package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/perlica/perlica/eventlog/disk"
	"github.com/perlica/perlica/eventlog/evidence"
)

// OriginOf returns the name of a log. The parameter firstID is the id of the log's first event. The name is unique, and
// it is the same in every copy of the log.
func OriginOf(firstID string) string { return "perlica/" + firstID }

// OriginOfBytes is OriginOf for an id as entries has it.
func OriginOfBytes(firstID []byte) (string, error) {
	id, ok := IDText(firstID)
	if !ok {
		return "", fmt.Errorf("%w: the id of its first event is not a UUID", disk.ErrCorrupt)
	}
	return OriginOf(id), nil
}

// IsOwn returns an error that wraps evidence.ErrCheckpoint unless c is a checkpoint of this log.
func (r *Reader) IsOwn(ctx context.Context, c evidence.Checkpoint) error {
	name, err := r.Origin(ctx)
	if err != nil {
		return err
	}
	h := r.Hashes(ctx)
	size, err := h.Size()
	switch {
	case err != nil:
		return err
	case c.Origin != name:
		return fmt.Errorf("%w of this log: it is of %q, this is %q", evidence.ErrCheckpoint, c.Origin, name)
	case c.Size > size:
		return fmt.Errorf("%w of this log: it covers %d events, and the log has %d", evidence.ErrCheckpoint, c.Size, size)
	}
	f, err := h.Frontier(c.Size)
	if err == nil && f.Root() != c.Root {
		err = fmt.Errorf("%w of this log: its first %d events have another root", evidence.ErrCheckpoint, c.Size)
	}
	return err
}

// Checkpoints returns the stored checkpoints that cover more events than the number in the parameter "after", oldest
// first.
func (r *Reader) Checkpoints(ctx context.Context, after int64) ([]evidence.Checkpoint, error) {
	var notes []string
	if err := r.db.SelectContext(ctx, &notes, `SELECT note FROM checkpoints WHERE size > ? ORDER BY id`,
		after); err != nil {
		return nil, disk.Explain(err)
	}
	list := make([]evidence.Checkpoint, len(notes))
	for i, n := range notes {
		var err error
		if list[i], err = evidence.ParseCheckpoint(n); err != nil {
			return nil, fmt.Errorf("%w: a checkpoint of the file: %w", disk.ErrCorrupt, err)
		}
	}
	return list, nil
}

// LastCheckpoint returns the newest stored checkpoint that covers at least size events. ok is false if the log has no
// such checkpoint.
func (r *Reader) LastCheckpoint(ctx context.Context, size int64) (c evidence.Checkpoint, ok bool, err error) {
	return r.NewestCheckpoint(ctx, size, math.MaxInt64)
}

// Origin returns the name of the log in its checkpoints, or "" for an empty log.
func (r *Reader) Origin(ctx context.Context) (string, error) {
	var id []byte
	err := r.db.GetContext(ctx, &id, `SELECT event_id FROM entries WHERE seq = 1`)
	if errors.Is(err, sql.ErrNoRows) {
		c, ok, err := r.LastCheckpoint(ctx, 0) // The first event may be absent, so ask a checkpoint.
		if err != nil || !ok {
			return "", err
		}
		return c.Origin, nil
	}
	if err != nil {
		return "", disk.Explain(err)
	}
	return OriginOfBytes(id)
}

// NewestCheckpoint returns the newest checkpoint with a size of at least "least" and at most "most". Both limits are
// included.
func (r *Reader) NewestCheckpoint(ctx context.Context, least, most int64) (c evidence.Checkpoint, ok bool, err error) {
	var msg string
	err = r.db.GetContext(ctx, &msg, `
		SELECT note
		FROM checkpoints
		WHERE size BETWEEN ? AND ?
		ORDER BY size DESC, id DESC
		LIMIT 1`, max(least, 1), most)
	if errors.Is(err, sql.ErrNoRows) {
		return c, false, nil
	}
	if err != nil {
		return c, false, disk.Explain(err)
	}
	if c, err = evidence.ParseCheckpoint(msg); err != nil {
		return c, false, fmt.Errorf("%w: a checkpoint of the file: %w", disk.ErrCorrupt, err)
	}
	return c, true, nil
}

// Root returns the root of the tree of the log's first size events.
func (r *Reader) Root(ctx context.Context, size int64) (tlog.Hash, error) {
	f, err := r.Hashes(ctx).Frontier(size)
	if err != nil {
		return tlog.Hash{}, fmt.Errorf("eventlog: root of %d events: %w", size, err)
	}
	return f.Root(), nil
}
