package web

import (
	"context"
	"encoding/json"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/store"
	"github.com/perlica/perlica/kernel/record"
	"github.com/perlica/perlica/kernel/streamjson"
)

// line is one message of a stream of events. It describes one entry of a log, and it is encoded once for all followers.
type line struct {
	seq     event.Seq
	session event.SessionID
	run     event.RunID
	kind    string
	// state is true for a line that reports the current holder of a session. Such a line is not an entry of the log.
	state bool
	data  []byte
}

func newLine(at place, e record.Entry) (line, error) {
	l := streamjson.NewEntryLine(e)
	l["project"], l["context"] = at.Project, at.Context
	data, err := json.Marshal(l)
	out := line{seq: e.Seq, session: e.Refs.Session, run: e.Refs.Run, kind: l["type"].(string), data: data}
	out.state = out.kind == "session.held" || out.kind == "session.freed"
	return out, err
}

// feed is the single reader of a log for all its followers. It exists while the log has at least
// one follower. It keeps the newest lines in a ring of bounded size. Followers that need older
// lines read the log.
type feed struct {
	cancel context.CancelFunc
	// over is closed when the reader has ended.
	over    chan struct{}
	most    int // the largest number of bytes in ring
	backlog *backlog
	out     *outflow

	// mu guards the fields below.
	mu sync.Mutex
	// base is the number of the last event before the ring.
	base event.Seq
	// first is the number of the ring's first line. The feed numbers its lines from 0.
	first int64
	ring  []line
	bytes int
	// states holds, for each session with a running turn, the line that names the session's holder.
	states map[event.SessionID]line
	// err is the reason why the feed ended.
	err error
	// waiting counts the true values in followers.
	waiting int
	// followers holds all followers. A true value means that the follower has all lines and waits
	// for the next one.
	followers map[*follower]bool
}

// follow returns the log's feed and adds the follower to it. The follower must call removeFollower later.
func (l *eventLog) follow(f *follower, log logReader) (*feed, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.feed != nil && l.feed.addFollower(f) {
		return l.feed, nil
	}
	if file, ok := log.(*store.Reader); ok {
		if err := file.RequireSchema(context.Background()); err != nil {
			return nil, err
		}
	}
	last, _, err := log.Last(context.Background(), event.Query{})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	l.feed = &feed{
		cancel: cancel, over: make(chan struct{}), most: l.opt.Ring, base: last.Seq, backlog: newBacklog(), out: l.outflow,
		states: map[event.SessionID]line{}, followers: map[*follower]bool{f: false},
	}
	go l.feed.readLog(ctx, l.place, log, l.info, l.paths.Locks)
	return l.feed, nil
}

// lookAgain is the interval between two checks for new logs and replaced files.
const lookAgain = 2 * time.Second

// readLog reads the log until the last follower has left, the log's file was replaced or its schema was changed.
func (f *feed) readLog(ctx context.Context, at place, log logReader, info os.FileInfo, locks string) {
	defer close(f.over)
	var beside sync.WaitGroup
	defer beside.Wait()
	defer f.cancel()
	if file, ok := log.(*store.Reader); ok {
		beside.Go(func() { f.watchFile(ctx, file, info) })
	}
	for e, err := range (&record.Reading{Log: log, Locks: locks, At: f.base}).Follow(ctx) {
		var one line
		if err == nil {
			one, err = newLine(at, e)
		}
		if err != nil {
			f.failFollowers(err)
			return
		}
		f.addLine(one)
	}
	f.failFollowers(context.Canceled)
}

