package eventlog

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/perlica/perlica/eventlog/anchor"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/evidence"
	"github.com/perlica/perlica/eventlog/message"
	"github.com/perlica/perlica/eventlog/store"
	"github.com/perlica/perlica/eventlog/verify"
)

// The sizes and times of the tests depend on these constants of package verify.
const (
	blockEvents   = 1024
	acrossWriters = 10 * time.Second
)

// TestPrunedPayloads checks that a missing payload is damage unless a later, unchanged event explains it.
func TestPrunedPayloads(t *testing.T) {
	for name, tc := range map[string]struct {
		pruning event.Pruning
		and     string    // SQL that forges the log further
		bad     event.Seq // 0 means that no event is bad
		pruned  int64
	}{
		"covered":       {event.Pruning{Until: 20, By: "alice"}, ``, 0, 3},
		"this run's":    {event.Pruning{Until: 20, Run: "r", By: "alice"}, ``, 0, 3},
		"another run's": {event.Pruning{Until: 20, Run: "x", By: "alice"}, ``, 10, 0},
		"only frames":   {event.Pruning{Until: 20, Class: event.Frame, By: "alice"}, ``, 0, 3},
		"not so far":    {event.Pruning{Until: 11, By: "alice"}, ``, 12, 2},
		"a pruning edited": {event.Pruning{Until: 11, By: "alice"},
			`UPDATE events SET payload = CAST(replace(CAST(payload AS TEXT), '11', '20') AS BLOB) WHERE seq = 51`, 10, 0},
		"a fact that stays": {event.Pruning{Until: 51, By: "alice"}, `UPDATE events SET payload = NULL WHERE seq = 51`, 10,
			0},
		"withheld": {event.Pruning{By: "alice"},
			`INSERT INTO withheld VALUES (10, 'masked'), (11, 'masked'), (12, 'pruned')`, 0, 0},
	} {
		v := newVictim(t, 50)
		l, err := Open(t.Context(), v.path, Options{Context: "default", Keys: v.keys})
		if err != nil {
			t.Fatal(err)
		}
		_, err = l.Append(t.Context(), event.NewFact(event.LogPruned, "user", event.Refs{}, tc.pruning),
			fact(event.Truncated, event.Refs{}))
		if err := errors.Join(err, l.Close()); err != nil {
			t.Fatal(err)
		}
		if err := forgeFile(v.path, `UPDATE events SET payload = NULL WHERE seq IN (10, 11, 12); `+loosen+
			tc.and); err != nil {
			t.Fatal(err)
		}
		rep := verifyFile(t, v.path, verify.Options{Keys: v.verifiers})
		if rep.FirstBad != tc.bad || rep.Pruned != tc.pruned || name == "withheld" && rep.Withheld != 3 {
			t.Errorf("%s: %+v", name, rep)
		}
	}
}

// TestPrunedDuringVerify prunes while Verify runs. The missing payloads must count as pruned.
func TestPrunedDuringVerify(t *testing.T) {
	v := newVictim(t, 3*blockEvents)
	r := readerOf(t, v.path)
	done := false
	rep, err := verify.Log(t.Context(), r, verify.Options{Audit: &spy{event: func(*event.Event) {
		if done {
			return
		}
		done = true
		l, err := Open(context.Background(), v.path, Options{Context: "default", Keys: v.keys})
		if err != nil {
			t.Error(err)
			return
		}
		_, err = l.Append(context.Background(), event.NewFact(event.LogPruned, "user", event.Refs{},
			event.Pruning{Until: event.Seq(v.n), By: "alice"}))
		if err = errors.Join(err, l.Close(), execFile(v.path, `UPDATE events SET payload = NULL WHERE seq <= `+
			fmt.Sprint(v.n)+` AND type <> 'log.pruned'`)); err != nil {
			t.Error(err)
		}
	}}})
	if err != nil || !rep.OK() || rep.Events != v.n {
		t.Errorf("%+v, %v", rep, err)
	}
}

// spy is an Auditor that records its calls.
type spy struct {
	event func(*event.Event)
	wants event.Type
	says  string
	seen  []string
}

func (s *spy) Wants(t event.Type) bool { return t == s.wants }
func (s *spy) Gap()                    { s.seen = append(s.seen, "gap") }
func (s *spy) Event(e *event.Event) []*message.Text {
	s.seen = append(s.seen, fmt.Sprint(e.Seq))
	if s.event != nil {
		s.event(e)
	}
	if s.says != "" && e.Seq == 5 {
		return []*message.Text{{Text: s.says}}
	}
	return nil
}

