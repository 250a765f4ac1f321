package store

import (
	"context"
	"crypto/sha256"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
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

// Reader reads the committed events of a log. It compares each event with the event's recorded hashes. A damaged
// event ends the reading with an error, unless OpenToShow made the Reader. Several goroutines may call its methods at
// the same time.
type Reader struct {
	db   *sqlx.DB
	path string

	// Immutable means that no process can write to the file, and that the file has no write-ahead log.
	Immutable bool

	// shown is nil unless OpenToShow made the Reader. nil means that a damaged event is an error.
	shown *shown
	// prunings are the removals that were read from the log so far.
	prunings *prunings
	names    *nameTexts
}

// prunings are the removals that the log announces with log.pruned events.
type prunings struct {
	mu   sync.Mutex
	list []event.Pruning // guarded by mu
}

// shown is the damage that a Reader of OpenToShow has found.
type shown struct {
	mu    sync.Mutex
	found map[event.Seq]*event.DamagedError // guarded by mu

	stop    context.CancelFunc // ends the check
	checked chan struct{}      // closed when the check has ended; nil if there is no check
	err     error              // the error of the check; set before checked is closed
}

// OpenToShow opens a log for a caller that shows damaged events, too. A damaged event is yielded without its payload,
// and its Withheld is event.Damaged. At the end the caller calls Damaged. Otherwise OpenToShow is OpenReader.
func OpenToShow(ctx context.Context, path string) (*Reader, error) {
	r, err := OpenReader(ctx, path)
	if err == nil {
		r.shown = &shown{found: map[event.Seq]*event.DamagedError{}}
	}
	return r, err
}

// ToShow reports whether OpenToShow made the Reader.
func (r *Reader) ToShow() bool { return r.shown != nil }

// CheckAlongside calls the function "check" in a goroutine, while the caller reads. Close ends the goroutine. The check
// is needed because a changed column may take an event out of the caller's selection, and the caller would not see that
// damage.
func (r *Reader) CheckAlongside(ctx context.Context, check func(context.Context, *Reader) error) {
	ctx, r.shown.stop = context.WithCancel(ctx)
	r.shown.checked = make(chan struct{})
	go func() {
		defer close(r.shown.checked)
		if err := check(ctx, r); ctx.Err() == nil || errors.Is(err, disk.ErrCorrupt) {
			r.shown.err = err // if the caller ended the check, its error does not matter
		}
	}()
}

// AwaitCheck waits for the check of CheckAlongside and returns its error. It returns nil if there is no check.
func (r *Reader) AwaitCheck() error {
	if r.shown == nil || r.shown.checked == nil {
		return nil
	}
	<-r.shown.checked
	return r.shown.err
}

// Damaged returns an error that wraps disk.ErrCorrupt and names the first damaged event that this Reader has yielded.
// It returns nil if there was no damaged event, or if OpenToShow did not make the Reader.
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

// addDamage records a damaged event. It returns an error if the reading must end.
func (r *Reader) addDamage(e *event.Event, damage *event.DamagedError) error {
	if r.shown == nil {
		return fmt.Errorf("%w: %w", disk.ErrCorrupt, damage)
	}
	e.Hide()
	r.shown.mu.Lock()
	defer r.shown.mu.Unlock()
	r.shown.found[e.Seq] = damage
	return nil
}

// OpenReader opens the log at path for reading. It changes nothing, and it does not repair the log. A log in a
// read-only folder can be read while no process has it open for appending. The error wraps fs.ErrNotExist if there is
// no log.
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
	_, _ = syncLeftover(path+"-wal", os.O_RDONLY) // Without permission to sync, the reader uses the file as it is.
	r, err := openReader(ctx, path, false)
	if errors.Is(err, disk.ErrReadOnly) {
		// SQLite needs a -shm file for a WAL database, and it could not make one. If there is no write-ahead log, the
		// file can be read as immutable.
		if fi, werr := os.Stat(path + "-wal"); errors.Is(werr, fs.ErrNotExist) || werr == nil && fi.Size() == 0 {
			r, err = openReader(ctx, path, true)
		}
	}
	if err != nil {
		return nil, OpenError(path, err)
	}
	return r, nil
}

