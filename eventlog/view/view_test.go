package view_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/jmoiron/sqlx"

	"github.com/perlica/perlica/eventlog"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/store"
	"github.com/perlica/perlica/eventlog/store/storetest"
	"github.com/perlica/perlica/eventlog/view"
)

// openTest opens a log for a test.
func openTest(t *testing.T) *eventlog.Log {
	t.Helper()
	l, err := eventlog.Open(t.Context(), filepath.Join(t.TempDir(), "eventlog.db"), eventlog.Options{Context: "default"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

// execFile executes statements on a file, as another program would.
func execFile(path, sql string) error {
	db, err := sqlx.Open("sqlite", path)
	if err != nil {
		return err
	}
	db.SetMaxOpenConns(1)
	_, _ = db.Exec(storetest.Editable) // fails if the file is not a log
	_, err = db.Exec(sql)
	return errors.Join(err, db.Close())
}

var testKey = []byte("a secret of the user's")

var names = view.Projection{
	Name: "names", Version: 1, Types: []event.Type{event.SessionCreated},
	Schema: `
		CREATE TABLE names (seq INTEGER PRIMARY KEY, name TEXT NOT NULL) STRICT;
		CREATE INDEX names_by_name ON names (name)`,
	Apply: func(ctx context.Context, tx *sqlx.Tx, e event.Event) error {
		_, err := tx.ExecContext(ctx, `INSERT INTO names (seq, name) VALUES (?1, 'name ' || ?1)`, int64(e.Seq))
		return err
	},
}

// seqs reads the rows by the index of their names.
func seqs(list *[]int) func(tx *sqlx.Tx) error {
	return func(tx *sqlx.Tx) error {
		return tx.Select(list, `
			SELECT seq FROM names INDEXED BY names_by_name
			WHERE name >= 'name' AND name < 'namf'
			ORDER BY seq`)
	}
}

func viewRows(t *testing.T, l *eventlog.Log, path string, def view.Projection) string {
	t.Helper()
	v, err := view.Open(t.Context(), &l.Reader, path, testKey, def)
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	var rows []int
	if err := v.Read(t.Context(), seqs(&rows)); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(rows)
}

func TestViewCatchesUpAndComesBack(t *testing.T) {
	l := openTest(t)
	path := filepath.Join(t.TempDir(), "names.db")
	for i, want := range []string{"[2]", "[2 4]", "[2 4 6]"} {
		if _, err := l.Append(t.Context(), event.NewFact(event.Truncated, "user", event.Refs{}, struct{}{}),
			event.NewFact(event.SessionCreated, "user", event.Refs{}, struct{}{})); err != nil {
			t.Fatal(err)
		}
		if got := viewRows(t, l, path, names); got != want {
			t.Errorf("step %d: %s, want %s", i, got, want)
		}
	}
	for name, spoil := range map[string]func() error{
		"deleted": func() error { return os.Remove(path) },
		"garbage": func() error { return os.WriteFile(path, make([]byte, 9000), 0o600) },
		"foreign": func() error { return execFile(path, `DROP TABLE position`) },
		"another log": func() error {
			return execFile(path, `DELETE FROM names; UPDATE position SET seq = 4, leaf = zeroblob(32)`)
		},
	} {
		if err := spoil(); err != nil {
			t.Fatal(err)
		}
		if got := viewRows(t, l, path, names); got != "[2 4 6]" {
			t.Errorf("%s: %s", name, got)
		}
	}
	newer := names
	newer.Version = 2
	if got := viewRows(t, l, path, newer); got != "[2 4 6]" {
		t.Errorf("new version: %s", got)
	}
}

// TestViewKeepsWhatItHasDone checks that an interrupted view continues at its last position.
func TestViewKeepsWhatItHasDone(t *testing.T) {
	defer view.SetPortion(view.SetPortion(3))
	l := openTest(t)
	for range 10 {
		if _, err := l.Append(t.Context(), event.NewFact(event.SessionCreated, "user", event.Refs{},
			struct{}{})); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(t.TempDir(), "names.db")
	broken := names
	broken.Apply = func(ctx context.Context, tx *sqlx.Tx, e event.Event) error {
		if e.Seq == 8 {
			return errors.New("interrupted")
		}
		return names.Apply(ctx, tx, e)
	}
	if _, err := view.Open(t.Context(), &l.Reader, path, testKey, broken); err == nil {
		t.Fatal("no error")
	}
	var first event.Seq
	going := names
	going.Apply = func(ctx context.Context, tx *sqlx.Tx, e event.Event) error {
		first = min(e.Seq, cmp.Or(first, e.Seq))
		return names.Apply(ctx, tx, e)
	}
	if got := viewRows(t, l, path, going); got != "[1 2 3 4 5 6 7 8 9 10]" || first != 7 {
		t.Errorf("rows %s, gone on from %d", got, first)
	}
}

// TestViewOfADamagedLog checks that a view of damaged events is rebuilt after the log was repaired. A process that
// works with the log must not get such a view.
func TestViewOfADamagedLog(t *testing.T) {
	l := openTest(t)
	created := event.NewFact(event.SessionCreated, "user", event.Refs{Session: "s"}, map[string]string{"name": "true"})
	if _, err := l.Append(t.Context(), created, created); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "names.db")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(execFile(l.Path(),
		`DROP TRIGGER events_lose_nothing_but_payloads; UPDATE events SET payload = CAST(replace(payload, 'true', 'lies') AS BLOB) WHERE seq = 1`))
	for range 2 {
		r, err := store.OpenToShow(t.Context(), l.Path())
		must(err)
		v, err := view.Open(t.Context(), r, path, testKey, names)
		must(err)
		if r.Damaged() == nil {
			t.Error("the view was taken as it was, and the damage was not met")
		}
		must(errors.Join(v.Close(), r.Close()))
	}
	if _, err := view.Open(t.Context(), &l.Reader, path, testKey, names); !errors.As(err, new(*event.DamagedError)) {
		t.Errorf("for work: %v", err)
	}
	must(execFile(l.Path(), `UPDATE events SET payload = CAST(replace(payload, 'lies', 'true') AS BLOB) WHERE seq = 1`))
	if got := viewRows(t, l, path, names); got != "[1 2]" {
		t.Errorf("put right: %s", got)
	}
}

// TestForgedView checks that a change to a view by a program without the key has no effect. The changes are added,
// removed and changed rows, a trigger, and a position. Some are made while a process has the view open. A check of
// the position alone would miss them.
func TestForgedView(t *testing.T) {
	l := openTest(t)
	created := event.NewFact(event.SessionCreated, "user", event.Refs{}, struct{}{})
	if _, err := l.Append(t.Context(), created, created, created); err != nil {
		t.Fatal(err)
	}
	want := "[1 2 3]"
	path := filepath.Join(t.TempDir(), "names.db")
	v, err := view.Open(t.Context(), &l.Reader, path, testKey, names)
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	other := names
	other.Apply = func(ctx context.Context, tx *sqlx.Tx, e event.Event) error {
		_, err := tx.ExecContext(ctx, `INSERT INTO names (seq, name) VALUES (?1, 'name ' || ?1)`, int64(e.Seq)+100)
		return err
	}
	for what, forge := range map[string]func() error{
		"a row added":   func() error { return execFile(path, `INSERT INTO names VALUES (9, 'name 9')`) },
		"a row removed": func() error { return execFile(path, `DELETE FROM names WHERE seq = 2`) },
		"a row changed": func() error { return execFile(path, `UPDATE names SET seq = 7, name = 'name 7' WHERE seq = 2`) },
		"all removed":   func() error { return execFile(path, `DELETE FROM names`) },
		"a trigger": func() error {
			return execFile(path, `CREATE TRIGGER x AFTER INSERT ON names BEGIN DELETE FROM names; END`)
		},
		"a table": func() error { return execFile(path, `CREATE TABLE "a ""b" (x TEXT) STRICT`) },
		"a view": func() error {
			return execFile(path, `ALTER TABLE names RENAME TO n; CREATE VIEW names AS SELECT 5 AS seq, 'name 5' AS name`)
		},
		"an index": func() error { return forgeIndex(path) },
		"a position": func() error {
			return execFile(path,
				`UPDATE position SET seq = 0, leaf = x''; DELETE FROM names`)
		},
		"damage":         func() error { return execFile(path, `UPDATE position SET damaged = 2`) },
		"no seal":        func() error { return execFile(path, `UPDATE seal SET mac = x''; DELETE FROM names`) },
		"no row of it":   func() error { return execFile(path, `DELETE FROM seal`) },
		"no table of it": func() error { return execFile(path, `DROP TABLE seal`) },
		"another's seal": func() error {
			v, err := view.Open(t.Context(), &l.Reader, path, []byte("another secret"), other)
			if err != nil {
				return err
			}
			return v.Close()
		},
	} {
		if err := forge(); err != nil {
			t.Fatal(what, err)
		}
		var rows []int
		if err := v.ReadTables(t.Context(), seqs(&rows)); !errors.Is(err, view.ErrStale) {
			t.Errorf("%s, while it is open: the rows %v were read: %v", what, rows, err)
		}
		rows = nil
		err := v.Read(t.Context(), seqs(&rows))
		if got := fmt.Sprint(rows); err != nil || got != want {
			t.Errorf("%s, while it is open: %s, want %s: %v", what, got, want, err)
		}
		if err := forge(); err != nil {
			t.Fatal(what, err)
		}
		if got := viewRows(t, l, path, names); got != want {
			t.Errorf("%s: %s, want %s", what, got, want)
		}
	}
}

// forgeIndex takes an entry out of the index of a view. The schema and the rows of the table stay as they are.
func forgeIndex(path string) error {
	return errors.Join(execFile(path, `UPDATE names SET name = 'another' WHERE seq = 2`),
		execFile(path, `
			PRAGMA writable_schema = ON;
			CREATE TABLE kept AS SELECT * FROM sqlite_schema WHERE name = 'names_by_name';
			DELETE FROM sqlite_schema WHERE name = 'names_by_name'`),
		execFile(path, `UPDATE names SET name = 'name 2' WHERE seq = 2`),
		execFile(path, `
			PRAGMA writable_schema = ON;
			INSERT INTO sqlite_schema SELECT * FROM kept;
			DROP TABLE kept`))
}

// TestReadIsOneTransaction checks that the rows of Read are the rows whose seal Read has compared.
func TestReadIsOneTransaction(t *testing.T) {
	l := openTest(t)
	if _, err := l.Append(t.Context(), event.NewFact(event.SessionCreated, "user", event.Refs{}, struct{}{})); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "names.db")
	v, err := view.Open(t.Context(), &l.Reader, path, testKey, names)
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	var rows []int
	err = v.Read(t.Context(), func(tx *sqlx.Tx) error {
		_ = execFile(path, `DELETE FROM names`) // the open transaction may prevent this
		return seqs(&rows)(tx)
	})
	if got := fmt.Sprint(rows); err != nil || got != "[1]" {
		t.Errorf("%s: %v", got, err)
	}
}

// growing is a log that another process appends to between the reading of its end and the reading of its events.
type growing struct {
	*eventlog.Log
	grow func()
}

func (g growing) Last(ctx context.Context, q event.Query) (event.Event, bool, error) {
	e, ok, err := g.Log.Last(ctx, q)
	g.grow()
	return e, ok, err
}

// TestViewOfAnEmptyLogThatGrows checks that an event is applied once if it is appended while the view of an empty log
// is made.
func TestViewOfAnEmptyLogThatGrows(t *testing.T) {
	for _, another := range []bool{false, true} {
		testGrowingLog(t, another)
	}
}

// testGrowingLog checks one case of a growing log. another means that another process makes the view at the same time.
func testGrowingLog(t *testing.T, another bool) {
	t.Helper()
	l := openTest(t)
	path := filepath.Join(t.TempDir(), "names.db")
	grow := func() {
		if _, err := l.Append(t.Context(), event.NewFact(event.SessionCreated, "user", event.Refs{}, struct{}{})); err != nil {
			t.Error(err)
		}
		if !another {
			return
		}
		v, err := view.Open(t.Context(), &l.Reader, path, nil, names)
		if err != nil {
			t.Fatal(err)
		}
		if err := v.Close(); err != nil {
			t.Error(err)
		}
	}
	v, err := view.Open(t.Context(), growing{l, grow}, path, nil, names)
	if err != nil {
		t.Fatal(err)
	}
	if err := v.Close(); err != nil {
		t.Error(err)
	}
	if v, err = view.Open(t.Context(), &l.Reader, path, nil, names); err != nil {
		t.Fatal(err) // the second insert of a row fails
	}
	if err := v.Close(); err != nil {
		t.Error(err)
	}
}
