package eventlog

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/evidence"
	"github.com/perlica/perlica/eventlog/export"
	"github.com/perlica/perlica/eventlog/tree"
)

// yield returns the content of an export: the header, every event and every absent subtree. It leaves out the parts
// of the header that are only for people.
func yield(text string) (string, error) {
	x, err := export.NewReader(strings.NewReader(text))
	if err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%+v\n", x.Header.Checkpoint)
	for {
		e, a, err := x.Next()
		switch {
		case err == io.EOF:
			return b.String(), nil
		case err != nil:
			return "", err
		case e != nil:
			fmt.Fprintf(&b, "%+v %d\n", *e, e.Time.UnixNano())
		default:
			fmt.Fprintf(&b, "%+v\n", *a)
		}
	}
}

// smallExport returns a signed export of a part of a log. It has every kind of line and every form
// of payload.
func smallExport(t testing.TB) string {
	t.Helper()
	keys, err := evidence.MakeKeys(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "eventlog.db")
	l, err := Open(context.Background(), path, Options{Keys: keys, Context: "default"})
	if err != nil {
		t.Fatal(err)
	}
	refs := event.Refs{Run: "r", Session: "s", Trace: "t", Conversation: "c"}
	events := []event.Event{fact(event.SessionCreated, event.Refs{}), fact(event.SessionRenamed, event.Refs{}),
		fact(event.SessionRenamed, event.Refs{}), fact(event.MessageReceived, refs)}
	for i, p := range []string{``, `{"secret":1}`, "\xff", `line`, ` {}`} {
		e := event.Event{Type: event.NotificationReceived, Class: event.Frame, Refs: refs, Payload: []byte(p)}
		if i == 4 {
			e.Type, e.Class = event.ToolResult, event.Fact
		}
		events = append(events, e)
	}
	events = append(events, event.NewFact(event.LogPruned, "u", event.Refs{}, event.Pruning{Until: 8, Class: event.Frame}),
		fact(event.SessionDeleted, event.Refs{}))
	if err := l.Record(events...); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Checkpoint(context.Background()); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := execFile(path, `UPDATE events SET payload = NULL WHERE seq = 8`); err != nil {
		t.Fatal(err)
	}
	text, done := exportOf(t, path, export.Options{Selection: export.Selection{Run: "r"}, Mask: masksSecrets})
	if done.Events != 6 || done.Masked != 1 || done.Pruned != 1 || done.Absent < 3 || !done.Signed {
		t.Fatalf("%+v", done)
	}
	return text
}

// TestImportOfDamage changes, removes and doubles every byte and every line of an export. The import must fail or
// give the same content.
func TestImportOfDamage(t *testing.T) {
	leaveToOtherBuild(t)
	text := smallExport(t)
	want, err := yield(text)
	if err != nil {
		t.Fatal(err)
	}
	var tried, same int
	try := func(what string, damaged string) {
		tried++
		got, err := yield(damaged)
		var bad *export.ImportError
		switch {
		case err == nil && got == want:
			same++
		case err == nil:
			t.Errorf("%s: it is read as\n%s", what, got)
		case !errors.As(err, &bad):
			t.Errorf("%s: %v", what, err)
		}
	}
	changes := []func(i int){
		func(i int) { try(fmt.Sprintf("without byte %d", i), text[:i]+text[i+1:]) },
		func(i int) { try(fmt.Sprintf("byte %d twice", i), text[:i+1]+text[i:]) },
		func(i int) { try(fmt.Sprintf("a blank before byte %d", i), text[:i]+" "+text[i:]) },
		func(i int) { try(fmt.Sprintf("cut before byte %d", max(i, 1)), text[:max(i, 1)]) },
	}
	for _, flip := range []byte{1, 0x20, 0x80, 0xff} {
		changes = append(changes, func(i int) {
			try(fmt.Sprintf("byte %d ^ %#x", i, flip), text[:i]+string([]byte{text[i] ^ flip})+text[i+1:])
		})
	}
	// Each byte gets two of the changes, and the next byte gets the next two changes. make torture tries all changes
	// at every byte.
	each := 2
	if *tortureStates > ordinaryStates {
		each = len(changes)
	}
	for i := range len(text) {
		for n := range each {
			changes[(2*i+n)%len(changes)](i)
		}
	}
	lines := strings.SplitAfter(strings.TrimSuffix(text, "\n"), "\n")
	for i, line := range lines {
		try(fmt.Sprintf("without line %d", i+1), strings.Replace(text, line, "", 1))
		try(fmt.Sprintf("line %d twice", i+1), strings.Replace(text, line, line+line, 1))
	}
	// A few changes may have no effect, because they concern only blanks in the last line.
	if same == 0 || same > 40 {
		t.Errorf("%d of %d changes make no difference", same, tried)
	}
}

