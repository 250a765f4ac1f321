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
	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/kernel/streamjson"
)

// line is what a follower is sent of an entry of a log: read and encoded once for all of them.
type line struct {
	seq     event.Seq
	session event.SessionID
	run     event.RunID
	kind    string
	state   bool // no entry of the log, but who holds a session now
	data    []byte
}

func newLine(at place, e kernel.Entry) (line, error) {
	l := streamjson.NewEntryLine(e)
	l["project"], l["context"] = at.Project, at.Context
	data, err := json.Marshal(l)
	out := line{seq: e.Seq, session: e.Refs.Session, run: e.Refs.Run, kind: l["type"].(string), data: data}
	out.state = out.kind == "session.held" || out.kind == "session.freed"
	return out, err
}

// feed is the one reader of a log for all who follow it, while there is at least one. It keeps the
// newest lines in a ring of a bounded size; those who need older ones read the log.
type feed struct {
	cancel context.CancelFunc
	over   chan struct{} // closed when the reader has ended
	most   int           // bytes of lines that are kept
	behind *behind
	out    *outflow

	mu      sync.Mutex // guards what follows
	base    event.Seq  // the ring has all lines behind this event
	first   int64      // the number of the ring's first line
	ring    []line
	bytes   int
	states  map[event.SessionID]line // who holds a session in which a turn is under way
	err     error                    // why it ended
	waiting int                      // of bells those that are true
	bells   map[*follower]bool       // who follows; true: it has had all lines, and waits for the next
}

// follow returns the log's feed with one follower more, which must leave it.
func (l *eventLog) follow(f *follower, log logReader) (*feed, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.feed != nil && l.feed.join(f) {
		return l.feed, nil
	}
	last, _, err := log.Last(context.Background(), event.Query{})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	l.feed = &feed{
		cancel: cancel, over: make(chan struct{}), most: l.opt.Ring, base: last.Seq, behind: newBehind(), out: l.outflow,
		states: map[event.SessionID]line{}, bells: map[*follower]bool{f: false},
	}
	go l.feed.run(ctx, l.place, log, l.used.Log, l.info, l.paths.Locks)
	return l.feed, nil
}

// lookAgain is how often it is looked whether there are other logs, or other files, than before.
const lookAgain = 2 * time.Second

// run reads the log until the last follower has left, or the log's file is another one.
func (f *feed) run(ctx context.Context, at place, log logReader, path string, info os.FileInfo, locks string) {
	defer close(f.over)
	var beside sync.WaitGroup
	defer beside.Wait()
	defer f.cancel()
	if info != nil { // it is a file
		beside.Go(func() { f.watch(ctx, path, info) })
	}
	for e, err := range (&kernel.Reading{Log: log, Locks: locks, At: f.base}).Follow(ctx) {
		var one line
		if err == nil {
			one, err = newLine(at, e)
		}
		if err != nil {
			f.fail(err)
			return
		}
		f.put(one)
	}
	f.fail(context.Canceled)
}

// watch ends the feed when the log's file is another one.
func (f *feed) watch(ctx context.Context, path string, info os.FileInfo) {
	tick := time.NewTicker(lookAgain)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if now, err := os.Stat(path); err == nil && !os.SameFile(now, info) {
				f.cancel()
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

// put adds a line and rings its followers.
func (f *feed) put(one line) {
	f.out.happens()
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
	f.ringBells()
}

// waits has a follower woken with the next line. The caller holds mu.
func (f *feed) waits(one *follower) {
	if waits, follows := f.bells[one]; follows && !waits {
		f.bells[one] = true
		f.waiting++
	}
}

// tryAgain is waits for one that could not read the log now.
func (f *feed) tryAgain(one *follower) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.waits(one)
}

// fail ends the feed for those who follow it.
func (f *feed) fail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err = err
	f.ringBells()
}

// ringBells wakes the followers that wait: each line of a flood would wake all the others again and again.
// The caller holds mu.
func (f *feed) ringBells() {
	if f.waiting == 0 {
		return
	}
	for one, waits := range f.bells {
		if waits {
			f.bells[one] = false
			one.ring()
		}
	}
	f.waiting = 0
}

// join adds a follower, unless the feed has ended.
func (f *feed) join(one *follower) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err == nil {
		f.bells[one] = false
	}
	return f.err == nil
}

// leave takes a follower away; with the last one the reader ends.
func (f *feed) leave(one *follower) {
	f.mu.Lock()
	if f.bells[one] {
		f.waiting--
	}
	delete(f.bells, one)
	last := len(f.bells) == 0
	if last && f.err == nil {
		f.err = context.Canceled
	}
	f.mu.Unlock()
	if last {
		f.cancel()
		<-f.over
	}
}

