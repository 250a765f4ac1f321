package telegramtest_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/perlica/perlica/service/telegram/telegramtest"
)

// TestJournal checks that a server continues after a kill, also one in the middle of a line.
func TestJournal(t *testing.T) {
	name := filepath.Join(t.TempDir(), "journal")
	s, err := telegramtest.Open("1:a", name)
	if err != nil {
		t.Fatal(err)
	}
	s.Say(42, 7, "Ada", "one")
	s.AddFile("x", telegramtest.File{Name: "x"})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(name, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(`{"updates":[{"upd`); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	for want := int64(2); want < 4; want++ {
		s, err = telegramtest.Open("1:a", name)
		if err != nil {
			t.Fatal(err)
		}
		if n := s.Say(42, 7, "Ada", "more"); n != want || s.Unconfirmed() != int(want) {
			t.Errorf("message %d, %d unconfirmed; want %d", n, s.Unconfirmed(), want)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