// watchFile ends the feed when the log's file was replaced or its schema was changed.
func (f *feed) watchFile(ctx context.Context, file *store.Reader, info os.FileInfo) {
	tick := time.NewTicker(lookAgain)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			now, err := os.Stat(file.Path())
			if err == nil && !os.SameFile(now, info) || file.RequireSchema(ctx) != nil {
				f.cancel()
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

// addLine adds a line and notifies the followers.
func (f *feed) addLine(one line) {
	f.out.noteNews()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ring, f.bytes = append(f.ring, one), f.bytes+len(one.data)
	drop := 0
	for f.bytes > f.most && drop < len(f.ring)-1 {
		f.bytes -= len(f.ring[drop].data)
		f.base = max(f.base, f.ring[drop].seq)
		drop++
	}
	if f.first += int64(drop); drop > 0 {
		clear(f.ring[:drop])
		f.ring = f.ring[drop:]
	}
	switch {
	case one.kind == "session.held", one.kind == "session.freed" && one.run != "":
		f.states[one.session] = one
	case one.kind == "session.freed":
		delete(f.states, one.session)
	}
	f.notifyFollowers()
}

// awaitLine makes the feed notify a follower at the next line. The caller holds mu.
func (f *feed) awaitLine(one *follower) {
	if waits, follows := f.followers[one]; follows && !waits {
		f.followers[one] = true
		f.waiting++
	}
}

// tryAgain makes the feed notify a follower at the next line, because the follower could not read the log now.
func (f *feed) tryAgain(one *follower) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.awaitLine(one)
}

// failFollowers ends the feed with an error for all its followers.
func (f *feed) failFollowers(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err = err
	f.notifyFollowers()
}

// notifyFollowers wakes only the waiting followers. During a flood of lines the other followers are
// still busy and need no notification. The caller holds mu.
func (f *feed) notifyFollowers() {
	if f.waiting == 0 {
		return
	}
	for one, waits := range f.followers {
		if waits {
			f.followers[one] = false
			one.notify()
		}
	}
	f.waiting = 0
}

// addFollower adds a follower unless the feed has ended.
func (f *feed) addFollower(one *follower) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err == nil {
		f.followers[one] = false
	}
	return f.err == nil
}

// removeFollower removes a follower. The reader ends after the last follower has left.
func (f *feed) removeFollower(one *follower) {
	f.mu.Lock()
	if f.followers[one] {
		f.waiting--
	}
	delete(f.followers, one)
	last := len(f.followers) == 0
	if last && f.err == nil {
		f.err = context.Canceled
	}
	f.mu.Unlock()
	if last {
		f.cancel()
		<-f.over
	}
}

// endReader stops the goroutine that reads the log and waits for its end.
func (f *feed) endReader() {
	f.cancel()
	<-f.over
}

// enterAfter returns the number of the first line that a follower needs. The parameter "after" is the last event that
// the follower has. The result "states" has the lines that name the holders of the sessions. ok is false if the ring
// begins too late. The follower must then read the log itself up to the event "upTo".
func (f *feed) enterAfter(after event.Seq) (next int64, states []line, upTo event.Seq, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if after < f.base {
		upTo = f.base
		if n := len(f.ring); n > 0 {
			upTo = f.ring[n-1].seq
		}
		return 0, nil, upTo, false
	}
	for _, one := range f.states {
		states = append(states, one)
	}
	i := slices.IndexFunc(f.ring, func(one line) bool { return one.seq > after && !one.state })
	if i < 0 {
		i = len(f.ring)
	}
	return f.first + int64(i), states, 0, true
}

// linesFrom returns the lines of the ring from the line number "next" on. The result "now" is the number of the line
// after them. The feed notifies the follower when the line with the number "now" arrives. The result ok is false if the
// ring no longer contains this line.
func (f *feed) linesFrom(one *follower, next int64) (lines []line, now int64, ok bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if next < f.first {
		return nil, 0, false, f.err
	}
	f.awaitLine(one)
	lines = f.ring[next-f.first:]
	return lines[:len(lines):len(lines)], f.first + int64(len(f.ring)), true, f.err
}

// backlog reads the lines that are older than the ring. It reads the log in segments, and several followers share a
// segment.
type backlog struct {
	sem   chan struct{} // capacity 1; guards the fields below: one goroutine reads at a time
	kept  []*segment    // least recently used first
	bytes int
}

// segment holds the lines of a part of the log.
type segment struct {
	// The segment has the lines of the events from after (exclusive) to end (inclusive).
	after, end event.Seq
	lines      []line
	bytes      int
	// past is the reading that continues after end. It is nil if another segment continues the reading.
	past *record.Reading
}

