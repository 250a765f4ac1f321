package eventlog

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/perlica/perlica/eventlog/disk"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/store"
	"github.com/perlica/perlica/eventlog/tree"
)

// secret returns a payload text with the given name, which pruning must remove. It is so long that SQLite needs
// overflow pages.
func secret(name string) []byte {
	return []byte("[" + name + ":" + strings.Repeat("s3cr3t ", 3000) + "]")
}

// finishedRun returns the events of a finished run. One is a frame that pruning removes.
func finishedRun(session, run string) []event.Event {
	refs := event.Refs{Session: event.SessionID(session), Run: event.RunID(run), Input: event.InputID("input " + run)}
	marked := func(t event.Type) event.Event {
		return event.NewFact(t, "test", refs, map[string]string{"text": string(secret(run))})
	}
	return []event.Event{
		marked(event.MessageReceived), fact(event.Requested, refs),
		{Type: event.NotificationReceived, Class: event.Frame, Refs: refs, Payload: secret(run)},
		{Type: event.NotificationReceived, Class: event.Frame, Refs: refs, Payload: []byte("[" + run + ":short]")},
		marked(event.Responded), fact(event.CallEnforced, refs),
	}
}

func appendAll(t *testing.T, l *Log, events ...event.Event) {
	t.Helper()
	if _, err := l.Append(t.Context(), events...); err != nil {
		t.Fatal(err)
	}
}

// pruneLog returns a log with two finished runs and an open run, and the log's path.
func pruneLog(t *testing.T) (*Log, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "eventlog.db")
	l, err := Open(t.Context(), path, Options{Context: "default"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil && !errors.Is(err, disk.ErrClosed) {
			t.Error(err)
		}
	})
	refs := event.Refs{Session: "s1"}
	appendAll(t, l, event.NewFact(event.SessionCreated, "user", refs, map[string]string{"name": "the name that stays"}))
	appendAll(t, l, finishedRun("s1", "one")...)
	appendAll(t, l, finishedRun("s2", "two")...)
	appendAll(t, l, finishedRun("s1", "open")[:3]...)
	return l, path
}

