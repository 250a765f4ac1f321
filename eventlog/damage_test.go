package eventlog

import (
	"crypto/sha256"
	"database/sql/driver"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"modernc.org/sqlite"

	"github.com/perlica/perlica/eventlog/anchor"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/evidence"
)

// soundRuns is the number of finished runs in the log of these tests. Each run has ten events, a checkpoint and a
// line of the anchor. Another run is not finished.
const (
	soundRuns   = 30
	soundEvents = 10*soundRuns + 3
)

// damage is a change of the log of soundLog and the expected result of the verification. Its SQL may call sha256(x),
// and leaf(…) with the columns of a row.
type damage struct {
	name, sql string
	kind      string    // empty means no finding
	first     event.Seq // 0 means that the finding has no event

	// anchor changes the anchor.
	anchor func(string) string
	// since means that the log is verified with its last checkpoint in Options.Since.
	since bool
}

const (
	// loose has the SQL that removes the triggers and indexes for append-only tables.
	loose = `DROP TRIGGER events_lose_nothing_but_payloads; DROP TRIGGER events_are_not_deleted;
		DROP TRIGGER checkpoints_are_not_updated; DROP TRIGGER checkpoints_are_not_deleted;
		DROP INDEX events_one_intent_per_input; DROP INDEX events_one_outcome_per_run; DROP INDEX events_one_answer;`
	// rehash has the SQL that gives every row the hashes of its present content.
	rehash = `UPDATE events SET payload_len = length(payload), payload_sha256 = sha256(payload) WHERE payload IS NOT NULL;
		UPDATE events SET leaf = leaf(seq, event_id, ts, type, class, actor, writer, context_id, session_id,
			conversation_id, run_id, trace_id, interaction_id, input_id, payload_len, payload_sha256);`
	// cutEnd has the SQL that removes the last events and everything in the database that depends on them.
	cutEnd = `DELETE FROM events WHERE seq > 290; DELETE FROM open_runs; DELETE FROM checkpoints WHERE size > 290;`
)

// shift returns SQL that adds the number "by" to the Seq of each event after the event with the Seq "from". It uses
// negative numbers in between, because a Seq is unique.
func shift(from, by int) string {
	return fmt.Sprintf(`UPDATE events SET seq = -(seq + %d) WHERE seq >= %d; UPDATE events SET seq = -seq WHERE seq < 0;`,
		by, from)
}

// insertLike returns SQL that inserts a copy of an event with the number seq and some changed columns. The parameter
// "like" is the Seq of the copied event.
func insertLike(seq, like int, columns string) string {
	return fmt.Sprintf(
		`INSERT INTO events SELECT %d, replace(event_id, '-7', '-8'), ts, type, class, actor, writer, context_id, session_id,
			conversation_id, run_id, trace_id, interaction_id, input_id, payload_len, payload_sha256, leaf, payload FROM events WHERE seq = %d;
		UPDATE events SET %s WHERE seq = %d;`, seq, like, columns, seq)
}

// edit changes line n of the anchor with the function f. Lines are counted from 1.
func edit(n int, f func(line string) string) func(string) string {
	return func(text string) string {
		lines := strings.SplitAfter(text, "\n")
		lines[n-1] = f(lines[n-1])
		return strings.Join(lines, "")
	}
}

// without removes the last n lines of the anchor.
func without(n int) func(string) string {
	return func(text string) string {
		lines := strings.SplitAfter(text, "\n")
		return strings.Join(lines[:len(lines)-1-n], "")
	}
}

// other returns another character than c, from the alphabet of base64.
func other(c byte) string {
	if c == 'A' {
		return "B"
	}
	return "A"
}