// segmentBytes is the size of one segment in bytes, and keptBytes is the largest size of all kept segments.
const (
	segmentBytes = 2 * batch
	keptBytes    = 4 << 20
)

func newBacklog() *backlog { return &backlog{sem: make(chan struct{}, 1)} }

// readLines returns the lines that follow the event with the number "after", and the last event that they cover. It
// reads no event after the event "upTo", which must be on record. But it may return a segment that was read for another
// follower and ends later. The caller sends the lines without holding sem, so a slow client blocks no other reader.
func (b *backlog) readLines(ctx context.Context, at place, log logReader, after,
	upTo event.Seq) ([]line, event.Seq, error) {
	select {
	case b.sem <- struct{}{}:
		defer func() { <-b.sem }()
	case <-ctx.Done():
		return nil, after, ctx.Err()
	}
	if i := slices.IndexFunc(b.kept, func(s *segment) bool { return s.after <= after && after < s.end }); i >= 0 {
		s := b.kept[i]
		b.kept = append(slices.Delete(b.kept, i, i+1), s)
		first, _ := slices.BinarySearchFunc(s.lines, after+1, func(one line, seq event.Seq) int { return int(one.seq - seq) })
		return s.lines[first:len(s.lines):len(s.lines)], s.end, nil
	}
	s := &segment{after: after, past: b.readingFrom(log, after)}
	for e, err := range s.past.Until(ctx, upTo) {
		if err != nil {
			return nil, after, err
		}
		one, err := newLine(at, e)
		if err != nil {
			return nil, after, err
		}
		s.lines = append(s.lines, one)
		if s.bytes += len(one.data); s.bytes >= segmentBytes {
			break
		}
	}
	if ctx.Err() != nil {
		return nil, after, ctx.Err()
	}
	s.end = s.past.At
	b.keepSegment(s)
	return s.lines[:len(s.lines):len(s.lines)], s.end, nil
}

// readingFrom returns a reading that starts after an event. It prefers the reading of a segment that ends with this
// event, because such a reading knows the earlier events of the running turn.
func (b *backlog) readingFrom(log logReader, after event.Seq) *record.Reading {
	for _, s := range b.kept {
		if s.end == after && s.past != nil {
			past := s.past
			s.past = nil
			return past
		}
	}
	return &record.Reading{Log: log, At: after}
}

// keepSegment stores a segment and drops the least recently used ones.
func (b *backlog) keepSegment(s *segment) {
	b.kept, b.bytes = append(b.kept, s), b.bytes+s.bytes
	for b.bytes > keptBytes && len(b.kept) > 1 {
		b.bytes -= b.kept[0].bytes
		b.kept[0] = nil
		b.kept = b.kept[1:]
	}
}

// outflow limits the bytes that all streams together send while new events arrive. Recording a run has priority over
// sending it. If many clients follow a flood of events, they receive it a little later. One or two followers never
// wait.
type outflow struct {
	limit *rate.Limiter // bytes
	began time.Time
	news  atomic.Int64 // time of the last line, in nanoseconds since began
}

// perSecond is the largest number of bytes that all streams send in a second. atOnce is the largest number that they
// send at once. Both limits are lifted when no event has arrived for the duration calm.
const (
	perSecond = 16 << 20
	atOnce    = 1 << 20
	calm      = 100 * time.Millisecond
)

func newOutflow() *outflow {
	return &outflow{limit: rate.NewLimiter(perSecond, atOnce), began: time.Now()}
}

// noteNews records that an event has arrived now.
func (o *outflow) noteNews() { o.news.Store(int64(time.Since(o.began))) }

// reserveBytes blocks until the limit permits this number of bytes.
func (o *outflow) reserveBytes(ctx context.Context, bytes int) error {
	for left := bytes; left > 0; left -= atOnce {
		if time.Since(o.began)-time.Duration(o.news.Load()) > calm {
			return ctx.Err()
		}
		if err := o.limit.WaitN(ctx, min(left, atOnce)); err != nil {
			return err
		}
	}
	return nil
}
