package store

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/perlica/perlica/eventlog/disk"
	"github.com/perlica/perlica/eventlog/event"
)

// Covering is the condition of the events that p removes something of: those that it covers and
// that still have a payload, without the runs that have no outcome. A run that ends later
// keeps what was not removed; that it is covered is no harm.
func Covering(p event.Pruning, open []event.RunID) (string, []any) {
	terms := []string{
		"seq <= ?", "payload IS NOT NULL", "payload_len > 0",
		"type NOT IN (" + literals(event.Known().Where(func(r *event.Row) bool { return r.Kept })) + ")",
		"run_id NOT IN (SELECT value FROM json_each(?))", // Open runs: see selection
	}
	list, _ := json.Marshal(append([]event.RunID{}, open...)) // texts can always be, and null is no list
	args := []any{int64(p.Until), string(list)}
	for _, t := range []struct{ column, value string }{
		{"session_id", string(p.Session)}, {"run_id", string(p.Run)}, {"class", string(p.Class)},
	} {
		if t.value != "" {
			terms, args = append(terms, t.column+" = ?"), append(args, t.value)
		}
	}
	return strings.Join(terms, " AND "), args
}

// Selection is what an event.Pruning would remove now.
type Selection struct {
	Events, Bytes int64
	First, Last   event.Seq     // zero if there is nothing
	Open          []event.RunID // that keep their payloads
}

// Selection looks what p would remove now, and removes nothing. It fails with ErrUnfinished if p
// names a run that has no outcome.
func (r *Reader) Selection(ctx context.Context, p event.Pruning) (s Selection, err error) {
	// By the events: the list of open runs may have been cut, and what is removed is gone.
	if s.Open, err = r.runs(ctx, intended); err != nil {
		return s, err
	}
	if p.Run != "" && slices.Contains(s.Open, p.Run) {
		return s, fmt.Errorf("%w: %s", disk.ErrUnfinished, p.Run)
	}
	where, args := Covering(p, s.Open)
	err = r.db.QueryRowxContext(ctx, `
		SELECT count(*), coalesce(sum(payload_len), 0), coalesce(min(seq), 0), coalesce(max(seq), 0)
		FROM events
		WHERE `+where, args...).Scan(&s.Events, &s.Bytes, &s.First, &s.Last)
	return s, disk.Explain(err)
}

// Preceding returns the last event before the first one that is not older than t. Where the
// clock went backwards nothing newer than t is among them. It is 0 if there is none.
func (r *Reader) Preceding(ctx context.Context, t time.Time) (event.Seq, error) {
	var last event.Seq
	err := r.db.GetContext(ctx, &last, `
		SELECT coalesce((SELECT min(seq) - 1 FROM events WHERE ts >= ?), (SELECT max(seq) FROM events), 0)`, t.UnixNano())
	return last, disk.Explain(err)
}

// Announced reports whether the log says already that all of s is removed, and nothing that it
// was: one that was completed is no reason to rewrite the file again.
func (r *Reader) Announced(ctx context.Context, p event.Pruning, s Selection) (bool, error) {
	list, err := r.UnfinishedPrunings(ctx)
	for _, q := range list {
		if q.Session == p.Session && q.Run == p.Run && q.Class == p.Class && q.Until >= s.Last {
			return true, nil
		}
	}
	return false, err
}

// UnfinishedPrunings returns what the log says is removed, and not that it was: Prune is at it, or
// was interrupted.
func (r *Reader) UnfinishedPrunings(ctx context.Context) ([]event.Pruning, error) {
	last, _, err := r.Last(ctx, event.Query{Types: []event.Type{event.LogRewritten}})
	if err != nil {
		return nil, err
	}
	var list []event.Pruning
	for e, err := range r.Events(ctx, event.Query{Types: []event.Type{event.LogPruned}, After: last.Seq}) {
		if err != nil {
			return list, err
		}
		var p event.Pruning
		if e.Decode(&p) == nil {
			list = append(list, p)
		}
	}
	return list, nil
}

// Size is how much the log's files take.
func (r *Reader) Size() (bytes int64) {
	for _, suffix := range []string{"", "-wal"} {
		if info, err := os.Stat(r.path + suffix); err == nil {
			bytes += info.Size()
		}
	}
	return bytes
}
