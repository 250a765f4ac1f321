package intents_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/perlica/perlica/eventlog/intents"
)

// logOf returns a log with these calls.
func logOf(calls ...intents.Call) intents.Log {
	return intents.Log{Name: "perlica/01a21870-d511-7c7a-9ed5-1308b04bd8f6",
		After: func(seq int64) ([]intents.Call, error) {
			return slices.DeleteFunc(slices.Clone(calls), func(c intents.Call) bool { return c.Seq <= seq }), nil
		}}
}

// write writes lines for the calls and ends them with the given state.
func write(t *testing.T, b *intents.Book, log intents.Log, state byte, calls ...intents.Call) intents.Repair {
	t.Helper()
	e, err := b.Begin(log, calls)
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Sync(); err != nil {
		t.Fatal(err)
	}
	e.End(state)
	return e.Repair
}

func named(t *testing.T, path, input string) bool {
	t.Helper()
	called, _, err := intents.Names(path, input)
	if err != nil {
		t.Fatal(err)
	}
	return called
}

// TestFormat checks the bytes of a line, because other programs may read them.
func TestFormat(t *testing.T) {
	path := filepath.Join(t.TempDir(), "eventlog.db")
	write(t, intents.Open(path), logOf(), intents.Appended, intents.Call{Seq: 8, Input: "a"},
		intents.Call{Seq: 12, Input: "ä b"})
	got, err := os.ReadFile(filepath.Join(filepath.Dir(path), "eventlog.intents"))
	want := "ca978112ca1bbdcafac231b39a23dc4d 0000000008 b04bd8f6 30d3e523 +\n" +
		"83ec61e937eb31041fbb8bf7a6b72ca6 0000000012 b04bd8f6 a15f3890 +\n"
	if err != nil || string(got) != want {
		t.Errorf("got %q, %v; want %q", got, err, want)
	}
}

// TestTorn checks a line that a crash cut short, and a line of zeros. Such a line must name no call, and the next
// line must overwrite it.
func TestTorn(t *testing.T) {
	for name, torn := range map[string]func(line []byte) []byte{
		"cut":        func(line []byte) []byte { return line[:40] },
		"zeros":      func(line []byte) []byte { return make([]byte, len(line)) },
		"zeros, cut": func(line []byte) []byte { return make([]byte, 40) },
	} {
		path := filepath.Join(t.TempDir(), "eventlog.db")
		first, second, third := intents.Call{Seq: 3, Input: "first"}, intents.Call{Seq: 5, Input: "second"},
			intents.Call{Seq: 5, Input: "third"}
		write(t, intents.Open(path), logOf(), intents.Appended, first, second)
		b, err := os.ReadFile(intents.Path(path))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(intents.Path(path), append(b[:64:64], torn(b[64:])...), 0o600); err != nil {
			t.Fatal(err)
		}
		if !named(t, path, "first") || named(t, path, "second") {
			t.Errorf("%s: first %t, second %t", name, named(t, path, "first"), named(t, path, "second"))
		}
		if repair := write(t, intents.Open(path), logOf(first), intents.Appended, third); repair != (intents.Repair{}) {
			t.Errorf("%s: %+v", name, repair)
		}
		c, err := intents.Read(path)
		if err != nil || len(c.Lines) != 2 || c.Damaged != 0 || c.Lines[1].Hash != intents.Hash("third") {
			t.Errorf("%s: %+v, %v", name, c, err)
		}
	}
}