func damages() []damage {
	pruned := insertLike(304, 301,
		`type = 'log.pruned', run_id = '', trace_id = '', payload = CAST('{"until":110,"run":"run-10","events":1,"bytes":1,"by":"somebody"}' AS BLOB)`)
	return []damage{
		{name: "nothing"},
		{name: "cosigned", sql: loose +
			`UPDATE checkpoints SET note = note || '— witness.example/w AAAAAQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA==' || char(10) WHERE size = 50`},
		{name: "anchor torn", anchor: edit(30, func(l string) string { return l[:60] })},
		{name: "anchor torn and filled with zeros", anchor: edit(30,
			func(l string) string { return l[:100] + "\x00\x00\x00" })},
		{name: "anchor unsigned", anchor: edit(7, func(l string) string {
			return l[:strings.LastIndexByte(l, ' ')] +
				" -\n"
		})},
		{name: "pruned", sql: loose + pruned + rehash + `UPDATE events SET payload = NULL WHERE run_id = 'run-10'`},
		{name: "withheld",
			sql: `INSERT INTO withheld VALUES (105, 'masked'); UPDATE events SET payload = NULL WHERE seq = 105`},
		{name: "since", since: true},

		{name: "payload edited", sql: loose + `UPDATE events SET payload = CAST('{}' AS BLOB) WHERE seq = 105`,
			kind: "edited", first: 105},
		{name: "payload of the same length",
			sql:  loose + `UPDATE events SET payload = CAST(replace(payload, 'hello', 'hallo') AS BLOB) WHERE seq = 105`,
			kind: "edited", first: 105},
		{name: "payload and its hash edited",
			sql: loose +
				`UPDATE events SET payload = CAST('{}' AS BLOB), payload_len = 2, payload_sha256 = sha256(CAST('{}' AS BLOB)) WHERE seq = 105`, kind: "edited", first: 105},
		{name: "header edited", sql: loose + `UPDATE events SET actor = 'nobody' WHERE seq = 105`, kind: "edited",
			first: 105},
		{name: "time edited", sql: loose + `UPDATE events SET ts = ts + 1 WHERE seq = 1`, kind: "edited", first: 1},
		{name: "last event edited", sql: loose + `UPDATE events SET actor = 'nobody' WHERE seq = 303`, kind: "edited",
			first: 303},
		{name: "leaf edited", sql: loose + `UPDATE events SET leaf = sha256(leaf) WHERE seq = 105`, kind: "edited",
			first: 105},
		{name: "event edited and hashed anew",
			sql: loose + `UPDATE events SET payload = CAST('{}' AS BLOB) WHERE seq = 105;` + rehash, kind: "checkpoint",
			first: 101},

		{name: "event deleted", sql: loose + `DELETE FROM events WHERE seq = 105`, kind: "deleted", first: 105},
		{name: "first event deleted", sql: loose + `DELETE FROM events WHERE seq = 1`, kind: "deleted", first: 1},
		{name: "run deleted", sql: loose + `DELETE FROM events WHERE run_id = 'run-10'`, kind: "deleted", first: 101},
		{name: "event deleted, the others moved up", sql: loose + `DELETE FROM events WHERE seq = 105;` + shift(106, -1),
			kind: "deleted", first: 105},
		{name: "run deleted, the others moved up", sql: loose + `DELETE FROM events WHERE run_id = 'run-10';` +
			shift(111, -10), kind: "deleted", first: 101},
		{name: "payload deleted", sql: `UPDATE events SET payload = NULL WHERE seq = 105`, kind: "deleted", first: 105},
		{name: "payload deleted that nobody pruned", sql: loose + pruned + rehash +
			`UPDATE events SET payload = NULL WHERE seq IN (99, 105)`, kind: "deleted", first: 99},
		{name: "pruning deleted", sql: loose + pruned + rehash + `UPDATE events SET payload = NULL WHERE seq IN (105, 304)`,
			kind: "deleted", first: 105},
		{name: "event made a pruning",
			sql: loose +
				`UPDATE events SET type = 'log.pruned', payload = CAST('{"until":110,"events":1,"bytes":1,"by":"somebody"}' AS BLOB) WHERE seq = 201;` +
				rehash + `UPDATE events SET payload = NULL WHERE seq = 105`, kind: "checkpoint", first: 201},

		{name: "neighbours swapped",
			sql: loose +
				`UPDATE events SET seq = -1 WHERE seq = 105; UPDATE events SET seq = 105 WHERE seq = 106; UPDATE events SET seq = 106 WHERE seq = -1`, kind: "reordered", first: 105},
		{name: "events swapped", sql: loose +
			`UPDATE events SET seq = -1 WHERE seq = 250; UPDATE events SET seq = 250 WHERE seq = 50; UPDATE events SET seq = 50 WHERE seq = -1`, kind: "reordered", first: 50},
		{name: "event moved forward", sql: loose + `UPDATE events SET seq = -80 WHERE seq = 105;
			UPDATE events SET seq = -(seq + 1) WHERE seq BETWEEN 80 AND 104; UPDATE events SET seq = -seq WHERE seq < 0`,
			kind: "reordered", first: 80},

		{name: "event inserted", sql: loose + shift(105, 1) + insertLike(105, 104, `actor = 'nobody'`) +
			`UPDATE events SET leaf = leaf(seq, event_id, ts, type, class, actor, writer, context_id, session_id,
			conversation_id, run_id, trace_id, interaction_id, input_id, payload_len, payload_sha256) WHERE seq = 105`,
			kind: "inserted", first: 105},
		{name: "event inserted with another's hash", sql: loose + shift(105, 1) + insertLike(105, 104, `actor = 'nobody'`),
			kind: "inserted", first: 105},
		{name: "event with the greatest number", sql: loose + insertLike(math.MaxInt64, 104, `actor = 'nobody'`),
			kind: "inserted", first: 304},
		{name: "event with the number 0", sql: loose + insertLike(0, 104, `actor = 'nobody'`), kind: "inserted"},

		{name: "end cut off", sql: loose + `DELETE FROM events WHERE seq > 290`, kind: "truncated", first: 291},
		{name: "end and its checkpoints cut off", sql: loose + cutEnd, kind: "truncated", first: 291},
		{name: "end, its checkpoints and its anchors cut off", sql: loose + cutEnd, anchor: without(1), since: true,
			kind: "truncated", first: 291},
		{name: "all events deleted", sql: loose + `DELETE FROM events`, kind: "truncated", first: 1},

		{name: "checkpoint edited", sql: loose +
			`UPDATE checkpoints SET note = replace(note, char(10) || '50' || char(10), char(10) || '60' || char(10)) WHERE size = 50`, kind: "checkpoint"},
		{name: "checkpoint's signature edited",
			sql:  loose + `UPDATE checkpoints SET note = replace(note, substr(note, -20, 10), 'AAAAAAAAAA') WHERE size = 50`,
			kind: "checkpoint"},
		{name: "checkpoint is none", sql: loose + `UPDATE checkpoints SET note = 'hello' WHERE size = 50`,
			kind: "checkpoint"},
		{name: "checkpoint stored for less", sql: loose + `UPDATE checkpoints SET size = 40 WHERE size = 50`,
			kind: "checkpoint"},
		{name: "checkpoint stored for nothing", sql: loose + `UPDATE checkpoints SET size = 0 WHERE size = 50`,
			kind: "checkpoint"},
		{name: "absent behind the end", sql: `INSERT INTO absent VALUES (513, 8, zeroblob(32))`, kind: "deleted", first: 304},
		{name: "absent on no level", sql: `INSERT INTO absent VALUES (513, -1, zeroblob(32))`, kind: "tree"},
		{name: "absent before the beginning", sql: `INSERT INTO absent VALUES (-3, 0, zeroblob(32))`, kind: "tree"},
		{name: "absent in the midst of a subtree", sql: `INSERT INTO absent VALUES (514, 8, zeroblob(32))`, kind: "tree"},
		{name: "absent without a hash", sql: `INSERT INTO absent VALUES (513, 8, x'00')`, kind: "tree"},
		{name: "anchor edited", anchor: edit(5, func(l string) string {
			i := strings.IndexByte(l, ' ') + 1
			return l[:i] +
				other(l[i]) + l[i+1:]
		}), kind: "anchor"},
		{name: "anchor is none", anchor: edit(5, func(string) string { return "hello\n" }), kind: "anchor"},
		{name: "stored node edited", sql: `UPDATE nodes SET hash = sha256(hash)`, kind: "tree"},
		{name: "stored node deleted", sql: `DELETE FROM nodes`, kind: "tree"},

		{name: "nodes dropped", sql: `DROP TABLE nodes`, kind: "schema"},
		{name: "checkpoints dropped", sql: `DROP TABLE checkpoints`, kind: "schema"},
		{name: "lists dropped", sql: `DROP TABLE withheld; DROP TABLE absent; DROP TABLE open_runs`, kind: "schema"},
		{name: "events dropped", sql: `DROP TABLE entries`, kind: "schema"},
		{name: "another table", sql: `CREATE TABLE more (x)`, kind: "schema"},
		{name: "a view", sql: `CREATE VIEW more AS SELECT 1 AS x`, kind: "schema"},
		{name: "another column", sql: `ALTER TABLE withheld ADD COLUMN more TEXT`, kind: "schema"},

		{name: "open run made up", sql: `INSERT INTO open_runs VALUES ('none', 5)`, kind: "tree"},
		{name: "open run at another event", sql: `UPDATE open_runs SET seq = seq - 1`, kind: "tree"},
		{name: "open run hidden", sql: `DELETE FROM open_runs`, kind: "tree", first: 302},

		{name: "second call for one input", sql: loose + insertLike(304, 103, `run_id = 'again', trace_id = 'again'`) +
			rehash, kind: "rule", first: 304},
		{name: "second outcome", sql: loose + insertLike(304, 109, `type = 'llm.outcome_unknown'`) + rehash, kind: "rule",
			first: 304},
		{name: "outcome without an intent", sql: loose + insertLike(304, 109, `run_id = 'none', trace_id = 'none'`) + rehash,
			kind: "rule", first: 304},
		{name: "prompt without an intent", sql: loose + insertLike(304, 104, `run_id = 'none', trace_id = 'none'`) + rehash,
			kind: "rule", first: 304},
		{name: "second answer", sql: loose + insertLike(304, 107, `actor = 'user'`) + rehash, kind: "rule", first: 304},
	}
}

