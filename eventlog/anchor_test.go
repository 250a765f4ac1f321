package eventlog

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/evidence"
	"github.com/perlica/perlica/eventlog/fault"
)

func unlocked(f func() error) error { return f() }

// signedCheckpoint is a checkpoint of nothing in particular.
func signedCheckpoint(t testing.TB, k *evidence.Keys, size int64) evidence.Checkpoint {
	t.Helper()
	c := evidence.Checkpoint{Origin: "perlica/0199aaaa-bbbb-7ccc-8ddd-eeeeeeeeeeee", Size: size, Root: tlog.RecordHash(fmt.Append(nil, size))}
	s, err := k.Signer(c.Origin)
	if err != nil {
		t.Fatal(err)
	}
	msg, err := note.Sign(&note.Note{Text: c.Text()}, s)
	if err != nil {
		t.Fatal(err)
	}
	c.Note = string(msg)
	return c
}

func TestAnchorLinesComeBack(t *testing.T) {
	path := filepath.Join(t.TempDir(), "eventlog.db")
	if got, err := ReadAnchors(path); len(got) != 0 || err != nil {
		t.Errorf("without a file: %v, %v", got, err)
	}
	k := testKeys(t)
	want := []evidence.Checkpoint{signedCheckpoint(t, k, 1), signedCheckpoint(t, k, 1<<40), {Origin: "perlica/x", Size: 7}}
	for _, c := range want {
		if err := anchor(path, c, unlocked); err != nil {
			t.Fatal(err)
		}
	}
	got, err := ReadAnchors(path)
	if err != nil || len(got) != len(want) {
		t.Fatalf("%v, %v", got, err)
	}
	for i, a := range got {
		if a.Checkpoint != want[i] || a.Line != i+1 || a.Damage != "" || a.Torn {
			t.Errorf("line %d: %+v, want %+v", i+1, a, want[i])
		}
	}
}