// TestRepair checks that the log's calls are added to the file if their lines are missing. A line for a call that the
// log lost must stay in the file.
func TestRepair(t *testing.T) {
	calls := []intents.Call{{Seq: 3, Input: "a"}, {Seq: 9, Input: "b"}, {Seq: 12, Input: "c"}}
	next := intents.Call{Seq: 20, Input: "next"}
	for name, tc := range map[string]struct {
		spoil func(b []byte) []byte // nil removes the file
		log   []intents.Call
		want  intents.Repair
	}{
		"whole":           {bytes.Clone, calls, intents.Repair{}},
		"removed":         {nil, calls, intents.Repair{Added: 3}},
		"emptied":         {func([]byte) []byte { return []byte{} }, calls, intents.Repair{Added: 3}},
		"cut":             {func(b []byte) []byte { return b[:100] }, calls, intents.Repair{Added: 2}},
		"an older one":    {func(b []byte) []byte { return b[:64] }, calls, intents.Repair{Added: 2}},
		"the end flipped": {func(b []byte) []byte { b[140] ^= 1; return b }, calls, intents.Repair{Added: 1}},
		"of another":      {func(b []byte) []byte { return bytes.Repeat([]byte("x"), 200) }, calls, intents.Repair{Added: 3}},
		"the log cut":     {bytes.Clone, calls[:1], intents.Repair{Lost: 2}},
		"the log gone":    {bytes.Clone, nil, intents.Repair{Lost: 3}},
	} {
		path := filepath.Join(t.TempDir(), "eventlog.db")
		write(t, intents.Open(path), logOf(), intents.Appended, calls...)
		b, err := os.ReadFile(intents.Path(path))
		if err == nil && tc.spoil == nil {
			err = os.Remove(intents.Path(path))
		} else if err == nil {
			err = os.WriteFile(intents.Path(path), tc.spoil(b), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		if got := write(t, intents.Open(path), logOf(tc.log...), intents.Appended, next); got != tc.want {
			t.Errorf("%s: got %+v, want %+v", name, got, tc.want)
		}
		for _, c := range append(calls, next) {
			if !named(t, path, c.Input) {
				t.Errorf("%s: %s is not named", name, c.Input)
			}
		}
		// The first write has repaired the file, so the next process must find no difference.
		after := append(slices.Clone(tc.log), next)
		if got := write(t, intents.Open(path), logOf(after...), intents.Appended,
			intents.Call{Seq: 30, Input: "later"}); got != (intents.Repair{}) {
			t.Errorf("%s: then: %+v", name, got)
		}
	}
}

// TestTaken checks that an input cannot be called if another process wrote a line for it, unless that process's
// append failed.
func TestTaken(t *testing.T) {
	for state, taken := range map[byte]bool{intents.Appended: true, intents.Writing: true, intents.Undone: false} {
		path := filepath.Join(t.TempDir(), "eventlog.db")
		mine := intents.Open(path)
		write(t, intents.Open(path), logOf(), state, intents.Call{Seq: 3, Input: "a"})
		e, err := mine.Begin(logOf(), []intents.Call{{Seq: 3, Input: "other"}, {Seq: 4, Input: "a"}})
		if err == nil {
			e.End(intents.Undone)
		}
		if (err != nil) != taken {
			t.Errorf("state %c: got %v", state, err)
		}
		if named(t, path, "a") != taken || named(t, path, "other") {
			t.Errorf("state %c: a %t, other %t", state, named(t, path, "a"), named(t, path, "other"))
		}
	}
}

// TestRefusesLinks checks that a link in place of the file is refused. A cloned project may contain a link to another
// file of the user.
func TestRefusesLinks(t *testing.T) {
	dir := t.TempDir()
	path, victim := filepath.Join(dir, "eventlog.db"), filepath.Join(dir, "victim")
	if err := os.WriteFile(victim, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(victim, intents.Path(path)); err != nil {
		t.Skip(err)
	}
	if _, err := intents.Open(path).Begin(logOf(), []intents.Call{{Seq: 1, Input: "a"}}); err == nil {
		t.Error("it wrote through a link")
	}
}

// BenchmarkNames looks for an input among a million.
func BenchmarkNames(b *testing.B) {
	path := filepath.Join(b.TempDir(), "eventlog.db")
	calls := make([]intents.Call, 1_000_000)
	for i := range calls {
		calls[i] = intents.Call{Seq: int64(i + 1), Input: string(rune('a'+i%26)) +
			filepath.Join("input", string(rune(0x4e00+i%20000)), string(rune(0x4e00+i/20000)))}
	}
	e, err := intents.Open(path).Begin(logOf(), calls)
	if err != nil {
		b.Fatal(err)
	}
	e.End(intents.Appended)
	for b.Loop() {
		if called, _, err := intents.Names(path, "another"); called || err != nil {
			b.Fatal(called, err)
		}
	}
}
