package eventlog

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/perlica/perlica/eventlog/disk"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/evidence"
)

// proofLog returns a log with a checkpoint after every tenth event, its verifiers and the
// checkpoints.
func proofLog(t *testing.T) (*Log, []note.Verifier, []evidence.Checkpoint) {
	t.Helper()
	l, keyDir := openSigned(t)
	for n := range 300 {
		e := event.Event{Type: event.NotificationReceived, Class: event.Frame, Payload: fmt.Appendf(nil, `{"n":%d}`, n)}
		if n%10 == 9 {
			mustEndRun(t, l, fact(event.CallEnforced, event.Refs{}))
		} else if err := l.Record(e); err != nil {
			t.Fatal(err)
		}
	}
	k, err := evidence.ReadKeys(keyDir)
	if err != nil {
		t.Fatal(err)
	}
	name, err := l.Origin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	list, err := l.Checkpoints(t.Context(), 0)
	if err != nil || len(list) != 30 {
		t.Fatal(len(list), err)
	}
	return l, k.Verifiers(name), list
}

func TestEveryEventIsProven(t *testing.T) {
	leaveToOtherBuild(t)
	l, known, _ := proofLog(t)
	for seq := event.Seq(1); seq <= 300; seq++ {
		p, err := Prove(t.Context(), &l.Reader, seq)
		if err != nil {
			t.Fatal(err)
		}
		text, err := p.MarshalText()
		if err != nil {
			t.Fatal(err)
		}
		got, err := ParseProof(string(text))
		if err != nil {
			t.Fatalf("%d: %v\n%s", seq, err, text)
		}
		if by, err := got.Verify(known...); err != nil || len(by) != 1 || got.Event.Seq != seq ||
			string(got.Event.Payload) != string(p.Event.Payload) {
			t.Errorf("%d: signed by %v, %v", seq, by, err)
		}
	}
	for _, seq := range []event.Seq{0, -1, 301} {
		if _, err := Prove(t.Context(), &l.Reader, seq); !errors.Is(err, disk.ErrNotExist) {
			t.Errorf("event %d: %v", seq, err)
		}
	}
	mustAppend(t, l, fact(event.Truncated, event.Refs{}))
	if _, err := Prove(t.Context(), &l.Reader, 301); !errors.Is(err, ErrNoCheckpoint) {
		t.Errorf("an event without a checkpoint: %v", err)
	}
}

