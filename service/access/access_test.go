package access

import (
	"reflect"
	"strings"
	"testing"
	"time"
)

// TestParse checks that a written text becomes rights out of the permitted ones.
func TestParse(t *testing.T) {
	for _, c := range []struct {
		text, whom string
		of         Rights
		want       string
		err        string
	}{
		{"ask, approve,ask", "contact", OfPeople(), "ask,approve", ""},
		{"read,admin", "device", OfDevices(), "read,admin", ""},
		{"read", "contact", OfPeople(), "", `there is no right "read"; they are ask, approve and admin`},
		{"all", "device", OfDevices(), "", `there is no right "all"; they are read, ask, approve and admin`},
		{" ,", "contact", OfPeople(), "", "a contact without a right could do nothing; they are ask, approve and admin"},
	} {
		rs, err := Parse(c.text, c.whom, c.of)
		if c.err != "" {
			if err == nil || err.Error() != c.err {
				t.Errorf("%q: %v, want %s", c.text, err, c.err)
			}
			continue
		}
		if err != nil || rs.String() != c.want || !reflect.DeepEqual(Recorded(rs.String()), rs) {
			t.Errorf("%q: %v, %v", c.text, rs, err)
		}
	}
	if rs := Recorded("ask,of a later version"); !rs.Has(Ask) || len(rs) != 2 || rs.Shown() != "ask, of a later version" {
		t.Errorf("a right of a later version: %q", rs)
	}
}

// TestName checks that a name is one visible line of limited length.
func TestName(t *testing.T) {
	for text, want := range map[string]string{
		" Al\u202eice\n\x1b[2JBob ":      "Alice [2JBob",
		strings.Repeat("ä", longestName): strings.Repeat("ä", longestName),
		strings.Repeat("x", 100):         strings.Repeat("x", longestName-1) + "…",
		"\xff":                           "\uFFFD",
	} {
		if got := Name(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// TestIsCode checks that only the code of a pairing matches it.
func TestIsCode(t *testing.T) {
	expires := time.Unix(1000, 0)
	f, err := NewPairing("123456", Rights{Ask}, "alice", expires)
	if err != nil || !f.Expires.Equal(expires) || f.By != "alice" {
		t.Fatalf("%+v, %v", f, err)
	}
	other, err := NewPairing("123456", Rights{Ask}, "alice", expires)
	if err != nil || string(other.Hash) == string(f.Hash) || other.ID == f.ID {
		t.Error("two pairings with one code look alike")
	}
	for code, want := range map[string]bool{"123456": true, "123457": false, "": false, "1234567": false} {
		if IsCode(f.Salt, f.Hash, code) != want {
			t.Errorf("%q is a code: %t", code, !want)
		}
	}
}

// TestMayGuess checks that each wrong guess doubles the wait, up to more than a day.
func TestMayGuess(t *testing.T) {
	at := time.Unix(1000, 0)
	for attempts, wait := range map[int]time.Duration{1: 2 * time.Second, 2: 4 * time.Second, 5: 32 * time.Second,
		17: 1 << 17 * time.Second, 1000: 1 << 17 * time.Second} {
		if MayGuess(attempts, at, at.Add(wait-1)) || !MayGuess(attempts, at, at.Add(wait)) {
			t.Errorf("%d guesses: not %s", attempts, wait)
		}
	}
	if !MayGuess(0, at, at) {
		t.Error("the first guess has to wait")
	}
}

// TestRefusals checks that a few refusals a minute are recorded. Each record counts the unrecorded
// ones before it.
func TestRefusals(t *testing.T) {
	var r Refusals
	now := time.Unix(1000, 0)
	recorded := 0
	for range 100 {
		if left, ok := r.Record(now); ok {
			recorded++
			if left != 0 {
				t.Errorf("%d were left out before", left)
			}
		}
	}
	if recorded != refusalsRecorded {
		t.Errorf("%d were recorded", recorded)
	}
	if left, ok := r.Record(now.Add(refusalsWindow)); !ok || left != 100-refusalsRecorded {
		t.Errorf("a minute later: %d, %t", left, ok)
	}
}
