package evidence

import (
	"errors"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/note"
)

// TestVerifyNeedsTheLogsOwnKey checks that Verify does not accept a checkpoint that only a witness signed.
func TestVerifyNeedsTheLogsOwnKey(t *testing.T) {
	_, known, list := history(t)
	c := list[3]
	w := testKeys(t)
	s, err := w.Signer("witness.example")
	if err != nil {
		t.Fatal(err)
	}
	msg, err := note.Sign(&note.Note{Text: c.Text()}, s)
	if err != nil {
		t.Fatal(err)
	}
	all := append(w.Verifiers("witness.example"), known...)
	if _, err := c.Verify(w.Verifiers(c.Origin)...); !errors.Is(err, ErrProof) ||
		!strings.Contains(err.Error(), "none of the keys") {
		t.Errorf("another's key: %v", err)
	}
	both := c
	both.Note += strings.TrimPrefix(string(msg), c.Text()+"\n")
	if by, err := both.Verify(all...); err != nil || len(by) != 2 {
		t.Errorf("signed by both: %v, %v", by, err)
	}
	c.Note = string(msg)
	if _, err := c.Verify(all...); !errors.Is(err, ErrProof) || !strings.Contains(err.Error(), "itself") {
		t.Errorf("signed by another only: %v", err)
	}
}

// TestThreeLines checks that a checkpoint with more lines is refused, even if they are a second copy of the
// checkpoint.
func TestThreeLines(t *testing.T) {
	_, _, list := history(t)
	msg := list[3].Note
	for _, msg := range []string{msg + msg, strings.Replace(msg, "\n\n", "\nmore\n\n", 1)} {
		if _, err := ParseCheckpoint(msg); !errors.Is(err, ErrCheckpoint) {
			t.Errorf("%q: %v", msg, err)
		}
	}
}

func FuzzCheckpoint(f *testing.F) {
	f.Add("perlica/x\n1\nAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n\n— perlica/x AAAAAAAA\n")
	f.Fuzz(func(t *testing.T, msg string) {
		c, err := ParseCheckpoint(msg)
		if err != nil {
			if !errors.Is(err, ErrCheckpoint) {
				t.Errorf("%v", err)
			}
			return
		}
		if !strings.HasPrefix(msg, c.Text()+"\n") || c.Note != msg {
			t.Errorf("%q became %+v", msg, c)
		}
	})
}
