package provider

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/coder/acp-go-sdk"

	"github.com/perlica/perlica/provider/jsonrpc"
)

// Call is the right to send one session/prompt. It can be spent once.
type Call struct {
	run  string
	used atomic.Bool
	left atomic.Bool
}

// NewCall returns the right to the one call of a run. A second Call of the same run is
// worth nothing: the tap remembers which runs have prompted.
func NewCall(run string) *Call { return &Call{run: run} }

// MayHaveLeft reports whether a byte of the prompt may have reached the agent.
func (c *Call) MayHaveLeft() bool { return c.left.Load() }

// sending is a line on its way to the agent.
type sending struct {
	line []byte // without its line feed
	call *Call
	done chan struct{} // closed when the writer has let go of the line, and err is set
	err  error         // nil if the whole line has left
}

// unsent is a line that never gets on its way.
func unsent(err error) *sending {
	o := &sending{done: make(chan struct{}), err: err}
	close(o.done)
	return o
}

// queue gives a line to the writer.
func (c *Conn) queue(line []byte, call *Call) *sending {
	o := &sending{line: line, call: call, done: make(chan struct{})}
	select {
	case c.out <- o:
		return o
	case <-c.gone:
		return unsent(c.Err())
	}
}

// wait waits until the line has left, or cannot leave any more.
func (o *sending) wait(c *Conn) error {
	select {
	case <-o.done:
		return o.err
	case <-c.quiet: // not gone: until the writer has let go of the line, it may still leave
	}
	select {
	case <-o.done:
		return o.err
	default:
		return c.Err()
	}
}

// send queues a line and waits until it has left.
func (c *Conn) send(line []byte, call *Call) error { return c.queue(line, call).wait(c) }

// post queues a line for the reader, which does not wait until it has left. While the
// queue is full nothing more is read: an agent that asks without reading the answers
// comes to a halt, and the writer finds it deaf.
func (c *Conn) post(line []byte) {
	c.queue(line, nil)
}

func deaf() *Error {
	return &Error{Type: typeDeaf, Message: "the agent has stopped reading its input", cause: ErrDeaf}
}

// write is the one writer of the agent's input: what it records is in the order of what
// it writes.
func (c *Conn) write() {
	defer close(c.quiet)
	for {
		select {
		case o := <-c.out:
			o.err = c.writeLine(o)
			close(o.done)
		case <-c.gone:
			return
		}
	}
}

// writeLine records a line and writes it.
func (c *Conn) writeLine(o *sending) error {
	if err := c.Err(); err != nil {
		return err
	}
	env := c.parse(o.line)
	if err := c.permit(env, o.call); err != nil {
		return err
	}
	if err := c.opt.Recorder.Sent(env.Frame); err != nil {
		e := &Error{Type: TypeRecord, Message: "the record could not be written: " + err.Error(), cause: errors.Join(ErrRecord, err)}
		c.broken(e)
		return e
	}
	select {
	case <-c.gone: // recording may have taken its time
		return c.Err()
	default:
	}
	if o.call != nil {
		// Until the write says otherwise, some of it may be on its way.
		o.call.left.Store(true)
	}
	late := time.AfterFunc(c.opt.WriteTimeout, func() { c.broken(deaf()) })
	n, err := c.in.Write(append(o.line, '\n')) // fail and Kill end it
	late.Stop()
	if err == nil {
		return nil
	}
	if o.call != nil && n == 0 {
		o.call.left.Store(false)
	}
	if e := c.failure(); e != nil {
		return e
	}
	return c.unwritable(err)
}

// unwritable says why a write failed. Usually the process has ended, and the reader is
// about to find out how; its words are better.
func (c *Conn) unwritable(err error) error {
	select {
	case <-c.gone:
		return c.Err()
	case <-time.After(2 * exitWait):
		e := &Error{Type: TypeGone, Subtype: "input_closed", Message: "the agent closed its input", cause: errors.Join(ErrGone, err)}
		c.broken(e)
		return e
	}
}

// permit lets the first session/prompt of a run through, and every message that is none.
// It judges by the line, so that no way of sending one gets around it; what is more or
// less than one message on one line is refused.
func (c *Conn) permit(env jsonrpc.Message, call *Call) error {
	if env.Kind == jsonrpc.Malformed || jsonrpc.Divided(env.Line) {
		return jsonrpc.ErrMessage
	}
	if env.Method != acp.AgentMethodSessionPrompt {
		return nil
	}
	if call == nil || call.used.Swap(true) {
		return ErrSecondPrompt
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.prompted[call.run] {
		return ErrSecondPrompt
	}
	c.prompted[call.run] = true
	return nil
}
