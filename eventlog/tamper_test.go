package eventlog

import (
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"
	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/perlica/perlica/eventlog/anchor"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/evidence"
	"github.com/perlica/perlica/eventlog/store"
	"github.com/perlica/perlica/eventlog/store/storetest"
	merkle "github.com/perlica/perlica/eventlog/tree"
	"github.com/perlica/perlica/eventlog/verify"
)

// flips is the number of bits that TestFlips flips in each file. If the number is above the default, TestTamper also
// uses logs of 100,000 events.
var flips = flag.Int("flips", 80, "how many bits TestFlips flips in each file")

// victim is a log for tampering. It has a checkpoint after each fifth of its events.
type victim struct {
	dir, path string
	n         int64
	keys      *evidence.Keys
	verifiers []note.Verifier
	last      evidence.Checkpoint
}

func newVictim(t *testing.T, n int64) *victim {
	t.Helper()
	v := &victim{dir: t.TempDir(), n: n}
	var err error
	if v.keys, err = evidence.MakeKeys(filepath.Join(v.dir, "keys")); err != nil {
		t.Fatal(err)
	}
	v.path = filepath.Join(v.dir, "log", "eventlog.db")
	if err := os.Mkdir(filepath.Dir(v.path), 0o700); err != nil {
		t.Fatal(err)
	}
	l, err := Open(t.Context(), v.path, Options{Context: "default", Keys: v.keys})
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		e := event.Event{Type: event.NotificationReceived, Class: event.Frame, Actor: "agent",
			Refs: event.Refs{Run: "r", Session: "s"}, Payload: fmt.Appendf(nil, `{"line":%d}`, i)}
		if i%7 == 0 {
			e = event.NewFact(event.ToolBlocked, "perlica", event.Refs{Run: "r", Session: "s", Trace: "t"},
				map[string]int64{"n": i})
		}
		if err := l.Record(e); err != nil {
			t.Fatal(err)
		}
		if (i+1)%(n/5) == 0 || i+1 == n {
			if v.last, err = l.Checkpoint(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	v.verifiers = v.keys.Verifiers(v.last.Origin)
	return v
}

// copyLog returns the path of a copy of the log and its anchor.
func (v *victim) copyLog(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Dir(v.path))); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, filepath.Base(v.path))
}

const loosen = `DROP TRIGGER events_lose_nothing_but_payloads; DROP TRIGGER events_are_not_deleted;
	DROP TRIGGER checkpoints_are_not_updated; DROP TRIGGER checkpoints_are_not_deleted; `

// tightening returns the statements that undo loosen.
func tightening() (statements string) {
	for _, s := range store.Statements() {
		if name, ok := strings.CutPrefix(s, "CREATE TRIGGER "); ok && !strings.HasPrefix(name, "names") {
			statements += s + ";"
		}
	}
	return statements
}

// tampering is a change of a log with n events. It concerns the event p or later events.
type tampering struct {
	name string
	// sql is the change as SQL. It may contain {n}, {p} and {p1}; {p1} is p+1.
	sql string
	// do makes the change. If do is set, sql is not used.
	do   func(t *testing.T, db *sqlx.DB, path string, p int64)
	kind verify.Damage
	// seq returns the first event of the expected finding. nil means p.
	seq func(n, p int64) int64
	// near means that the finding may also begin at an earlier event, directly after a checkpoint.
	near bool
}

func none(int64, int64) int64  { return 0 }
func end(n, _ int64) int64     { return n + 1 }
func first(int64, int64) int64 { return 1 }

