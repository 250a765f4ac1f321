package eventlog

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/perlica/perlica/eventlog/disk"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/evidence"
	"github.com/perlica/perlica/eventlog/export"
)

// TestExportImportExport exports a log, imports the text and exports it again. The two texts must be equal for every
// selection.
func TestExportImportExport(t *testing.T) {
	leaveToOtherBuild(t)
	logs := 4
	if *tortureStates > ordinaryStates {
		logs = 40
	}
	var parts, signed, masked, pruned, wide int
	for seed := range uint64(logs) {
		rnd := rand.New(rand.NewPCG(seed, 7))
		path, runs := randomLog(t, rnd, 1+rnd.IntN(1200))
		opts := []export.Options{{}, {Mask: masksSecrets}}
		for range 3 {
			opts = append(opts, export.Options{Selection: randomSelection(rnd, runs), Mask: masksSecrets})
		}
		for _, opt := range opts {
			text, done := exportOf(t, path, opt)
			copied, got := importOf(t, text)
			if got != done {
				t.Fatalf("seed %d, %+v: imported %+v, exported %+v", seed, opt.Selection, got, done)
			}
			recompute(t, copied, done.Root)
			again, _ := exportOf(t, copied, opt)
			if !done.Signed { // In this case a part may not know the name of its log.
				text, again = withoutOrigin(text), withoutOrigin(again)
			}
			if again != text {
				t.Fatalf("seed %d, %+v: exported again it is\n%.2000s\nwas\n%.2000s", seed, opt.Selection, again, text)
			}
			l, err := Open(t.Context(), copied, Options{})
			if errors.Is(err, disk.ErrPart) != (done.Absent > 0) {
				t.Errorf("seed %d: opening a file of %+v: %v", seed, done, err)
			}
			if err == nil {
				err = l.Close()
			}
			if done.Absent == 0 && err != nil {
				t.Error(err)
			}
			parts += min(1, int(done.Absent))
			masked += min(1, int(done.Masked))
			pruned += min(1, int(done.Pruned))
			if done.Signed {
				signed++
			}
			if strings.Contains(text, `"level":9,`) {
				wide++
			}
			if limit := 2 * 11 * (done.Events + 1); done.Absent > limit {
				t.Errorf("%d hashes for %d events", done.Absent, done.Events)
			}
		}
	}
	if parts < logs || signed < logs || masked < logs || pruned == 0 || wide == 0 {
		t.Errorf("the logs are too much alike: %d parts, %d signed, %d masked, %d pruned, %d wide", parts, signed, masked,
			pruned, wide)
	}
}

func withoutOrigin(text string) string {
	head, rest, _ := strings.Cut(text, "\n")
	if at := strings.Index(head, `"origin":"`); at >= 0 {
		_, tail, _ := strings.Cut(head[at+len(`"origin":"`):], `",`)
		head = head[:at] + tail
	}
	return head + "\n" + rest[:strings.LastIndex(rest, `"sha256":"`)] // Leave out the hash, which covers the header.
}

// TestExportOfAnExport imports a part of a log and exports a part of that part. The text must equal the export of
// this part from the whole log.
func TestExportOfAnExport(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 1))
	path, runs := randomLog(t, rnd, 900)
	run := runs[len(runs)/2]
	r := readerOf(t, path)
	e, ok, err := r.Last(t.Context(), event.Query{Run: run})
	if err != nil || !ok {
		t.Fatal(err)
	}
	text, done := exportOf(t, path, export.Options{Selection: export.Selection{Session: e.Session}})
	copied, _ := importOf(t, text)
	part, small := exportOf(t, copied, export.Options{Selection: export.Selection{Run: run}})
	if small.Events == 0 || small.Events >= done.Events {
		t.Fatalf("%+v of %+v", small, done)
	}
	twice, got := importOf(t, part)
	recompute(t, twice, got.Root)
	if size, root, err := r.Head(t.Context()); err != nil || size == done.Size && root != got.Root {
		t.Errorf("%d %v, %v, want %+v", size, root, err, got)
	}
}

