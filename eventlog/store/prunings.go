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

// Covering returns the SQL condition for the events that lose their payload by p. These are covered by p and still have
// a payload, and their run is not in the list "open". If a run in this list ends during the removal, it keeps its
// payloads, which is harmless.
func Covering(p event.Pruning, open []event.RunID) (string, []any) {
	terms := []string{
		"seq <= ?", "payload IS NOT NULL", "payload_len > 0",
		"type NOT IN (SELECT id FROM names WHERE name IN (" +
			quoted(event.Known().Where(func(r *event.Row) bool { return r.Kept })) + "))",
		"run_id NOT IN (SELECT id FROM names WHERE name IN (SELECT value FROM json_each(?)))", // the runs without an outcome
	}
	list, _ := json.Marshal(append([]event.RunID{}, open...)) // Texts can always be encoded, and null is not a list.
	args := []any{int64(p.Until), string(list)}
	for _, t := range []struct{ column, value string }{
		{"session_id", string(p.Session)}, {"run_id", string(p.Run)}, {"class", string(p.Class)},
	} {
		if t.value != "" {
			terms, args = append(terms, t.column+" = "+idOf), append(args, t.value)
		}
	}
	return strings.Join(terms, " AND "), args
}

// quoted returns the types as a list of SQL texts.
func quoted(types []event.Type) string {
	var list []string
	for _, t := range types {
		list = append(list, quote(string(t)))
	}
	return strings.Join(list, ", ")
}

// Selection is the set of payloads that an event.Pruning would remove now.
type Selection struct {
	Events, Bytes int64
	First, Last   event.Seq     // zero if Selection is empty
	Open          []event.RunID // runs without an outcome and flow runs without an end, which keep their payloads
}

// Selection finds the payloads that p would remove now. It removes nothing. The error wraps ErrUnfinished if p names
// a run without an outcome.
func (r *Reader) Selection(ctx context.Context, p event.Pruning) (s Selection, err error) {
	// A removal is final. So do not trust the list of open runs, which another program may have cut; use the events.
	if s.Open, err = r.selectRuns(ctx, intended+" UNION "+unfinishedFlows); err != nil {
		return s, err
	}
	if p.Run != "" && slices.Contains(s.Open, p.Run) {
		return s, fmt.Errorf("%w: %s", disk.ErrUnfinished, p.Run)
	}
	where, args := Covering(p, s.Open)
	err = r.db.QueryRowxContext(ctx, `
		SELECT count(*), coalesce(sum(payload_len), 0), coalesce(min(seq), 0), coalesce(max(seq), 0)
		FROM entries
		WHERE `+where, args...).Scan(&s.Events, &s.Bytes, &s.First, &s.Last)
	return s, disk.Explain(err)
}

// unfinishedFlows selects the flow runs without an end. A person may still answer their questions. After a retry by a
// person the flow run goes on. Only the decision "retry" has such an interaction_id.
var unfinishedFlows = `
		SELECT ` + NameOf("x.run_id") + `
		FROM entries AS x
		WHERE x.interaction_id = ` + literal("flow") + ` AND x.type = ` + literal("flow.started") + ` AND NOT EXISTS (
			SELECT 1
			FROM entries AS f
			WHERE f.interaction_id = x.interaction_id AND f.interaction_id <> 0 AND f.type = ` + literal("flow.finished") + `
				AND f.run_id = x.run_id AND NOT EXISTS (
				SELECT 1
				FROM entries AS d
				WHERE d.run_id = x.run_id AND d.` + isFact + ` AND d.type = ` + literal("flow.step.decided") + ` AND d.seq > f.seq
					AND ` + NameOf("d.interaction_id") + ` LIKE '%/retry-%/asked'))`

// Preceding returns the Seq of the last event before the log's first event at or after t. Without such an event it
// returns the last Seq, or 0. Even if the clock went back, all events up to the result are older than t.
func (r *Reader) Preceding(ctx context.Context, t time.Time) (event.Seq, error) {
	var last event.Seq
	err := r.db.GetContext(ctx, &last, `
		SELECT coalesce((SELECT min(seq) - 1 FROM entries WHERE ts >= ?), (SELECT max(seq) FROM entries), 0)`, t.UnixNano())
	return last, disk.Explain(err)
}

// Announced reports whether a log.pruned with the limits of p announces the removal of all payloads in s, and that
// removal did not finish. Prune then continues that removal and does not announce another one.
func (r *Reader) Announced(ctx context.Context, p event.Pruning, s Selection) (bool, error) {
	list, err := r.UnfinishedPrunings(ctx)
	for _, q := range list {
		if q.Session == p.Session && q.Run == p.Run && q.Class == p.Class && q.Until >= s.Last {
			return true, nil
		}
	}
	return false, err
}

// UnfinishedPrunings returns the removals that the log announces without saying that they were finished. Prune is
// still running, or it was interrupted.
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

// Size returns the size of the log's files in bytes.
func (r *Reader) Size() (bytes int64) {
	for _, suffix := range []string{"", "-wal"} {
		if info, err := os.Stat(r.path + suffix); err == nil {
			bytes += info.Size()
		}
	}
	return bytes
}
