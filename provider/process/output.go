package process

import (
	"errors"
	"io"
	"os"
	"time"
)

// restLimit is more than any pipe holds.
const restLimit = 1 << 20

// Output is the agent's standard output. It ends when no process holds it open any more, or
// when the agent has left and what it wrote has been read: a child that it left behind
// may hold it open for ever.
type Output struct {
	f      *os.File
	exited <-chan struct{}
	left   bool // the agent has left
	rest   int  // bytes read since then
}

// EndWithAgent lets Read know that the agent has left. It waits for that, or for ended.
func (o *Output) EndWithAgent(ended <-chan struct{}) {
	select {
	case <-o.exited:
		_ = o.f.SetReadDeadline(time.Now()) // Windows has none: there the job ends the children, too
	case <-ended:
	}
}

// Read reads until the agent has left and what it wrote is read; then it ends.
func (o *Output) Read(b []byte) (int, error) {
	if !o.left {
		n, err := o.f.Read(b)
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			return n, err
		}
		o.left = true
	}
	if o.rest >= restLimit {
		return 0, io.EOF
	}
	for range drainSlices { // a deadline that is over before reading begins hides what is there
		_ = o.f.SetReadDeadline(time.Now().Add(drainWait / drainSlices))
		n, err := o.f.Read(b)
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			o.rest += n
			return n, err
		}
	}
	return 0, io.EOF
}

// Close closes it. It is called once, by the reader.
func (o *Output) Close() error { return o.f.Close() }