// TestExportKeepsPayloads checks that export and import preserve every byte of every payload, in facts and frames.
func TestExportKeepsPayloads(t *testing.T) {
	l := openTest(t)
	for _, p := range oddPayloads {
		for _, e := range []event.Event{{Type: event.LineMalformed, Class: event.Frame},
			{Type: event.ToolResult, Class: event.Fact}} {
			e.Payload = []byte(p)
			if err := l.Record(e); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := l.Sync(); err != nil {
		t.Fatal(err)
	}
	text, _ := exportOf(t, l.Path(), export.Options{})
	copied, _ := importOf(t, text)
	want, got := collect(t, &l.Reader, event.Query{}), collect(t, readerOf(t, copied), event.Query{})
	for i := range want {
		if !bytes.Equal(got[i].Payload, want[i].Payload) || got[i].Payload == nil {
			t.Errorf("event %d: %q came back as %q", i+1, want[i].Payload, got[i].Payload)
		}
	}
	for _, form := range []string{`"payload":null`, `"payload":{"a":1,"a":2}`, `"payload_base64":"IHsiYSI6IDF9"`,
		`"line":" {\"a\": 1}"`, `"line_base64":"AP8="`} {
		if !strings.Contains(text, form) {
			t.Errorf("no %s in\n%s", form, text)
		}
	}
}

// TestExportRefusesDamage checks that a damaged log cannot be exported.
func TestExportRefusesDamage(t *testing.T) {
	const loose = `DROP TRIGGER events_lose_nothing_but_payloads; DROP TRIGGER events_are_not_deleted; `
	keys, err := evidence.MakeKeys(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	whole := filepath.Join(t.TempDir(), "eventlog.db")
	l, err := Open(t.Context(), whole, Options{Keys: keys})
	if err != nil {
		t.Fatal(err)
	}
	for range 598 {
		if err := l.Record(fact(event.Truncated, event.Refs{Run: "r"})); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := l.Append(t.Context(), fact(event.SessionCreated, event.Refs{}),
		event.NewFact(event.LogPruned, "u", event.Refs{}, event.Pruning{Until: 4})); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Checkpoint(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	healthy, err := os.ReadFile(whole)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		change string
		opt    export.Options
	}{
		"payload":           {change: loose + `UPDATE events SET payload = CAST('{"k":"w"}' AS BLOB) WHERE seq = 5`},
		"header":            {change: loose + `UPDATE events SET actor = 'nobody' WHERE seq = 5`},
		"leaf":              {change: loose + `UPDATE events SET leaf = zeroblob(32) WHERE seq = 5`},
		"event gone":        {change: loose + `DELETE FROM events WHERE seq = 5`},
		"many events gone":  {change: loose + `DELETE FROM events WHERE seq BETWEEN 257 AND 512`},
		"first events gone": {change: loose + `DELETE FROM events WHERE seq < 257`},
		"payload gone":      {change: `UPDATE events SET payload = NULL WHERE seq = 5`},
		"node":              {change: `UPDATE nodes SET hash = zeroblob(32) WHERE n = 1`},
		"node, unsigned":    {change: `DROP TRIGGER checkpoints_are_not_deleted; DELETE FROM checkpoints; UPDATE nodes SET hash = zeroblob(32) WHERE n = 1`},
		"node, of a part": {change: `UPDATE nodes SET hash = zeroblob(32) WHERE n = 1`,
			opt: export.Options{Selection: export.Selection{Run: "r"}}},
		"node gone, of a part": {change: `DELETE FROM nodes WHERE n = 1`,
			opt: export.Options{Selection: export.Selection{Run: "r"}}},
		"checkpoint": {change: `DROP TRIGGER checkpoints_are_not_updated; UPDATE checkpoints SET note = replace(note, substr(note, 50, 4), 'AAAA')`},
		"checkpoint of a part": {change: `DROP TRIGGER checkpoints_are_not_updated; UPDATE checkpoints SET note = 'x'`,
			opt: export.Options{Selection: export.Selection{Run: "r"}}},
		"pruned by no such rule": {change: `UPDATE events SET payload = NULL WHERE type = 'session.created'`},
		"no text":                {change: loose + `UPDATE events SET actor = CAST(x'ff' AS TEXT) WHERE seq = 5`},
	} {
		path := filepath.Join(t.TempDir(), "eventlog.db")
		if err := os.WriteFile(path, healthy, 0o600); err != nil {
			t.Fatal(err)
		}
		if text, _ := exportOf(t, path, c.opt); !strings.Contains(text, `{"end":`) {
			t.Fatal("no end of a healthy log")
		}
		if err := execFile(path, c.change); err != nil {
			t.Fatal(name, err)
		}
		var out strings.Builder
		_, err = export.Write(t.Context(), readerOf(t, path), &out, c.opt)
		if err == nil || strings.Contains(out.String(), `{"end":`) {
			t.Errorf("%s: %v", name, err)
		}
		if name != "no text" && !errors.Is(err, disk.ErrCorrupt) {
			t.Errorf("%s: %v is not ErrCorrupt", name, err)
		}
	}
}

// TestExportAsOfTheCheckpoint checks that an export of a run stays signed after the log got further events.
func TestExportAsOfTheCheckpoint(t *testing.T) {
	keys, err := evidence.MakeKeys(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "eventlog.db")
	l, err := Open(t.Context(), path, Options{Keys: keys})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range []event.Event{fact(event.SessionCreated, event.Refs{}),
		fact(event.MessageReceived, event.Refs{Run: "r"}), fact(event.CallEnforced, event.Refs{Run: "r"}),
		fact(event.SessionRenamed, event.Refs{})} {
		write := l.Append
		if e.Type == event.CallEnforced {
			write = l.EndRun
		}
		if _, err := write(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		export.Selection
		size   int64
		signed bool
	}{{export.Selection{}, 4, false}, {export.Selection{Run: "r"}, 3, true}, {export.Selection{Run: "none"}, 3, true}} {
		text, got := exportOf(t, path, export.Options{Selection: c.Selection})
		if got.Size != c.size || got.Signed != c.signed {
			t.Errorf("%+v: %+v", c.Selection, got)
		}
		copied, _ := importOf(t, text)
		r := readerOf(t, copied)
		list, err := r.Checkpoints(t.Context(), 0)
		if err != nil || len(list) > 0 != c.signed {
			t.Fatal(list, err)
		}
		if !c.signed {
			continue
		}
		from, err := r.Origin(t.Context())
		if names, err2 := list[0].Signed(keys.Verifiers(from)...); err != nil || err2 != nil || len(names) != 1 {
			t.Errorf("%v, %v: %v", names, err, err2)
		}
	}
}
