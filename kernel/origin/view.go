package origin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/view"
)

// View is the open database view of the recorded changes of files. It has the places of the contents in the log, but no
// contents. If its file is deleted, the next Open builds it from the log.
type View struct {
	view *view.View
	log  event.Reader
}

// projection returns the definition of the view of a log. A run is added when its record is closed.
func projection(log event.Reader) view.Projection {
	return view.Projection{
		Name: "changes", Version: 1,
		Schema: `
			CREATE TABLE open (run TEXT PRIMARY KEY) STRICT; -- the runs with a call whose record is not closed
			CREATE TABLE runs (
				id      INTEGER PRIMARY KEY,
				run     TEXT NOT NULL,
				session TEXT NOT NULL,
				input   TEXT NOT NULL,
				text    TEXT NOT NULL,
				sender  TEXT NOT NULL,
				agent   TEXT NOT NULL,
				dir     TEXT NOT NULL
			) STRICT;
			CREATE TABLE changes (
				id       INTEGER PRIMARY KEY,
				run      INTEGER NOT NULL, -- id in runs
				path     TEXT    NOT NULL,
				at       INTEGER NOT NULL, -- nanoseconds since the Unix epoch
				call     TEXT    NOT NULL,
				flags    INTEGER NOT NULL, -- the sum of flagPerhaps and the others
				added    INTEGER NOT NULL,
				removed  INTEGER NOT NULL,
				kind     TEXT    NOT NULL,
				who      TEXT    NOT NULL,
				question TEXT    NOT NULL,
				why      TEXT    NOT NULL,
				diff     INTEGER NOT NULL, -- Seq of the event, or 0
				args     INTEGER NOT NULL, -- Seq of the event, or 0
				nth      INTEGER NOT NULL
			) STRICT;
			CREATE INDEX changes_by_path ON changes (path);
			CREATE INDEX changes_by_time ON changes (at)`,
		Types: []event.Type{event.Requested, event.CallEnforced},
		// A run counts even if these payloads are missing.
		Withheld: true,
		Apply: func(ctx context.Context, tx *sqlx.Tx, e event.Event) error {
			if e.Type == event.Requested {
				_, err := tx.ExecContext(ctx, `INSERT INTO open (run) VALUES (?) ON CONFLICT DO NOTHING`, string(e.Run))
				return err
			}
			if _, err := tx.ExecContext(ctx, `DELETE FROM open WHERE run = ?`, string(e.Run)); err != nil {
				return err
			}
			list, err := ofRun(ctx, log, e.Run)
			if err != nil || len(list) == 0 {
				return err
			}
			return insert(ctx, tx, list)
		},
	}
}

// These are the bits of the column flags.
const (
	flagPerhaps = 1 << iota
	flagRemoves
	flagWhole
	flagCreated
)

