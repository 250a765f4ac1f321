package eventlog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/fault"
	"github.com/perlica/perlica/eventlog/folder"
)

// Pruning is the payload of log.pruned: which payloads are removed, who wanted it, and why.
// An event whose payload is missing is damage, unless a later log.pruned covers it.
type Pruning struct {
	Until   event.Seq       `json:"until"`             // events up to this one
	Session event.SessionID `json:"session,omitempty"` // only this session's
	Run     event.RunID     `json:"run,omitempty"`     // only this run's
	Class   event.Class     `json:"class,omitempty"`   // only "frame": facts are kept
	Events  int64           `json:"events"`            // how many payloads there were to remove
	Bytes   int64           `json:"bytes"`             // their lengths together
	By      string          `json:"by"`
	Why     string          `json:"why,omitempty"`
}

// Covers reports whether e is one of the events that lose their payload.
func (p Pruning) Covers(e *event.Event) bool {
	return e.Seq <= p.Until && !e.Type.Kept() &&
		(p.Session == "" || e.Session == p.Session) &&
		(p.Run == "" || e.Run == p.Run) &&
		(p.Class == "" || e.Class == p.Class)
}

// ErrUnfinished says that a run has no outcome yet; its payloads are all that is known of it.
var ErrUnfinished = errors.New("the run has no outcome yet")

