package logtrust

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/perlica/perlica/eventlog/disk"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/store"
)

// TestHeadersAreKept checks that a log that was found sound is found damaged after a byte of it changed. It fails
// if the state of the files does not name the time of their last change.
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
	at := bytes.LastIndex(b, []byte("llm.responded"))
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
