package report

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/perlica/perlica/eventlog"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/store"
	"github.com/perlica/perlica/interaction"
	"github.com/perlica/perlica/kernel/fact"
)

// These flags describe the log for the benchmarks. With -args -log DIR, the log stays in DIR for later runs.
var (
	bigEvents = flag.Int("events", 20_000, "how many events the log of the benchmarks has")
	bigDir    = flag.String("log", "", "folder to keep the log of the benchmarks in")
)

// eventsOfARun is the number of events that fillRun makes: 12 facts and 28 frames.
const eventsOfARun = 40

// bigLog returns a log of many runs, and the log's folder.
func bigLog(b *testing.B) (*store.Reader, string) {
	b.Helper()
	dir := *bigDir
	if dir == "" {
		dir = b.TempDir()
	}
	path := filepath.Join(dir, "eventlog.db")
	if _, err := os.Stat(path); err != nil {
		l, err := eventlog.Open(b.Context(), path, eventlog.Options{Context: "default"})
		if err != nil {
			b.Fatal(err)
		}
		for i := range *bigEvents / eventsOfARun {
			fillRun(b, l, i)
		}
		if err := l.Close(); err != nil {
			b.Fatal(err)
		}
	}
	r, err := store.OpenReader(b.Context(), path)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = r.Close() })
	return r, dir
}

// runID returns the id of the i-th run. The ids differ at their beginning and at their end.
func runID(i int) string {
	return fmt.Sprintf("0199%04x-%04x-7ccc-8ddd-%04x%08x", i>>16, i&0xffff, i&0xffff, uint32(i)*2654435761)
}

// fillRun records the 40 events of a run. Every input has the word "please", one in a thousand has "needle", and
// the first has "unique".
func fillRun(tb testing.TB, l *eventlog.Log, i int) {
	id := runID(i)
	provider := []string{"claude", "codex", "gemini", "rare"}[min(i%1000, 3)%4]
	if i%1000 > 3 {
		provider = []string{"claude", "codex", "gemini"}[i%3]
	}
	refs := event.Refs{
		Session: event.SessionID(runID(i / 10)), Conversation: "c", Run: event.RunID(id),
		Trace: event.TraceID(fmt.Sprintf("%032x", i)),
		Input: event.InputID("input-" + fmt.Sprint(i)),
	}
	asking := refs
	asking.Interaction = event.InteractionID("q-" + id)
	var events []event.Event
	put := func(t event.Type, r event.Refs, v any) {
		events = append(events, event.NewFact(t, "perlica", r, v))
	}
	text := fmt.Sprintf("please look at file%d.go in package pkg%d and fix the parser, 请修复解析器 number %d", i%977, i%31, i)
	if i%1000 == 7 {
		text += " needle"
	}
	if i == 0 {
		text += " unique"
	}
	if i%10 == 0 {
		put(event.SessionCreated, refs, fact.SessionCreated{Name: fmt.Sprint("work-", i/10), Provider: provider})
	} else {
		put(event.SessionSelected, refs, struct{}{})
	}
	put(event.MessageReceived, refs, fact.MessageReceived{Text: text, Source: "run", Sender: "alice", Dir: "/src",
		Provider: provider})
	put(event.SessionStarted, refs, fact.SessionStarted{Strategy: "keep"})
	put(event.Requested, refs, fact.Requested{Provider: provider, CallIndex: 1, Bytes: len(text)})
	for n := range 28 {
		line := fmt.Sprintf(
			`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"c","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"piece %d of the answer, which goes on for some words"}}}}`, n)
		events = append(events, event.Event{Type: event.NotificationReceived, Class: event.Frame, Actor: "agent", Refs: refs,
			Payload: []byte(line)})
	}
	put(event.PolicyDecided, refs, fact.PolicyDecided{Title: "Read file", Effect: "allow", By: "rule",
		Why: "reading is fine"})
	put(event.InteractionRequested, asking, interaction.Question{
		Title: "Run go test", Options: []interaction.Option{{ID: "allow-once", Label: "Allow", Kind: "allow_once"}},
		Subject: interaction.Subject{Provider: provider, Kind: "execute",
			Commands: []string{fmt.Sprintf("go test ./pkg%d/... -run Test%d", i%31, i)}},
	})
	put(event.InteractionAnswered, asking, interaction.Answer{Option: "allow-once", By: "alice", Where: "terminal"})
	put(event.ReplySent, asking, fact.ReplySent{Outcome: "selected", Option: "allow-once", By: "alice"})
	put(event.InteractionResolved, asking, interaction.Resolution{Option: "allow-once", Sent: true})
	put(event.Responded, refs, fact.Responded{
		Provider: provider, StopReason: "end_turn", DurationMS: 1200,
		Text: fmt.Sprintf("I fixed the parser in file%d.go. The tests pass now; the change is in commit %x. 解析器已经修复。", i%977,
			i*7919),
		Tools: []fact.ToolSeen{{ID: "t", Title: fmt.Sprintf("go test ./pkg%d/...", i%31), Kind: "execute",
			Status: "completed"}},
	})
	put(event.CallEnforced, refs, fact.Enforced{Calls: 1})
	put(event.SessionClosed, refs, fact.SessionClosed{Requested: true})
	if len(events) != eventsOfARun {
		tb.Fatalf("%d events", len(events))
	}
	if err := l.Record(events...); err != nil {
		tb.Fatal(err)
	}
}

