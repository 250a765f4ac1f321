package eventlog

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"testing"

	"github.com/perlica/perlica/eventlog/disk"
	"github.com/perlica/perlica/eventlog/event"
)

// pageSize is the page size of a new database in bytes.
const pageSize = 8192

// rollbackJournal returns a journal with which SQLite would overwrite a database with these pages.
func rollbackJournal(pages []byte) []byte {
	const sector = 512
	j := make([]byte, sector)
	copy(j, "\xd9\xd5\x05\xf9\x20\xa1\x63\xd7")
	count := uint32(len(pages) / pageSize)
	for i, n := range []uint32{count, 0, count, sector, pageSize} {
		binary.BigEndian.PutUint32(j[8+4*i:], n)
	}
	for n := range count {
		page := pages[n*pageSize:][:pageSize]
		var sum uint32
		for i := pageSize - 200; i > 0; i -= 200 {
			sum += uint32(page[i])
		}
		j = binary.BigEndian.AppendUint32(j, n+1)
		j = append(j, page...)
		j = binary.BigEndian.AppendUint32(j, sum)
	}
	return j
}

// TestForgedRollbackJournal puts a journal next to a log. The log must be refused, because SQLite would copy the
// journal's pages into the log before Perlica reads anything.
func TestForgedRollbackJournal(t *testing.T) {
	path := closedLog(t)
	older, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	l, err := Open(t.Context(), path, Options{Context: "default"})
	if err != nil {
		t.Fatal(err)
	}
	mustAppend(t, l, fact(event.SessionCreated, event.Refs{}))
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	newer, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, journal := range map[string][]byte{"pages": rollbackJournal(older),
		"none, and the file is cut": rollbackJournal(nil)} {
		if err := os.WriteFile(path+"-journal", journal, 0o600); err != nil {
			t.Fatal(err)
		}
		var place *disk.PathError
		l, err := Open(t.Context(), path, Options{Context: "default"})
		if !errors.As(err, &place) {
			t.Errorf("%s: %v", name, err)
		}
		if err == nil {
			_ = l.Close() // The log must not open, so the test has already failed.
		}
		if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, newer) {
			t.Fatalf("%s: the log was changed: %v", name, err)
		}
	}
	// If the process that creates a log is killed, this journal remains. It contains no page, so Open must accept it.
	fresh := path + ".fresh"
	if err := errors.Join(os.WriteFile(fresh, make([]byte, pageSize), 0o600),
		os.WriteFile(fresh+"-journal", rollbackJournal(nil), 0o600)); err != nil {
		t.Fatal(err)
	}
	if l, err = Open(t.Context(), fresh, Options{Context: "default"}); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}