// TestAuditorSeesTheOrder checks that an Auditor gets every intact event once, with its payload if it wants it. For
// the other events it gets a gap. The rules that it reports must become findings.
func TestAuditorSeesTheOrder(t *testing.T) {
	v := newVictim(t, 10)
	path := v.copyLog(t)
	all := collect(t, readerOf(t, v.path), event.Query{})
	if err := forgeFile(path, loosen+
		`DELETE FROM events WHERE seq IN (3, 4); UPDATE events SET actor = 'x' WHERE seq IN (7, 8)`); err != nil {
		t.Fatal(err)
	}
	s := &spy{wants: event.ToolBlocked, says: "five is right out"}
	s.event = func(e *event.Event) {
		want := all[e.Seq-1]
		if (e.Payload != nil) != (want.Type == event.ToolBlocked) || e.Payload != nil &&
			string(e.Payload) != string(want.Payload) {
			t.Errorf("event %d: the payload is %q", e.Seq, e.Payload)
		}
		got := *e
		if got.Payload, want.Payload = nil, nil; fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) {
			t.Errorf("event %d: %+v, want %+v", e.Seq, got, want)
		}
	}
	rep := verifyFile(t, path, verify.Options{Audit: s})
	if got := strings.Join(s.seen, " "); got != "1 2 gap 5 6 gap 9 10" {
		t.Errorf("seen %s", got)
	}
	objected := slices.ContainsFunc(rep.Findings, func(f verify.Finding) bool {
		return f.Seq == 5 && f.Kind == verify.Rule && f.What == "five is right out"
	})
	if !objected || rep.FirstBad != 3 {
		t.Errorf("%+v", rep)
	}
}

// partOf makes a part of a log from a copy of the victim's log. It deletes the events from the number "first" to the
// number "last" and puts their subtrees into the table absent.
func partOf(t *testing.T, v *victim, first, last int64) string {
	t.Helper()
	path := v.copyLog(t)
	db, err := sqlx.Open("sqlite", store.DSN(path))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	h := store.Hashes{Ctx: t.Context(), DB: db}
	type sub struct {
		seq   int64
		level int
		hash  tlog.Hash
	}
	var list []sub
	for at := first - 1; at < last; {
		level := 0
		for at>>level&1 == 0 && at+2<<level <= last && level < 40 {
			level++
		}
		hash, err := h.Subtree(level, at>>level)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, sub{at + 1, level, hash})
		at += 1 << level
	}
	db.MustExec(loosen+`DELETE FROM entries WHERE seq >= ? AND seq <= ?`, first, last)
	db.MustExec(`DELETE FROM checkpoints WHERE size < ?`, v.n) // a part has one checkpoint and no anchor
	if err := os.Remove(anchor.Path(path)); err != nil {
		t.Fatal(err)
	}
	for _, s := range list {
		db.MustExec(`INSERT INTO absent VALUES (?, ?, ?)`, s.seq, s.level, s.hash[:])
	}
	if err := execFile(path, tightening()); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestParts checks that Verify accepts every part of a log. If further events are missing in a part, Verify must report
// the part as damaged.
func TestParts(t *testing.T) {
	leaveToOtherBuild(t)
	v := newVictim(t, 5000)
	for _, tc := range []struct{ first, last int64 }{
		{1, 1}, {1, 255}, {1, 256}, {1, 4999}, {2, 2}, {2, 4999}, {257, 512}, {1000, 3500}, {1025, 2048}, {4097, 5000},
		{5000, 5000}, {3, 5000},
	} {
		path := partOf(t, v, tc.first, tc.last)
		rep := verifyFile(t, path, verify.Options{Keys: v.verifiers, Since: &v.last})
		if !rep.OK() || rep.Absent != tc.last-tc.first+1 || rep.Events+rep.Absent != v.n || rep.Root != v.last.Root ||
			rep.Signed != v.n {
			t.Errorf("without %d to %d: %+v", tc.first, tc.last, rep)
		}
		if err := os.WriteFile(anchor.Path(path), []byte(anchor.Format(v.last)), 0o600); err != nil {
			t.Fatal(err)
		}
		if rep := verifyFile(t, path, verify.Options{Keys: v.verifiers}); rep.OK() || rep.FirstBad != event.Seq(tc.first) ||
			rep.Findings[0].Kind != verify.Deleted {
			t.Errorf("without %d to %d, and anchored: %+v", tc.first, tc.last, rep)
		}
		if err := os.Remove(anchor.Path(path)); err != nil {
			t.Fatal(err)
		}
		if err := execFile(path,
			`UPDATE absent SET hash = zeroblob(32) WHERE seq = (SELECT max(seq) FROM absent)`); err != nil {
			t.Fatal(err)
		}
		if rep := verifyFile(t, path, verify.Options{Keys: v.verifiers}); rep.OK() {
			t.Errorf("without %d to %d, changed: %+v", tc.first, tc.last, rep)
		}
		if err := execFile(path, `DELETE FROM absent WHERE seq = (SELECT max(seq) FROM absent)`); err != nil {
			t.Fatal(err)
		}
		if rep := verifyFile(t, path, verify.Options{Keys: v.verifiers}); rep.OK() || rep.FirstBad == 0 {
			t.Errorf("without %d to %d, and one more: %+v", tc.first, tc.last, rep)
		}
	}
	path := partOf(t, v, 257, 512)
	if err := execFile(path, `UPDATE absent SET seq = 200`); err != nil {
		t.Fatal(err)
	}
	if rep := verifyFile(t, path, verify.Options{}); rep.FirstBad != 257 {
		t.Errorf("out of line: %+v", rep)
	}
}

