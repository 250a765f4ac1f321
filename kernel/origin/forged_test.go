package origin

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/jmoiron/sqlx"

	"github.com/perlica/perlica/eventlog/disk"
)

// TestForgedContent checks that a forged content of a change is an error: with a new view, and with a view of the
// genuine log.
func TestForgedContent(t *testing.T) {
	log := newLog(t)
	s := newScene("r", "claude")
	s.play(t, filepath.Join("..", "..", "provider", "testdata", "frames", "claude_write_yes.ndjson"))
	s.record(t, log)
	kept := viewOf(t, log)
	db, err := sqlx.Open("sqlite", log.Path())
	if err == nil {
		_, err = db.Exec(`
			DROP TRIGGER events_lose_nothing_but_payloads;
			UPDATE events SET payload = CAST(replace(CAST(payload AS TEXT), 'hello', 'hollo') AS BLOB) WHERE class = 'frame'`)
		err = errors.Join(err, db.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	if f, err := kept.Blame(t.Context(), []string{"/project/out.txt"}, "hollo"); !errors.Is(err, disk.ErrCorrupt) {
		t.Errorf("%+v, %v; want damage", f, err)
	}
	_, err = Open(t.Context(), &log.Reader, filepath.Join(t.TempDir(), "v.db"), nil)
	if !errors.Is(err, disk.ErrCorrupt) {
		t.Errorf("%v, want damage", err)
	}
}

// TestForgedView checks that a changed view does not count.
func TestForgedView(t *testing.T) {
	log := newLog(t)
	s := newScene("r", "claude")
	s.play(t, filepath.Join("..", "..", "provider", "testdata", "frames", "claude_write_yes.ndjson"))
	s.record(t, log)
	path := filepath.Join(t.TempDir(), "changes.db")
	for _, forged := range []bool{false, true} {
		v, err := Open(t.Context(), &log.Reader, path, []byte("key"))
		if err != nil {
			t.Fatal(err)
		}
		list, err := v.Changes(t.Context(), Wanted{})
		if err != nil || len(list) != 1 || list[0].Who != "bob" {
			t.Errorf("forged %v: %+v, %v", forged, list, err)
		}
		if _, err := v.view.DB().Exec(`UPDATE changes SET change = replace(change, 'bob', 'eve')`); err != nil {
			t.Fatal(err)
		}
		if err := v.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
