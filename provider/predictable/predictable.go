// Package predictable is an ACP agent on stdio for testing clients. It follows its script exactly. The script is the
// text of the prompt: it obeys lines that begin with @ and a directive's name, and echoes all other lines. A scenario
// scripts the other methods with the same directives.
//
// The package makes three promises. The same input gives the same bytes. A prompt is answered exactly once
// unless a directive says otherwise. A session/cancel after a prompt is never lost. The agent has no effects
// of its own: it calls no model, runs no command, and touches only the session files in [Options].State. It
// only claims to use a tool. For @spawn it starts one process: a sleeping copy of itself.
//
// The central idea: every incoming request becomes a [request] with a default response, and a script is a
// list of steps that read or change it. The reading goroutine answers a request without a script itself, in
// wire order. A script runs on its own goroutine.
//
// The package writes its lines without an SDK. It can therefore make every mistake that a client must
// survive, and it shares no bug with the client under test.
package predictable

import (
	"context"
	"errors"
	"io"
	"sync"

	"github.com/perlica/perlica/provider/agentside"
)

// EnvScenario is the environment variable with the default scenario of a command line. This package does not
// read it.
const EnvScenario = "PERLICA_PREDICTABLE"

// Options are the settings of a command line. The zero value is a well-behaved agent that stores no sessions.
type Options struct {
	// Scenario (--scenario) is the path of a scenario file, or the scenario itself if it begins with @, [ or
	// # or contains a newline.
	Scenario string

	// State (--state) is a directory for sessions, so that a later process can load, resume and list them.
	// The agent creates it if needed. If State is empty, sessions end with the process and the three methods
	// are not offered.
	State string

	// Self is the command that starts this agent again, for @spawn. --scenario and a scenario are appended.
	// Nil means this executable with "agent predictable".
	Self []string

	// Exit ends the process with a code. Kill ends it like SIGKILL. IgnoreTerm makes it ignore SIGTERM from
	// now on. Nil means os.Exit, os.Process.Kill, and an error for @ignore term. If Exit or Kill returns,
	// Serve returns.
	Exit       func(code int)
	Kill       func()
	IgnoreTerm func()
}

var (
	// errCancelled ends the script of a cancelled turn.
	errCancelled = errors.New("cancelled")
	// errGone ends a script that can no longer answer: the client closed our standard input, a write failed,
	// or the process is about to end.
	errGone = errors.New("gone")
)

// Serve speaks ACP until in ends or ctx is cancelled, and then returns nil. It returns an error before it
// reads or writes anything if the scenario cannot be read. Later it returns an error only if reading from in
// fails.
//
// When in ends, Serve abandons scripts that wait and finishes the others, so that requests from a file are
// answered. Serve returns after every turn has ended. When ctx ends first, the goroutine that reads from in
// stays until its Read returns. If out is an io.Closer, @close closes it. Serve closes nothing else.
func Serve(ctx context.Context, in io.Reader, out io.Writer, errw io.Writer, opt Options) error {
	scenario, err := readScenario(opt.Scenario)
	if err != nil {
		return err
	}
	serving, leave := context.WithCancelCause(ctx)
	defer leave(errGone)
	a := newAgent(scenario, opt, out, errw)
	a.leave = func() { leave(errGone) }

	a.playScript(serving, &request{agent: a, method: sectionStart, sid: firstSession}, scenario.nextScript(sectionStart))
	if serving.Err() != nil {
		return nil
	}
	in = deafReader{in, &a.deafStdin, serving.Done()}
	err = a.conn.Serve(serving, in, func(m agentside.Message) { a.handleMessage(serving, m) })
	if serving.Err() == nil {
		a.playScript(serving, &request{agent: a, method: sectionEOF, sid: firstSession}, scenario.nextScript(sectionEOF))
		if a.ignoreEOF.Load() {
			<-serving.Done()
		}
	}
	leave(errGone)
	a.endScripts()
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
