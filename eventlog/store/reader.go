package store

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jmoiron/sqlx"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/perlica/perlica/eventlog/disk"
	"github.com/perlica/perlica/eventlog/event"
)

// Reader reads the committed part of a log. It compares each event that it reads with the event's
// recorded hashes. A damaged event ends the reading with an error, unless OpenToShow made the Reader.
// Its methods may be called from several goroutines.
type Reader struct {
	db      *sqlx.DB
	path    string
	Version int // of the file's schema

	Immutable bool // no one can write it, and there is no write-ahead log

	shown    *shown    // nil: a damaged event is an error
	prunings *prunings // that the log names, as far as they were needed
}

// prunings are the removals that the log names.
type prunings struct {
	mu   sync.Mutex
	list []event.Pruning // guarded by mu
}

// shown is the damage that a Reader of OpenToShow has met.
type shown struct {
	mu    sync.Mutex
	found map[event.Seq]*event.DamagedError // guarded by mu
}

// OpenToShow is OpenReader for a caller that shows the log: a damaged event comes without its
// payload and is marked as event.Damaged. The caller asks Damaged at the end.
func OpenToShow(ctx context.Context, path string) (*Reader, error) {
	r, err := OpenReader(ctx, path)
	if err == nil {
		r.shown = &shown{found: map[event.Seq]*event.DamagedError{}}
	}
	return r, err
}

// Damaged returns an error that wraps disk.ErrCorrupt and names the first of the damaged events that
// a Reader of OpenToShow has yielded. It returns nil if the Reader has met none.
func (r *Reader) Damaged() error {
	if r.shown == nil {
		return nil
	}
	r.shown.mu.Lock()
	defer r.shown.mu.Unlock()
	if len(r.shown.found) == 0 {
		return nil
	}
	first := r.shown.found[slices.Min(slices.Collect(maps.Keys(r.shown.found)))]
	if more := len(r.shown.found) - 1; more > 0 {
		return fmt.Errorf("%w: %w; so it is with %d more", disk.ErrCorrupt, first, more)
	}
	return fmt.Errorf("%w: %w", disk.ErrCorrupt, first)
}

// damaged takes in a damaged event. The error says that the reading must end.
func (r *Reader) damaged(e *event.Event, damage *event.DamagedError) error {
	if r.shown == nil {
		return fmt.Errorf("%w: %w", disk.ErrCorrupt, damage)
	}
	e.Hide()
	r.shown.mu.Lock()
	defer r.shown.mu.Unlock()
	r.shown.found[e.Seq] = damage
	return nil
}

// OpenReader opens the log at path read-only; it recovers and changes nothing. A log
// in a folder that cannot be written is readable while no process has it open for
// appending. It fails with an error wrapping fs.ErrNotExist if there is no log.
func OpenReader(ctx context.Context, path string) (*Reader, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	if err := disk.CheckDatabase(path); err != nil {
		return nil, err
	}
	if _, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("eventlog: %w", err)
	}
	_, _ = syncLeftover(path+"-wal", os.O_RDONLY) // Conditions that is not allowed, nothing else is to be had
	r, err := openReader(ctx, path, false)
	if errors.Is(err, disk.ErrReadOnly) {
		// SQLite needs a -shm file beside a WAL database, and could not make one.
		if fi, werr := os.Stat(path + "-wal"); errors.Is(werr, fs.ErrNotExist) || werr == nil && fi.Size() == 0 {
			r, err = openReader(ctx, path, true)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("eventlog: open %s: %w", path, ExplainDisk(path, err))
	}
	return r, nil
}

func openReader(ctx context.Context, path string, immutable bool) (*Reader, error) {
	db, err := sqlx.Open("sqlite", ReaderDSN(path, immutable))
	if err != nil {
		return nil, err
	}
	app, version, err := identify(ctx, db)
	if err == nil && app == 0 {
		err = emptyOrForeign(ctx, db)
	}
	if err != nil {
		_ = db.Close() // the error that matters is the first
		return nil, err
	}
	return &Reader{db: db, path: path, Version: version, Immutable: immutable, prunings: &prunings{}}, nil
}