// end ends the feed for all its followers.
func (f *feed) end() {
	f.cancel()
	<-f.over
}

// enter returns the number of the first line behind an event, and who holds the sessions. It is false
// if the ring does not go back so far: then the log must be read up to the event that it returns.
func (f *feed) enter(after event.Seq) (next int64, states []line, upTo event.Seq, ok bool) {
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

// from returns the lines from a number on, behind which the follower waits for the next. It is false if the
// first of them is not kept any more.
func (f *feed) from(one *follower, next int64) (lines []line, now int64, ok bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if next < f.first {
		return nil, 0, false, f.err
	}
	f.waits(one)
	lines = f.ring[next-f.first:]
	return lines[:len(lines):len(lines)], f.first + int64(len(f.ring)), true, f.err
}

// behind has the lines of a log that those are sent who are behind its ring: they are read from the log in
// stretches, each once for all who come by while it is kept.
type behind struct {
	turn  chan struct{} // capacity 1, and guards what follows: one reads at a time
	kept  []*stretch    // the last used is the last
	bytes int
}

// stretch is the lines of a part of the log.
type stretch struct {
	after, end event.Seq // the events of which it has the lines: behind the first, up to the other
	lines      []line
	bytes      int
	past       *kernel.Reading // goes on behind it; nil: another stretch does
}

// How many bytes of lines make a stretch, and of how many the stretches are kept.
const (
	stretchBytes = 2 * batch
	keptBytes    = 4 << 20
)

func newBehind() *behind { return &behind{turn: make(chan struct{}, 1)} }

// read returns lines behind an event, and how far they go: at most up to the event upTo, which is on record,
// unless others were further. While they are sent, which a slow client draws out, nothing of the log is held.
func (b *behind) read(ctx context.Context, at place, log logReader, after, upTo event.Seq) ([]line, event.Seq, error) {
	select {
	case b.turn <- struct{}{}:
		defer func() { <-b.turn }()
	case <-ctx.Done():
		return nil, after, ctx.Err()
	}
	if i := slices.IndexFunc(b.kept, func(s *stretch) bool { return s.after <= after && after < s.end }); i >= 0 {
		s := b.kept[i]
		b.kept = append(slices.Delete(b.kept, i, i+1), s)
		first, _ := slices.BinarySearchFunc(s.lines, after+1, func(one line, seq event.Seq) int { return int(one.seq - seq) })
		return s.lines[first:len(s.lines):len(s.lines)], s.end, nil
	}
	s := &stretch{after: after, past: b.from(log, after)}
	for e, err := range s.past.Until(ctx, upTo) {
		if err != nil {
			return nil, after, err
		}
		one, err := newLine(at, e)
		if err != nil {
			return nil, after, err
		}
		s.lines = append(s.lines, one)
		if s.bytes += len(one.data); s.bytes >= stretchBytes {
			break
		}
	}
	if ctx.Err() != nil {
		return nil, after, ctx.Err()
	}
	s.end = s.past.At
	b.keep(s)
	return s.lines[:len(s.lines):len(s.lines)], s.end, nil
}

// from returns what reads the log behind an event: what has read up to there, if there is one, knows of the turn
// under way what came before.
func (b *behind) from(log logReader, after event.Seq) *kernel.Reading {
	for _, s := range b.kept {
		if s.end == after && s.past != nil {
			past := s.past
			s.past = nil
			return past
		}
	}
	return &kernel.Reading{Log: log, At: after}
}

// keep keeps a stretch in place of those that were not used for the longest time.
func (b *behind) keep(s *stretch) {
	b.kept, b.bytes = append(b.kept, s), b.bytes+s.bytes
	for b.bytes > keptBytes && len(b.kept) > 1 {
		b.bytes -= b.kept[0].bytes
		b.kept[0] = nil
		b.kept = b.kept[1:]
	}
}

// outflow is what all streams together are sent. While something happens that is limited: the run that they follow
// goes first, and many who follow a flood have it a little later. One or two never wait.
type outflow struct {
	limit *rate.Limiter // in bytes
	began time.Time
	news  atomic.Int64 // when a line came last, in nanoseconds since began
}

// How much is sent in a second, and at once, and for how long nothing must have happened for more.
const (
	perSecond = 16 << 20
	atOnce    = 1 << 20
	calm      = time.Second
)

func newOutflow() *outflow {
	return &outflow{limit: rate.NewLimiter(perSecond, atOnce), began: time.Now()}
}

// happens says that something happens now.
func (o *outflow) happens() { o.news.Store(int64(time.Since(o.began))) }

// wait returns when it is the turn of so many bytes.
func (o *outflow) wait(ctx context.Context, bytes int) error {
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
