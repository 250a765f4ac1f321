package logtrust

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/perlica/perlica/eventlog"
	"github.com/perlica/perlica/eventlog/disk"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/store"
	"github.com/perlica/perlica/eventlog/store/storetest"
)

// TestHeadersAreKept checks that a changed byte in a log that was checked before is found. So the state of the files
// must contain the time of their last change.
func TestHeadersAreKept(t *testing.T) {
	s, path := user(t), filepath.Join(t.TempDir(), "eventlog.db")
	if err := os.MkdirAll(s.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, path, nil, event.MessageReceived, event.Requested, event.Responded)
	r, err := store.OpenReader(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if state, _ := stateOf(path); state == "" {
		t.Skip("this system does not tell when a file was changed")
	}
	kept := s.file(real(path)) + ".sound"
	for end := time.Now().Add(time.Minute); ; {
		if err := s.Headers(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(kept); err == nil {
			break
		}
		if time.Now().After(end) {
			t.Fatal("nothing was kept")
		}
	}
	before, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.Index(b, []byte("llm.responded")) // in the table names, which is before its index
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err == nil {
		_, err = f.WriteAt([]byte("llm.forgotten"), int64(at))
	}
	if err := errors.Join(err, f.Close(), os.Chtimes(path, before.ModTime(), before.ModTime())); err != nil {
		t.Fatal(err)
	}
	other, err := store.OpenReader(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if err := s.Headers(t.Context(), other); !errors.Is(err, disk.ErrCorrupt) {
		t.Errorf("after the change: %v", err)
	}
}

// TestHeadersOfALargeLog checks a log with more than recentEvents events. A change among the newest events must be
// found. So must a change among events that were never checked.
func TestHeadersOfALargeLog(t *testing.T) {
	s, path := user(t), filepath.Join(t.TempDir(), "eventlog.db")
	if err := os.MkdirAll(s.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	log, err := eventlog.Open(t.Context(), path, eventlog.Options{Context: "default"})
	if err != nil {
		t.Fatal(err)
	}
	one := event.NewFact(event.SessionRenamed, "user", event.Refs{}, struct{}{})
	for range (recentEvents + 100) / 100 {
		if _, err := log.Append(t.Context(), slices.Repeat([]event.Event{one}, 100)...); err != nil {
			t.Fatal(err)
		}
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ sound, changed int }{{0, 5}, {50, 60}, {recentEvents + 100, recentEvents}} {
		kept := s.file(real(path)) + ".sound"
		if err := os.WriteFile(kept, fmt.Appendf(nil, "%d\nanother state", test.sound), 0o600); err != nil {
			t.Fatal(err)
		}
		db := sqlx.MustOpen("sqlite", path)
		db.SetMaxOpenConns(1)
		db.MustExec(storetest.Editable)
		var old string
		err := db.Get(&old, `SELECT actor FROM events WHERE seq = ?`, test.changed)
		if err != nil {
			t.Fatal(err)
		}
		for _, actor := range []string{"forged", old} {
			db.MustExec(`DROP TRIGGER IF EXISTS events_lose_nothing_but_payloads`)
			db.MustExec(`UPDATE events SET actor = ? WHERE seq = ?`, actor, test.changed)
			r, err := store.OpenReader(t.Context(), path)
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Headers(t.Context(), r); errors.Is(err, disk.ErrCorrupt) != (actor == "forged") {
				t.Errorf("sound up to %d, event %d by %q: %v", test.sound, test.changed, actor, err)
			}
			if err := r.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