// found returns the marks that are in some file of the log's folder.
func found(t *testing.T, path string, marks ...string) string {
	t.Helper()
	var list []string
	err := filepath.WalkDir(filepath.Dir(path), func(p string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(p)
		for _, m := range marks {
			if bytes.Contains(b, []byte(m)) && !slices.Contains(list, m) {
				list = append(list, m)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(list, " ")
}

// intact checks the stored tree, every leaf and every payload. If a payload is missing, a later log.pruned must cover
// its event.
func intact(t *testing.T, r *store.Reader) (missing int) {
	t.Helper()
	all := collect(t, r, event.Query{})
	var tree tree.Range
	for i := range all {
		e := &all[i]
		if e.Seq != event.Seq(i+1) || e.Leaf() != e.LeafHash {
			t.Fatalf("event %d: a wrong leaf", e.Seq)
		}
		tree.Add(e.LeafHash)
		if e.Payload != nil {
			if !e.PayloadMatches() {
				t.Fatalf("event %d: the payload was edited", e.Seq)
			}
			continue
		}
		missing++
		covered := false
		for _, later := range all[i+1:] {
			var p event.Pruning
			covered = covered || later.Type == event.LogPruned && later.Decode(&p) == nil && p.Covers(e)
		}
		if !covered {
			t.Fatalf("event %d (%s): its payload is missing, and nothing says so", e.Seq, e.Type)
		}
	}
	if _, root, err := r.Head(t.Context()); err != nil || root != tree.Root() {
		t.Fatalf("the stored tree is another: %v", err)
	}
	return missing
}

func TestPruneRemovesEveryByte(t *testing.T) {
	l, path := pruneLog(t)
	size, root, err := l.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	p := event.Pruning{Until: event.Seq(size), By: "alice", Why: "a test"}
	done, err := l.Prune(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	if done.Events != 12 || done.Resumed || done.After >= done.Before {
		t.Errorf("%+v", done)
	}
	// The log is still open, so the bytes must be gone before Close.
	if got := found(t, path, "[one:", "[two:", "[open:", "the name that stays"); got != "[open: the name that stays" {
		t.Errorf("in the files: %s", got)
	}
	if n := intact(t, &l.Reader); n != 12 {
		t.Errorf("%d payloads are missing", n)
	}
	for _, e := range collect(t, &l.Reader, event.Query{Run: "open"}) {
		if e.Payload == nil {
			t.Errorf("event %d of a run without an outcome lost its payload", e.Seq)
		}
	}
	// The tree of the earlier events is unchanged, and the log continues that tree.
	if h, err := l.Hashes(t.Context()).Frontier(size); err != nil || h.Root() != root {
		t.Errorf("the tree of %d events changed: %v", size, err)
	}
	appendAll(t, l, fact(event.Responded, event.Refs{Run: "open"}))
	intact(t, &l.Reader)

	// A run that ended after the first pruning can now be pruned. That needs another log.pruned, because the first
	// pruning was finished.
	done, err = l.Prune(t.Context(), p)
	if err != nil || done.Resumed || done.Events != 3 {
		t.Errorf("%+v, %v", done, err)
	}
	if got := found(t, path, "[open:"); got != "" {
		t.Errorf("in the files: %s", got)
	}
	if n := len(collect(t, &l.Reader, event.Query{Types: []event.Type{event.LogPruned}})); n != 2 {
		t.Errorf("%d events say so", n)
	}
	// Nothing is left to remove, so nothing is written.
	before := l.Size()
	done, err = l.Prune(t.Context(), p)
	if err != nil || done.Resumed || done.Events != 0 || l.Size() != before {
		t.Errorf("once more: %+v, %v", done, err)
	}
	intact(t, &l.Reader)
	if e, _, err := l.Last(t.Context(), event.Query{Types: []event.Type{event.LogPruned}}); err != nil ||
		!strings.Contains(string(e.Payload), `"why":"a test"`) {
		t.Errorf("%s, %v", e.Payload, err)
	}
	if err := l.CheckIntegrity(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestPruneSelects(t *testing.T) {
	for _, tc := range []struct {
		p    event.Pruning
		gone string
		n    int64
	}{
		{event.Pruning{Until: 1000, Run: "one"}, "one", 6},
		{event.Pruning{Until: 1000, Session: "s2"}, "two", 6},
		{event.Pruning{Until: 7}, "one", 6},
		{event.Pruning{Until: 1000, Session: "s1", Class: event.Frame}, "", 2},
		{event.Pruning{Until: 1000, Run: "nosuch"}, "", 0},
		{event.Pruning{}, "", 0},
	} {
		l, path := pruneLog(t)
		s, err := l.Selection(t.Context(), tc.p)
		if err != nil || s.Events != tc.n {
			t.Errorf("%+v: %d prunable, %v", tc.p, s.Events, err)
		}
		done, err := l.Prune(t.Context(), tc.p)
		if err != nil || done.Events != tc.n {
			t.Errorf("%+v: %+v, %v", tc.p, done, err)
		}
		var want []string
		for _, run := range []string{"one", "two", "open"} {
			if run != tc.gone {
				want = append(want, "["+run+":")
			}
		}
		if got := found(t, path, "[one:", "[two:", "[open:"); got != strings.Join(want, " ") {
			t.Errorf("%+v: in the files: %s", tc.p, got)
		}
		if said := len(collect(t, &l.Reader, event.Query{Types: []event.Type{event.LogPruned}})); said != min(int(tc.n), 1) {
			t.Errorf("%+v: %d events say so", tc.p, said)
		}
		intact(t, &l.Reader)
	}
}

// TestPruneMoreLater checks that a pruning of further payloads writes another log.pruned.
func TestPruneMoreLater(t *testing.T) {
	l, path := pruneLog(t)
	for i, p := range []event.Pruning{{Until: 1000, Run: "two"}, {Until: 7}, {Until: 1000, Session: "s1"}} {
		if i == 2 {
			appendAll(t, l, fact(event.Responded, event.Refs{Session: "s1", Run: "open"}))
		}
		if done, err := l.Prune(t.Context(), p); err != nil || done.Resumed || done.Events == 0 {
			t.Errorf("%+v: %+v, %v", p, done, err)
		}
		if said := len(collect(t, &l.Reader, event.Query{Types: []event.Type{event.LogPruned}})); said != i+1 {
			t.Errorf("%+v: %d events say so", p, said)
		}
		intact(t, &l.Reader)
	}
	if got := found(t, path, "[one:", "[two:"); got != "" {
		t.Errorf("in the files: %s", got)
	}
}

func TestPruneRefusesAnOpenRun(t *testing.T) {
	l, path := pruneLog(t)
	if _, err := l.Prune(t.Context(), event.Pruning{Until: 1000, Run: "open"}); !errors.Is(err, disk.ErrUnfinished) {
		t.Errorf("got %v", err)
	}
	if found(t, path, "[open:") == "" {
		t.Error("it is gone")
	}
}

// TestPruneKeepsQuestionsOfFlows checks that pruning removes the questions of ended flow runs only. A retry makes an
// ended flow run go on. The test fails if a retried flow run counts as ended.
func TestPruneKeepsQuestionsOfFlows(t *testing.T) {
	l, path := pruneLog(t)
	begin := func(run string) {
		refs := event.Refs{Run: event.RunID(event.FlowPrefix + run), Interaction: event.Flows}
		appendAll(t, l, fact(event.FlowStarted, refs))
	}
	end := func(run string) {
		refs := event.Refs{Run: event.RunID(event.FlowPrefix + run), Interaction: event.Flows}
		appendAll(t, l, fact(event.FlowFinished, refs))
	}
	decide := func(run, key string) {
		refs := event.Refs{Run: event.RunID(event.FlowPrefix + run),
			Interaction: event.InteractionID(event.FlowPrefix + run + "/step" + key)}
		appendAll(t, l, fact(event.FlowStepDecided, refs))
	}
	ask := func(run string) {
		refs := event.Refs{Run: event.RunID(event.FlowPrefix + run), Interaction: event.InteractionID("question " + run)}
		appendAll(t, l, event.NewFact(event.InteractionRequested, "perlica", refs, map[string]string{"text": string(secret(
			run))}))
	}
	begin("waits")
	ask("waits")
	for _, run := range []string{"retried", "twice", "ended", "again"} {
		begin(run)
		decide(run, "")
		end(run)
	}
	decide("retried", "/retry-1/asked")
	ask("retried")
	ask("ended")
	decide("again", "/retry-1/asked")
	decide("again", "/retry-1")
	ask("again")
	end("again")
	decide("twice", "/retry-1/asked")
	end("twice")
	decide("twice", "/4-1a2b3c4d/retry-2/asked")
	ask("twice")
	if _, err := l.Prune(t.Context(), event.Pruning{Until: 1000}); err != nil {
		t.Fatal(err)
	}
	if got := found(t, path, "[waits:", "[retried:", "[twice:", "[ended:", "[again:"); got != "[waits: [retried: [twice:" {
		t.Errorf("the remaining questions are %q", got)
	}
	intact(t, &l.Reader)
}

// TestPruneFails checks that the log is intact after each fault, and that the same call then finishes the pruning.
func TestPruneFails(t *testing.T) {
	for _, tc := range []struct {
		point string
		err   error
		dead  bool
	}{
		{"remove", disk.ErrFull, false}, {"removed", disk.ErrBusy, false}, {"vacuumed", disk.ErrBusy, false},
		{"remove", disk.ErrIO, true}, {"vacuumed", disk.ErrIO, true},
	} {
		l, path := pruneLog(t)
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		broken := func(point string) error {
			if point == tc.point {
				return tc.err
			}
			return nil
		}
		l, err := Open(t.Context(), path, Options{fail: broken})
		if err != nil {
			t.Fatal(err)
		}
		p := event.Pruning{Until: 13}
		if _, err := l.Prune(t.Context(), p); !errors.Is(err, tc.err) {
			t.Errorf("%s: %v", tc.point, err)
		}
		intact(t, &l.Reader)
		if dead := l.Err() != nil; dead != tc.dead {
			t.Errorf("%s, %v: dead: %t", tc.point, tc.err, dead)
		}
		_ = l.Close() // the log may have failed
		if l, err = Open(t.Context(), path, Options{}); err != nil {
			t.Fatal(err)
		}
		if done, err := l.Prune(t.Context(), p); err != nil || !done.Resumed {
			t.Errorf("%s: again: %+v, %v", tc.point, done, err)
		}
		if got := found(t, path, "[one:", "[two:"); got != "" {
			t.Errorf("%s: in the files: %s", tc.point, got)
		}
		intact(t, &l.Reader)
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestPreceding(t *testing.T) {
	at := time.Unix(1_800_000_000, 0)
	now := at
	l, err := Open(t.Context(), filepath.Join(t.TempDir(), "eventlog.db"), Options{Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, minute := range []int{0, 1, 2, 0, 3} { // the clock was set back once
		now = at.Add(time.Duration(minute) * time.Minute)
		appendAll(t, l, fact(event.Truncated, event.Refs{}))
	}
	for minute, want := range map[int]event.Seq{-1: 0, 0: 0, 1: 1, 2: 2, 3: 4, 4: 5} {
		if got, err := l.Preceding(t.Context(), at.Add(time.Duration(minute)*time.Minute)); got != want || err != nil {
			t.Errorf("before minute %d: %d, %v, want %d", minute, got, err, want)
		}
	}
}

func TestRoomFor(t *testing.T) {
	free := func(n uint64) func(string) (uint64, error) { return func(string) (uint64, error) { return n, nil } }
	if err := roomFor(10<<20, "/", free(20<<20)); !errors.Is(err, disk.ErrFull) {
		t.Errorf("got %v", err)
	}
	if err := roomFor(10<<20, "/", free(22<<20)); err != nil {
		t.Error(err)
	}
	if err := roomFor(1<<40, "/", func(string) (uint64, error) { return 0, errors.ErrUnsupported }); err != nil {
		t.Error(err)
	}
}

func TestRedactBeforeHash(t *testing.T) {
	path := filepath.Join(t.TempDir(), "eventlog.db")
	l, err := Open(t.Context(), path, Options{Redact: func(p []byte) []byte {
		return bytes.ReplaceAll(p, []byte("hunter2"), []byte("[redacted]"))
	}})
	if err != nil {
		t.Fatal(err)
	}
	appendAll(t, l, event.NewFact(event.MessageReceived, "user", event.Refs{}, map[string]string{"text": "it is hunter2"}),
		event.Event{Type: event.RequestSent, Class: event.Frame, Payload: []byte(`{"method":"hunter2"}`)})
	for _, e := range collect(t, &l.Reader, event.Query{}) {
		if !strings.Contains(string(e.Payload), "[redacted]") || e.PayloadLen != int64(len(e.Payload)) ||
			e.Leaf() != e.LeafHash {
			t.Errorf("%s: %s", e.Type, e.Payload)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if got := found(t, path, "hunter2"); got != "" {
		t.Error("it is in the file")
	}
	audit(t, path)
}
