package provider

import (
	"github.com/perlica/perlica/eventlog/message"

	"errors"
	"io"
	"strings"
	"time"
)

// readOutput is the only reader of the agent's output.
func (c *Conn) readOutput() {
	out := c.proc.Output()
	defer out.Close()
	ended := make(chan struct{})
	defer close(ended)
	c.wg.Go(func() { out.EndWithAgent(ended) })
	lines := newLineReader(out, c.opt.MaxLine)
	for heard := false; ; heard = true {
		f, err := lines.nextLine()
		if err != nil && !heard {
			c.failInSandbox()
		}
		if err != nil {
			c.outputEnded(err)
			return
		}
		env := Message{Frame: f}
		if f.Kind != Oversized {
			env = c.parseLine(f.Line)
		}
		e := c.failure()
		if e != nil && e.Type == TypeRecord {
			continue // read on, because a process with a full pipe cannot exit
		}
		if err := c.opt.Recorder.Received(env.Frame); err != nil {
			e := &Error{Type: TypeRecord, cause: errors.Join(ErrRecord, err)}
			c.failAndKill(e.Saying(errNotRecorded.With(err)))
			continue
		}
		if e == nil || e.Type == TypeStopped { // after any other failure the output no longer counts
			c.dispatchLine(env)
		}
		if !lines.hasLine() {
			c.opt.Client.Drained()
		}
	}
}

// exitWait is the time that a process has to exit after it closed its output. A process that needs longer
// counts as still running.
const exitWait = 500 * time.Millisecond

func (c *Conn) outputEnded(err error) {
	e := &Error{Type: TypeGone, cause: ErrGone}
	select {
	case <-c.proc.Exited():
	case <-time.After(exitWait):
	case <-c.gone:
	}
	var why *message.Text
	switch code, signal, exited := c.proc.ExitState(); {
	case !exited && errors.Is(err, io.EOF):
		e.Subtype, why = "output_closed", errOutputClosed
	case !exited:
		e.Subtype, why = "output_failed", errOutput.With(err)
	case signal != "":
		e.Subtype, why = "killed", errSignal.With(signal)
	default:
		e.Subtype, why = "exited", errExited.With(code)
	}
	if tail := lastLine(c.proc.StderrTail()); tail != "" {
		why = errLastWords.With(why, tail)
	}
	c.failWith(e.Saying(why))
}

// failInSandbox ends the connection with an error of TypeStart if the machine could not start the agent's sandbox. It
// is called when the output has ended without a line.
func (c *Conn) failInSandbox() {
	box := c.proc.Sandbox()
	if box == nil || c.failure() != nil {
		return
	}
	if err := box.Explain(); err != nil {
		c.failWith((&Error{Type: TypeStart, cause: err}).Saying(message.Of(err)))
	}
}

func lastLine(s string) string {
	s = strings.TrimSpace(s)
	return clip(strings.TrimSpace(s[strings.LastIndexByte(s, '\n')+1:]), 300)
}
