package origin

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/jmoiron/sqlx"

	"github.com/perlica/perlica/eventlog/disk"
	"github.com/perlica/perlica/eventlog/store/storetest"
)

// TestForgedContent checks that a forged content of a change is an error: with a new view, and with a view of the
// genuine log.
func TestForgedContent(t *testing.T) {
	log := newLog(t)
	s := newScene("r", "claude")
	s.play(t, filepath.Join("..", "..", "provider", "testdata", "frames", "claude_write_yes.ndjson"))
	s.record(t, log)
	kept := viewOf(t, log)
	execFile(t, log.Path(), storetest.Editable+`
		DROP TRIGGER events_lose_nothing_but_payloads;
		UPDATE events SET payload = CAST(replace(CAST(payload AS TEXT), 'hello', 'hollo') AS BLOB) WHERE class = 'frame'`)
	if f, err := kept.Blame(t.Context(), []string{"/project/out.txt"}, "hollo"); !errors.Is(err, disk.ErrCorrupt) {
		t.Errorf("%+v, %v; want damage", f, err)
	}
	_, err := Open(t.Context(), &log.Reader, filepath.Join(t.TempDir(), "v.db"), nil, nil)
	if !errors.Is(err, disk.ErrCorrupt) {
		t.Errorf("%v, want damage", err)
	}
}

// TestForgedView checks that a changed view does not count. In the second case only the index of the paths is changed:
// the table has the change, and a search by the path does not find it.
func TestForgedView(t *testing.T) {
	log := newLog(t)
	s := newScene("r", "claude")
	s.play(t, filepath.Join("..", "..", "provider", "testdata", "frames", "claude_write_yes.ndjson"))
	s.record(t, log)
	path := filepath.Join(t.TempDir(), "changes.db")
	check := func(what string) {
		t.Helper()
		v, err := Open(t.Context(), &log.Reader, path, []byte("key"), nil)
		if err != nil {
			t.Fatal(err)
		}
		list, err := v.Changes(t.Context(), Wanted{Paths: []string{"/project/out.txt"}})
		if err := errors.Join(err, v.Close()); err != nil || len(list) != 1 || list[0].Who != "bob" {
			t.Errorf("%s: %+v, %v", what, list, err)
		}
	}
	check("new")
	execFile(t, path, `UPDATE changes SET change = replace(change, 'bob', 'eve')`)
	check("forged change")
	execFile(t, path, `UPDATE changes SET path = '/elsewhere'`)
	execFile(t, path, `
		PRAGMA writable_schema = ON;
		CREATE TABLE kept AS SELECT * FROM sqlite_schema WHERE name = 'changes_by_path';
		DELETE FROM sqlite_schema WHERE name = 'changes_by_path'`)
	execFile(t, path, `UPDATE changes SET path = '/project/out.txt'`)
	execFile(t, path, `
		PRAGMA writable_schema = ON;
		INSERT INTO sqlite_schema SELECT * FROM kept;
		DROP TABLE kept`)
	check("forged index")
}

// execFile executes statements on a file, as another program would.
func execFile(t *testing.T, path, sql string) {
	t.Helper()
	db, err := sqlx.Open("sqlite", path)
	if err == nil {
		_, err = db.Exec(sql)
		err = errors.Join(err, db.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
}