// ReaderOf returns a Reader of a log that is open for writing. Its connections are opened with the
// first query.
func ReaderOf(path string) (Reader, error) {
	db, err := sqlx.Open("sqlite", ReaderDSN(path, false))
	return Reader{db: db, path: path, Version: SchemaVersion, prunings: &prunings{}}, err
}

// emptyOrForeign tells a file in which a log is just being made, or would have been, from
// somebody else's.
func emptyOrForeign(ctx context.Context, db *sqlx.DB) error {
	var tables int
	if err := db.GetContext(ctx, &tables, `SELECT count(*) FROM sqlite_schema`); err != nil {
		return disk.Explain(err)
	}
	if tables == 0 {
		return fmt.Errorf("the file is empty: %w", disk.ErrNotExist)
	}
	return disk.ErrForeign
}

// Close releases the file. A Log is closed by its own Close.
func (r *Reader) Close() error { return r.db.Close() }

// Path returns the absolute name of the log's file.
func (r *Reader) Path() string { return r.path }

// Head returns the number of events and the root hash of the tree they form.
func (r *Reader) Head(ctx context.Context) (size int64, root tlog.Hash, err error) {
	h := r.Hashes(ctx)
	if size, err = h.Size(); err != nil {
		return 0, root, err
	}
	f, err := h.Frontier(size)
	return size, f.Root(), err
}

// Hashes reads the tree's hashes.
func (r *Reader) Hashes(ctx context.Context) Hashes {
	return Hashes{Ctx: ctx, DB: r.db, Old: r.Version < 2}
}

// FindRuns returns the runs that have an intent or an outcome and whose id, or its last eight
// characters, begins with part, or ends with it, without reading their events.
func (r *Reader) FindRuns(ctx context.Context, part string) ([]event.RunID, error) {
	var runs []event.RunID
	err := r.db.SelectContext(ctx, &runs, `
		SELECT run_id
		FROM (
			SELECT run_id
			FROM events
			WHERE `+isOutcome+`
			UNION
			SELECT run_id
			FROM open_runs
		)
		WHERE substr(run_id, 1, length(?1)) = ?1 OR substr(run_id, -length(?1)) = ?1 OR substr(run_id, -8, length(?1)) = ?1`, part)
	return runs, disk.Explain(err)
}

// Conditions returns the condition of q and its arguments.
func Conditions(q event.Query) (string, []any) {
	var terms []string
	var args []any
	add := func(set bool, term string, a ...any) {
		if set {
			terms = append(terms, term)
			args = append(args, a...)
		}
	}
	add(q.After > 0, "seq > ?", int64(q.After))
	add(q.Until > 0, "seq <= ?", int64(q.Until))
	add(q.ID != "", "event_id = ?", q.ID)
	add(q.Session != "", "session_id = ?", string(q.Session))
	add(q.Run != "", "run_id = ?", string(q.Run))
	add(q.Interaction != "", "interaction_id = ? AND interaction_id <> ''", string(q.Interaction))
	add(q.Input != "", "input_id = ?", string(q.Input))
	add(!q.Since.IsZero(), "ts >= ?", q.Since.UnixNano())
	add(!q.Before.IsZero(), "ts < ?", q.Before.UnixNano())
	add(q.Gone, "payload IS NULL AND payload_len > 0")
	// Types are literals, so that SQLite sees which partial index serves.
	switch len(q.Types) {
	case 0:
	case 1:
		terms = append(terms, "type = "+literals(q.Types))
	default:
		terms = append(terms, "type IN ("+literals(q.Types)+")")
	}
	switch {
	case q.OnlyFacts():
		terms = append(terms, "class = 'fact'") // literal, so that the partial indexes serve
	case q.Class != "":
		add(true, "class = ?", string(q.Class))
	}
	if len(terms) == 0 {
		return "", nil
	}
	return "WHERE " + strings.Join(terms, " AND "), args
}

// literals returns the types as a list of SQL string literals.
func literals(types []event.Type) string {
	var list []string
	for _, t := range types {
		list = append(list, "'"+strings.ReplaceAll(string(t), "'", "''")+"'")
	}
	return strings.Join(list, ", ")
}

