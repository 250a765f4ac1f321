// Package predictable is an ACP agent on stdio that does what it is told, byte for
// byte: the agent to try a client with. The prompt's own text is its script. Lines
// that begin with @ and a directive's name are obeyed, everything else is echoed; a
// scenario scripts the other methods in the same words.
//
// It promises that the same input gives the same bytes, that a prompt is answered
// exactly once unless a directive says otherwise, and that a session/cancel which
// follows a prompt is never lost. It refuses to do anything: it calls no model,
// runs no command, and touches no file but the sessions it keeps in
// [Options].State. A tool it reports is a tool it only claims to have used. The one
// process it starts, for @spawn, is itself, asleep.
//
// The one idea a reader needs: every incoming request becomes a [request] with a
// default response, and a script is a list of steps that look at or change it. A
// request without a script is answered by the reader itself, in wire order; one
// with a script is played on a goroutine of its own.
//
// It builds its lines by hand rather than with an SDK, so that it can be wrong in
// every way a client has to survive, and shares no bug with the client under test.
package predictable

import (
	"context"
	"errors"
	"io"
	"sync"
)

// EnvScenario names the environment variable from which a command line takes the
// scenario when it is given none. This package does not read it.
const EnvScenario = "PERLICA_PREDICTABLE"

// Options is what a command line decides. The zero value is a well-behaved agent
// that keeps no sessions beyond its own life.
type Options struct {
	// Scenario (--scenario) is the path of a scenario file, or a scenario itself:
	// whatever begins with @, [ or # or holds a newline is taken as one.
	Scenario string

	// State (--state) is a directory in which sessions are kept, so that a later
	// process can load, resume and list them. It is made when it is missing. Empty:
	// sessions end with the process and none of the three is offered.
	State string

	// Self is the command that starts this agent again, for @spawn; --scenario and
	// a scenario are appended. Nil: this executable with "agent predictable".
	Self []string

	// Exit ends the process with a code, Kill ends it as SIGKILL does, IgnoreTerm
	// makes it ignore SIGTERM from now on. Nil: os.Exit, os.Process.Kill on itself,
	// and an error to anyone who asks. An Exit or Kill that returns makes Serve return.
	Exit       func(code int)
	Kill       func()
	IgnoreTerm func()
}

var (
	// errCancelled ends a script whose turn was cancelled.
	errCancelled = errors.New("cancelled")
	// errGone ends a script that has no one left to answer: the client closed our
	// standard input, a write failed, or the process is about to end.
	errGone = errors.New("gone")
)

// Serve speaks ACP until in ends or ctx is cancelled, and returns nil for both. It
// returns an error before it has read or written anything when the scenario cannot
// be read, and later only when reading from in fails.
//
// At the end of in what waits is given up without an answer and what does not wait
// is finished, so that requests piped in from a file are answered. Serve returns
// once every turn has ended. When ctx ends first, the goroutine that reads from in
// stays behind until its Read returns. If out is an io.Closer, @close closes it;
// nothing else is closed.
func Serve(ctx context.Context, in io.Reader, out io.Writer, errw io.Writer, opt Options) error {
	scenario, err := readScenario(opt.Scenario)
	if err != nil {
		return err
	}
	life, leave := context.WithCancelCause(ctx)
	defer leave(errGone)
	a := newAgent(scenario, opt, out, errw)
	a.leave = func() { leave(errGone) }

	a.play(life, &request{agent: a, method: sectionStart, sid: firstSession}, scenario.next(sectionStart))
	if life.Err() != nil {
		return nil
	}
	ended := make(chan error, 1)
	go func() { ended <- a.read(life, in) }()
	select {
	case err = <-ended:
	case <-life.Done():
	}
	if life.Err() == nil {
		a.play(life, &request{agent: a, method: sectionEOF, sid: firstSession}, scenario.next(sectionEOF))
		if a.ignoreEOF.Load() {
			<-life.Done()
		}
	}
	leave(errGone)
	a.end()
	return err
}

// lockedWriter lets several goroutines write to one writer, one write at a time.
type lockedWriter struct {
	mu  sync.Mutex
	out io.Writer
}

func (w *lockedWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.out.Write(p)
}
