package eventlog

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/jmoiron/sqlx"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/perlica/perlica/eventlog/disk"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/store"
	"github.com/perlica/perlica/eventlog/store/storetest"
	"github.com/perlica/perlica/eventlog/tree"
	"github.com/perlica/perlica/eventlog/verify"
)

// openTest opens a log in a new folder. At the end of the test it audits the file.
func openTest(t *testing.T) *Log {
	t.Helper()
	path := filepath.Join(t.TempDir(), "eventlog.db")
	l, err := Open(t.Context(), path, Options{Context: "default"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil && !errors.Is(err, disk.ErrClosed) {
			t.Error(err)
		}
		audit(t, path)
	})
	return l
}

// audit checks a closed log for the properties that every log must have.
func audit(t *testing.T, path string) {
	t.Helper()
	ctx := context.Background()
	if fi, err := os.Stat(path + "-wal"); err == nil && fi.Size() > 0 {
		t.Errorf("a write-ahead log was left behind")
	}
	r, err := store.OpenReader(ctx, path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	rep, err := verify.Log(ctx, r, verify.Options{})
	if err != nil || !rep.OK() {
		t.Fatalf("verify: %+v, %v", rep, err)
	}
	if err := r.CheckIntegrity(ctx); err != nil {
		t.Fatal(err)
	}
	if wrong, err := r.UnlistedRuns(ctx); err != nil || len(wrong) > 0 {
		t.Fatalf("%d intents are neither open nor ended, %v", len(wrong), err)
	}
}

func fact(ty event.Type, refs event.Refs) event.Event {
	return event.NewFact(ty, "test", refs, map[string]string{"k": "v"})
}

func collect(t *testing.T, r *store.Reader, q event.Query) []event.Event {
	t.Helper()
	var all []event.Event
	for e, err := range r.Events(t.Context(), q) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, e)
	}
	return all
}

func TestAppendKeepsBytesAndOrder(t *testing.T) {
	l := openTest(t)
	lines := []string{"", `{"a":1}`, "not json\x00\xff", strings.Repeat("x", 1<<20)}
	for _, line := range lines {
		if err := l.Record(event.Event{Type: event.LineMalformed, Class: event.Frame, Actor: "agent",
			Payload: []byte(line)}); err != nil {
			t.Fatal(err)
		}
	}
	last, err := l.Append(t.Context(), fact(event.MessageReceived, event.Refs{Run: "r", Input: "i"}))
	if err != nil || last != event.Seq(len(lines)+1) {
		t.Fatalf("Append = %d, %v", last, err)
	}
	got := collect(t, &l.Reader, event.Query{})
	if len(got) != len(lines)+1 {
		t.Fatalf("%d events", len(got))
	}
	var leaves []tlog.Hash
	for i, e := range got {
		if i < len(lines) && string(e.Payload) != lines[i] {
			t.Errorf("line %d came back changed", i)
		}
		if e.Seq != event.Seq(i+1) || e.Context != "default" || e.Writer != l.Writer() || len(e.ID) != 36 {
			t.Errorf("event %d: %+v", i, e)
		}
		leaves = append(leaves, e.Leaf())
	}
	size, root, err := l.Head(t.Context())
	if err != nil || size != int64(len(got)) || root != rootOf(t, leaves) {
		t.Errorf("head = %d %v, %v", size, root, err)
	}
}

// rootOf computes the root with package tlog. The code under test does not use that function of tlog.
func rootOf(t *testing.T, leaves []tlog.Hash) tlog.Hash {
	t.Helper()
	var stored []tlog.Hash
	r := tlog.HashReaderFunc(func(idx []int64) ([]tlog.Hash, error) {
		var out []tlog.Hash
		for _, i := range idx {
			out = append(out, stored[i])
		}
		return out, nil
	})
	for i, leaf := range leaves {
		hs, err := tlog.StoredHashesForRecordHash(int64(i), leaf, r)
		if err != nil {
			t.Fatal(err)
		}
		stored = append(stored, hs...)
	}
	root, err := tlog.TreeHash(int64(len(leaves)), r)
	if err != nil {
		t.Fatal(err)
	}
	return root
}

func TestFrontierAgreesWithTlog(t *testing.T) {
	var f tree.Range
	var leaves []tlog.Hash
	for i := range 300 {
		if got, want := f.Root(), rootOf(t, leaves); got != want {
			t.Fatalf("size %d: root %v, want %v", i, got, want)
		}
		leaf := tlog.RecordHash([]byte{byte(i), byte(i >> 8)})
		leaves = append(leaves, leaf)
		f.Add(leaf)
	}
}

