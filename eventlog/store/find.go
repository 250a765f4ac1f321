package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/fault"
)

// nearTime is how far the time within an event's id may be from the event's own, and the clock
// may have gone astray between neighbours, for Find to be quick.
const nearTime = 5 * time.Second

// Find returns the event whose id it is. There is no index of ids, which would cost each append:
// the time in the id leads to the place. Only where clocks jumped the whole log is looked through.
// The error wraps ErrNotExist if there is no such event.
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
			FROM events
			WHERE seq BETWEEN ? AND ? AND event_id = ?`, span[0], span[1], id)
		if !errors.Is(err, sql.ErrNoRows) {
			return seq, fault.Explain(err)
		}
	}
	return 0, fmt.Errorf("eventlog: find event %s: %w", id, fault.ErrNotExist)
}

// since returns a number at which events begin to be not older than at, if times only grow.
func (r *Reader) since(ctx context.Context, at time.Time, size int64) (int64, error) {
	low, high := int64(1), size+1
	for low < high {
		mid := (low + high) / 2
		var ts int64
		err := r.db.GetContext(ctx, &ts, `SELECT ts FROM events WHERE seq = ?`, mid)
		if errors.Is(err, sql.ErrNoRows) {
			ts = 0 // of a part of a log; what is not there is not found
		} else if err != nil {
			return 0, fault.Explain(err)
		}
		if ts < at.UnixNano() {
			low = mid + 1
		} else {
			high = mid
		}
	}
	return low, nil
}