var register sync.Once

// registerHashes adds sha256 and leaf to every SQLite connection of this process.
func registerHashes(t *testing.T) {
	t.Helper()
	register.Do(func() {
		sqlite.MustRegisterDeterministicScalarFunction("sha256", 1,
			func(_ *sqlite.FunctionContext, args []driver.Value) (driver.Value, error) {
				b, _ := args[0].([]byte)
				sum := sha256.Sum256(b)
				return sum[:], nil
			})
		sqlite.MustRegisterDeterministicScalarFunction("leaf", 16,
			func(_ *sqlite.FunctionContext, args []driver.Value) (driver.Value, error) {
				s := func(i int) string { return args[i].(string) }
				e := event.Event{
					Seq: event.Seq(args[0].(int64)), ID: s(1), Time: time.Unix(0, args[2].(int64)), Type: event.Type(s(3)),
					Class: event.Class(s(4)),
					Actor: s(5), Writer: s(6), Context: s(7),
					Refs: event.Refs{
						Session: event.SessionID(s(8)), Conversation: event.ConversationID(s(9)), Run: event.RunID(s(10)),
						Trace: event.TraceID(s(11)), Interaction: event.InteractionID(s(12)), Input: event.InputID(s(13)),
					},
					PayloadLen: args[14].(int64), PayloadSHA256: [sha256.Size]byte(args[15].([]byte)),
				}
				h := e.Leaf()
				return h[:], nil
			})
	})
}