// tamperings lists changes that SQL can make. The later changes need more knowledge: of the schema, then of the
// leaves, then of the tree.
func tamperings() []tampering {
	list := []tampering{
		{name: "payload", sql: `UPDATE events SET payload = CAST(payload || ' ' AS BLOB) WHERE seq = {p}`,
			kind: verify.Edited},
		{name: "payload of one length",
			sql:  `UPDATE events SET payload = CAST(replace(CAST(payload AS TEXT), '{', '[') AS BLOB) WHERE seq = {p}`,
			kind: verify.Edited},
		{name: "payload gone", sql: `UPDATE events SET payload = NULL WHERE seq = {p}`, kind: verify.Deleted},
		{name: "all payloads", sql: `UPDATE events SET payload = x'00'`, kind: verify.Edited, seq: first},
		{name: "payload hash", sql: `UPDATE events SET payload_sha256 = zeroblob(32) WHERE seq = {p}`, kind: verify.Edited},
		{name: "short payload hash", sql: `UPDATE events SET payload_sha256 = x'00' WHERE seq = {p}`, kind: verify.Edited},
		{name: "leaf", sql: `UPDATE events SET leaf = zeroblob(32) WHERE seq = {p}`, kind: verify.Edited},
		{name: "payload and length", sql: `UPDATE events SET payload = x'', payload_len = 0 WHERE seq = {p}`,
			kind: verify.Edited},
		{name: "deleted", sql: `DELETE FROM events WHERE seq = {p}`, kind: verify.Deleted},
		{name: "half deleted", sql: `DELETE FROM events WHERE seq >= {p} AND seq < {n}`, kind: verify.Deleted},
		{name: "every third deleted", sql: `DELETE FROM events WHERE seq % 3 = 1`, kind: verify.Deleted, seq: first},
		{name: "end deleted", sql: `DELETE FROM events WHERE seq > {p}`, kind: verify.Truncated,
			seq: func(_, p int64) int64 { return p + 1 }},
		{name: "all deleted", sql: `DELETE FROM events`, kind: verify.Truncated, seq: first},
		{name: "neighbours swapped",
			sql: `UPDATE events SET seq = -1 WHERE seq = {p}; UPDATE events SET seq = {p} WHERE seq = {p1}; UPDATE events SET seq = {p1} WHERE seq = -1`, kind: verify.Reordered},
		{name: "far ones swapped", sql: `UPDATE events SET seq = -1 WHERE seq = {p}; UPDATE events SET seq = {p} WHERE seq = {n}; UPDATE events SET seq = {n} WHERE seq = -1`, kind: verify.Reordered},
		{name: "reversed", sql: `UPDATE events SET seq = -seq; UPDATE events SET seq = {n} + 1 + seq`, kind: verify.Reordered,
			seq: first},
		{name: "contents swapped", sql: `UPDATE events SET actor = 'x', seq = -1 WHERE seq = {p}; UPDATE events SET seq = {p} WHERE seq = -1`,
			kind: verify.Edited},
		{name: "deleted and closed",
			sql: `DELETE FROM events WHERE seq = {p}; UPDATE events SET seq = -seq WHERE seq > {p}; UPDATE events SET seq = -seq - 1 WHERE seq < 0`, kind: verify.Deleted},
		{name: "inserted",
			sql: `UPDATE events SET seq = -seq WHERE seq >= {p}; UPDATE events SET seq = -seq + 1 WHERE seq < 0;
			INSERT INTO events SELECT {p}, event_id || 'x', ts, type, class, actor, writer, context_id, session_id, conversation_id, run_id, trace_id, interaction_id, input_id,
				payload_len, payload_sha256, leaf, payload FROM events WHERE seq = {p1}`, kind: verify.Inserted},
		{name: "a negative one", sql: `INSERT INTO events SELECT -7, event_id, ts, type, class, actor, writer, context_id, session_id, conversation_id, run_id, trace_id, interaction_id, input_id,
				payload_len, payload_sha256, leaf, payload FROM events WHERE seq = {p}`, kind: verify.Inserted, seq: none},
		{name: "the greatest number",
			sql: `INSERT INTO events SELECT 9223372036854775807, event_id, ts, type, class, actor, writer, context_id, session_id, conversation_id, run_id, trace_id, interaction_id, input_id,
				payload_len, payload_sha256, leaf, payload FROM events WHERE seq = {p}`, kind: verify.Inserted, seq: end},
		{name: "one far away", sql: `UPDATE events SET seq = 1 << 50 WHERE seq = {p}`, kind: verify.Deleted},
		{name: "checkpoint of more", sql: `UPDATE checkpoints SET size = size + 1 WHERE id = 2`, kind: verify.Checkpoint,
			seq: none},
		{name: "checkpoint forged", sql: `UPDATE checkpoints SET note = replace(note, 'perlica/', 'perlica/x') WHERE id = 2`,
			kind: verify.Checkpoint, seq: none},
		{name: "no checkpoint", sql: `UPDATE checkpoints SET note = 'hello' WHERE id = 2`, kind: verify.Checkpoint,
			seq: none},
		{name: "an impossible hash", sql: `INSERT INTO nodes VALUES (5, 0, zeroblob(32))`, kind: verify.Tree, seq: none},
		{name: "hashes of events that are not there", sql: `INSERT INTO nodes VALUES (8, 1 << 40, zeroblob(32))`,
			kind: verify.Truncated, seq: end},
		{name: "another table", sql: `ALTER TABLE entries ADD COLUMN more TEXT`, kind: verify.Schema, seq: none},
		{name: "rewritten with its leaf", do: rewrite(false), kind: verify.Checkpoint, near: true},
		{name: "rewritten with its leaf and tree", do: rewrite(true), kind: verify.Checkpoint, near: true},
	}
	for _, col := range []string{"event_id", "type", "actor", "writer", "context_id", "session_id", "conversation_id",
		"run_id", "trace_id", "interaction_id", "input_id"} {
		list = append(list, tampering{name: col, sql: `UPDATE events SET ` + col + ` = ` + col + ` || 'x' WHERE seq = {p}`,
			kind: verify.Edited})
	}
	list = append(list,
		tampering{name: "ts", sql: `UPDATE events SET ts = ts + 1 WHERE seq = {p}`, kind: verify.Edited},
		tampering{name: "class", sql: `UPDATE events SET class = CASE class WHEN 'fact' THEN 'frame' ELSE 'fact' END WHERE seq = {p}`,
			kind: verify.Edited})
	return list
}

