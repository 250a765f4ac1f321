package origin

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/perlica/perlica/eventlog"
	"github.com/perlica/perlica/eventlog/event"
)

// bigEvents is the number of events in the log of BenchmarkChanges. With -args -log DIR, the log stays in DIR.
var (
	bigEvents = flag.Int("events", 20_000, "how many events the log of the benchmark has")
	bigDir    = flag.String("log", "", "folder to keep the log of the benchmark in")
)

// BenchmarkBlame measures the origins of a file of 20,000 lines with 500 recorded changes. The view exists.
func BenchmarkBlame(b *testing.B) {
	a := &authored{rnd: rand.New(rand.NewPCG(1, 1))}
	for len(a.lines) < 20_000 {
		a.lines = append(a.lines, a.block(100)...)
	}
	a.author = make([]event.RunID, len(a.lines))
	log := newLog(b)
	for step := range 500 {
		p := a.random()
		run := event.RunID(fmt.Sprint("run ", step))
		s := newScene(string(run), "claude")
		if writers["claude"](s, a, p, "completed") {
			a.apply(p, run)
			s.record(b, log)
		}
		if step%20 == 0 { // by hand
			a.apply(a.random(), "")
		}
	}
	v := viewOf(b, log)
	text := a.text()
	for b.Loop() {
		f, err := v.Blame(b.Context(), []string{"/project/a.go"}, text)
		if err != nil || len(f.Changes) < 450 {
			b.Fatal(len(f.Changes), err)
		}
	}
}

// BenchmarkChanges measures the list of the changes of the last twelfth of a log, with opening the view. Each run has
// 40 events and one change.
func BenchmarkChanges(b *testing.B) {
	dir := *bigDir
	if dir == "" {
		dir = b.TempDir()
	}
	path := filepath.Join(dir, "eventlog.db")
	_, err := os.Stat(path)
	log, oerr := eventlog.Open(b.Context(), path, eventlog.Options{Context: "default"})
	if oerr != nil {
		b.Fatal(oerr)
	}
	defer log.Close()
	const perRun = 40
	var since time.Time
	for i := range *bigEvents / perRun {
		if err == nil {
			break
		}
		s := newScene(fmt.Sprintf("0199%04x-%04x-7ccc-8ddd-%012x", i>>16, i&0xffff, i), "claude")
		a := &authored{rnd: rand.New(rand.NewPCG(uint64(i), 1))}
		a.lines = a.block(30)
		for range perRun - 8 {
			s.frame(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"c","update":{"sessionUpdate":` +
				`"agent_message_chunk","content":{"type":"text","text":"a piece of the answer that goes on for some words"}}}}`)
		}
		s.update("tool_call", "t", members{"kind": "edit", "content": []any{members{"type": "diff",
			"path": fmt.Sprintf("/project/file%d.go", i%977), "oldText": "a", "newText": a.text()}}})
		s.answer("1", "allow_once")
		s.update("tool_call_update", "t", members{"status": "in_progress"})
		s.update("tool_call_update", "t", members{"status": "completed"})
		s.record(b, log)
	}
	view := filepath.Join(dir, "changes.db")
	start := time.Now()
	v, err := Open(b.Context(), &log.Reader, view, []byte("key"), nil)
	if err != nil {
		b.Fatal(err)
	}
	b.Logf("the view was made in %s", time.Since(start))
	all, err := v.Changes(b.Context(), Wanted{})
	if err != nil || len(all) == 0 {
		b.Fatal(len(all), err)
	}
	since = all[len(all)*11/12].At
	if err := v.Close(); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		v, err := Open(b.Context(), &log.Reader, view, []byte("key"), nil)
		if err != nil {
			b.Fatal(err)
		}
		list, err := v.Changes(b.Context(), Wanted{Since: since})
		if err != nil || len(list) == 0 {
			b.Fatal(len(list), err)
		}
		if err := v.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
