package eventlog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/evidence"
	"github.com/perlica/perlica/eventlog/export"
	"github.com/perlica/perlica/eventlog/store"
	"github.com/perlica/perlica/eventlog/tree"
)

// oddPayloads are payloads that encoding/json would change.
var oddPayloads = []string{
	``, `null`, `0`, ` {"a": 1}`, `{"a":"<b>&\u2028"}`, "{\"a\":\"\u2028\"}", `{"a":"<"}`, `{"a":1,"a":2}`, "\"\xff\"",
	`not JSON`, "\x00\xff",
	`{"n":1e400,"m":12345678901234567890}`, "�", `"\ud800"`, "line\r\n", `{"password":"secret"}`,
}

func masksSecrets(payload []byte) bool { return bytes.Contains(payload, []byte("secret")) }

// randomLog makes a log with about n events of several runs. Some payloads are pruned. It returns the path and the
// runs.
func randomLog(t testing.TB, rnd *rand.Rand, n int) (path string, runs []event.RunID) {
	t.Helper()
	keys, err := evidence.MakeKeys(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(t.TempDir(), "eventlog.db")
	clock := time.Date(2026, 11, 21, 3, 0, 0, 1, time.UTC)
	l, err := Open(t.Context(), path, Options{Context: "default", Keys: keys, Now: func() time.Time {
		clock = clock.Add(time.Duration(rnd.IntN(2000)) * time.Millisecond)
		return clock
	}})
	if err != nil {
		t.Fatal(err)
	}
	record := func(e event.Event) {
		if err := l.Record(e); err != nil {
			t.Fatal(err)
		}
	}
	for i := 0; i < n; {
		run := event.RunID(fmt.Sprintf("run-%d", len(runs)))
		runs = append(runs, run)
		refs := event.Refs{Session: event.SessionID(fmt.Sprintf("session-%d", rnd.IntN(3))), Run: run, Trace: "t",
			Input: event.InputID("in " + run)}
		record(fact(event.MessageReceived, refs))
		record(fact(event.Requested, refs))
		refs.Input = ""
		for range rnd.IntN(40) {
			e := event.Event{Type: event.NotificationReceived, Class: event.Frame, Actor: "agent", Refs: refs,
				Payload: []byte(oddPayloads[rnd.IntN(len(oddPayloads))])}
			if rnd.IntN(3) == 0 {
				e.Type, e.Class = event.ToolResult, event.Fact
			}
			record(e)
			i++
		}
		if rnd.IntN(4) > 0 {
			record(fact(event.Responded, refs))
		}
		if rnd.IntN(3) > 0 {
			mustEndRun(t, l, fact(event.CallEnforced, refs))
		}
		i += 4
	}
	if rnd.IntN(2) == 0 {
		until := event.Seq(rnd.IntN(n))
		record(event.NewFact(event.LogPruned, "user", event.Refs{}, event.Pruning{Until: until, Class: event.Frame}))
		if rnd.IntN(2) == 0 {
			if _, err := l.Checkpoint(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		if err := execFile(path, fmt.Sprintf(`UPDATE events SET payload = NULL WHERE seq <= %d AND class = 'frame'`,
			until)); err != nil {
			t.Fatal(err)
		}
		return path, runs
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return path, runs
}

// randomSelection selects a part of a log, or all of it.
func randomSelection(rnd *rand.Rand, runs []event.RunID) (s export.Selection) {
	start := time.Date(2026, 11, 21, 3, 0, 0, 0, time.UTC)
	switch rnd.IntN(5) {
	case 0:
	case 1:
		s.Run = runs[rnd.IntN(len(runs))]
	case 2:
		s.Session = event.SessionID(fmt.Sprintf("session-%d", rnd.IntN(3)))
	case 3:
		s.Since = start.Add(time.Duration(rnd.IntN(300)) * time.Second)
	case 4:
		s.Session = "session-0"
		s.Since = start.Add(time.Duration(rnd.IntN(60)) * time.Second)
		s.Before = s.Since.Add(time.Duration(rnd.IntN(120)) * time.Second)
	}
	return s
}

func exportOf(t testing.TB, path string, opt export.Options) (string, export.Summary) {
	t.Helper()
	r, err := store.OpenReader(context.Background(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}()
	var out strings.Builder
	done, err := export.Write(context.Background(), r, &out, opt)
	if err != nil {
		t.Fatal(err)
	}
	return out.String(), done
}

func importOf(t testing.TB, text string) (string, export.Summary) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "imported.db")
	done, err := export.Import(context.Background(), strings.NewReader(text), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	return path, done
}

// contents returns all rows of a file.
func contents(t testing.TB, path string) string {
	t.Helper()
	db := dbOf(t, path)
	var b strings.Builder
	for _, table := range []string{"events", "nodes", "open_runs", "checkpoints", "withheld", "absent"} {
		rows, err := db.Queryx(`SELECT * FROM ` + table + ` ORDER BY 1, 2`)
		if err != nil {
			t.Fatal(err)
		}
		for rows.Next() {
			cells, err := rows.SliceScan()
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&b, "%s %q\n", table, cells)
		}
		if err := errors.Join(rows.Err(), rows.Close()); err != nil {
			t.Fatal(err)
		}
	}
	return b.String()
}

// recompute computes the root of a file from its rows and compares it with want. It does not use the package's code
// for parts of a log.
func recompute(t testing.TB, path string, want tlog.Hash) {
	t.Helper()
	r, err := store.OpenReader(context.Background(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }() // only read
	var absent []struct {
		Seq   int64
		Level int
		Hash  []byte
	}
	if err := dbOf(t, path).Select(&absent, `SELECT seq, level, hash FROM absent ORDER BY seq`); err != nil {
		t.Fatal(err)
	}
	var f tree.Range
	gap := func() {
		for len(absent) > 0 && absent[0].Seq == f.Size+1 {
			f.AddSubtree(absent[0].Level, tlog.Hash(absent[0].Hash))
			absent = absent[1:]
		}
	}
	gap()
	for e, err := range r.Events(context.Background(), event.Query{}) {
		if err != nil {
			t.Fatal(err)
		}
		if int64(e.Seq) != f.Size+1 || e.Leaf() != e.LeafHash || e.Payload != nil && !e.PayloadMatches() ||
			(e.Payload == nil) != (e.Withheld != "") {
			t.Fatalf("event %d after %d is not right", e.Seq, f.Size)
		}
		f.Add(e.LeafHash)
		gap()
	}
	if f.Root() != want || len(absent) > 0 {
		t.Errorf("the root of %s is %v, want %v; %d absences are left", path, f.Root(), want, len(absent))
	}
	var nodes []struct {
		Level int
		N     int64
		Hash  []byte
	}
	if err := dbOf(t, path).Select(&nodes, `SELECT level, n, hash FROM nodes`); err != nil {
		t.Fatal(err)
	}
	for _, n := range nodes {
		if !slices.Contains(f.Nodes, tree.Node{Level: n.Level, N: n.N, Hash: tlog.Hash(n.Hash)}) {
			t.Errorf("the node %d at level %d is not the tree's", n.N, n.Level)
		}
	}
	if len(nodes) != len(f.Nodes) {
		t.Errorf("%d nodes are stored, want %d", len(nodes), len(f.Nodes))
	}
	if size, root, err := r.Head(context.Background()); err != nil || size != f.Size || root != want {
		t.Errorf("Head = %d %v, %v, want %d %v", size, root, err, f.Size, want)
	}
}