// rewrite changes an event together with its leaf. If tree is true, it also changes the tree.
func rewrite(tree bool) func(t *testing.T, db *sqlx.DB, path string, p int64) {
	return func(t *testing.T, db *sqlx.DB, path string, p int64) {
		r := readerOf(t, path)
		e, ok, err := r.Last(t.Context(), event.Query{Until: event.Seq(p)})
		if err != nil || !ok {
			t.Fatal(err)
		}
		e.Payload = []byte(`{"never":"said"}`)
		e.PayloadLen, e.PayloadSHA256 = int64(len(e.Payload)), sha256.Sum256(e.Payload)
		leaf := e.Leaf()
		db.MustExec(`UPDATE events SET payload = ?, payload_len = ?, payload_sha256 = ?, leaf = ? WHERE seq = ?`, e.Payload,
			e.PayloadLen, e.PayloadSHA256[:], leaf[:], p)
		if !tree {
			return
		}
		tx := db.MustBegin()
		tx.MustExec(`DELETE FROM nodes`)
		var leaves [][]byte
		if err := tx.Select(&leaves, `SELECT leaf FROM events ORDER BY seq`); err != nil {
			t.Fatal(err)
		}
		var all merkle.Range
		for _, leaf := range leaves {
			all.Add(tlog.Hash(leaf))
		}
		for _, n := range all.Nodes {
			tx.MustExec(`INSERT INTO nodes (level, n, hash) VALUES (?, ?, ?)`, n.Level, n.N, n.Hash[:])
		}
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
	}
}

func (d tampering) applyTo(t *testing.T, path string, n, p int64) {
	t.Helper()
	db, err := sqlx.Open("sqlite", store.DSN(path))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	sql := strings.NewReplacer("{n}", fmt.Sprint(n), "{p1}", fmt.Sprint(p+1), "{p}", fmt.Sprint(p)).
		Replace("PRAGMA synchronous = OFF; " + storetest.Editable + loosen + d.sql)
	if _, err := db.Exec(sql); err != nil {
		t.Fatalf("%s: %v", d.name, err)
	}
	if d.do != nil {
		d.do(t, db, path, p)
	}
}