// searches are searches that could be slow: a word in every text, a word in one old text, two frequent words that never
// occur together, and filters that match few texts.
var searches = map[string]Wanted{
	"everywhere":     {Phrases: []string{"please"}},
	"once-long-ago":  {Phrases: []string{"unique"}},
	"chinese":        {Phrases: []string{"修复"}},
	"one-character":  {Phrases: []string{"器"}},
	"never-together": {Phrases: []string{"please", "tests"}},
	"never-adjacent": {Phrases: []string{"the parser file"}},
	"no-such-phrase": {Phrases: []string{"go alice"}},
	"nothing":        {Phrases: []string{"zzz"}},
	"rare-provider":  {Phrases: []string{"please"}, Provider: "rare"},
	"no-provider":    {Phrases: []string{"please"}, Provider: "nosuch"},
	"kind-without":   {Phrases: []string{"please"}, Kinds: []Kind{kindDecision}},
	"kind":           {Phrases: []string{"go test"}, Kinds: []Kind{kindQuestion}},
	"old-session":    {Phrases: []string{"please"}, Session: event.SessionID(runID(0))},
	"before":         {Phrases: []string{"please"}, Before: time.Unix(1, 0)},
	"since":          {Phrases: []string{"unique"}, Since: time.Unix(1, 0)},
	"prefix":         {Phrases: []string{"number 请"}},
}

func BenchmarkSearch(b *testing.B) {
	log, dir := bigLog(b)
	start := time.Now()
	s, err := OpenSearch(b.Context(), log, filepath.Join(dir, "search.db"), nil)
	if err != nil {
		b.Fatal(err)
	}
	b.Logf("the index was made in %s", time.Since(start))
	defer s.Close()
	for name, w := range searches {
		b.Run(name, func(b *testing.B) {
			found := 0
			for range b.N {
				found = 0
				for _, err := range s.Find(b.Context(), w) {
					if err != nil {
						b.Fatal(err)
					}
					if found++; found == 20 {
						break
					}
				}
			}
			b.ReportMetric(float64(found), "hits")
		})
	}
}

// BenchmarkFindRun measures how long it takes to find a run and to read its story.
func BenchmarkFindRun(b *testing.B) {
	log, _ := bigLog(b)
	id := runID(*bigEvents / eventsOfARun / 2)
	for name, ref := range map[string]string{
		"id": id, "end": id[28:], "beginning": id[:13], "input": fmt.Sprintf("input-%d", *bigEvents/eventsOfARun/2),
	} {
		b.Run(name, func(b *testing.B) {
			for range b.N {
				found, err := FindRecord(b.Context(), log, ref)
				if err != nil || found.Run != event.RunID(id) {
					b.Fatal(found, err)
				}
				for _, err := range Story(b.Context(), log, found.Run, event.Query{}) {
					if err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}
