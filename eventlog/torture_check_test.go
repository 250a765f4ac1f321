package eventlog

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/perlica/perlica/eventlog/anchor"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/intents"
	"github.com/perlica/perlica/eventlog/store"
	"github.com/perlica/perlica/eventlog/verify"
)

// These are the faults that the torture tests can find.
var (
	errLost    = errors.New("acknowledged events are lost")
	errDamaged = errors.New("the log is damaged")
	errTwice   = errors.New("the log takes a second of its kind")
	errAtRest  = errors.New("the log at rest")
)

// A story is a list of events that a log may have, with the ends of the calls that wrote them.
type story struct {
	events []event.Event
	ends   []int // sorted
	// unsent means that the last intent may have no line in the .intents file. The writer died or failed between the
	// commit and the sync of that line, so no prompt left. The next intent writes the line.
	unsent bool
}

// tell returns the story of writers that follow one another. Each writer except the last must have finished its
// script.
func tell(scripts ...script) story {
	st := story{ends: []int{0}}
	for _, s := range scripts {
		for _, step := range s.steps() {
			if len(step.events) > 0 && !step.refused {
				st.events = append(st.events, step.events...)
				st.ends = append(st.ends, len(st.events))
			}
		}
	}
	return st
}

// upTo returns the story of the first n events.
func (st story) upTo(n int) story {
	i, _ := slices.BinarySearch(st.ends, n)
	return story{events: st.events[:n], ends: st.ends[:i+1], unsent: st.unsent}
}

// followedBy continues the story with another writer, which started at the story's end.
func (st story) followedBy(s script) story {
	next := tell(s)
	all := story{events: slices.Concat(st.events, next.events), ends: slices.Clone(st.ends), unsent: st.unsent}
	for _, end := range next.ends[1:] {
		all.ends = append(all.ends, len(st.events)+end)
	}
	return all
}

// checkLog opens the log at path as the next process would, and compares it with the stories. acked is the number of
// acknowledged events. checkLog returns the number of events in the log. It writes to the log: the same inputs again,
// and the missing outcomes.
func checkLog(path string, acked int, stories ...story) (found int, err error) {
	ctx := context.Background()
	l, err := Open(ctx, path, Options{Context: "default", Lazy: time.Hour})
	if err != nil {
		return 0, fmt.Errorf("%w: %w", errDamaged, err)
	}
	for _, st := range stories {
		if found, err = st.compareWith(ctx, l, acked); err == nil {
			err = st.rerunInputs(ctx, l, found)
			break
		}
	}
	if cerr := l.Close(); err == nil && cerr != nil {
		err = fmt.Errorf("%w: Close: %w", errAtRest, cerr)
	}
	if err != nil {
		return found, err
	}
	return found, atRest(ctx, path)
}

// compareWith compares the log with the story.
func (st story) compareWith(ctx context.Context, l *Log, acked int) (found int, err error) {
	rep, err := verify.Log(ctx, &l.Reader, verify.Options{})
	if err != nil || !rep.OK() {
		return int(rep.Events), fmt.Errorf("%w: verify: %v, %v", errDamaged, rep.Findings, err)
	}
	if err := l.CheckIntegrity(ctx); err != nil {
		return int(rep.Events), fmt.Errorf("%w: integrity: %w", errDamaged, err)
	}
	for e, err := range l.Events(ctx, event.Query{}) {
		if err != nil {
			return found, fmt.Errorf("%w: %w", errDamaged, err)
		}
		if found == len(st.events) {
			return found, fmt.Errorf("%w: event %d was never written", errDamaged, found+1)
		}
		want := st.events[found]
		if e.Type != want.Type || e.Refs != want.Refs || !bytes.Equal(e.Payload, want.Payload) {
			return found, fmt.Errorf("%w: event %d is %s of %s, not %s of %s", errDamaged, found+1, e.Type, e.Run, want.Type,
				want.Run)
		}
		found++
	}
	if err := anchored(l.Path(), found); err != nil {
		return found, err
	}
	if err := st.inSecondPlace(l.Path(), min(acked, found)); err != nil {
		return found, err
	}
	if c, ok, err := l.LastCheckpoint(ctx, 0); err != nil || ok && c.Size > int64(found) {
		return found, fmt.Errorf("%w: of %d events %d are in a checkpoint, %v", errDamaged, found, c.Size, err)
	}
	if found < acked {
		return found, fmt.Errorf("%w: %d of %d", errLost, acked-found, acked)
	}
	if _, whole := slices.BinarySearch(st.ends, found); !whole {
		return found, fmt.Errorf("%w: it ends inside a call, at %d", errDamaged, found)
	}
	return found, nil
}

// inSecondPlace checks that the .intents file names the intents of the first n events. The last intent may be absent if
// its append failed after the commit, because no prompt was sent then.
func (st story) inSecondPlace(path string, n int) error {
	c, err := intents.Read(path)
	if err != nil {
		return fmt.Errorf("%w: the second place: %w", errDamaged, err)
	}
	lacks := ""
	for _, e := range st.events[:n] {
		if e.Type != event.Requested {
			continue
		}
		if lacks != "" {
			return fmt.Errorf("%w: the second place does not name %s", errLost, lacks)
		}
		if !slices.ContainsFunc(c.Lines, func(l intents.Line) bool { return l.Hash == intents.Hash(string(e.Input)) }) {
			lacks = string(e.Input)
		}
	}
	if lacks != "" && !st.unsent {
		return fmt.Errorf("%w: the second place does not name %s", errLost, lacks)
	}
	return nil
}

