package acp

import (
	"io"
	"sync"
	"time"
)

// outLine is a line for the client.
type outLine struct {
	text    []byte       // without its line feed; nil means that nothing is sent
	durable func() error // waits until the line is on disk; nil means that the line needs no record
	ready   bool         // if false, the line and all later lines wait for releaseLine
}

// outLines and outBytes limit the queue to the client. A goroutine that adds a line beyond these
// limits blocks. This slows the agent down through its pipe.
const (
	outLines = 4096
	outBytes = 1 << 20
)

// output writes lines to the client in the order in which they were added. It writes each line
// after the line is on disk.
type output struct {
	w    io.Writer
	done chan struct{} // closed when writeBatches has returned
	fail func(error)   // called when the log cannot be written
	gone func()        // called when the client cannot be written to

	mu     sync.Mutex // guards the fields below
	change sync.Cond
	queue  []*outLine
	bytes  int
	closed bool
	freed  bool // the limits no longer apply
	failed bool // the client cannot be written to
}

func newOutput(w io.Writer, fail func(error), gone func()) *output {
	o := &output{w: w, done: make(chan struct{}), fail: fail, gone: gone}
	o.change.L = &o.mu
	go o.writeBatches()
	return o
}

// addLine queues a line.
func (o *output) addLine(text []byte, durable func() error) {
	o.pushLine(&outLine{text: text, durable: durable, ready: true})
}

// holdLine queues a line that waits for releaseLine.
func (o *output) holdLine(text []byte, durable func() error) *outLine {
	l := &outLine{text: text, durable: durable}
	o.pushLine(l)
	return l
}

func (o *output) pushLine(l *outLine) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for (len(o.queue) >= outLines || o.bytes > outBytes) && !o.freed && !o.failed {
		o.change.Wait()
	}
	o.queue = append(o.queue, l)
	o.bytes += len(l.text)
	o.change.Broadcast()
}

// releaseLine lets a held line pass with the given text. A nil text drops the line.
func (o *output) releaseLine(l *outLine, text []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.bytes += len(text) - len(l.text)
	l.text, l.ready = text, true
	o.change.Broadcast()
}

// takeBatch waits for lines that may pass. It returns nil when the output is closed and empty.
func (o *output) takeBatch() []*outLine {
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

func (o *output) writeBatches() {
	defer close(o.done)
	var unrecorded error // once set, only lines without a record pass
	for batch := o.takeBatch(); batch != nil; batch = o.takeBatch() {
		// The loop goes from the last line to the first: waiting for a line also covers all lines
		// recorded before it.
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
		o.writeBytes(buf)
	}
}

// writeBytes writes to the client unless an earlier write failed.
func (o *output) writeBytes(b []byte) {
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

// liftLimits ends the limits of the queue. The connection is ending, and a client that does not
// read must not delay the end.
func (o *output) liftLimits() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.freed = true
	o.change.Broadcast()
}

// unread limits the time for which a client may leave its last lines unread.
const unread = 2 * time.Second

// closeQueue writes the queued lines that may pass. It returns after they are written, or after the
// client has not read them in time.
func (o *output) closeQueue() {
	o.mu.Lock()
	o.closed, o.freed = true, true
	o.change.Broadcast()
	o.mu.Unlock()
	select {
	case <-o.done:
	case <-time.After(unread):
	}
}