// Events are fetched a chunk at a time, which ends at the first of the two limits. No
// connection and no read transaction is held while the caller looks at them.
const (
	chunk      = 256
	chunkBytes = 4 << 20
)

// Events yields the events that q selects, in the order of their Seq. After an error
// it ends. Events committed while it runs may be seen.
func (r *Reader) Events(ctx context.Context, q event.Query) iter.Seq2[event.Event, error] {
	if q.Run != "" && q.Class == "" && !q.OnlyFacts() {
		if err := r.narrow(ctx, &q); err != nil {
			return func(yield func(event.Event, error) bool) { yield(event.Event{}, err) }
		}
	}
	return func(yield func(event.Event, error) bool) {
		left := q.Limit
		for {
			n := chunk
			if q.Limit > 0 && left < n {
				n = left
			}
			events, more, err := r.fetch(ctx, q, n)
			if err != nil {
				yield(event.Event{}, err)
				return
			}
			for _, e := range events {
				if !yield(e, nil) {
					return
				}
			}
			left -= len(events)
			if !more || q.Limit > 0 && left == 0 {
				return
			}
			if last := events[len(events)-1].Seq; q.Newest {
				if last == 1 {
					return // Until 0 would select everything
				}
				q.Until = last - 1
			} else {
				q.After = last
			}
		}
	}
}

// narrow limits q to the stretch of the log in which its run lives: frames are not
// indexed by run, but lie between the run's facts, or behind them while it runs.
func (r *Reader) narrow(ctx context.Context, q *event.Query) error {
	var first, last *int64
	var over bool
	err := r.db.QueryRowxContext(ctx, `
		SELECT min(seq), max(seq),
			EXISTS (SELECT 1 FROM events WHERE run_id = ? AND class = 'fact' AND type = 'llm.single_call.enforced')
		FROM events
		WHERE run_id = ? AND class = 'fact'`, string(q.Run), string(q.Run)).Scan(&first, &last, &over)
	if err != nil || first == nil {
		return disk.Explain(err)
	}
	q.After = max(q.After, event.Seq(*first-1))
	if over && (q.Until == 0 || q.Until > event.Seq(*last)) {
		q.Until = event.Seq(*last)
	}
	return nil
}

// fetch returns the first events that q selects; more says that there may be others.
func (r *Reader) fetch(ctx context.Context, q event.Query, limit int) (events []event.Event, more bool, err error) {
	condition, args := Conditions(q)
	order := "ASC"
	if q.Newest {
		order = "DESC"
	}
	rows, err := r.db.QueryxContext(ctx, `
		SELECT seq, event_id, ts, type, class, actor, writer, context_id,
			session_id, conversation_id, run_id, trace_id, interaction_id, input_id,
			payload_len, payload_sha256, leaf, payload, payload IS NULL
		FROM events `+condition+`
		ORDER BY seq `+order+`
		LIMIT ?`, append(args, limit)...)
	if err != nil {
		return nil, false, disk.Explain(err)
	}
	defer func() { _ = rows.Close() }() // rows.Err below tells
	for size := 0; size < chunkBytes && rows.Next(); {
		e, err := scanEvent(rows)
		size += len(e.Payload)
		if damage := e.Check(); err == nil && damage != nil {
			err = r.damaged(&e, damage)
		}
		if err != nil {
			return nil, false, err
		}
		events = append(events, e)
		more = size >= chunkBytes
	}
	more = more || len(events) == limit
	if err := rows.Err(); err != nil {
		return nil, false, disk.Explain(err)
	}
	return events, more, r.fillWithheld(ctx, events)
}

// fillWithheld says of the events without a payload why they have none: a mark that came with an import, or a
// log.pruned. An event of which neither tells is damaged: somebody removed its payload.
func (r *Reader) fillWithheld(ctx context.Context, events []event.Event) error {
	var gone []*event.Event
	for i := range events {
		if e := &events[i]; e.Payload == nil && e.Withheld == "" {
			gone = append(gone, e)
		}
	}
	if len(gone) == 0 {
		return nil
	}
	why, err := r.marks(ctx, gone[0].Seq, gone[len(gone)-1].Seq)
	if err != nil {
		return err
	}
	for _, e := range gone {
		if e.Withheld = why[e.Seq]; e.Withheld != "" {
			continue
		}
		switch pruned, err := r.pruned(ctx, e); {
		case err != nil:
			return err
		case pruned:
			e.Withheld = event.Pruned
		default:
			if err := r.damaged(e, &event.DamagedError{Seq: e.Seq}); err != nil {
				return err
			}
		}
	}
	return nil
}