// TestTamper checks that Verify finds every change, with its kind and its event, in logs of several lengths.
func TestTamper(t *testing.T) {
	leaveToOtherBuild(t)
	sizes := []int64{10, 300, 3000}
	if *flips > 1000 {
		sizes = append(sizes, 100_000)
	}
	for _, n := range sizes {
		v := newVictim(t, n)
		if rep := verifyFile(t, v.copyLog(t), verify.Options{Keys: v.verifiers, Since: &v.last}); !rep.OK() ||
			rep.Signed != n {
			t.Fatalf("untouched: %+v", rep)
		}
		for _, d := range tamperings() {
			for _, p := range []int64{n/2 - 1, n - 1, 1} {
				if n == 3000 && p != n/2-1 {
					continue // to save time
				}
				t.Run(fmt.Sprintf("%d/%s/%d", n, d.name, p), func(t *testing.T) {
					path := v.copyLog(t)
					d.applyTo(t, path, n, p)
					d.checkReport(t, verifyFile(t, path, verify.Options{Keys: v.verifiers}), n, p)
				})
			}
		}
	}
}

func (d tampering) checkReport(t *testing.T, rep verify.Report, n, p int64) {
	t.Helper()
	want := p
	if d.seq != nil {
		want = d.seq(n, p)
	}
	got := int64(rep.FirstBad)
	ok := got == want
	if d.near {
		ok = got <= p && got > p-n/5-1
	}
	named := slices.ContainsFunc(rep.Findings, func(f verify.Finding) bool {
		return f.Kind == d.kind &&
			(f.Seq == rep.FirstBad || want == 0 || d.near)
	})
	if !ok || !named {
		t.Errorf("first bad %d, want %d as %s:\n%+v", got, want, d.kind, rep)
	}
}

// TestTamperByTheKeyHolder lets the owner of the key rewrite the log, its checkpoints and its anchor. A checkpoint
// that was stored elsewhere must show the change.
func TestTamperByTheKeyHolder(t *testing.T) {
	v := newVictim(t, 300)
	path := v.copyLog(t)
	tampering{name: "all of it", sql: `DELETE FROM checkpoints`, do: rewrite(true)}.applyTo(t, path, v.n, 100)
	if err := os.Remove(anchor.Path(path)); err != nil {
		t.Fatal(err)
	}
	if err := execFile(path, tightening()); err != nil {
		t.Fatal(err)
	}
	l, err := Open(t.Context(), path, Options{Context: "default", Keys: v.keys})
	if err != nil {
		t.Fatal(err)
	}
	_, err = l.Checkpoint(t.Context())
	if err := errors.Join(err, l.Close()); err != nil {
		t.Fatal(err)
	}
	if rep := verifyFile(t, path, verify.Options{Keys: v.verifiers}); !rep.OK() || rep.Signed != v.n {
		t.Errorf("within itself: %+v", rep)
	}
	if rep := verifyFile(t, path, verify.Options{Keys: v.verifiers, Since: &v.last}); rep.OK() ||
		rep.Findings[0].Kind != verify.Checkpoint {
		t.Errorf("against what was kept: %+v", rep)
	}
}

// TestYesterday replaces the whole folder by an old copy. Only a checkpoint that was stored elsewhere can show the
// loss.
func TestYesterday(t *testing.T) {
	v := newVictim(t, 50)
	yesterday := v.copyLog(t)
	l, err := Open(t.Context(), v.path, Options{Context: "default", Keys: v.keys})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Record(fact(event.Truncated, event.Refs{})); err != nil {
		t.Fatal(err)
	}
	kept, err := l.Checkpoint(t.Context())
	if err := errors.Join(err, l.Close()); err != nil {
		t.Fatal(err)
	}
	if rep := verifyFile(t, v.path, verify.Options{Keys: v.verifiers, Since: &v.last}); !rep.OK() {
		t.Errorf("today, against yesterday's: %+v", rep)
	}
	if rep := verifyFile(t, yesterday, verify.Options{Keys: v.verifiers}); !rep.OK() {
		t.Errorf("yesterday, within itself: %+v", rep)
	}
	rep := verifyFile(t, yesterday, verify.Options{Keys: v.verifiers, Since: &kept})
	if rep.FirstBad != 51 || rep.Findings[0].Kind != verify.Truncated {
		t.Errorf("yesterday, against today's: %+v", rep)
	}
	other := kept
	other.Origin += "x"
	if _, err := verify.Log(t.Context(), readerOf(t, v.path), verify.Options{Since: &other}); !errors.Is(err,
		verify.ErrOtherLog) {
		t.Errorf("another log's: %v", err)
	}
}