func TestOneOfItsKind(t *testing.T) {
	ctx := t.Context()
	for _, tc := range []struct {
		name  string
		a, b  event.Event
		clash bool
	}{
		{"second intent of an input", fact(event.Requested, event.Refs{Run: "1", Input: "i"}),
			fact(event.Requested, event.Refs{Run: "2", Input: "i"}), true},
		{"second intent of a run", fact(event.Requested, event.Refs{Run: "1", Input: "i"}),
			fact(event.Requested, event.Refs{Run: "1", Input: "j"}), true},
		{"another input", fact(event.Requested, event.Refs{Run: "1", Input: "i"}),
			fact(event.Requested, event.Refs{Run: "2", Input: "j"}), false},
		{"second outcome", fact(event.Responded, event.Refs{Run: "1"}), fact(event.OutcomeUnknown, event.Refs{Run: "1"}),
			true},
		{"second answer", fact(event.InteractionAnswered, event.Refs{Interaction: "q"}),
			fact(event.InteractionAnswered, event.Refs{Interaction: "q"}), true},
		{"answer to what has lapsed", fact(event.InteractionLapsed, event.Refs{Interaction: "q"}),
			fact(event.InteractionAnswered, event.Refs{Interaction: "q"}), true},
		{"second resolution", fact(event.InteractionResolved, event.Refs{Interaction: "q"}),
			fact(event.InteractionResolved, event.Refs{Interaction: "q"}), true},
		{"answers to two questions", fact(event.InteractionAnswered, event.Refs{Interaction: "q"}),
			fact(event.InteractionAnswered, event.Refs{Interaction: "p"}), false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l := openTest(t)
			if _, err := l.Append(ctx, tc.a); err != nil {
				t.Fatal(err)
			}
			// If one event of an entry is refused, all events of that entry are refused. The other entries of the
			// batch are written.
			if err := l.Record(fact(event.Truncated, event.Refs{})); err != nil {
				t.Fatal(err)
			}
			_, err := l.Append(ctx, fact(event.MessageReceived, event.Refs{Input: "x"}), tc.b)
			var conflict *ConflictError
			if errors.As(err, &conflict) != tc.clash || tc.clash && conflict.Type != tc.b.Type {
				t.Fatalf("err = %v", err)
			}
			want := 2
			if !tc.clash {
				want = 4
			}
			if _, err := l.Append(ctx, fact(event.Truncated, event.Refs{})); err != nil {
				t.Fatal(err)
			}
			if got := len(collect(t, &l.Reader, event.Query{})); got != want+1 {
				t.Errorf("%d events, want %d", got, want+1)
			}
		})
	}
}