// where is the condition of the events that p removes something of: those that it covers and
// that still have a payload, without the runs that have no outcome. A run that ends later
// keeps what was not removed; that it is covered is no harm.
func (p Pruning) where(open []event.RunID) (string, []any) {
	terms := []string{
		"seq <= ?", "payload IS NOT NULL", "payload_len > 0",
		"type NOT IN (" + literals(event.Known().Where(func(r *event.Row) bool { return r.Kept })) + ")",
		"run_id NOT IN (SELECT value FROM json_each(?))", // open runs: see selection
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

// selection is what a Pruning would remove now.
type selection struct {
	events, bytes int64
	first, last   event.Seq     // zero if there is nothing
	open          []event.RunID // that keep their payloads
}

func (r *Reader) selection(ctx context.Context, p Pruning) (s selection, err error) {
	// By the events: the list of open runs may have been cut, and what is removed is gone.
	if s.open, err = r.runs(ctx, intended); err != nil {
		return s, err
	}
	if p.Run != "" && slices.Contains(s.open, p.Run) {
		return s, fmt.Errorf("%w: %s", ErrUnfinished, p.Run)
	}
	where, args := p.where(s.open)
	err = r.db.QueryRowxContext(ctx, `
		SELECT count(*), coalesce(sum(payload_len), 0), coalesce(min(seq), 0), coalesce(max(seq), 0)
		FROM events
		WHERE `+where, args...).Scan(&s.events, &s.bytes, &s.first, &s.last)
	return s, fault.Explain(err)
}

// Prunable returns how many payloads Prune would remove now, and their lengths together. It
// fails with ErrUnfinished if p names a run that has no outcome.
func (r *Reader) Prunable(ctx context.Context, p Pruning) (events, bytes int64, err error) {
	s, err := r.selection(ctx, p)
	return s.events, s.bytes, err
}

// Preceding returns the last event before the first one that is not older than t. Where the
// clock went backwards nothing newer than t is among them. It is 0 if there is none.
func (r *Reader) Preceding(ctx context.Context, t time.Time) (event.Seq, error) {
	var last event.Seq
	err := r.db.GetContext(ctx, &last, `
		SELECT coalesce((SELECT min(seq) - 1 FROM events WHERE ts >= ?), (SELECT max(seq) FROM events), 0)`, t.UnixNano())
	return last, fault.Explain(err)
}

// Removal is what Prune did.
type Removal struct {
	Pruning             // what was asked; Events and Bytes are what was removed now
	Resumed       bool  // an earlier log.pruned said it already; it was not finished
	Before, After int64 // bytes of the log's files
}

// Prune empties the payloads that p covers and has the file shrink, so that none of their
// bytes is left in it. Headers and hashes stay, and with them the tree, its checkpoints and
// proofs. An event, log.pruned, says so before anything is removed. Runs without an outcome
// are passed over; a run that p names must have one, else it is ErrUnfinished.
//
// If it fails or the process dies, nothing but covered payloads is lost; the same call again
// goes on where it ended. It fails with ErrBusy if another process uses the log all the time,
// and with ErrFull if there is no room for the copy that shrinking takes; both leave the log
// usable, other errors are final as those of Append. Other processes that write wait meanwhile,
// as long as they do: see that no call is under way.
//
// Views are files of their own: whoever keeps some removes them afterwards (RemoveView).
func (l *Log) Prune(ctx context.Context, p Pruning) (done Removal, err error) {
	if err := l.Sync(); err != nil { // what is recorded is there to be removed
		return done, err
	}
	s, err := l.selection(ctx, p)
	if err != nil {
		return done, err
	}
	p.Events, p.Bytes = s.events, s.bytes
	done = Removal{Pruning: p, Before: l.size()}
	done.After = done.Before
	said, err := l.announced(ctx, p, s)
	if err != nil || s.events == 0 && !said {
		return done, err
	}
	done.Resumed = said
	if err := roomFor(done.Before-s.bytes, filepath.Dir(l.path), folder.FreeSpace); err != nil {
		return done, err
	}
	if !said {
		// If we die behind this, what is covered and still there is removed by the next call.
		r := l.await(entry{events: []event.Event{event.NewFact(event.LogPruned, "user", event.Refs{}, p)}, note: true})
		if r.err != nil {
			return done, r.err
		}
	}
	result := make(chan error, 1)
	select {
	case l.prune <- pruneJob{ctx, p, s, result}:
		err = <-result
	case <-l.done:
		err = fault.ErrClosed
	}
	done.After = l.size()
	if err == nil {
		// If we die before this, the next call rewrites the file once more.
		_, err = l.Append(context.WithoutCancel(ctx), event.NewFact(event.LogRewritten, "perlica", event.Refs{}, struct{}{}))
	}
	return done, err
}

// announced reports whether the log says already that all of s is removed, and nothing that it
// was: one that was completed is no reason to rewrite the file again.
func (r *Reader) announced(ctx context.Context, p Pruning, s selection) (bool, error) {
	list, err := r.UnfinishedPrunings(ctx)
	for _, q := range list {
		if q.Session == p.Session && q.Run == p.Run && q.Class == p.Class && q.Until >= s.last {
			return true, nil
		}
	}
	return false, err
}

// UnfinishedPrunings returns what the log says is removed, and not that it was: Prune is at it, or
// was interrupted.
func (r *Reader) UnfinishedPrunings(ctx context.Context) ([]Pruning, error) {
	last, _, err := r.Last(ctx, event.Query{Types: []event.Type{event.LogRewritten}})
	if err != nil {
		return nil, err
	}
	var list []Pruning
	for e, err := range r.Events(ctx, event.Query{Types: []event.Type{event.LogPruned}, After: last.Seq}) {
		if err != nil {
			return list, err
		}
		var p Pruning
		if e.Decode(&p) == nil {
			list = append(list, p)
		}
	}
	return list, nil
}

// size is how much the log's files take.
func (r *Reader) size() (bytes int64) {
	for _, suffix := range []string{"", "-wal"} {
		if info, err := os.Stat(r.path + suffix); err == nil {
			bytes += info.Size()
		}
	}
	return bytes
}

// roomFor returns ErrFull unless a log of which size bytes remain can be rewritten: SQLite
// makes a copy in the folder for temporary files and writes that back through the write-ahead
// log. The two may lie on one disk.
func roomFor(size int64, dir string, free func(string) (uint64, error)) error {
	const margin = 1 << 20
	for _, need := range []struct {
		dir   string
		bytes int64
	}{{dir, 2*max(size, 0) + margin}, {os.TempDir(), max(size, 0) + margin}} {
		there, err := free(need.dir)
		if err == nil && there < uint64(need.bytes) {
			return fmt.Errorf("eventlog: prune: %w: shrinking the log takes %d bytes in %s, and %d are free",
				fault.ErrFull, need.bytes, need.dir, there)
		}
	}
	return nil
}