func openReader(ctx context.Context, path string, immutable bool) (*Reader, error) {
	db, err := sqlx.Open("sqlite", ReaderDSN(path, immutable))
	if err != nil {
		return nil, err
	}
	empty, err := identify(ctx, db)
	if err == nil && empty {
		err = fmt.Errorf("the file is empty: %w", disk.ErrNotExist)
	}
	if err != nil {
		_ = db.Close() // the first error matters
		return nil, err
	}
	return &Reader{db: db, path: path, Immutable: immutable, prunings: &prunings{}, names: &nameTexts{}}, nil
}

// ReaderOf returns a Reader for a log that this process has open for writing. The first query opens the connections.
func ReaderOf(path string) (Reader, error) {
	db, err := sqlx.Open("sqlite", ReaderDSN(path, false))
	return Reader{db: db, path: path, prunings: &prunings{}, names: &nameTexts{}}, err
}

// Close closes the file. For a Log, call the Log's own Close instead.
func (r *Reader) Close() error {
	if r.shown != nil && r.shown.stop != nil {
		r.shown.stop()
		<-r.shown.checked
	}
	return r.db.Close()
}

// Path returns the absolute path of the log's file.
func (r *Reader) Path() string { return r.path }

// Head returns the number of events and the root hash of their tree.
func (r *Reader) Head(ctx context.Context) (size int64, root tlog.Hash, err error) {
	h := r.Hashes(ctx)
	if size, err = h.Size(); err != nil {
		return 0, root, err
	}
	f, err := h.Frontier(size)
	return size, f.Root(), err
}

// Hashes returns the hashes of the log's tree.
func (r *Reader) Hashes(ctx context.Context) Hashes {
	return Hashes{Ctx: ctx, DB: r.db}
}

// FindRuns returns the runs with a matching id that have an intent or an outcome. An id matches if it begins or ends
// with the parameter "part", or if its last eight characters begin with this parameter. FindRuns reads no payload.
func (r *Reader) FindRuns(ctx context.Context, part string) ([]event.RunID, error) {
	var runs []event.RunID
	err := r.db.SelectContext(ctx, &runs, `
		SELECT run_id
		FROM (
			SELECT name AS run_id
			FROM names
			WHERE id IN (SELECT run_id FROM entries WHERE `+isOutcome+`)
			UNION
			SELECT run_id
			FROM open_runs
		)
		WHERE substr(run_id, 1, length(?1)) = ?1 OR substr(run_id, -length(?1)) = ?1 OR substr(run_id, -8, length(?1)) = ?1`,
		part)
	return runs, disk.Explain(err)
}

// isFact is the SQL condition of the indexes of facts.
const isFact = `class = 1`

// Conditions returns the SQL condition of q for the table entries, and its arguments.
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
	add(q.ID != "", "event_id = ?", IDBytes(q.ID))
	add(q.Session != "", "session_id = "+idOf, string(q.Session))
	add(q.Run != "", "run_id = "+idOf, string(q.Run))
	add(q.Interaction != "", "interaction_id = "+idOf+" AND interaction_id <> 0", string(q.Interaction))
	add(q.Input != "", "input_id = "+idOf, string(q.Input))
	add(!q.Since.IsZero(), "ts >= ?", q.Since.UnixNano())
	add(!q.Before.IsZero(), "ts < ?", q.Before.UnixNano())
	add(q.Gone, "payload IS NULL AND payload_len > 0")
	switch len(q.Types) {
	case 0:
	case 1:
		terms = append(terms, "type = "+literals(q.Types))
	default:
		terms = append(terms, "type IN ("+literals(q.Types)+")")
	}
	switch {
	case q.OnlyFacts():
		terms = append(terms, isFact)
	case q.Class != "":
		terms = append(terms, "class = "+literal(string(q.Class)))
	}
	if len(terms) == 0 {
		return "", nil
	}
	return "WHERE " + strings.Join(terms, " AND "), args
}