func TestOpenRuns(t *testing.T) {
	l := openTest(t)
	ctx := t.Context()
	for i := range 3 {
		run := event.RunID(fmt.Sprint("r", i))
		if _, err := l.Append(ctx, fact(event.Requested, event.Refs{Run: run, Input: event.InputID(run)})); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := l.Append(ctx, fact(event.ProviderError, event.Refs{Run: "r1"})); err != nil {
		t.Fatal(err)
	}
	runs, err := l.OpenRuns(ctx)
	if err != nil || fmt.Sprint(runs) != "[r0 r2]" {
		t.Errorf("OpenRuns = %v, %v", runs, err)
	}
}

func TestManyWriters(t *testing.T) {
	l := openTest(t)
	other, err := Open(t.Context(), l.Path(), Options{Context: "default"})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for i, log := range []*Log{l, other, l, other} {
		wg.Go(func() {
			for j := range 50 {
				if err := log.Record(event.Event{Type: event.NotificationReceived, Class: event.Frame,
					Payload: fmt.Append(nil, i, " ", j)}); err != nil {
					t.Error(err)
				}
				if _, err := log.Append(context.Background(), fact(event.Truncated, event.Refs{})); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if err := other.Close(); err != nil {
		t.Error(err)
	}
	if n := len(collect(t, &l.Reader, event.Query{})); n != 400 {
		t.Errorf("%d events, want 400", n)
	}
}

func TestEveryConnectionHasItsSettings(t *testing.T) {
	w, err := store.OpenWritable(t.Context(), openTest(t).Path())
	if err != nil {
		t.Fatal(err)
	}
	db := w.DB
	defer db.Close()
	db.SetMaxOpenConns(4)
	for range 4 {
		conn, err := db.Connx(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		for pragma, want := range store.Settings() {
			var got string
			if err := conn.GetContext(t.Context(), &got, `PRAGMA `+pragma); err != nil || got != want {
				t.Errorf("%s = %q, want %q, %v", pragma, got, want, err)
			}
		}
	}
}

func TestEventsAreAppendOnly(t *testing.T) {
	l := openTest(t)
	if _, err := l.Append(t.Context(), fact(event.Truncated, event.Refs{})); err != nil {
		t.Fatal(err)
	}
	for _, q := range []string{
		`UPDATE entries SET actor = 0`, `DELETE FROM entries`, `UPDATE entries SET payload = x'7b7d'`,
		`UPDATE entries SET payload = NULL, seq = 7`, `UPDATE names SET name = 'x'`, `DELETE FROM names`,
		`DELETE FROM checkpoints`, `UPDATE checkpoints SET size = 3`,
	} {
		if err := execFile(l.Path(), `BEGIN; INSERT INTO checkpoints (size, note) VALUES (1, ''); `+q); err == nil ||
			!strings.Contains(err.Error(), "append-only") {
			t.Errorf("%s: %v", q, err)
		}
	}
}

func TestCloseIsFinal(t *testing.T) {
	l := openTest(t)
	if err := l.Record(fact(event.Truncated, event.Refs{})); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Append(t.Context(), fact(event.Truncated, event.Refs{})); !errors.Is(err, disk.ErrClosed) {
		t.Errorf("Append after Close: %v", err)
	}
	if err := l.Close(); !errors.Is(err, disk.ErrClosed) {
		t.Errorf("second Close: %v", err)
	}
	r, err := store.OpenReader(t.Context(), l.Path())
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if n := len(collect(t, r, event.Query{})); n != 1 {
		t.Errorf("what was recorded before Close is not there: %d events", n)
	}
}

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	for name, tc := range map[string]struct {
		make func(path string) error
		want error
	}{
		"garbage": {func(p string) error { return os.WriteFile(p, []byte(strings.Repeat("garbage ", 1000)), 0o600) },
			disk.ErrForeign},
		"foreign": {func(p string) error { return execFile(p, `CREATE TABLE t (x)`) }, disk.ErrForeign},
		"folder":  {func(p string) error { return os.Mkdir(p, 0o700) }, disk.ErrReadOnly},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(dir, name+"%20 ?.db")
			if err := tc.make(path); err != nil {
				t.Fatal(err)
			}
			l, err := Open(t.Context(), path, Options{})
			if !errors.Is(err, tc.want) {
				t.Errorf("Open = %v, %v; want %v", l, err, tc.want)
			}
		})
	}
	if _, err := store.OpenReader(t.Context(), filepath.Join(dir, "none.db")); !errors.Is(err, disk.ErrNotExist) {
		t.Errorf("OpenReader of nothing: %v", err)
	}
}

// TestOtherVersion checks that a log of an older or newer version is refused, both for reading and for writing.
func TestOtherVersion(t *testing.T) {
	for _, version := range []int{-1, 0, store.SchemaVersion - 1, store.SchemaVersion + 1} {
		path := fixture(t)
		if err := execFile(path, fmt.Sprintf(`PRAGMA user_version = %d`, version)); err != nil {
			t.Fatal(err)
		}
		if l, err := Open(t.Context(), path, Options{}); !errors.Is(err, disk.ErrVersion) {
			t.Errorf("version %d: Open = %v, %v; want %v", version, l, err, disk.ErrVersion)
		}
		if r, err := store.OpenReader(t.Context(), path); !errors.Is(err, disk.ErrVersion) {
			t.Errorf("version %d: OpenReader = %v, %v; want %v", version, r, err, disk.ErrVersion)
		}
	}
}

// dbOf opens the file of a log for reading.
func dbOf(tb testing.TB, path string) *sqlx.DB {
	tb.Helper()
	db, err := sqlx.Open("sqlite", store.ReaderDSN(path, false))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = db.Close() }) // only read
	return db
}

// forgeFile executes a statement on a log's file, as a forger would. Afterwards it restores the triggers and indexes
// of the log, if the changed rows permit that.
func forgeFile(path, stmt string) error {
	if err := execFile(path, stmt); err != nil {
		return err
	}
	for _, sql := range store.Statements() {
		if !strings.HasPrefix(sql, "CREATE TABLE") {
			_ = execFile(path, sql) // Most of these already exist.
		}
	}
	return nil
}

func execFile(path, stmt string) error {
	db, err := sqlx.Open("sqlite", store.DSN(path))
	if err != nil {
		return err
	}
	db.SetMaxOpenConns(1)
	_, _ = db.Exec(storetest.Editable) // fails if the file is not a log
	_, err = db.Exec(stmt)
	return errors.Join(err, db.Close())
}
