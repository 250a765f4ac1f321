package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/perlica/perlica/eventlog"
	"github.com/perlica/perlica/eventlog/event"
)

// payload has 1 KiB, as a line of an agent's has.
var payload = []byte(strings.Repeat("0123456789abcdef", 64))

// sample is an event like those of a run.
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

// batch returns n of them.
func batch(n int) []event.Event {
	list := make([]event.Event, n)
	for i := range list {
		list[i] = sample(event.Frame)
	}
	return list
}

// openLog opens a log of its own.
func openLog(dir, name string) (*eventlog.Log, error) {
	return eventlog.Open(context.Background(), filepath.Join(dir, name), eventlog.Options{Context: "default"})
}

// repeat returns a side that does f n times a round.
func repeat(n int, f func() error) *side {
	return &side{ops: n, round: func() error {
		for range n {
			if err := f(); err != nil {
				return err
			}
		}
		return nil
	}}
}

// appends returns a side that appends n single events a round.
func appends(l *eventlog.Log, n int, e event.Event) *side {
	return repeat(n, func() error {
		_, err := l.Append(context.Background(), e)
		return err
	})
}

// rowBytes is about what a row takes: the payload and what is around it.
const rowBytes = 1024 + 384

// durable compares one durable append with one durable row, and with the same bytes appended
// to a file and synced.
func durable(dir string) error {
	frames, err := openLog(dir, "durable-frames.db")
	if err != nil {
		return err
	}
	facts, err := openLog(dir, "durable-facts.db")
	if err != nil {
		return err
	}
	prepared, err := openBare(dir)
	if err != nil {
		return err
	}
	plain, err := openBare(dir)
	if err != nil {
		return err
	}
	raw, err := os.OpenFile(filepath.Join(dir, "raw"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	bytes := make([]byte, rowBytes)
	const n = 100 // so many that the switch from side to side hardly counts
	frame, fact := appends(frames, n, sample(event.Frame)), appends(facts, n, sample(event.Fact))
	row := repeat(n, func() error { return plain.exec(payload) })
	again := repeat(n, func() error { return prepared.insert(payload) })
	line := repeat(n, func() error {
		if _, err := raw.Write(bytes); err != nil {
			return err
		}
		return dataSync(raw)
	})
	if err := compare(60, frame, row, again, line, fact); err != nil {
		return err
	}
	rates("one durable line of 1 KiB, against a bare insert", frame, row, "at least 0.95")
	cpus(frame, row, "")
	rates("  against an insert that was prepared before", frame, again, "")
	cpus(frame, again, "")
	rates("  against its bytes appended to a file and synced", frame, line, "at least 0.75")
	rates("  one durable fact, against a bare insert", fact, row, "")
	cpus(fact, row, "")
	return closeAll(frames.Close, facts.Close, prepared.db.Close, plain.db.Close, raw.Close)
}

// groups compares commits of many events with those of many rows.
func groups(dir string) error {
	log, err := openLog(dir, "groups.db")
	if err != nil {
		return err
	}
	bare, err := openBare(dir)
	if err != nil {
		return err
	}
	for _, n := range []int{10, 100, 1000} {
		events := batch(n)
		ours := &side{ops: n, round: func() error {
			_, err := log.Append(context.Background(), events...)
			return err
		}}
		theirs := &side{ops: n, round: func() error { return bare.commit(n, payload) }}
		if err := compare(max(40, 2000/n), ours, theirs); err != nil {
			return err
		}
		rates(fmt.Sprintf("events of 1 KiB, %d a commit", n), ours, theirs, "at least 0.9")
		cpus(ours, theirs, "at most 1.25")
	}
	// Anyone who records does not wait, and works while the writer does.
	const n = 10_000
	ours := &side{ops: n, round: func() error { return stream(log, n) }}
	theirs := &side{ops: n, round: func() error {
		for range n / 1000 {
			if err := bare.commit(1000, payload); err != nil {
				return err
			}
		}
		return nil
	}}
	if err := compare(10, ours, theirs); err != nil {
		return err
	}
	rates("events of 1 KiB, recorded one by one", ours, theirs, "at least 0.9")
	cpus(ours, theirs, "at most 1.25")
	return closeAll(log.Close, bare.db.Close)
}

// stream records n events as an agent's updates are, and waits for the last.
func stream(l *eventlog.Log, n int) error {
	e := sample(event.Frame)
	for range n {
		if err := l.Record(e); err != nil {
			return err
		}
	}
	return l.Sync()
}

// growth compares a log of 3,000,000 events with one of 10,000.
func growth(dir string) error {
	const small, big = 10_000, 3_000_000
	var single, bulk [2]*side
	var logs [2]*eventlog.Log
	for i, size := range []int{small, big} {
		l, err := openLog(dir, fmt.Sprintf("growth-%d.db", size))
		if err != nil {
			return err
		}
		if err := stream(l, size); err != nil {
			return err
		}
		logs[i] = l
		single[i] = appends(l, 50, sample(event.Fact))
		bulk[i] = &side{ops: 2000, round: func() error { return stream(l, 2000) }}
	}
	if err := compare(40, single[1], single[0], bulk[1], bulk[0]); err != nil {
		return err
	}
	rates("one durable fact at 3,000,000 events, and at 10,000", single[1], single[0], "at least 0.9")
	cpus(single[1], single[0], "")
	rates("events of 1 KiB recorded there, and there", bulk[1], bulk[0], "at least 0.9")
	cpus(bulk[1], bulk[0], "")
	return closeAll(logs[0].Close, logs[1].Close)
}

// reopened measures how long it takes to open the log at path and append one event.
func reopened(path string) (time.Duration, error) {
	var took []time.Duration
	for range 20 {
		start := time.Now()
		l, err := eventlog.Open(context.Background(), path, eventlog.Options{Context: "default"})
		if err != nil {
			return 0, err
		}
		if _, err := l.Append(context.Background(), sample(event.Fact)); err != nil {
			return 0, err
		}
		took = append(took, time.Since(start))
		if err := l.Close(); err != nil {
			return 0, err
		}
	}
	return median(took), nil
}

// closeAll calls them all and returns the first error.
func closeAll(list ...func() error) (err error) {
	for _, end := range list {
		if e := end(); err == nil {
			err = e
		}
	}
	return err
}