// Events are read in chunks. A chunk ends at the first of these two limits. While the caller handles a chunk, the
// Reader holds no connection and no transaction.
const (
	chunk      = 256
	chunkBytes = 4 << 20
)

// Events yields the events that q selects, in the order of their Seq, or in the opposite order if q.Newest is true.
// After an error it yields nothing further. It may yield events that are committed while it runs.
func (r *Reader) Events(ctx context.Context, q event.Query) iter.Seq2[event.Event, error] {
	if q.Run != "" && q.Class == "" && !q.OnlyFacts() {
		if err := r.narrowToRun(ctx, &q); err != nil {
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
			events, more, err := r.fetchChunk(ctx, q, n)
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
					return // If Until were 0, the query would select everything.
				}
				q.Until = last - 1
			} else {
				q.After = last
			}
		}
	}
}

// narrowToRun limits q to the part of the log that contains its run. Frames have no index by run. They lie between
// the facts of their run, or after these facts while the run is open.
func (r *Reader) narrowToRun(ctx context.Context, q *event.Query) error {
	var first, last *int64
	var over bool
	err := r.db.QueryRowxContext(ctx, `
		SELECT min(seq), max(seq),
			EXISTS (SELECT 1 FROM entries WHERE run_id = `+idOf+` AND `+isFact+` AND type = `+
		literal(string(event.CallEnforced))+`)
		FROM entries
		WHERE run_id = `+idOf+` AND `+isFact, string(q.Run), string(q.Run)).Scan(&first, &last, &over)
	if err != nil || first == nil {
		return disk.Explain(err)
	}
	q.After = max(q.After, event.Seq(*first-1))
	if over && (q.Until == 0 || q.Until > event.Seq(*last)) {
		q.Until = event.Seq(*last)
	}
	return nil
}

// fetchChunk returns at most limit events that q selects. The result "more" means that there may be further events.
func (r *Reader) fetchChunk(ctx context.Context, q event.Query,
	limit int) (events []event.Event, more bool, err error) {
	condition, args := Conditions(q)
	order := "ASC"
	if q.Newest {
		order = "DESC"
	}
	// A missing payload is read as the number 0, because the driver returns nil for an empty payload.
	query := `
		SELECT ` + HeaderColumns + `, ifnull(payload, 0)
		FROM entries ` + condition + `
		ORDER BY seq ` + order + `
		LIMIT ?`
	size := 0
	err = r.eachRow(ctx, query, append(args, int64(limit)), func(row []driver.Value) (bool, error) {
		e, err := r.scanEvent(ctx, row)
		size += len(e.Payload)
		if damage := e.Check(); err == nil && damage != nil {
			err = r.addDamage(&e, damage)
		}
		events = append(events, e)
		return size < chunkBytes, err
	})
	if err != nil {
		return nil, false, err
	}
	return events, size >= chunkBytes || len(events) == limit, r.fillWithheld(ctx, events)
}

// eachRow calls f with each row of a query, until f returns false. The arguments must have types of the driver, such as
// int64 and string. eachRow calls the driver itself, because database/sql copies and converts each column. That takes a
// sixth of the time of a long read.
func (r *Reader) eachRow(ctx context.Context, query string, args []any, f func([]driver.Value) (bool, error)) error {
	conn, err := r.db.Conn(ctx)
	if err != nil {
		return disk.Explain(err)
	}
	defer func() { _ = conn.Close() }() // only read
	named := make([]driver.NamedValue, len(args))
	for i, a := range args {
		named[i] = driver.NamedValue{Ordinal: i + 1, Value: a}
	}
	return conn.Raw(func(c any) error {
		rows, err := c.(driver.QueryerContext).QueryContext(ctx, query, named)
		if err != nil {
			return disk.Explain(err)
		}
		defer func() { _ = rows.Close() }() // Next has returned the error
		row := make([]driver.Value, len(rows.Columns()))
		for more := true; more && err == nil; {
			if err = ctx.Err(); err == nil {
				err = rows.Next(row)
			}
			switch {
			case errors.Is(err, io.EOF):
				return nil
			case err != nil:
				return disk.Explain(err)
			}
			more, err = f(row)
		}
		return err
	})
}

