package provider

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/coder/acp-go-sdk"
)

// Call is the right to send one session/prompt. It can be used once.
type Call struct {
	run  string
	used atomic.Bool
	left atomic.Bool
}

// NewCall returns the right to the single call of a run. A second Call for the same run is useless, because
// the tap remembers all runs that have sent a prompt.
func NewCall(run string) *Call { return &Call{run: run} }

// MayHaveLeft reports whether a byte of the prompt may have reached the agent.
func (c *Call) MayHaveLeft() bool { return c.left.Load() }

// sending is a line on its way to the agent.
type sending struct {
	line []byte // without its line feed
	call *Call
	done chan struct{} // closed after the writer has finished with the line and err is set
	err  error         // nil if the whole line has left
}

// unsent returns a sending that failed before it reached the writer.
func unsent(err error) *sending {
	o := &sending{done: make(chan struct{}), err: err}
	close(o.done)
	return o
}

// queueLine gives a line to the writer.
func (c *Conn) queueLine(line []byte, call *Call) *sending {
	o := &sending{line: line, call: call, done: make(chan struct{})}
	select {
	case c.out <- o:
		return o
	case <-c.gone:
		return unsent(c.Err())
	}
}

// waitSent waits until the line has left or can no longer leave.
func (o *sending) waitSent(c *Conn) error {
	select {
	case <-o.done:
		return o.err
	case <-c.quiet: // not c.gone: the line may still leave until the writer has finished with it
	}
	select {
	case <-o.done:
		return o.err
	default:
		return c.Err()
	}
}

// sendLine queues a line and waits until it has left.
func (c *Conn) sendLine(line []byte, call *Call) error { return c.queueLine(line, call).waitSent(c) }

// postLine queues a line for the reader, which does not wait until the line has left. While the queue is full, the
// reader reads nothing. Therefore an agent that asks and never reads the answers blocks itself, and the write timeout
// ends it.
func (c *Conn) postLine(line []byte) {
	c.queueLine(line, nil)
}

func deaf() *Error {
	return (&Error{Type: typeDeaf, cause: ErrDeaf}).Saying(errNotReading)
}

// writeInput is the only writer of the agent's input. The record therefore has the same order as the input.
func (c *Conn) writeInput() {
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
	env := c.parseLine(o.line)
	if err := c.permitLine(env, o.call); err != nil {
		return err
	}
	if err := c.opt.Recorder.Sent(env.Frame); err != nil {
		e := (&Error{Type: TypeRecord, cause: errors.Join(ErrRecord, err)}).Saying(errNotRecorded.With(err))
		c.failAndKill(e)
		return e
	}
	select {
	case <-c.gone: // the connection may have ended while the line was recorded
		return c.Err()
	default:
	}
	if o.call != nil {
		// Until Write returns, part of the prompt may have left.
		o.call.left.Store(true)
	}
	late := time.AfterFunc(c.opt.WriteTimeout, func() { c.failAndKill(deaf()) })
	n, err := c.in.Write(append(o.line, '\n')) // failWith and Kill interrupt this write
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
	return c.writeError(err)
}

// writeError returns the reason why a write failed. Usually the process has ended and the reader is about to
// find out why. The reader's error is more precise, so writeError waits for it.
func (c *Conn) writeError(err error) error {
	select {
	case <-c.gone:
		return c.Err()
	case <-time.After(2 * exitWait):
		e := (&Error{Type: TypeGone, Subtype: "input_closed", cause: errors.Join(ErrGone, err)}).Saying(errInputClosed)
		c.failAndKill(e)
		return e
	}
}

// permitLine lets through the first session/prompt of a run and every other message. It judges the line itself,
// so that no method of sending can bypass it. It refuses a line that does not hold exactly one message.
func (c *Conn) permitLine(env Message, call *Call) error {
	if env.Kind == Malformed || Divided(env.Line) {
		return ErrMessage
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