// soundLog makes the undamaged log. It returns the path, the verifier key of its checkpoints and
// the last checkpoint.
func soundLog(t *testing.T) (path, vkey string, last evidence.Checkpoint) {
	t.Helper()
	registerHashes(t)
	keys, err := evidence.MakeKeys(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(t.TempDir(), "eventlog.db")
	l, err := Open(t.Context(), path, Options{Context: "default", Keys: keys})
	if err != nil {
		t.Fatal(err)
	}
	for i := range soundRuns {
		if _, err := l.EndRun(t.Context(), soundRun(i)...); err != nil {
			t.Fatal(err)
		}
	}
	open := soundRun(soundRuns)
	if _, err := l.Append(t.Context(), open[0], open[2], open[3]); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	r := readerOf(t, path)
	last, ok, err := r.LastCheckpoint(t.Context(), 0)
	if err != nil || !ok || last.Size != 10*soundRuns {
		t.Fatalf("the last checkpoint: %+v, %v", last, err)
	}
	return path, keys.VerifierKeys(last.Origin)[0], last
}

// soundRun returns the events of a short run.
func soundRun(i int) []event.Event {
	refs := event.Refs{Session: "session", Run: event.RunID(fmt.Sprintf("run-%d", i)),
		Trace: event.TraceID(fmt.Sprintf("trace-%d", i)), Input: event.InputID(fmt.Sprintf("input-%d", i))}
	asked := refs
	asked.Interaction = event.InteractionID(fmt.Sprintf("question-%d", i))
	frame := func(ty event.Type, line string) event.Event {
		return event.Event{Type: ty, Class: event.Frame, Actor: "agent", Refs: refs, Payload: []byte(line)}
	}
	return []event.Event{
		event.NewFact(event.MessageReceived, "user", refs, map[string]any{"text": "hello"}),
		frame(event.RequestSent, `{"jsonrpc":"2.0","id":1,"method":"session/new","params":{}}`),
		event.NewFact(event.Requested, "perlica", refs, map[string]any{"llm_call_index": 1}),
		frame(event.RequestSent, `{"jsonrpc":"2.0","id":2,"method":"session/prompt","params":{}}`),
		frame(event.NotificationReceived, `{"jsonrpc":"2.0","method":"session/update","params":{"text":"hello"}}`),
		event.NewFact(event.InteractionRequested, "agent", asked, map[string]any{"title": "rm"}),
		event.NewFact(event.InteractionAnswered, "user", asked, map[string]any{"option": "reject", "by": "somebody"}),
		frame(event.ResponseReceived, `{"jsonrpc":"2.0","id":2,"result":{"stopReason":"end_turn"}}`),
		event.NewFact(event.Responded, "agent", refs, map[string]any{"text": "hello", "stop_reason": "end_turn"}),
		event.NewFact(event.CallEnforced, "perlica", refs, map[string]any{"calls": 1}),
	}
}

// inflict copies the log at path and damages the copy.
func (d damage) inflict(t *testing.T, path string) string {
	t.Helper()
	copied := filepath.Join(t.TempDir(), "eventlog.db")
	for _, name := range []func(string) string{func(s string) string { return s }, anchor.Path} {
		b, err := os.ReadFile(name(path))
		if err != nil {
			t.Fatal(err)
		}
		if d.anchor != nil && name(path) == anchor.Path(path) {
			b = []byte(d.anchor(string(b)))
		}
		if err := os.WriteFile(name(copied), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := forgeFile(copied, d.sql); err != nil {
		t.Fatalf("%s: %v", d.name, err)
	}
	return copied
}