// fillWithheld sets Withheld for events without a payload. The reason is a row that an import wrote, or an event
// log.pruned. Without such a reason the event is damaged, because another program removed its payload.
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
		switch pruned, err := r.isPruned(ctx, e); {
		case err != nil:
			return err
		case pruned:
			e.Withheld = event.Pruned
		default:
			if err := r.addDamage(e, &event.DamagedError{Seq: e.Seq}); err != nil {
				return err
			}
		}
	}
	return nil
}

// marks returns the reasons that an import stored for missing payloads, by the Seq of the event. It reads the events
// between two numbers, which may be in either order.
func (r *Reader) marks(ctx context.Context, one, other event.Seq) (map[event.Seq]string, error) {
	why := map[event.Seq]string{}
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

// isPruned reports whether a log.pruned covers e.
func (r *Reader) isPruned(ctx context.Context, e *event.Event) (bool, error) {
	if e.Type.Kept() {
		return false, nil // This includes log.pruned, so the query below never calls isPruned without end.
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

// scanEvent returns the event in a row of fetchChunk. The error wraps disk.ErrCorrupt if a column has another type than
// the schema says.
func (r *Reader) scanEvent(ctx context.Context, row []driver.Value) (e event.Event, err error) {
	seq, ok := row[0].(int64)
	e.Seq = event.Seq(seq)
	if !ok || seq < 1 {
		return e, fmt.Errorf("%w: an event with the impossible number %v", disk.ErrCorrupt, row[0])
	}
	id, is := row[1].([]byte)
	if e.ID, ok = IDText(id); !is || !ok {
		return e, fmt.Errorf("%w: event %d: its id is not a UUID", disk.ErrCorrupt, e.Seq)
	}
	const sizeColumn = 3 + textColumns
	ts, ok := row[2].(int64)
	size, is := row[sizeColumn].(int64)
	if !ok || !is {
		return e, fmt.Errorf("%w: event %d: a column has a wrong type", disk.ErrCorrupt, e.Seq)
	}
	text, err := r.textsOf(ctx, row[3:sizeColumn])
	if err != nil {
		return e, fmt.Errorf("event %d: %w", e.Seq, err)
	}
	e.Time, e.PayloadLen = time.Unix(0, ts), size
	e.SetTexts(text)
	sum, _ := row[sizeColumn+1].([]byte)
	leaf, _ := row[sizeColumn+2].([]byte)
	if len(sum) != sha256.Size || len(leaf) != tlog.HashSize {
		return e, fmt.Errorf("%w: event %d: a hash of the wrong length", disk.ErrCorrupt, e.Seq)
	}
	switch payload := row[sizeColumn+3].(type) {
	case []byte:
		if e.Payload = payload; payload == nil {
			e.Payload = []byte{} // the driver returns nil for an empty blob
		}
	case int64: // there is no payload; the payload of an event without bytes is complete
		if e.PayloadLen == 0 {
			e.Payload = []byte{}
		}
	default:
		return e, fmt.Errorf("%w: event %d: its payload has a wrong type", disk.ErrCorrupt, e.Seq)
	}
	e.PayloadSHA256, e.LeafHash = [sha256.Size]byte(sum), tlog.Hash(leaf)
	return e, nil
}

// Count returns the number of events that q selects. It does not read the events. It ignores Limit and Newest.
func (r *Reader) Count(ctx context.Context, q event.Query) (n int, err error) {
	condition, args := Conditions(q)
	err = r.db.GetContext(ctx, &n, `SELECT count(*) FROM entries `+condition, args...)
	return n, disk.Explain(err)
}

// Last returns the newest event that q selects. ok is false if q selects no event.
func (r *Reader) Last(ctx context.Context, q event.Query) (e event.Event, ok bool, err error) {
	q.Newest, q.Limit = true, 1
	for e, err := range r.Events(ctx, q) {
		return e, err == nil, err
	}
	return event.Event{}, false, nil
}
