package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/perlica/perlica/eventlog/disk"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/tree"
)

// A part of a log is a file that was imported from an export of some events. In place of the other events it has
// hashes of subtrees, which are called absent. Each is the widest complete subtree without an imported event. The
// root of the log can therefore be computed from the part alone.

// missingError says that hashes of the tree are missing.
type missingError struct {
	level int
	First int64
}

func (e *missingError) Error() string {
	return fmt.Sprintf("%v: hashes of its tree are missing (level %d, from %d on)", disk.ErrCorrupt, e.level, e.First)
}

func (e *missingError) Unwrap() error { return disk.ErrCorrupt }

// ofPart does the work of Subtree if some stored hashes do not exist. If the file is a whole log, the missing hashes
// are damage, and ofPart returns the error in the parameter "missing".
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
		return tlog.Hash{}, fmt.Errorf("%w: events %d to %d are not in it, and it has only one hash for all of them",
			disk.ErrPart, first+1, end)
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

// AbsentAt returns the last absent subtree that begins at or before the leaf with the number "from". If there is no
// such subtree, it returns the first absent subtree. ok is false if no subtree is absent.
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
		return a, false, disk.Explain(err)
	}
	if row.Seq < 1 || row.Level < 0 || row.Level > tree.MaxLevel || len(row.Hash) != tlog.HashSize {
		return a, false, fmt.Errorf("%w: what it says of absent event %d cannot be", disk.ErrCorrupt, row.Seq)
	}
	return tree.Subtree{Seq: row.Seq, Level: row.Level, Hash: tlog.Hash(row.Hash)}, true, nil
}

// Columns are the columns of the table entries, in the order of AppendArgs.
const Columns = HeaderColumns + `, payload`

// HeaderColumns are the columns of the table entries without the payload.
const HeaderColumns = `seq, event_id, ts, type, class, actor, writer, context_id,
	session_id, conversation_id, run_id, trace_id, interaction_id, input_id,
	payload_len, payload_sha256, leaf`

const rowMarks = `(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`

// InsertOne is the statement that inserts one event. Names.AppendArgs makes the arguments.
const InsertOne = `INSERT INTO entries (` + Columns + `) VALUES ` + rowMarks

// Stored returns the payload for a row. An empty payload is not NULL, because NULL means that the payload is absent.
func Stored(e *event.Event) []byte {
	if e.Payload == nil {
		return []byte{}
	}
	return e.Payload
}

// nearTime limits the fast search of Find. Usually the time in an event's id differs by less than nearTime from the
// event's time. The times of events are also out of order by less than nearTime.
const nearTime = 5 * time.Second

// Find returns the Seq of the event with this id. There is no index of ids, because it would slow down each append.
// Find searches near the time in the id, and then in the whole log if a clock jumped. The error wraps ErrNotExist if
// there is no such event.
func (r *Reader) Find(ctx context.Context, id string) (event.Seq, error) {
	size, err := r.Hashes(ctx).Size()
	if err != nil {
		return 0, fmt.Errorf("eventlog: find event %s: %w", id, err)
	}
	spans := [][2]int64{{1, size}}
	if u, err := uuid.Parse(id); err == nil && u.Version() == 7 {
		sec, nsec := u.Time().UnixTime()
		at := time.Unix(sec, nsec)
		first, err := r.since(ctx, at.Add(-nearTime), size)
		last, err2 := r.since(ctx, at.Add(nearTime), size)
		if err := errors.Join(err, err2); err != nil {
			return 0, fmt.Errorf("eventlog: find event %s: %w", id, err)
		}
		spans = [][2]int64{{first, last}, {1, size}}
	}
	for _, span := range spans {
		var seq event.Seq
		err := r.db.GetContext(ctx, &seq, `
			SELECT seq
			FROM entries
			WHERE seq BETWEEN ? AND ? AND event_id = ?`, span[0], span[1], IDBytes(id))
		if !errors.Is(err, sql.ErrNoRows) {
			return seq, disk.Explain(err)
		}
	}
	return 0, fmt.Errorf("eventlog: find event %s: %w", id, disk.ErrNotExist)
}

// since returns the Seq of the first event at or after the time "at". It assumes that the times of events only grow.
func (r *Reader) since(ctx context.Context, at time.Time, size int64) (int64, error) {
	low, high := int64(1), size+1
	for low < high {
		mid := (low + high) / 2
		var ts int64
		err := r.db.GetContext(ctx, &ts, `SELECT ts FROM entries WHERE seq = ?`, mid)
		if errors.Is(err, sql.ErrNoRows) {
			ts = 0 // The event is absent from this part of a log.
		} else if err != nil {
			return 0, disk.Explain(err)
		}
		if ts < at.UnixNano() {
			low = mid + 1
		} else {
			high = mid
		}
	}
	return low, nil
}
