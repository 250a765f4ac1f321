package acp

import (
	"io"
	"sync"
)

// outLine is a line on its way to the client.
type outLine struct {
	text    []byte       // without its line feed; nil: nothing goes on
	durable func() error // waits until it is on disk; nil: it need not be
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
	fail func(error)   // called once, when the client or the log can be written no more

	mu     sync.Mutex // guards what follows
	change sync.Cond
	queue  []*outLine
	bytes  int
	closed bool
	failed bool
}

func newOutput(w io.Writer, fail func(error)) *output {
	o := &output{w: w, done: make(chan struct{}), fail: fail}
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
	for (len(o.queue) >= outLines || o.bytes > outBytes) && !o.closed && !o.failed {
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
	var buf []byte
	for batch := o.take(); batch != nil; batch = o.take() {
		buf = buf[:0]
		err := error(nil)
		// From the last to the first: what is waited for there covers what was recorded before.
		for i := len(batch) - 1; i >= 0 && err == nil; i-- {
			if d := batch[i].durable; d != nil && batch[i].text != nil {
				err = d()
			}
		}
		for _, l := range batch {
			if l.text != nil {
				buf = append(append(buf, l.text...), '\n')
			}
		}
		if err == nil && !o.isFailed() {
			_, err = o.w.Write(buf)
		}
		if err != nil {
			o.stop(err)
		}
	}
}

func (o *output) isFailed() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.failed
}

func (o *output) stop(err error) {
	o.mu.Lock()
	first := !o.failed
	o.failed = true
	o.change.Broadcast()
	o.mu.Unlock()
	if first {
		o.fail(err)
	}
}

// close writes what is queued and may go, and returns when it has been written.
func (o *output) close() {
	o.mu.Lock()
	o.closed = true
	o.change.Broadcast()
	o.mu.Unlock()
	<-o.done
}
