package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/perlica/perlica/kernel/language"
)

// follower is a stream on its way to a client.
type follower struct {
	s      *Server
	w      http.ResponseWriter
	out    *http.ResponseController
	want   chosen
	say    *language.Sentences
	bell   chan struct{} // capacity 1: there is something new
	cursor cursor
	tracks map[*eventLog]*track
	buf    []byte
}

// track is a log that a stream follows.
type track struct {
	l    *eventLog
	log  logReader
	feed *feed
	in   bool  // next is the number of a line of the feed
	next int64 // the number of the next line
}

// ring says that there is something new. It never waits.
func (f *follower) ring() {
	select {
	case f.bell <- struct{}{}:
	default: // it knows
	}
}

// How much of a stream is put into one write, and how long nothing is written after a write, longer where
// there are many streams: what comes in the meantime goes with the next.
const (
	batch     = 64 << 10
	pace      = 20 * time.Millisecond
	perStream = time.Millisecond / 2
)

// stream sends what happens until the client goes, the device is revoked or the server stops. A client
// that takes no byte for a while is one that went.
func (s *Server) stream(w http.ResponseWriter, r *request, list []*eventLog, after string, want chosen) error {
	if r.Method == http.MethodHead {
		w.Header().Set("Content-Type", "text/event-stream")
		return nil
	}
	select {
	case s.streams <- struct{}{}:
		defer func() { <-s.streams }()
	default:
		return tooMany.is(fmt.Sprintf("%d streams are open", cap(s.streams)))
	}
	c, of, bad, err := marks(r.Context(), list, after)
	if err != nil {
		return err
	}
	f := &follower{
		s: s, w: w, out: http.NewResponseController(w), want: want, say: say(r.Context()), bell: make(chan struct{}, 1), cursor: c,
		tracks: map[*eventLog]*track{},
	}
	defer f.leave()
	for l := range of {
		if log, err := l.read(r.Context()); err == nil && log != nil {
			f.tracks[l] = &track{l: l, log: log}
		}
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no")
	opened := struct {
		Logs       []place      `json:"logs"`
		Unreadable []unreadable `json:"unreadable"`
	}{[]place{}, bad}
	for _, l := range list {
		if f.tracks[l] != nil {
			opened.Logs = append(opened.Logs, l.place)
		}
	}
	defer s.present.enter(r.visitor.ID)()
	if f.named("open", opened); f.flush(r.Context()) != nil {
		return nil
	}
	f.run(r, r.where())
	return nil
}

// run sends until there is a reason to end. The caller leaves the feeds.
func (f *follower) run(r *request, where place) {
	ctx := r.Context()
	beat := time.NewTicker(f.s.opt.Heartbeat)
	defer beat.Stop()
	again := time.NewTicker(lookAgain)
	defer again.Stop()
	paced := time.NewTimer(pace)
	defer paced.Stop()
	revoked := f.s.opt.Devices.Revoked(r.visitor.ID)
	f.ring()
	bell := f.bell
	for {
		select {
		case <-bell:
			if f.pull(ctx) != nil {
				return
			}
			if len(f.buf) == 0 {
				continue
			}
			if f.flush(ctx) != nil {
				return
			}
			bell = nil
			paced.Reset(max(pace, time.Duration(len(f.s.streams))*perStream))
		case <-paced.C:
			bell = f.bell
		case <-beat.C:
			f.buf = append(f.buf, ": alive\nid: "+f.cursor.String()+"\n\n"...)
			if f.flush(ctx) != nil {
				return
			}
		case <-again.C:
			f.lookForOthers(ctx, where)
		case <-revoked:
			return
		case <-f.s.stopping:
			return
		case <-ctx.Done():
			return
		}
	}
}

// pull takes what the feeds have.
func (f *follower) pull(ctx context.Context) error {
	for _, t := range f.tracks {
		if err := f.pullOne(ctx, t); err != nil {
			return err
		}
	}
	return nil
}

// pullOne takes what is new of a log: from its feed, or, where that does not go back so far, from the
// log. The error is the client's; a log that fails is looked at again later.
func (f *follower) pullOne(ctx context.Context, t *track) error {
	for {
		if t.feed == nil {
			feed, err := t.l.follow(f, t.log)
			if err != nil {
				return nil
			}
			t.feed, t.in = feed, false
		}
		if !t.in {
			if ok, err := f.catchUp(ctx, t); !ok || err != nil {
				t.feed.tryAgain(f)
				return err
			}
		}
		lines, next, ok, failed := t.feed.from(f, t.next)
		if !ok && failed == nil {
			t.in = false // it fell out of the ring
			continue
		}
		if err := f.lines(ctx, t, lines); err != nil {
			return err
		}
		if t.next = max(t.next, next); failed == nil {
			return nil
		}
		t.feed.leave(f)
		t.feed = nil
		if !f.replaced(ctx, t) {
			return nil
		}
	}
}

// catchUp reads the log up to where its feed begins, and enters the feed. It is false if the log cannot
// be read now.
func (f *follower) catchUp(ctx context.Context, t *track) (bool, error) {
	at := t.l.short()
	for {
		m := f.cursor[at]
		next, states, upTo, ok := t.feed.enter(m.seq)
		if ok {
			t.in, t.next = true, next
			for _, one := range states {
				if f.want.has(one) {
					f.event(f.cursor.String(), one.data)
				}
			}
			return true, nil
		}
		lines, seq, err := t.feed.behind.read(ctx, t.l.place, t.log, m.seq, upTo)
		if gone := f.lines(ctx, t, lines); gone != nil || err != nil {
			return false, gone
		}
		m = f.cursor[at]
		m.seq = max(m.seq, seq)
		f.cursor[at] = m
	}
}

// lines puts lines of a log into the buffer, and sends what is a batch.
func (f *follower) lines(ctx context.Context, t *track, lines []line) error {
	at := t.l.short()
	m := f.cursor[at]
	if m.origin == "" && len(lines) > 0 {
		if origin, err := t.log.Origin(context.Background()); err == nil {
			m.origin = short(origin)
		}
	}
	f.cursor[at] = m
	ahead, behind := f.cursor.around(at)
	defer func() { f.cursor[at] = m }()
	for _, one := range lines {
		if one.state && one.seq < m.seq {
			continue
		}
		if m.seq = one.seq; !f.want.has(one) {
			continue
		}
		f.buf = append(append(f.buf, "id: "...), ahead...)
		f.buf = append(strconv.AppendInt(f.buf, int64(one.seq), 36), behind...)
		if err := f.line(ctx, one); err != nil {
			return err
		}
	}
	return nil
}

// line ends an event in the buffer with a line, and sends what is a batch. A large line, such as an outcome with
// all of its text, is not copied: all followers have it in the same moment.
func (f *follower) line(ctx context.Context, one line) error {
	data := localizedLine(f.say, one)
	if len(data) < batch {
		f.data(data)
	} else {
		f.buf = append(f.buf, "\ndata: "...)
		for _, part := range [][]byte{f.buf, data} {
			if err := f.send(ctx, part); err != nil {
				return err
			}
		}
		f.buf = append(f.buf[:0], "\n\n"...)
	}
	if len(f.buf) < batch {
		return nil
	}
	return f.flush(ctx)
}

// event puts an event into the buffer.
func (f *follower) event(id string, data []byte) {
	f.buf = append(append(f.buf, "id: "...), id...)
	f.data(data)
}

// data ends an event in the buffer with its data.
func (f *follower) data(data []byte) {
	f.buf = append(f.buf, "\ndata: "...)
	f.buf = append(f.buf, data...)
	f.buf = append(f.buf, "\n\n"...)
}

// named puts an event with a name into the buffer.
func (f *follower) named(name string, v any) {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err) // it is made of plain fields
	}
	f.buf = append(f.buf, "event: "+name+"\n"...)
	f.event(f.cursor.String(), data)
}