// marks returns the marks of an import for the events from one number to another, in either order.
func (r *Reader) marks(ctx context.Context, one, other event.Seq) (map[event.Seq]string, error) {
	why := map[event.Seq]string{}
	if r.Version < 2 {
		return why, nil
	}
	var rows []struct {
		Seq event.Seq
		Why string
	}
	err := r.db.SelectContext(ctx, &rows, `
		SELECT seq, why
		FROM withheld
		WHERE seq BETWEEN ? AND ?`, int64(min(one, other)), int64(max(one, other)))
	for _, row := range rows {
		why[row.Seq] = row.Why
	}
	return why, disk.Explain(err)
}

// pruned reports whether a log.pruned covers e.
func (r *Reader) pruned(ctx context.Context, e *event.Event) (bool, error) {
	if e.Type.Kept() {
		return false, nil // so it is with log.pruned itself
	}
	covers := func(p event.Pruning) bool { return p.Covers(e) }
	r.prunings.mu.Lock()
	known := slices.ContainsFunc(r.prunings.list, covers)
	r.prunings.mu.Unlock()
	if known {
		return true, nil
	}
	var list []event.Pruning
	for p, err := range r.Events(ctx, event.Query{Types: []event.Type{event.LogPruned}, Class: event.Fact}) {
		if err != nil {
			return false, err
		}
		var pruning event.Pruning
		if p.Decode(&pruning) == nil {
			list = append(list, pruning)
		}
	}
	r.prunings.mu.Lock()
	r.prunings.list = list
	r.prunings.mu.Unlock()
	return slices.ContainsFunc(list, covers), nil
}

func scanEvent(rows *sqlx.Rows) (e event.Event, err error) {
	var ts int64
	var sum, leaf []byte
	var gone bool
	err = rows.Scan(&e.Seq, &e.ID, &ts, &e.Type, &e.Class, &e.Actor, &e.Writer, &e.Context,
		&e.Session, &e.Conversation, &e.Run, &e.Trace, &e.Interaction, &e.Input,
		&e.PayloadLen, &sum, &leaf, &e.Payload, &gone)
	if err != nil { // a column of another type than the schema's
		return e, fmt.Errorf("%w: event %d: %w", disk.ErrCorrupt, e.Seq, disk.Explain(err))
	}
	if e.Seq < 1 {
		return e, fmt.Errorf("%w: an event with the impossible number %d", disk.ErrCorrupt, e.Seq)
	}
	if len(sum) != sha256.Size || len(leaf) != tlog.HashSize {
		return e, fmt.Errorf("%w: event %d: a hash of the wrong length", disk.ErrCorrupt, e.Seq)
	}
	if e.Payload == nil && (!gone || e.PayloadLen == 0) {
		e.Payload = []byte{} // the driver returns nil for an empty blob, too
	}
	e.Time = time.Unix(0, ts)
	e.PayloadSHA256, e.LeafHash = [sha256.Size]byte(sum), tlog.Hash(leaf)
	return e, nil
}

// Count returns how many events q selects, without reading them; Limit and Newest say nothing
// here.
func (r *Reader) Count(ctx context.Context, q event.Query) (n int, err error) {
	condition, args := Conditions(q)
	err = r.db.GetContext(ctx, &n, `SELECT count(*) FROM events `+condition, args...)
	return n, disk.Explain(err)
}

// Last returns the newest event that q selects; ok is false if there is none.
func (r *Reader) Last(ctx context.Context, q event.Query) (e event.Event, ok bool, err error) {
	q.Newest, q.Limit = true, 1
	for e, err := range r.Events(ctx, q) {
		return e, err == nil, err
	}
	return event.Event{}, false, nil
}