// TestClockIsAWarning checks that a time that goes backwards is a warning.
func TestClockIsAWarning(t *testing.T) {
	path := filepath.Join(t.TempDir(), "eventlog.db")
	now := time.Unix(1_800_000_000, 0)
	write := func() {
		l, err := Open(t.Context(), path, Options{Now: func() time.Time { return now }})
		if err != nil {
			t.Fatal(err)
		}
		_, err = l.Append(t.Context(), fact(event.Truncated, event.Refs{}))
		if err := errors.Join(err, l.Close()); err != nil {
			t.Fatal(err)
		}
	}
	for _, step := range []struct {
		by   time.Duration
		warn bool
	}{{0, false}, {-acrossWriters, false}, {time.Hour, false}, {-30 * time.Minute, true}} {
		now = now.Add(step.by)
		write()
		rep := verifyFile(t, path, verify.Options{})
		if !rep.OK() || (len(rep.Warnings) > 0) != step.warn {
			t.Errorf("after %v: %+v", step.by, rep)
		}
	}
}

// TestVerifyBesideWriters verifies a log while other handles append. The events that the log had at the start must be
// valid.
func TestVerifyBesideWriters(t *testing.T) {
	v := newVictim(t, 2*blockEvents)
	l, err := Open(t.Context(), v.path, Options{Context: "default", Keys: v.keys})
	if err != nil {
		t.Fatal(err)
	}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for i := range 20_000 { // The loop needs a limit, because a reader may be slower.
			select {
			case <-stop:
				return
			default:
			}
			if err := l.Record(fact(event.Truncated, event.Refs{})); err != nil {
				t.Error(err)
				return
			}
			if i%100 == 0 {
				if _, err := l.Checkpoint(context.Background()); err != nil {
					t.Error(err)
				}
			}
		}
	}()
	r := readerOf(t, v.path)
	last := int64(0)
	for range 10 {
		rep, err := verify.Log(t.Context(), r, verify.Options{Keys: v.verifiers})
		if err != nil || !rep.OK() || rep.Events < max(last, v.n) || rep.Unchecked > 0 {
			t.Fatalf("%+v, %v", rep, err)
		}
		last = rep.Events
	}
	close(stop)
	<-stopped
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if last == v.n {
		t.Error("nothing was appended while it was verified")
	}
}

// TestAnchorAlone checks that the signatures of the anchor's lines are verified if no checkpoint is stored.
func TestAnchorAlone(t *testing.T) {
	v := newVictim(t, 50)
	path := v.copyLog(t)
	if err := forgeFile(path, loosen+`DELETE FROM checkpoints`); err != nil {
		t.Fatal(err)
	}
	rep := verifyFile(t, path, verify.Options{Keys: v.verifiers})
	if !rep.OK() || rep.Anchors != 5 || rep.Checkpoints != 0 || rep.Signed != 50 {
		t.Errorf("%+v", rep)
	}
	stranger, err := evidence.MakeKeys(filepath.Join(v.dir, "stranger"))
	if err != nil {
		t.Fatal(err)
	}
	rep = verifyFile(t, path, verify.Options{Keys: stranger.Verifiers(v.last.Origin)})
	if !rep.OK() || rep.Signed != 0 || len(rep.Warnings) != 2 { // one about the key, one about the checkpoints
		t.Errorf("with another's key: %+v", rep)
	}
	b, err := os.ReadFile(anchor.Path(path))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(b), "\n")
	for name, tc := range map[string]struct {
		text string
		kind verify.Damage // empty means a warning
	}{
		"torn":               {string(b) + "50 AB", ""},
		"not a line":         {string(b) + "hello\n", verify.Anchor},
		"another root":       {strings.Replace(string(b), lines[1][:5], "21 AA", 1), verify.Anchor},
		"another signature":  {lines[0] + lines[1][:len(lines[1])-4] + "AA==\n" + lines[2], verify.Anchor},
		"more than there is": {string(b) + fmt.Sprintf("51 %s %s -\n", v.last.Root, v.last.Origin), verify.Truncated},
		"of another log":     {string(b) + fmt.Sprintf("50 %s perlica/x -\n", v.last.Root), verify.Anchor},
		"no root of ours":    {string(b) + fmt.Sprintf("33 %s %s -\n", v.last.Root, v.last.Origin), verify.Anchor},
	} {
		if err := os.WriteFile(anchor.Path(path), []byte(tc.text), 0o600); err != nil {
			t.Fatal(err)
		}
		rep := verifyFile(t, path, verify.Options{Keys: v.verifiers})
		if tc.kind == "" && (!rep.OK() || !strings.Contains(fmt.Sprint(rep.Warnings), "incomplete")) || tc.kind != "" &&
			(rep.OK() || rep.Findings[0].Kind != tc.kind) {
			t.Errorf("%s: %+v", name, rep)
		}
	}
}

// TestVerifyIsStopped checks that Verify returns an error and no report if the context is cancelled.
func TestVerifyIsStopped(t *testing.T) {
	v := newVictim(t, 4*blockEvents)
	ctx, cancel := context.WithCancel(t.Context())
	_, err := verify.Log(ctx, readerOf(t, v.path), verify.Options{Progress: func(int64) { cancel() }})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