// reencoded returns the text of a proof with a changed event. The leaf fits the changed event.
func reencoded(t *testing.T, p Proof, change func(e *event.Event)) string {
	t.Helper()
	change(&p.Event)
	text, err := p.MarshalText()
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestProofsThatProveNothing(t *testing.T) {
	l, known, list := proofLog(t)
	p, err := Prove(t.Context(), &l.Reader, 42)
	if err != nil {
		t.Fatal(err)
	}
	good := reencoded(t, p, func(*event.Event) {})
	other, err := evidence.MakeKeys(filepath.Join(t.TempDir(), "other"))
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct{ text, why string }{
		"payload": {reencoded(t, p, func(e *event.Event) { e.Payload = []byte(`{"n":7}`) }),
			"payload is not the one"},
		"payload, as long": {reencoded(t, p, func(e *event.Event) { e.Payload = []byte(`{"n":77}`) }),
			"payload is not the one"},
		"header": {reencoded(t, p, func(e *event.Event) { e.Actor = "x" }), "header is not the one"},
		"header and leaf": {reencoded(t, p, func(e *event.Event) { e.Actor = "x"; e.LeafHash = e.Leaf() }),
			"lead to another root"},
		"another place": {reencoded(t, p, func(e *event.Event) { e.Seq = 43; e.LeafHash = e.Leaf() }),
			"lead to another root"},
		"beyond": {reencoded(t, p, func(e *event.Event) { e.Seq = 1 << 62; e.LeafHash = e.Leaf() }),
			"covers 300 events"},
		"index":             {strings.Replace(good, "index 41", "index 40", 1), "number 42"},
		"index, zero ahead": {strings.Replace(good, "index 41", "index 041", 1), "number 42"},
		"a hash less":       {strings.Replace(good, p.Path[0].String()+"\n", "", 1), "lead to another root"},
		"a hash more": {strings.Replace(good, p.Path[0].String()+"\n", strings.Repeat(p.Path[0].String()+"\n", 2), 1),
			"lead to another root"},
		"endless hashes": {strings.Replace(good, p.Path[0].String()+"\n", strings.Repeat(p.Path[0].String()+"\n", 500), 1),
			"no empty line"},
		"no hash":        {strings.Replace(good, p.Path[0].String(), "hello", 1), "is no hash"},
		"another header": {strings.Replace(good, "@v1", "@v2", 1), "begins with neither"},
		"no event":       {strings.Replace(good, "extra ", "extr ", 1), "holds no event"},
		"not base64":     {strings.Replace(good, "extra ", "extra !", 1), "not base64"},
		"no JSON": {strings.Replace(good, "extra ", "extra "+base64.StdEncoding.EncodeToString([]byte("abc")), 1),
			"proves nothing"},
		"another root": {strings.Replace(good, "\n300\n", "\n299\n", 1), "does not hold"},
		"another signature": {strings.Replace(good, p.Checkpoint.Note,
			strings.Replace(p.Checkpoint.Text(), "300", "300", 1)+"\n"+list[3].Note[len(list[3].Text())+1:], 1),
			"does not hold"},
		"no signature": {strings.TrimSuffix(strings.Replace(good, p.Checkpoint.Note, p.Checkpoint.Text(), 1), ""),
			"not a checkpoint"},
		"empty": {"", "begins with neither"},
	} {
		if tc.text == good {
			t.Fatalf("%s: nothing was changed", name)
		}
		got, err := ParseProof(tc.text)
		if err == nil {
			_, err = got.Verify(known...)
		}
		if !errors.Is(err, evidence.ErrProof) || !strings.Contains(err.Error(), tc.why) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, keys := range map[string][]note.Verifier{"none": nil, "another's": other.Verifiers(p.Checkpoint.Origin)} {
		if _, err := p.Verify(keys...); !errors.Is(err, evidence.ErrProof) ||
			!strings.Contains(err.Error(), "none of the keys") {
			t.Errorf("keys: %s: %v", name, err)
		}
	}
}

// TestProofNeedsTheLogsOwnKey checks that a proof is refused if only a witness signed its checkpoint.
func TestProofNeedsTheLogsOwnKey(t *testing.T) {
	l, known, _ := proofLog(t)
	p, err := Prove(t.Context(), &l.Reader, 42)
	if err != nil {
		t.Fatal(err)
	}
	w := testKeys(t)
	s, err := w.Signer("witness.example")
	if err != nil {
		t.Fatal(err)
	}
	msg, err := note.Sign(&note.Note{Text: p.Checkpoint.Text()}, s)
	if err != nil {
		t.Fatal(err)
	}
	both := p.Checkpoint.Note + strings.TrimPrefix(string(msg), p.Checkpoint.Text()+"\n")
	p.Checkpoint.Note = string(msg)
	if _, err := p.Verify(append(w.Verifiers("witness.example"), known...)...); !errors.Is(err, evidence.ErrProof) ||
		!strings.Contains(err.Error(), "itself") {
		t.Errorf("signed by another only: %v", err)
	}
	p.Checkpoint.Note = both
	if by, err := p.Verify(append(w.Verifiers("witness.example"), known...)...); err != nil || len(by) != 2 {
		t.Errorf("signed by both: %v, %v", by, err)
	}
}

// TestProofWithoutPayload checks that an event with a pruned payload can still be proved by its header. If another
// program removed the payload, that is damage.
func TestProofWithoutPayload(t *testing.T) {
	l, known, _ := proofLog(t)
	path := l.Path()
	mustEndRun(t, l, event.NewFact(event.LogPruned, "user", event.Refs{},
		event.Pruning{Until: 50, Class: event.Frame, By: "test"}), fact(event.CallEnforced, event.Refs{}))
	if err := l.Anchored(); err != nil { // wait, because the log may hold the lock until then
		t.Fatal(err)
	}
	if err := execFile(path, `UPDATE events SET payload = NULL WHERE seq IN (42, 43, 61)`); err != nil {
		t.Fatal(err)
	}
	if err := execFile(path, `INSERT INTO withheld (seq, why) VALUES (43, 'masked')`); err != nil {
		t.Fatal(err)
	}
	for seq, want := range map[event.Seq]string{42: event.Pruned, 43: event.Masked} {
		p, err := Prove(t.Context(), &l.Reader, seq)
		if err != nil {
			t.Fatal(err)
		}
		got, err := ParseProof(reencoded(t, p, func(*event.Event) {}))
		if err != nil || got.Event.Withheld != want || got.Event.Payload != nil {
			t.Errorf("%d: %+v, %v", seq, got.Event, err)
		}
		if _, err := got.Verify(known...); err != nil {
			t.Errorf("%d: %v", seq, err)
		}
	}
	if _, err := Prove(t.Context(), &l.Reader, 61); !errors.As(err, new(*event.DamagedError)) {
		t.Errorf("a payload that nothing says to be removed: %v", err)
	}
	// Restore the payloads, because the audit after the test needs them.
	restore := strings.Join([]string{`DROP TRIGGER events_lose_nothing_but_payloads`,
		`UPDATE events SET payload = CAST('{"n":' || (seq - 1) || '}' AS BLOB) WHERE payload IS NULL`}, ";")
	if err := forgeFile(path, restore); err != nil {
		t.Fatal(err)
	}
}

// TestProveFindsAnotherTree checks that Prove refuses a checkpoint that does not match the log.
func TestProveFindsAnotherTree(t *testing.T) {
	l, _, _ := proofLog(t)
	var leaf []byte
	if err := dbOf(t, l.Path()).Get(&leaf, `SELECT leaf FROM events WHERE seq = 290`); err != nil {
		t.Fatal(err)
	}
	const drop = `DROP TRIGGER events_lose_nothing_but_payloads;`
	if err := forgeFile(l.Path(), drop+`UPDATE events SET leaf = zeroblob(32) WHERE seq = 290`); err != nil {
		t.Fatal(err)
	}
	if _, err := Prove(t.Context(), &l.Reader, 300); !errors.Is(err, disk.ErrCorrupt) {
		t.Errorf("%v", err)
	}
	if err := forgeFile(l.Path(), fmt.Sprintf(drop+`UPDATE events SET leaf = x'%x' WHERE seq = 290`, leaf)); err != nil {
		t.Fatal(err)
	}
}

func TestConsistency(t *testing.T) {
	l, known, list := proofLog(t)
	last := list[len(list)-1]
	for _, earlier := range list {
		p, err := ProveConsistency(t.Context(), &l.Reader, earlier, last)
		if err != nil {
			t.Fatal(err)
		}
		text, err := p.MarshalText()
		if err != nil {
			t.Fatal(err)
		}
		got, err := evidence.ParseConsistencyProof(string(text))
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		if got.Old != earlier || got.New != last {
			t.Fatalf("%+v", got)
		}
		if by, err := got.Verify(known...); err != nil || len(by) != 1 {
			t.Errorf("%d events: %v, %v", earlier.Size, by, err)
		}
	}
	forged := list[3]
	forged.Root = last.Root
	for name, pair := range map[string][2]evidence.Checkpoint{
		"backwards": {last, list[0]}, "another root": {forged, last}, "nothing": {{Origin: last.Origin}, last},
		"another log": {{Origin: "perlica/x", Size: 3, Root: list[3].Root}, last},
		"too large":   {list[0], {Origin: last.Origin, Size: 1000, Root: last.Root}},
	} {
		if _, err := ProveConsistency(t.Context(), &l.Reader, pair[0], pair[1]); !errors.Is(err, evidence.ErrCheckpoint) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzParseProof(f *testing.F) {
	e, _ := json.Marshal(onRecord(event.Fact, []byte("{}")))
	hash := tlog.RecordHash(nil).String()
	f.Add("c2sp.org/tlog-proof@v1\nextra " + base64.StdEncoding.EncodeToString(e) + "\nindex 6\n" + hash +
		"\n\nperlica/x\n7\n" + hash + "\n\n— perlica/x AAAAAAAA\n")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := ParseProof(text)
		if err != nil {
			if !errors.Is(err, evidence.ErrProof) {
				t.Error(err)
			}
			return
		}
		again, err := p.MarshalText()
		if q, perr := ParseProof(string(again)); err != nil || perr != nil || q.Checkpoint != p.Checkpoint ||
			q.Event.LeafHash != p.Event.LeafHash {
			t.Errorf("%q: %v, %v", text, err, perr)
		}
	})
}

// BenchmarkProve proves events of a log with a million events.
func BenchmarkProve(b *testing.B) {
	const events = 1_000_000
	l, err := Open(b.Context(), filepath.Join(b.TempDir(), "e.db"), Options{Context: "default", Keys: testKeys(b)})
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	batch := make([]event.Event, batchEvents)
	for n := 0; n < events; n += len(batch) {
		for i := range batch {
			batch[i] = event.Event{Type: event.NotificationReceived, Class: event.Frame, Actor: "agent",
				Payload: benchPayload[:20]}
		}
		if err := l.Record(batch...); err != nil {
			b.Fatal(err)
		}
		batch = make([]event.Event, batchEvents)
	}
	if _, err := l.Checkpoint(context.Background()); err != nil {
		b.Fatal(err)
	}
	b.Run("by-seq", func(b *testing.B) {
		for n := 0; b.Loop(); n += 7919 {
			if _, err := Prove(context.Background(), &l.Reader, event.Seq(1+n*31%events)); err != nil {
				b.Fatal(err)
			}
		}
	})
	e, _, err := l.Last(context.Background(), event.Query{After: events/2 - 1, Until: events / 2})
	if err != nil {
		b.Fatal(err)
	}
	b.Run("find-by-id", func(b *testing.B) {
		for b.Loop() {
			if _, err := l.Find(context.Background(), e.ID); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// onRecord returns an event with a payload as the log would store it.
func onRecord(class event.Class, payload []byte) event.Event {
	l := &Log{writer: "0199aaaa-bbbb-7ccc-8ddd-eeeeeeeeeeee", context: "default"}
	e := event.Event{
		Seq: 7, Time: time.Unix(1763694000, 120).UTC(), Type: event.ToolBlocked, Class: class, Actor: "agent <a&b>",
		Refs: event.Refs{Session: "s\u2028", Run: "r", Input: "ünï"}, Payload: payload,
	}
	l.fillFields(&e)
	e.LeafHash = e.Leaf()
	return e
}
