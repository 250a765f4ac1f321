package origin

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/view"
)

// View is an open index of the recorded changes of files, in a database. It names the events with the contents, but has
// no contents itself. If its file is deleted, the next Open builds it from the log.
type View struct {
	view *view.View
	log  event.Reader
}

// projection returns the definition of the view of a log. A run is added when its record is closed.
func projection(log event.Reader, progress func(event.Seq)) view.Projection {
	return view.Projection{
		Name: "changes", Version: 3, PageSize: 32 << 10,
		Schema: `
			CREATE TABLE open (run TEXT PRIMARY KEY) STRICT; -- the runs with a call whose record is not closed
			CREATE TABLE changes (
				id      INTEGER PRIMARY KEY,
				seq     INTEGER NOT NULL, -- number of the event that ended the tool call
				path    TEXT    NOT NULL,
				at      INTEGER NOT NULL, -- nanoseconds since the Unix epoch
				session TEXT    NOT NULL,
				change  TEXT    NOT NULL  -- a Change as JSON
			) STRICT;
			CREATE INDEX changes_by_path ON changes (path);
			CREATE INDEX changes_by_time ON changes (at)`,
		Types: []event.Type{event.Requested, event.CallEnforced, event.TreeObserved},
		// Withheld passes these events to Apply even if their payloads were pruned.
		Withheld: true,
		Apply: func(ctx context.Context, tx *sqlx.Tx, e event.Event) error {
			if progress != nil {
				progress(e.Seq)
			}
			switch e.Type {
			case event.Requested:
				_, err := tx.ExecContext(ctx, `INSERT INTO open (run) VALUES (?) ON CONFLICT DO NOTHING`, string(e.Run))
				return err
			case event.TreeObserved:
				var others int
				err := tx.GetContext(ctx, &others, `SELECT count(*) FROM open WHERE run <> ?`, string(e.Run))
				if err != nil || others > 0 {
					return err
				}
				list, err := inferred(ctx, log, e)
				if err != nil {
					return err
				}
				return insert(ctx, tx, list)
			}
			if _, err := tx.ExecContext(ctx, `DELETE FROM open WHERE run = ?`, string(e.Run)); err != nil {
				return err
			}
			list, err := ofRun(ctx, log, e.Run)
			if err != nil {
				return err
			}
			return insert(ctx, tx, list)
		},
	}
}

// stored is a change in the view.
type stored struct {
	Change
	Source source `json:"source"`
}

// insert adds the changes of one run.
func insert(ctx context.Context, tx *sqlx.Tx, list []Change) error {
	for _, c := range list {
		text, err := json.Marshal(stored{c, c.source})
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, `
			INSERT INTO changes (seq, path, at, session, change)
			VALUES (?, ?, ?, ?, ?)`, int64(c.source.End), c.Path, c.At.UnixNano(), string(c.Session), string(text))
		if err != nil {
			return err
		}
	}
	return nil
}

// Open opens the view in the file at path, checks its seal with the key, and adds the log's newer events. If "progress"
// is not nil, Open calls it with the number of each added event. The caller closes the view before the log.
func Open(ctx context.Context, log event.Reader, path string, key []byte, progress func(event.Seq)) (*View, error) {
	v, err := view.Open(ctx, log, path, key, projection(log, progress))
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

// Changes returns the selected changes in the order in which their tool calls ended.
func (v *View) Changes(ctx context.Context, w Wanted) ([]Change, error) {
	var texts, open []string
	where, args := w.condition()
	if err := v.view.Read(ctx, func(tx *sqlx.Tx) error {
		err := tx.SelectContext(ctx, &texts, `SELECT change FROM changes `+where+` ORDER BY seq, id`, args...)
		if err == nil {
			err = tx.SelectContext(ctx, &open, `SELECT run FROM open`)
		}
		return err
	}); err != nil {
		return nil, fmt.Errorf("changes: %w", err)
	}
	list, err := parse(texts)
	if err != nil {
		return nil, err
	}
	for _, run := range open {
		changes, err := ofRun(ctx, v.log, event.RunID(run))
		if err != nil {
			return nil, err
		}
		list = append(list, slices.DeleteFunc(changes, func(c Change) bool { return !w.selects(c) })...)
	}
	if len(open) > 0 {
		sort.SliceStable(list, func(i, j int) bool { return list[i].source.End < list[j].source.End })
	}
	return list, nil
}

func (w Wanted) selects(c Change) bool {
	return (w.Since.IsZero() || !c.At.Before(w.Since)) && (w.Before.IsZero() || c.At.Before(w.Before)) &&
		(w.Session == "" || c.Session == w.Session) && (len(w.Paths) == 0 || slices.ContainsFunc(w.Paths,
		func(p string) bool { return c.Path == p || strings.HasPrefix(c.Path, below(p)) }))
}

// below returns the beginning of the paths of all files below a folder. It uses the separator of this system, as the
// recorded paths do.
func below(folder string) string {
	const separator = string(filepath.Separator)
	return strings.TrimSuffix(folder, separator) + separator
}

// parse returns the changes of the view's texts.
func parse(texts []string) ([]Change, error) {
	list := make([]Change, len(texts))
	for i, text := range texts {
		var s stored
		if err := json.Unmarshal([]byte(text), &s); err != nil {
			return nil, fmt.Errorf("changes: %w", err)
		}
		list[i] = s.Change
		list[i].source = s.Source
	}
	return list, nil
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
		first := below(p)
		last := len(first) - 1
		paths = append(paths, "path = ? OR path >= ? AND path < ?")
		args = append(args, p, first, first[:last]+string(first[last]+1)) // the text after all paths below the folder
	}
	add(len(paths) > 0, "("+strings.Join(paths, " OR ")+")")
	return "WHERE " + strings.Join(terms, " AND "), args
}
