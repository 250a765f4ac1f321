package eventlog

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"

	"github.com/perlica/perlica/eventlog/disk"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/store"
	"github.com/perlica/perlica/eventlog/view"
)

// closedLog makes a log with more than two chunks of events and returns its path.
func closedLog(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "eventlog.db")
	l, err := Open(t.Context(), path, Options{Context: "default"})
	if err != nil {
		t.Fatal(err)
	}
	for range 600 {
		if err := l.Record(fact(event.Truncated, event.Refs{})); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func readerOf(t *testing.T, path string) *store.Reader {
	t.Helper()
	r, err := store.OpenReader(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r
}

func TestChecksOfAHealthyLog(t *testing.T) {
	r := readerOf(t, closedLog(t))
	faults, err := r.CheckSchema(t.Context())
	if err := errors.Join(err, r.CheckSettings(t.Context()), r.CheckIntegrity(t.Context())); err != nil ||
		len(faults) > 0 {
		t.Errorf("%v, %v", faults, err)
	}
}

func TestCheckSettingsSeesTheFile(t *testing.T) {
	path := closedLog(t)
	if err := execFile(path, `PRAGMA journal_mode = DELETE`); err != nil {
		t.Fatal(err)
	}
	var setting *disk.SettingError
	if err := readerOf(t, path).CheckSettings(t.Context()); !errors.As(err, &setting) || setting.Name != "journal_mode" ||
		setting.Got != "delete" {
		t.Errorf("got %v", err)
	}
}

func TestCheckSchemaSeesEveryChange(t *testing.T) {
	path := closedLog(t)
	if err := execFile(path, `
		DROP TRIGGER events_are_not_deleted;
		DROP INDEX events_one_answer;
		CREATE UNIQUE INDEX events_one_answer ON entries (seq);
		CREATE TRIGGER quiet BEFORE INSERT ON entries BEGIN SELECT RAISE(IGNORE); END`); err != nil {
		t.Fatal(err)
	}
	got, err := readerOf(t, path).CheckSchema(t.Context())
	want := []string{
		"the index events_one_answer was changed",
		"the trigger events_are_not_deleted is missing",
		"the trigger quiet is not Perlica's",
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestCheckIntegrityFindsDamage(t *testing.T) {
	path := closedLog(t)
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	// Damage the third page, because the first two pages contain the schema. The later ones contain rows and indexes.
	if _, err := f.WriteAt([]byte(strings.Repeat("damage! ", 8192/8)), 2*8192); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if err := readerOf(t, path).CheckIntegrity(t.Context()); !errors.Is(err, disk.ErrCorrupt) {
		t.Errorf("got %v", err)
	}
}

func TestCheckView(t *testing.T) {
	dir := t.TempDir()
	if _, err := view.Check(t.Context(), filepath.Join(dir, "none.db")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	junk := filepath.Join(dir, "junk.db")
	if err := os.WriteFile(junk, []byte(strings.Repeat("junk", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := view.Check(t.Context(), junk); !errors.Is(err, disk.ErrCorrupt) {
		t.Errorf("junk: %v", err)
	}
	other := filepath.Join(dir, "other.db")
	if err := execFile(other, `CREATE TABLE x (y)`); err != nil {
		t.Fatal(err)
	}
	if _, err := view.Check(t.Context(), other); !errors.Is(err, disk.ErrCorrupt) {
		t.Errorf("another program's: %v", err)
	}
	path := filepath.Join(dir, "view.db")
	v, err := view.Open(t.Context(), readerOf(t, closedLog(t)), path, nil, view.Projection{
		Name: "nothing", Version: 1, Schema: `CREATE TABLE x (y)`, Types: []event.Type{event.Truncated},
		Apply: func(context.Context, *sqlx.Tx, event.Event) error { return nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := v.Close(); err != nil {
		t.Fatal(err)
	}
	if at, err := view.Check(t.Context(), path); at != 600 || err != nil {
		t.Errorf("a view: %d, %v", at, err)
	}
}

func TestTryWriteLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	if err := TryWrite(t.Context(), dir); err != nil {
		t.Error(err)
	}
	if entries, err := os.ReadDir(dir); len(entries) > 0 || err != nil {
		t.Errorf("left behind: %v, %v", entries, err)
	}
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := TryWrite(t.Context(), file); !errors.Is(err, disk.ErrReadOnly) {
		t.Errorf("in a file: %v", err)
	}
}

func TestFreeSpace(t *testing.T) {
	if free, err := disk.FreeSpace(t.TempDir()); err != nil && !errors.Is(err, errors.ErrUnsupported) || err == nil &&
		free == 0 {
		t.Errorf("got %d, %v", free, err)
	}
}