// TestImportOfLies checks that Import refuses exports that were forged with care.
func TestImportOfLies(t *testing.T) {
	text := smallExport(t)
	lines := strings.SplitAfter(text, "\n")
	summed, _ := resum(strings.Replace(text, `"run_id":"r"}`, `"run_id":"q"}`, 1))
	if _, err := yield(summed); err != nil {
		t.Fatal(err) // No hash covers the selection, so the import must accept a changed one.
	}
	edit := func(line int, old, with string) string {
		if !strings.Contains(lines[line-1], old) {
			t.Fatalf("no %s in %s", old, lines[line-1])
		}
		changed := append([]string{}, lines...)
		changed[line-1] = strings.Replace(changed[line-1], old, with, 1)
		return strings.Join(changed, "")
	}
	for name, damaged := range map[string]string{
		"a member twice":         edit(4, `"payload":`, `"payload":{},"payload":`),
		"two payloads":           edit(4, `"payload":`, `"line":"x","payload":`),
		"a member in capitals":   edit(4, `"seq"`, `"SEQ"`),
		"an unknown member":      edit(4, `"seq"`, `"x":1,"seq"`),
		"null":                   edit(4, `"run_id":"r"`, `"run_id":null`),
		"a fraction":             edit(4, `"seq":`, `"seq":0.`),
		"a payload withheld":     edit(4, `"payload":{"k":"v"}`, `"withheld":"lost"`),
		"a payload not there":    edit(4, `,"payload":{"k":"v"}`, ``),
		"another payload":        edit(4, `{"k":"v"}`, `{"k":"w"}`),
		"the same JSON":          edit(4, `{"k":"v"}`, `{ "k":"v"}`),
		"an offset":              edit(4, `Z","type"`, `+00:00","type"`),
		"an unsigned name":       edit(1, `"checkpoint":"`, `"checkpoint":"x`),
		"a newer root":           edit(1, `"root":"`, `"root":"A`),
		"another size":           edit(1, `"size":11`, `"size":12`),
		"a great size":           edit(1, `"size":11`, `"size":9223372036854775807`),
		"another count":          edit(len(lines)-1, `"events":6`, `"events":7`),
		"a level too high":       edit(2, `"level":1`, `"level":63`),
		"a level below zero":     edit(2, `"level":1`, `"level":-1`),
		"a subtree out of place": edit(3, `"level":0`, `"level":1`),
		"another actor":          edit(4, `"actor":"test"`, `"actor":"user"`),
		"another time":           edit(4, `"ts":"20`, `"ts":"21`),
		"another hash":           edit(3, lines[2][35:45], lines[1][35:45]),
		"another checkpoint":     edit(1, `\n11\n`, `\n12\n`),
	} {
		summed, _ := resum(damaged)
		if _, err := yield(summed); err == nil || strings.Contains(err.Error(), "SHA-256") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestImportOfUnsignedLies forges an export without a checkpoint. A forger can make all parts consistent, except for
// an impossible tree.
func TestImportOfUnsignedLies(t *testing.T) {
	l := openTest(t)
	if _, err := l.Append(t.Context(), fact(event.SessionCreated, event.Refs{}),
		fact(event.SessionCreated, event.Refs{})); err != nil {
		t.Fatal(err)
	}
	whole, _ := exportOf(t, l.Path(), export.Options{})
	nothing, _ := exportOf(t, l.Path(), export.Options{Selection: export.Selection{Run: "none"}})
	leaves := collect(t, &l.Reader, event.Query{})
	first, second := tree.Subtree{Seq: 1, Level: 0, Hash: leaves[0].LeafHash},
		tree.Subtree{Seq: 2, Level: 0, Hash: leaves[1].LeafHash}
	crooked := tree.Subtree{Seq: 2, Level: 1, Hash: leaves[1].LeafHash}
	var f tree.Range
	f.AddSubtree(0, first.Hash)
	f.AddSubtree(1, crooked.Hash)
	made := func(size int64, root tlog.Hash, list ...tree.Subtree) string {
		text := fmt.Sprintf(`{"perlica_log_export":1,"size":%d,"root":"%s","selection":{}}`+"\n", size, root)
		for _, a := range list {
			text += fmt.Sprintf(`{"absent":{"seq":%d,"level":%d,"hash":"%s"}}`+"\n", a.Seq, a.Level, a.Hash)
		}
		return text + fmt.Sprintf(`{"end":{"events":0,"withheld":0,"absent":%d,"sha256":"%064x"}}`+"\n", len(list), 0)
	}
	_, root, err := l.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	both := tree.Subtree{Seq: 1, Level: 1, Hash: root}
	for name, c := range map[string]struct {
		text string
		good bool
	}{
		"whole":                 {whole, true},
		"nothing":               {nothing, true},
		"one hash":              {made(2, root, both), true},
		"two hashes":            {made(2, root, first, second), false},
		"one hash twice":        {made(2, root, both, both), false},
		"out of place":          {made(f.Size, f.Root(), first, crooked), false},
		"more than there is":    {strings.Replace(whole, `"size":2`, `"size":3`, 1), false},
		"less than there is":    {made(1, root, both), false},
		"another name":          {strings.Replace(whole, `"origin":"perlica/`, `"origin":"perlica/x`, 1), false},
		"a name of two lines":   {strings.Replace(nothing, `"origin":"perlica/`, `"origin":"perlica/\n`, 1), false},
		"a size that overflows": {made(1<<62, root, tree.Subtree{Seq: 1, Level: 59, Hash: root}), false},
	} {
		summed, _ := resum(c.text)
		if _, err := yield(summed); (err == nil) != c.good || err != nil && strings.Contains(err.Error(), "SHA-256") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// resum writes the correct SHA-256 into an edited export. ok is false if the export has no place for it.
func resum(text string) (summed string, ok bool) {
	at := strings.LastIndex(text, `{"end":`)
	if at < 0 {
		return "", false
	}
	head, end, ok := strings.Cut(text[at:], `"sha256":"`)
	_, end, ok2 := strings.Cut(end, `"`)
	return text[:at] + head + fmt.Sprintf(`"sha256":"%x"`, sha256.Sum256([]byte(text[:at]))) + end, ok && ok2
}

// TestEventJSON checks that MarshalJSON and UnmarshalJSON restore every event.
func TestEventJSON(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 3))
	for seed := range 4 {
		path, _ := randomLog(t, rnd, 60+seed)
		for _, e := range collect(t, readerOf(t, path), event.Query{}) {
			b, err := json.Marshal(e)
			if err != nil {
				t.Fatal(err)
			}
			var got event.Event
			if err := json.Unmarshal(b, &got); err != nil || !reflect.DeepEqual(got, e) {
				t.Fatalf("%s\ncame back as %+v, %v\nwas %+v", b, got, err, e)
			}
		}
	}
}

// FuzzEventJSON checks that MarshalJSON and UnmarshalJSON restore every event that UnmarshalJSON accepts.
func FuzzEventJSON(f *testing.F) {
	for line := range strings.Lines(smallExport(f)) {
		f.Add([]byte(line))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var e, again event.Event
		if e.UnmarshalJSON(b) != nil {
			return
		}
		text, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(text, &again); err != nil || !reflect.DeepEqual(again, e) {
			t.Fatalf("%s\n%s\n%v", b, text, err)
		}
	})
}

// FuzzImport checks that Import finishes for every file, and that the events of an accepted file have its root. For
// the corpus it also imports, exports and imports again. That is too slow for the fuzzer itself.
func FuzzImport(f *testing.F) {
	f.Add([]byte(smallExport(f)))
	path, _ := randomLog(f, rand.New(rand.NewPCG(5, 5)), 8)
	whole, _ := exportOf(f, path, export.Options{})
	f.Add([]byte(whole))
	fuzzing := flag.Lookup("test.fuzz").Value.String() != ""
	f.Fuzz(func(t *testing.T, b []byte) {
		_, _ = yield(string(b))
		text, ok := resum(string(b)) // Correct the sum. Otherwise each changed text would fail at its last line.
		if !ok {
			return
		}
		if _, err := yield(text); err != nil || fuzzing {
			return
		}
		path, done := importOf(t, text)
		recompute(t, path, done.Root)
		again, _ := exportOf(t, path, export.Options{})
		twice, _ := importOf(t, again)
		if contents(t, twice) != contents(t, path) {
			t.Errorf("%s\nwas read as\n%s", b, again)
		}
	})
}