// send writes a part of the stream when it is its turn. A client has so long to take it.
func (f *follower) send(ctx context.Context, b []byte) error {
	if err := f.s.logs.outflow.wait(ctx, len(b)); err != nil {
		return err
	}
	_ = f.out.SetWriteDeadline(time.Now().Add(f.s.opt.Patience)) // where there is none a write waits for the connection's end
	_, err := f.w.Write(b)
	return err
}

// flush sends what is in the buffer.
func (f *follower) flush(ctx context.Context) error {
	err := f.send(ctx, f.buf)
	if f.buf = f.buf[:0]; err == nil {
		err = f.out.Flush()
	}
	if err == nil {
		f.s.counts.streamed()
	}
	return err
}

// replaced reports whether another log lies in the place of the one that was followed; then it is
// followed from its beginning, and the client is told.
func (f *follower) replaced(ctx context.Context, t *track) bool {
	log, err := t.l.read(ctx)
	if err != nil || log == nil || log == t.log {
		return false
	}
	origin, err := log.Origin(ctx)
	if err != nil {
		return false
	}
	at := t.l.short()
	t.log = log
	if f.cursor[at].origin == short(origin) {
		return true // a copy of the same
	}
	f.cursor[at] = mark{origin: short(origin)}
	f.named("reset", t.l.place)
	return true
}

// lookForOthers begins to follow logs that there were none of before, and tries those that failed again.
func (f *follower) lookForOthers(ctx context.Context, where place) {
	list, err := f.s.logs.list(ctx, where)
	if err != nil {
		return
	}
	for _, l := range list {
		if t := f.tracks[l]; t != nil && t.feed != nil {
			continue
		}
		log, err := l.read(ctx)
		if err != nil || log == nil {
			continue
		}
		m, err := f.cursor.reach(ctx, l, log)
		var p *problem
		switch {
		case errors.As(err, &p):
			m.seq = 0
			f.cursor[l.short()] = m
			f.named("reset", l.place)
		case err != nil:
			continue
		}
		f.cursor[l.short()] = m
		f.tracks[l] = &track{l: l, log: log}
		f.ring()
	}
}

// leave leaves the feeds.
func (f *follower) leave() {
	for _, t := range f.tracks {
		if t.feed != nil {
			t.feed.leave(f)
		}
	}
}