// TestTornAnchorLine cuts the last line at every place. A crash leaves that; it is no damage, and
// the next line stands on its own.
func TestTornAnchorLine(t *testing.T) {
	k := testKeys(t)
	first, last, next := signedCheckpoint(t, k, 10), signedCheckpoint(t, k, 20), signedCheckpoint(t, k, 30)
	path := filepath.Join(t.TempDir(), "eventlog.db")
	for _, last := range []evidence.Checkpoint{last, {Origin: last.Origin, Size: 20, Root: last.Root}} {
		whole := anchorLine(last)
		for cut := range len(whole) {
			for _, fill := range []string{"", "\x00\x00\x00"} {
				text := anchorLine(first) + whole[:cut] + fill
				if err := os.WriteFile(AnchorPath(path), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
				got, err := ReadAnchors(path)
				if err != nil || got[0].Checkpoint != first {
					t.Fatalf("cut at %d: %+v, %v", cut, got, err)
				}
				if len(got) > 1 && !got[1].Torn {
					t.Fatalf("cut at %d: %q: %+v", cut, whole[:cut], got[1])
				}
				if err := appendLine(path, next); err != nil {
					t.Fatal(err)
				}
				want := anchorLine(first) + anchorLine(next)
				if b, _ := os.ReadFile(AnchorPath(path)); string(b) != want {
					t.Fatalf("cut at %d: the next made it\n%q, want\n%q", cut, b, want)
				}
			}
		}
	}
}

// appendLine is anchor without its syncs.
func appendLine(path string, c evidence.Checkpoint) error {
	f, err := os.OpenFile(AnchorPath(path), os.O_RDWR|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	fi, err := f.Stat()
	if err == nil {
		err = endLine(f, fi.Size())
	}
	if err == nil {
		_, err = f.WriteString(anchorLine(c))
	}
	return errors.Join(err, f.Close())
}

// TestAnchorFlippedBits: whatever bit is flipped, the line is damaged or another one, and what
// lies before it is read. None is taken for torn but in the last line's end.
func TestAnchorFlippedBits(t *testing.T) {
	k := testKeys(t)
	list := []evidence.Checkpoint{signedCheckpoint(t, k, 10), signedCheckpoint(t, k, 20), signedCheckpoint(t, k, 30)}
	var text []byte
	for _, c := range list {
		text = append(text, anchorLine(c)...)
	}
	for bit := range 8 * (len(text) - 1) {
		b := bytes.Clone(text)
		b[bit/8] ^= 1 << (bit % 8)
		found := false
		for _, a := range parseAnchors(b) {
			if a.Torn {
				t.Fatalf("bit %d: line %d is torn", bit, a.Line)
			}
			if a.Damage != "" {
				found = true
				continue
			}
			if _, err := a.Signed(k.Verifiers(list[0].Origin)...); err != nil {
				found = true
			}
		}
		if !found {
			t.Fatalf("bit %d was flipped, and nobody sees it:\n%s", bit, b)
		}
	}
}

// TestAnchorDamageIsKept: what is no torn line is evidence.
func TestAnchorDamageIsKept(t *testing.T) {
	for name, tail := range map[string]string{
		"garbage": "hello world", "bytes": "\x01\x02", "long": strings.Repeat("9", 2*maxAnchorLine), "line": "x\n",
	} {
		path := filepath.Join(t.TempDir(), "eventlog.db")
		if err := os.WriteFile(AnchorPath(path), []byte(tail), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := anchor(path, evidence.Checkpoint{Origin: "perlica/x", Size: 1}, unlocked); err != nil {
			t.Fatal(err)
		}
		got, err := ReadAnchors(path)
		if err != nil || len(got) != 2 || got[0].Damage == "" || got[1].Size != 1 {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

// TestAnchorOfTwoProcesses: both find a torn line, and none cuts off the other's.
func TestAnchorOfTwoProcesses(t *testing.T) {
	l := openTest(t)
	other, err := Open(t.Context(), l.Path(), Options{Context: "default"})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	const rounds = 20
	for range rounds {
		if f, err := os.OpenFile(AnchorPath(l.Path()), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600); err == nil {
			_, _ = f.WriteString("12 AAAA") // what a crash left
			_ = f.Close()
		}
		var both sync.WaitGroup
		for _, log := range []*Log{l, other} {
			both.Go(func() {
				if _, err := log.Append(t.Context(), fact(event.CallEnforced, event.Refs{})); err != nil {
					t.Error(err)
				}
				if err := log.Anchored(); !errors.Is(err, evidence.ErrKey) {
					t.Error(err)
				}
			})
		}
		both.Wait()
	}
	got, err := ReadAnchors(l.Path())
	if err != nil || len(got) != 2*rounds {
		t.Fatalf("%d lines, want %d, %v", len(got), 2*rounds, err)
	}
	seen := map[int64]bool{}
	for _, a := range got {
		if a.Damage != "" || a.Torn {
			t.Errorf("%+v", a)
		}
		seen[a.Size] = true
	}
	if !seen[2*rounds] {
		t.Errorf("the last checkpoint is not anchored: %v", seen)
	}
}

// TestAnchorIsNoLink: it may have come with a cloned repository.
func TestAnchorIsNoLink(t *testing.T) {
	dir := t.TempDir()
	path, victim := filepath.Join(dir, "e.db"), filepath.Join(dir, "victim")
	if err := os.WriteFile(victim, []byte("12 precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, target := range []string{victim, filepath.Join(dir, "new")} {
		if err := os.Symlink(target, AnchorPath(path)); err != nil {
			t.Skip("there are no links")
		}
		if err := anchor(path, evidence.Checkpoint{Origin: "perlica/x", Size: 1}, unlocked); err == nil {
			t.Error("it was written through a link")
		}
		if err := os.Remove(AnchorPath(path)); err != nil {
			t.Fatal(err)
		}
	}
	if b, err := os.ReadFile(victim); string(b) != "12 precious" || err != nil {
		t.Errorf("%q, %v", b, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "new")); err == nil {
		t.Error("a file was made through a link")
	}
}

// TestAnchorIsWrittenAlone: while one process looks at the anchor's end and writes its line, no other
// can write to the log, or to the anchor.
func TestAnchorIsWrittenAlone(t *testing.T) {
	path := closedLog(t)
	opened, err := openWritable(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	w := &batchWriter{db: opened.db, path: path, files: opened.files}
	if err := w.connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	other := func() error { return execFile(path, `BEGIN IMMEDIATE; ROLLBACK`) }
	err = w.locked(func() error {
		if err := fault.Explain(other()); !errors.Is(err, fault.ErrBusy) {
			t.Errorf("within the lock: %v", err)
		}
		return nil
	})
	if err := errors.Join(err, other(), w.close()); err != nil {
		t.Error(err)
	}
}

func FuzzAnchors(f *testing.F) {
	f.Add([]byte("1 AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA= perlica/x -\n2 "))
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, a := range parseAnchors(b) {
			if a.Damage == "" && !a.Torn && !strings.Contains(string(b), strings.TrimSuffix(anchorLine(a.Checkpoint), "\n")) {
				t.Errorf("%+v is not in %q", a, b)
			}
		}
	})
}