// anchored compares the anchor with a log. The parameter "found" is the number of the log's events.
func anchored(path string, found int) error {
	anchors, err := anchor.Read(path)
	if err != nil {
		return fmt.Errorf("%w: %w", errDamaged, err)
	}
	for _, a := range anchors {
		if a.Damage != nil || a.Size > int64(found) {
			return fmt.Errorf("%w: of %d events: %s: %d events %v", errDamaged, found, a, a.Size, a.Damage)
		}
	}
	return nil
}

// rerunInputs plays the next process after a crash. The log has the first events of the story, and "found" is their
// number. No input may be called twice, and no intent may get two outcomes.
func (st story) rerunInputs(ctx context.Context, l *Log, found int) error {
	inputs, ended := map[event.RunID]event.InputID{}, map[event.RunID]bool{}
	var runs, open []event.RunID
	for _, e := range st.events[:found] {
		if e.Type == event.Requested {
			inputs[e.Run], runs = e.Input, append(runs, e.Run)
		}
		ended[e.Run] = ended[e.Run] || e.Type.Outcome()
	}
	for _, run := range runs {
		if !ended[run] {
			open = append(open, run)
		}
	}
	if got, err := l.OpenRuns(ctx); err != nil || !slices.Equal(got, open) {
		return fmt.Errorf("%w: open runs are %v, not %v, %v", errDamaged, got, open, err)
	}
	once := func(there bool, e event.Event) error {
		if !there {
			if _, err := l.Append(ctx, e); err != nil {
				return fmt.Errorf("%w: it cannot go on: %w", errDamaged, err)
			}
		}
		_, err := l.Append(ctx, e)
		if conflict := (*ConflictError)(nil); !errors.As(err, &conflict) {
			return fmt.Errorf("%w: %s of %s: %w", errTwice, e.Type, e.Run, orTaken(err))
		}
		return nil
	}
	for _, run := range runs {
		if err := once(true, fact(event.Requested, event.Refs{Run: run + "-again", Input: inputs[run]})); err != nil {
			return err
		}
		if err := once(ended[run], fact(event.OutcomeUnknown, event.Refs{Run: run})); err != nil {
			return err
		}
	}
	after := event.Refs{Run: "afterwards", Input: "afterwards"}
	if err := once(false, fact(event.Requested, after)); err != nil {
		return err
	}
	_, err := l.EndRun(ctx, fact(event.CallEnforced, after)) // this event makes a checkpoint and an anchor
	return err
}

// atRest checks the log at path, which no process has open.
func atRest(ctx context.Context, path string) error {
	if wal, err := os.ReadFile(path + "-wal"); err == nil && validWAL(wal) {
		return fmt.Errorf("%w has a valid write-ahead log of %d bytes beside it", errAtRest, len(wal))
	}
	r, err := store.OpenReader(ctx, path)
	if err != nil {
		return fmt.Errorf("%w: %w", errAtRest, err)
	}
	rep, err := verify.Log(ctx, r, verify.Options{})
	if err != nil || !rep.OK() {
		err = fmt.Errorf("%w: verify: %v, %v", errAtRest, rep.Findings, err)
	} else {
		err = anchored(path, int(rep.Events))
	}
	return errors.Join(err, r.Close())
}

// validWAL reports whether SQLite would use the file. The magic number and the checksum of its header must be correct
// (sqlite.org/fileformat2.html#walformat).
func validWAL(b []byte) bool {
	if len(b) < 32 || binary.BigEndian.Uint32(b)&^1 != 0x377f0682 {
		return false
	}
	var order binary.ByteOrder = binary.LittleEndian
	if b[3]&1 == 1 {
		order = binary.BigEndian
	}
	var s0, s1 uint32
	for i := 0; i < 24; i += 8 {
		s0 += order.Uint32(b[i:]) + s1
		s1 += order.Uint32(b[i+4:]) + s0
	}
	return binary.BigEndian.Uint32(b[24:]) == s0 && binary.BigEndian.Uint32(b[28:]) == s1
}

// TestTortureSeesAWAL checks that validWAL accepts the write-ahead log of an open log. After one bit of its header
// was flipped, validWAL must refuse the file.
func TestTortureSeesAWAL(t *testing.T) {
	l := openTest(t)
	if _, err := l.Append(t.Context(), fact(event.Truncated, event.Refs{})); err != nil {
		t.Fatal(err)
	}
	wal, err := os.ReadFile(l.Path() + "-wal")
	if err != nil || !validWAL(wal) {
		t.Fatalf("no valid write-ahead log beside an open log: %d bytes, %v", len(wal), err)
	}
	if wal[17] ^= 4; validWAL(wal) {
		t.Error("a header with a flipped bit counts as valid")
	}
}
