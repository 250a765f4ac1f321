package eventlog

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/perlica/perlica/eventlog/disk"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/store"
	"github.com/perlica/perlica/eventlog/verify"
)

// TestOpenRefusesAChangedSchema checks logs with changed triggers, indexes or views. Another person may have made
// such a log. Open must refuse it before it writes anything.
func TestOpenRefusesAChangedSchema(t *testing.T) {
	for name, change := range map[string]string{
		"a trigger that answers": `CREATE TRIGGER yes AFTER INSERT ON entries WHEN NEW.class = 1 BEGIN
			INSERT INTO entries SELECT NEW.seq + 1, zeroblob(16), NEW.ts, 7, 1, NEW.actor, NEW.writer, NEW.context_id,
				0, 0, 0, 0, NEW.interaction_id, 0, 0, zeroblob(32), zeroblob(32), CAST('{"option":"allow","by":"nobody"}' AS BLOB);
		END`,
		"an index less": `DROP INDEX events_one_intent_per_input`,
		"a weaker index": `DROP INDEX events_one_answer;
			CREATE UNIQUE INDEX events_one_answer ON entries (interaction_id, seq) WHERE type = 7`,
		"a trigger less": `DROP TRIGGER events_lose_nothing_but_payloads`,
		"a table more":   `CREATE TABLE more (x)`,
		"a view over ours": `DROP VIEW events; ALTER TABLE entries RENAME TO theirs;
			CREATE VIEW entries AS SELECT * FROM theirs`,
		"another view": `DROP VIEW events; CREATE VIEW events AS SELECT * FROM entries WHERE seq <> 1`,
		"a changed name": `DROP TRIGGER names_are_not_updated; UPDATE names SET name = 'llm.required' WHERE id = 3;
			CREATE TRIGGER names_are_not_updated BEFORE UPDATE ON names
BEGIN
	SELECT RAISE(ABORT, 'names are append-only');
END;`,
	} {
		path := closedLog(t)
		if err := execFile(path, change); err != nil {
			t.Fatal(name, err)
		}
		l, err := Open(t.Context(), path, Options{Context: "default"})
		if !errors.Is(err, disk.ErrCorrupt) {
			t.Errorf("%s: %v", name, err)
		}
		if err == nil {
			_ = l.Close()
		}
	}
}

// movings are ways in which another program can remove, move or replace the file of an open log.
var movings = map[string]func(path string) error{
	"deleted":  os.Remove,
	"moved":    func(path string) error { return os.Rename(path, path+".old") },
	"replaced": func(path string) error { return errors.Join(os.Remove(path), os.WriteFile(path, nil, 0o600)) },
}

// TestAppendToAMovedFile checks that Append fails after the file was moved. SQLite alone would acknowledge the write.
func TestAppendToAMovedFile(t *testing.T) {
	for name, spoil := range movings {
		path := closedLog(t)
		l, err := Open(t.Context(), path, Options{Context: "default"})
		if err != nil {
			t.Fatal(err)
		}
		if err := spoil(path); err != nil {
			t.Skip("this system keeps open files in place")
		}
		var write *WriteError
		if _, err := l.Append(t.Context(), fact(event.SessionCreated, event.Refs{})); !errors.Is(err, disk.ErrMoved) ||
			!errors.As(err, &write) {
			t.Errorf("%s: %v", name, err)
		}
		if err := l.Close(); !errors.Is(err, disk.ErrMoved) {
			t.Errorf("%s: Close: %v", name, err)
		}
	}
}

// TestAppendToAFileMovedLater checks that an append notices within a millisecond that the file was moved.
func TestAppendToAFileMovedLater(t *testing.T) {
	const promised = time.Millisecond
	for _, pause := range []time.Duration{0, promised} {
		for name, spoil := range movings {
			path := filepath.Join(t.TempDir(), "e.db")
			l, err := Open(t.Context(), path, Options{Context: "default"})
			if err != nil {
				t.Fatal(err)
			}
			for range 10 {
				mustAppend(t, l, fact(event.Truncated, event.Refs{}))
			}
			if err := spoil(path); err != nil {
				t.Skip("this system keeps open files in place")
			}
			spoilt, late := time.Now(), false
			<-time.After(pause)
			for err == nil && !late {
				late = time.Since(spoilt) >= promised
				_, err = l.Append(t.Context(), fact(event.Truncated, event.Refs{}))
			}
			if !errors.Is(err, disk.ErrMoved) {
				t.Errorf("%s, and %v later: %v", name, pause, err)
			}
			_ = l.Close() // Close returns the earlier error.
		}
	}
}

// TestAnIntentInAMovedFile checks that every commit with an intent checks the file's place. The prompt leaves after
// this commit.
func TestAnIntentInAMovedFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "e.db")
	l, err := Open(t.Context(), path, Options{Context: "default"})
	if err != nil {
		t.Fatal(err)
	}
	for range 10 {
		mustAppend(t, l, fact(event.Truncated, event.Refs{}))
	}
	if err := os.Rename(path, path+".old"); err != nil {
		t.Skip("this system keeps open files in place")
	}
	if _, err := l.Append(t.Context(), fact(event.Requested, event.Refs{Run: "r", Input: "i"})); !errors.Is(err,
		disk.ErrMoved) {
		t.Error(err)
	}
	_ = l.Close() // Close returns the earlier error.
}

// TestReadingAHostileFile checks that readers finish for every file, and that Verify reports the damage.
func TestReadingAHostileFile(t *testing.T) {
	leaveToOtherBuild(t)
	const loose = `DROP TRIGGER events_lose_nothing_but_payloads; DROP TRIGGER events_are_not_deleted;
		DROP VIEW events; CREATE TABLE e2 AS SELECT * FROM entries; DROP TABLE entries; ALTER TABLE e2 RENAME TO entries;`
	for name, change := range map[string]string{
		"a number below zero": `DROP TRIGGER events_lose_nothing_but_payloads; UPDATE events SET seq = -5 WHERE seq = 2`,
		"numbers below zero":  `DROP TRIGGER events_lose_nothing_but_payloads; UPDATE events SET seq = seq - 1000`,
		"a text for a time":   loose + `UPDATE entries SET ts = 'noon' WHERE seq = 2`,
		"a time for a number": loose + `UPDATE entries SET seq = 1e300 WHERE seq = 2`,
		"a NULL":              loose + `UPDATE entries SET actor = NULL WHERE seq = 2`,
		"a negative length":   `DROP TRIGGER events_lose_nothing_but_payloads; UPDATE events SET payload_len = -1 WHERE seq = 2`,
		"a short hash":        `DROP TRIGGER events_lose_nothing_but_payloads; UPDATE events SET leaf = x'00' WHERE seq = 2`,
	} {
		path := closedLog(t)
		if err := execFile(path, change); err != nil {
			t.Fatal(name, err)
		}
		r, err := store.OpenReader(t.Context(), path)
		if err != nil {
			t.Fatal(name, err)
		}
		for _, q := range []event.Query{{}, {Newest: true}, {Until: -1}, {Limit: -3}, {After: 1 << 62}} {
			n := 0
			for range r.Events(t.Context(), q) {
				if n++; n > 601 {
					t.Fatalf("%s: %+v does not end", name, q)
				}
			}
		}
		if rep, err := verify.Log(t.Context(), r, verify.Options{}); err != nil || rep.OK() {
			t.Errorf("%s: %+v, %v", name, rep, err)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}
