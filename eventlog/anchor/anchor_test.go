package anchor

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/perlica/perlica/eventlog/evidence"
)

func unlocked(f func() error) error { return f() }

func makeKeys(t testing.TB) *evidence.Keys {
	t.Helper()
	k, err := evidence.MakeKeys(filepath.Join(t.TempDir(), "keys"))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// signedCheckpoint returns a signed checkpoint with an arbitrary root.
func signedCheckpoint(t testing.TB, k *evidence.Keys, size int64) evidence.Checkpoint {
	t.Helper()
	c := evidence.Checkpoint{Origin: "perlica/0199aaaa-bbbb-7ccc-8ddd-eeeeeeeeeeee", Size: size,
		Root: tlog.RecordHash(fmt.Append(nil, size))}
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
	if got, err := Read(path); len(got) != 0 || err != nil {
		t.Errorf("without a file: %v, %v", got, err)
	}
	k := makeKeys(t)
	want := []evidence.Checkpoint{signedCheckpoint(t, k, 1), signedCheckpoint(t, k, 1<<40), {Origin: "perlica/x", Size: 7}}
	for _, c := range want {
		if err := Append(path, c, unlocked); err != nil {
			t.Fatal(err)
		}
	}
	got, err := Read(path)
	if err != nil || len(got) != len(want) {
		t.Fatalf("%v, %v", got, err)
	}
	for i, a := range got {
		if a.Checkpoint != want[i] || a.Number != i+1 || a.Damage != nil || a.Torn {
			t.Errorf("line %d: %+v, want %+v", i+1, a, want[i])
		}
	}
}

// TestTornAnchorLine cuts the last line at every byte, as a crash may do. Such a line must not count as damage, and
// the next appended line must be whole.
func TestTornAnchorLine(t *testing.T) {
	k := makeKeys(t)
	first, last, next := signedCheckpoint(t, k, 10), signedCheckpoint(t, k, 20), signedCheckpoint(t, k, 30)
	path := filepath.Join(t.TempDir(), "eventlog.db")
	for _, last := range []evidence.Checkpoint{last, {Origin: last.Origin, Size: 20, Root: last.Root}} {
		whole := Format(last)
		for cut := range len(whole) {
			for _, fill := range []string{"", "\x00\x00\x00"} {
				text := Format(first) + whole[:cut] + fill
				if err := os.WriteFile(Path(path), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
				got, err := Read(path)
				if err != nil || got[0].Checkpoint != first {
					t.Fatalf("cut at %d: %+v, %v", cut, got, err)
				}
				if len(got) > 1 && !got[1].Torn {
					t.Fatalf("cut at %d: %q: %+v", cut, whole[:cut], got[1])
				}
				if err := appendLine(path, next); err != nil {
					t.Fatal(err)
				}
				want := Format(first) + Format(next)
				if b, _ := os.ReadFile(Path(path)); string(b) != want {
					t.Fatalf("cut at %d: the next made it\n%q, want\n%q", cut, b, want)
				}
			}
		}
	}
}

// appendLine appends a line as Append does, but without syncs.
func appendLine(path string, c evidence.Checkpoint) error {
	f, err := os.OpenFile(Path(path), os.O_RDWR|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	fi, err := f.Stat()
	if err == nil {
		err = endLine(f, fi.Size())
	}
	if err == nil {
		_, err = f.WriteString(Format(c))
	}
	return errors.Join(err, f.Close())
}

// TestAnchorFlippedBits flips every bit of the anchor. The line with the bit must then be damaged or different, and
// all lines before it must be read. The last line may be torn only if its newline was flipped.
func TestAnchorFlippedBits(t *testing.T) {
	k := makeKeys(t)
	list := []evidence.Checkpoint{signedCheckpoint(t, k, 10), signedCheckpoint(t, k, 20), signedCheckpoint(t, k, 30)}
	var text []byte
	for _, c := range list {
		text = append(text, Format(c)...)
	}
	for bit := range 8 * (len(text) - 1) {
		b := bytes.Clone(text)
		b[bit/8] ^= 1 << (bit % 8)
		found := false
		for _, a := range parse(b) {
			if a.Torn {
				t.Fatalf("bit %d: line %d is torn", bit, a.Number)
			}
			if a.Damage != nil {
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

// TestAnchorDamageIsKept checks that Append leaves a damaged line in the file as evidence.
func TestAnchorDamageIsKept(t *testing.T) {
	for name, tail := range map[string]string{
		"garbage": "hello world", "bytes": "\x01\x02", "long": strings.Repeat("9", 2*maxLine), "line": "x\n",
	} {
		path := filepath.Join(t.TempDir(), "eventlog.db")
		if err := os.WriteFile(Path(path), []byte(tail), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := Append(path, evidence.Checkpoint{Origin: "perlica/x", Size: 1}, unlocked); err != nil {
			t.Fatal(err)
		}
		got, err := Read(path)
		if err != nil || len(got) != 2 || got[0].Damage == nil || got[1].Size != 1 {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

func FuzzAnchors(f *testing.F) {
	f.Add([]byte("1 AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA= perlica/x -\n2 "))
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, a := range parse(b) {
			if a.Damage == nil && !a.Torn && !strings.Contains(string(b), strings.TrimSuffix(Format(a.Checkpoint), "\n")) {
				t.Errorf("%+v is not in %q", a, b)
			}
		}
	})
}

// TestFormatPageHasTheExpression checks that docs/log-format.md has the regular expression of a
// torn line.
func TestFormatPageHasTheExpression(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "log-format.md"))
	if err != nil || !strings.Contains(string(page), tornLine().String()) {
		t.Errorf("docs/log-format.md does not have %s, %v", tornLine(), err)
	}
}
