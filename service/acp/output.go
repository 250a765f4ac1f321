package acp

import (
	"io"
	"sync"
	"time"
)

// outLine is a line on its way to the client.
type outLine struct {
	text    []byte       // without its line feed; nil: nothing goes on
	durable func() error // waits until it is on disk; nil: it goes on without a record
	ready   bool         // held otherwise: it and all behind it wait for release
}

// The queue to the client blocks who adds to it beyond these limits; that slows the agent down
// through its pipe.
const (
	outLines = 4096
	outBytes = 1 << 20
)

// output writes lines to the client in the order in which they were added, each when it is on disk.
type output struct {
	w    io.Writer
	done chan struct{} // closed when loop has returned
	fail func(error)   // called when the log can be written no more
	gone func()        // called when the client can be

	mu     sync.Mutex // guards what follows
	change sync.Cond
	queue  []*outLine
	bytes  int
	closed bool
	freed  bool // nobody waits for room any more
	failed bool // the client can be written no more
}

func newOutput(w io.Writer, fail func(error), gone func()) *output {
	o := &output{w: w, done: make(chan struct{}), fail: fail, gone: gone}
	o.change.L = &o.mu
	go o.loop()
	return o
}

// add queues a line.
func (o *output) add(text []byte, durable func() error) {
	o.push(&outLine{text: text, durable: durable, ready: true})
}

// hold queues a line that waits for release.
func (o *output) hold(text []byte, durable func() error) *outLine {
	l := &outLine{text: text, durable: durable}
	o.push(l)
	return l
}

func (o *output) push(l *outLine) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for (len(o.queue) >= outLines || o.bytes > outBytes) && !o.freed && !o.failed {
		o.change.Wait()
	}
	o.queue = append(o.queue, l)
	o.bytes += len(l.text)
	o.change.Broadcast()
}

// release lets a held line go, with another text if that is wanted; nil: nothing goes.
func (o *output) release(l *outLine, text []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.bytes += len(text) - len(l.text)
	l.text, l.ready = text, true
	o.change.Broadcast()
}

// take waits for lines that may go. It returns none when the output is closed and empty.
func (o *output) take() []*outLine {
	o.mu.Lock()
	defer o.mu.Unlock()
	for {
		n := 0
		for n < len(o.queue) && o.queue[n].ready {
			o.bytes -= len(o.queue[n].text)
			n++
		}
		if n > 0 {
			batch := o.queue[:n:n]
			o.queue = o.queue[n:]
			o.change.Broadcast()
			return batch
		}
		if o.closed {
			return nil
		}
		o.change.Wait()
	}
}

func (o *output) loop() {
	defer close(o.done)
	var unrecorded error // from here on only what goes on without a record
	for batch := o.take(); batch != nil; batch = o.take() {
		// From the last to the first: what is waited for there covers what was recorded before.
		for i := len(batch) - 1; i >= 0 && unrecorded == nil; i-- {
			if d := batch[i].durable; d != nil && batch[i].text != nil {
				if unrecorded = d(); unrecorded != nil {
					o.fail(unrecorded)
				}
			}
		}
		var buf []byte
		for _, l := range batch {
			if l.text != nil && (unrecorded == nil || l.durable == nil) {
				buf = append(append(buf, l.text...), '\n')
			}
		}
		o.write(buf)
	}
}

// write writes to the client, unless that has failed before.
func (o *output) write(b []byte) {
	o.mu.Lock()
	failed := o.failed
	o.mu.Unlock()
	if failed || len(b) == 0 {
		return
	}
	if _, err := o.w.Write(b); err != nil {
		o.mu.Lock()
		o.failed = true
		o.change.Broadcast()
		o.mu.Unlock()
		o.gone()
	}
}

// free lets lines be added beyond the limits: the connection ends, and a client that does not read must
// not keep it from that.
func (o *output) free() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.freed = true
	o.change.Broadcast()
}

// unread is how long a client may leave its last lines unread.
const unread = 2 * time.Second

// close writes what is queued and may go, and returns when it has been written, or the client does not
// read it.
func (o *output) close() {
	o.mu.Lock()
	o.closed, o.freed = true, true
	o.change.Broadcast()
	o.mu.Unlock()
	select {
	case <-o.done:
	case <-time.After(unread):
	}
}
