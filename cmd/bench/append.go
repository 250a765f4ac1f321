package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/perlica/perlica/eventlog"
	"github.com/perlica/perlica/eventlog/event"
)

// payload has 1 KiB, about the size of one line from an agent.
var payload = []byte(strings.Repeat("0123456789abcdef", 64))

// sample returns an event that resembles the events of a real run.
func sample(class event.Class) event.Event {
	const id = "0199aaaa-bbbb-7ccc-8ddd-eeeeeeeeeeee"
	e := event.Event{
		Type: event.NotificationReceived, Class: class, Actor: "agent", Payload: payload,
		Refs: event.Refs{Session: id, Conversation: "s", Run: id, Trace: "0199aaaabbbb7ccc8dddffffffffffff"},
	}
	if class == event.Fact {
		e.Type = event.PolicyUnasked
	}
	return e
}

// batch returns n sample events.
func batch(n int) []event.Event {
	list := make([]event.Event, n)
	for i := range list {
		list[i] = sample(event.Frame)
	}
	return list
}

// openLog opens a new log.
func openLog(dir, name string) *eventlog.Log {
	return must(eventlog.Open(context.Background(), filepath.Join(dir, name), eventlog.Options{Context: "default"}))
}

// repeat returns a side of a comparison. One round of the side calls f n times.
func repeat(n int, f func()) *side {
	return &side{ops: n, round: func() {
		for range n {
			f()
		}
	}}
}

// appends returns a side of a comparison. One round of the side appends n single events.
func appends(l *eventlog.Log, n int, e event.Event) *side {
	return repeat(n, func() { must(l.Append(context.Background(), e)) })
}

// rowBytes is about the size of a row in bytes: the payload and the columns next to it.
const rowBytes = 1024 + 384

// durable compares one durable append with one durable row, and with the same bytes appended to a file and synced.
func durable(dir string, _ options) {
	frames, facts := openLog(dir, "durable-frames.db"), openLog(dir, "durable-facts.db")
	prepared, plain := openBare(dir), openBare(dir)
	raw := must(os.OpenFile(filepath.Join(dir, "raw"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600))
	bytes := make([]byte, rowBytes)
	const n = 100 // A round has n operations, so switching between the sides takes only a small part of its time.
	frame, fact := appends(frames, n, sample(event.Frame)), appends(facts, n, sample(event.Fact))
	row := repeat(n, func() { plain.execRow(payload) })
	again := repeat(n, func() { prepared.insertRow(payload) })
	line := repeat(n, func() {
		must(raw.Write(bytes))
		check(dataSync(raw))
	})
	compare(60, frame, row, again, line, fact)
	rates("one durable line of 1 KiB, against a bare insert", frame, row, "at least 0.95")
	cpus(frame, row, "")
	rates("  against an insert that was prepared before", frame, again, "")
	cpus(frame, again, "")
	rates("  against its bytes appended to a file and synced", frame, line, "at least 0.75")
	rates("  one durable fact, against a bare insert", fact, row, "")
	cpus(fact, row, "")
	closeAll(frames, facts, prepared.db, plain.db, raw)
}

// groups compares commits of many events with commits of many rows.
func groups(dir string, _ options) {
	log, bare := openLog(dir, "groups.db"), openBare(dir)
	for _, n := range []int{10, 100, 1000} {
		events := batch(n)
		ours := &side{ops: n, round: func() { must(log.Append(context.Background(), events...)) }}
		theirs := &side{ops: n, round: func() { bare.commitRows(n, payload) }}
		compare(max(40, 2000/n), ours, theirs)
		rates(fmt.Sprintf("events of 1 KiB, %d a commit", n), ours, theirs, "at least 0.9")
		cpus(ours, theirs, "at most 1.25")
	}
	// This comparison records the events one by one. Record returns before its event is on disk, so its caller and
	// the log's writer work at the same time.
	const n = 10_000
	ours := &side{ops: n, round: func() { stream(log, n) }}
	theirs := &side{ops: n, round: func() {
		for range n / 1000 {
			bare.commitRows(1000, payload)
		}
	}}
	compare(10, ours, theirs)
	rates("events of 1 KiB, recorded one by one", ours, theirs, "at least 0.9")
	cpus(ours, theirs, "at most 1.25")
	closeAll(log, bare.db)
}

// stream records n events like the updates of an agent and waits for the last one.
func stream(l *eventlog.Log, n int) {
	e := sample(event.Frame)
	for range n {
		check(l.Record(e))
	}
	check(l.Sync())
}

// growth compares a log of 3,000,000 events with one of 10,000.
func growth(dir string, _ options) {
	const small, big = 10_000, 3_000_000
	var single, bulk [2]*side
	var logs [2]*eventlog.Log
	for i, size := range []int{small, big} {
		l := openLog(dir, fmt.Sprintf("growth-%d.db", size))
		stream(l, size)
		logs[i] = l
		single[i] = appends(l, 50, sample(event.Fact))
		bulk[i] = &side{ops: 2000, round: func() { stream(l, 2000) }}
	}
	compare(40, single[1], single[0], bulk[1], bulk[0])
	rates("one durable fact at 3,000,000 events, and at 10,000", single[1], single[0], "at least 0.9")
	cpus(single[1], single[0], "")
	rates("events of 1 KiB recorded there, and there", bulk[1], bulk[0], "at least 0.9")
	cpus(bulk[1], bulk[0], "")
	closeAll(logs[0], logs[1])
}

// reopened measures the time for opening the log at path and appending one event.
func reopened(path string) time.Duration {
	var took []time.Duration
	for range 20 {
		start := time.Now()
		l := openLog(path, "")
		must(l.Append(context.Background(), sample(event.Fact)))
		took = append(took, time.Since(start))
		check(l.Close())
	}
	return median(took)
}

func closeAll(list ...io.Closer) {
	for _, c := range list {
		check(c.Close())
	}
}
