package web

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/perlica/perlica/kernel/language"
)

// follower sends the events of logs to one client.
type follower struct {
	s      *Server
	w      http.ResponseWriter
	out    *http.ResponseController
	want   chosen
	say    *language.Sentences
	wake   chan struct{} // capacity 1: new lines are available
	cursor cursor
	tracks map[*eventLog]*track
	buf    []byte
}

// track is a log that a stream follows.
type track struct {
	l    *eventLog
	log  logReader
	feed *feed
	in   bool  // true if the follower has entered the feed
	next int64 // number of the feed's next line
}

// notify wakes the follower. It never blocks.
func (f *follower) notify() {
	select {
	case f.wake <- struct{}{}:
	default:
		// The follower is already due to wake.
	}
}

// batch is the size of one write in bytes. pace is the shortest pause after a write. Each open stream lengthens the
// pause by perStream. Lines that arrive in the meantime are sent with the next write.
const (
	batch     = 64 << 10
	pace      = 20 * time.Millisecond
	perStream = time.Millisecond / 2
)

// stream sends events until the client goes, the device is revoked or the server stops. It ends the
// stream of a client that accepts no byte within Options.Patience.
func (s *Server) stream(w http.ResponseWriter, r *request, list []*eventLog, after string, want chosen) error {
	if r.Method == http.MethodHead {
		w.Header().Set("Content-Type", "text/event-stream")
		return nil
	}
	select {
	case s.streams <- struct{}{}:
		defer func() { <-s.streams }()
	default:
		return tooMany.problem(manyStreams.With(cap(s.streams)))
	}
	c, of, bad, err := marks(r.Context(), list, after)
	if err != nil {
		return err
	}
	f := &follower{
		s: s, w: w, out: http.NewResponseController(w), want: want, say: say(r.Context()), wake: make(chan struct{}, 1),
		cursor: c,
		tracks: map[*eventLog]*track{},
	}
	defer f.leaveFeeds()
	for l := range of {
		if log, err := l.openReader(r.Context()); err == nil && log != nil {
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
	defer s.present.addStream(r.visitor.ID)()
	if f.appendNamed("open", opened); f.flushBuffer(r.Context()) != nil {
		return nil
	}
	f.sendEvents(r, r.where())
	return nil
}

// sendEvents sends events until the stream ends. The caller must call leaveFeeds.
func (f *follower) sendEvents(r *request, where place) {
	ctx := r.Context()
	beat := time.NewTicker(f.s.opt.Heartbeat)
	defer beat.Stop()
	again := time.NewTicker(lookAgain)
	defer again.Stop()
	paced := time.NewTimer(pace)
	defer paced.Stop()
	revoked := f.s.opt.Devices.Revoked(r.visitor.ID)
	f.notify()
	bell := f.wake
	for {
		select {
		case <-bell:
			if f.pullLogs(ctx) != nil {
				return
			}
			if len(f.buf) == 0 {
				continue
			}
			if f.flushBuffer(ctx) != nil {
				return
			}
			bell = nil
			paced.Reset(max(pace, time.Duration(len(f.s.streams))*perStream))
		case <-paced.C:
			bell = f.wake
		case <-beat.C:
			f.buf = append(f.buf, ": alive\nid: "+f.cursor.String()+"\n\n"...)
			if f.flushBuffer(ctx) != nil {
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

// pullLogs reads the new lines of all logs.
func (f *follower) pullLogs(ctx context.Context) error {
	for _, t := range f.tracks {
		if err := f.pullLog(ctx, t); err != nil {
			return err
		}
	}
	return nil
}

// pullLog reads the new lines of a log from its feed. If the feed's ring does not reach back far
// enough, it reads the log. It returns only errors of the client; a failed log is tried again
// later.
func (f *follower) pullLog(ctx context.Context, t *track) error {
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
		lines, next, ok, failed := t.feed.linesFrom(f, t.next)
		if !ok && failed == nil {
			// The ring no longer contains the next line.
			t.in = false
			continue
		}
		if err := f.appendLines(ctx, t, lines); err != nil {
			return err
		}
		if t.next = max(t.next, next); failed == nil {
			return nil
		}
		t.feed.removeFollower(f)
		t.feed = nil
		if !f.replaced(ctx, t) {
			return nil
		}
	}
}

// catchUp reads the log up to the start of its feed's ring and enters the feed. It returns false if
// the log cannot be read now.
func (f *follower) catchUp(ctx context.Context, t *track) (bool, error) {
	at := t.l.short()
	for {
		m := f.cursor[at]
		next, states, upTo, ok := t.feed.enterAfter(m.seq)
		if ok {
			t.in, t.next = true, next
			for _, one := range states {
				if f.want.has(one) {
					f.beginEvent(f.cursor.String(), one.data)
				}
			}
			return true, nil
		}
		lines, seq, err := t.feed.backlog.readLines(ctx, t.l.place, t.log, m.seq, upTo)
		if gone := f.appendLines(ctx, t, lines); gone != nil || err != nil {
			return false, gone
		}
		m = f.cursor[at]
		m.seq = max(m.seq, seq)
		f.cursor[at] = m
	}
}

// appendLines puts lines of a log into the buffer and sends full batches.
func (f *follower) appendLines(ctx context.Context, t *track, lines []line) error {
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
		if err := f.appendLine(ctx, one); err != nil {
			return err
		}
	}
	return nil
}

// appendLine puts the data of a line into the buffer and sends a full batch. It does not copy a
// large line, such as an outcome with its whole text, because all followers send it at the same
// time.
func (f *follower) appendLine(ctx context.Context, one line) error {
	data := localizedLine(f.say, one)
	if len(data) < batch {
		f.endEvent(data)
	} else {
		f.buf = append(f.buf, "\ndata: "...)
		for _, part := range [][]byte{f.buf, data} {
			if err := f.writePart(ctx, part); err != nil {
				return err
			}
		}
		f.buf = append(f.buf[:0], "\n\n"...)
	}
	if len(f.buf) < batch {
		return nil
	}
	return f.flushBuffer(ctx)
}

// beginEvent puts the id of an event into the buffer.
func (f *follower) beginEvent(id string, data []byte) {
	f.buf = append(append(f.buf, "id: "...), id...)
	f.endEvent(data)
}

// endEvent puts the data of an event into the buffer.
func (f *follower) endEvent(data []byte) {
	f.buf = append(f.buf, "\ndata: "...)
	f.buf = append(f.buf, data...)
	f.buf = append(f.buf, "\n\n"...)
}

// appendNamed puts a named event into the buffer.
func (f *follower) appendNamed(name string, v any) {
	data, err := json.Marshal(v)
	if err != nil {
		// Plain fields can always be encoded.
		panic(err)
	}
	f.buf = append(f.buf, "event: "+name+"\n"...)
	f.beginEvent(f.cursor.String(), data)
}

// writePart writes a part of the stream after outflow permits it. The error is not nil if the client
// does not accept the part in time.
func (f *follower) writePart(ctx context.Context, b []byte) error {
	if err := f.s.logs.outflow.reserveBytes(ctx, len(b)); err != nil {
		return err
	}
	// Without a deadline, a write to a silent client would end only with the connection.
	_ = f.out.SetWriteDeadline(time.Now().Add(f.s.opt.Patience))
	_, err := f.w.Write(b)
	return err
}

// flushBuffer sends the content of the buffer.
func (f *follower) flushBuffer(ctx context.Context) error {
	err := f.writePart(ctx, f.buf)
	if f.buf = f.buf[:0]; err == nil {
		err = f.out.Flush()
	}
	if err == nil {
		f.s.counts.streamed()
	}
	return err
}

// replaced reports whether the log's file was replaced. The follower then follows the new log from
// its beginning and tells the client.
func (f *follower) replaced(ctx context.Context, t *track) bool {
	log, err := t.l.openReader(ctx)
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
		return true // the new file is a copy of the same log, so the cursor stays valid
	}
	f.cursor[at] = mark{origin: short(origin)}
	f.appendNamed("reset", t.l.place)
	return true
}

// lookForOthers follows new logs and tries failed logs again.
func (f *follower) lookForOthers(ctx context.Context, where place) {
	list, err := f.s.logs.list(ctx, where)
	if err != nil {
		return
	}
	for _, l := range list {
		if t := f.tracks[l]; t != nil && t.feed != nil {
			continue
		}
		log, err := l.openReader(ctx)
		if err != nil || log == nil {
			continue
		}
		m, err := f.cursor.reach(ctx, l, log)
		var p *problem
		switch {
		case errors.As(err, &p):
			m.seq = 0
			f.cursor[l.short()] = m
			f.appendNamed("reset", l.place)
		case err != nil:
			continue
		}
		f.cursor[l.short()] = m
		f.tracks[l] = &track{l: l, log: log}
		f.notify()
	}
}

// leaveFeeds leaves all feeds.
func (f *follower) leaveFeeds() {
	for _, t := range f.tracks {
		if t.feed != nil {
			t.feed.removeFollower(f)
		}
	}
}