// insert adds the changes of one run.
func insert(ctx context.Context, tx *sqlx.Tx, list []Change) error {
	c := list[0]
	added, err := tx.ExecContext(ctx, `
		INSERT INTO runs (run, session, input, text, sender, agent, dir)
		VALUES (?, ?, ?, ?, ?, ?, ?)`,
		string(c.Run), string(c.Session), string(c.Input), c.Text, c.By, c.agent, c.dir)
	if err != nil {
		return err
	}
	run, err := added.LastInsertId()
	if err != nil {
		return err
	}
	for _, c := range list {
		flags := 0
		for bit, set := range map[int]bool{flagPerhaps: c.Perhaps, flagRemoves: c.Removes, flagWhole: c.Whole,
			flagCreated: c.created} {
			if set {
				flags |= bit
			}
		}
		_, err := tx.ExecContext(ctx, `
			INSERT INTO changes (run, path, at, call, flags, added, removed, kind, who, question, why, diff, args, nth)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
			run, c.Path, c.At.UnixNano(), c.Call, flags, c.Added, c.Removed, c.Kind, c.Who, string(c.Question), c.Why,
			int64(c.diff), int64(c.args), c.nth)
		if err != nil {
			return err
		}
	}
	return nil
}

// Open opens the view in the file at path, checks its seal with the key, and adds the log's newer events. The caller
// closes the view before the log.
func Open(ctx context.Context, log event.Reader, path string, key []byte) (*View, error) {
	v, err := view.Open(ctx, log, path, key, projection(log))
	if err != nil {
		return nil, err
	}
	return &View{v, log}, nil
}

// Close closes the view's file.
func (v *View) Close() error { return v.view.Close() }

// Wanted selects changes. A zero field sets no condition.
type Wanted struct {
	Since, Before time.Time // of the end of the tool call
	Session       event.SessionID
	// Paths are absolute paths of files and folders. A folder selects the files below it.
	Paths []string
}

// Changes returns the selected changes, oldest first.
func (v *View) Changes(ctx context.Context, w Wanted) ([]Change, error) {
	list, err := v.closed(ctx, w)
	if err != nil {
		return nil, err
	}
	var open []string
	if err := v.view.DB().SelectContext(ctx, &open, `SELECT run FROM open`); err != nil {
		return nil, fmt.Errorf("changes: %w", err)
	}
	for _, run := range open {
		changes, err := ofRun(ctx, v.log, event.RunID(run))
		if err != nil {
			return nil, err
		}
		list = append(list, slices.DeleteFunc(changes, func(c Change) bool { return !w.selects(c) })...)
	}
	if len(open) > 0 {
		slices.SortStableFunc(list, func(a, b Change) int { return a.At.Compare(b.At) })
	}
	return list, nil
}

func (w Wanted) selects(c Change) bool {
	return (w.Since.IsZero() || !c.At.Before(w.Since)) && (w.Before.IsZero() || c.At.Before(w.Before)) &&
		(w.Session == "" || c.Session == w.Session) && (len(w.Paths) == 0 || slices.ContainsFunc(w.Paths,
		func(p string) bool { return c.Path == p || strings.HasPrefix(c.Path, strings.TrimSuffix(p, "/")+"/") }))
}

// closed returns the selected changes of the runs with a closed record.
func (v *View) closed(ctx context.Context, w Wanted) (list []Change, err error) {
	where, args := w.condition()
	rows, err := v.view.DB().QueryContext(ctx, `
		SELECT runs.run, session, input, text, sender, agent, dir,
			path, at, call, flags, added, removed, kind, who, question, why, diff, args, nth
		FROM changes
		JOIN runs ON runs.id = changes.run `+where+`
		ORDER BY changes.id`, args...)
	if err != nil {
		return nil, fmt.Errorf("changes: %w", err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var c Change
		var at int64
		var flags int
		if err := rows.Scan(&c.Run, &c.Session, &c.Input, &c.Text, &c.By, &c.agent, &c.dir, &c.Path, &at, &c.Call, &flags,
			&c.Added, &c.Removed, &c.Kind, &c.Who, &c.Question, &c.Why, &c.diff, &c.args, &c.nth); err != nil {
			return nil, fmt.Errorf("changes: %w", err)
		}
		c.At = time.Unix(0, at)
		c.Perhaps, c.Removes, c.Whole, c.created = flags&flagPerhaps > 0, flags&flagRemoves > 0, flags&flagWhole > 0,
			flags&flagCreated > 0
		list = append(list, c)
	}
	return list, rows.Err()
}

// condition returns w as a condition of SQL, with its arguments.
func (w Wanted) condition() (string, []any) {
	terms, args := []string{"TRUE"}, []any{}
	add := func(set bool, term string, a ...any) {
		if set {
			terms, args = append(terms, term), append(args, a...)
		}
	}
	add(!w.Since.IsZero(), "at >= ?", w.Since.UnixNano())
	add(!w.Before.IsZero(), "at < ?", w.Before.UnixNano())
	add(w.Session != "", "session = ?", string(w.Session))
	var paths []string
	for _, p := range w.Paths {
		below := strings.TrimSuffix(p, "/") + "/"
		paths = append(paths, "path = ? OR path >= ? AND path < ?")
		args = append(args, p, below, below[:len(below)-1]+"0") // 0 follows / in the order of bytes
	}
	add(len(paths) > 0, "("+strings.Join(paths, " OR ")+")")
	return "WHERE " + strings.Join(terms, " AND "), args
}
