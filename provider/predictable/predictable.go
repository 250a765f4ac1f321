// Package predictable is an ACP agent on stdio for testing clients. The text of a prompt is its script. The agent obeys
// each line that begins with @ and the name of a directive, and echoes all other lines. A scenario has scripts for the
// other methods of ACP, with the same directives.
//
// The package makes three promises. The same input gives the same bytes. A prompt gets exactly one response unless a
// directive says otherwise. A session/cancel after a prompt is never lost. The agent calls no model, runs no command,
// and changes only the session files in [Options].State. It claims to use tools and does not use them. For @spawn it
// starts one process: a sleeping copy of itself.
//
// Every incoming request becomes a [request] with a default response. A script is a list of steps that read or change
// this request. A script runs on its own goroutine. The reading goroutine itself answers a request without a script, in
// wire order.
//
// The package writes its lines without an SDK. So it can make every mistake that a client must survive, and has no bug
// in common with a client that uses the SDK.
package predictable

import (
	"context"
	"errors"
	"io"
	"sync"

	"github.com/perlica/perlica/provider/agentside"
)

// EnvScenario is the name of the environment variable with the default scenario. The commands that start the agent read
// it; this package does not.
const EnvScenario = "PERLICA_PREDICTABLE"

// Options are the settings of an agent, which its command line sets. The zero value is a correct agent that stores no
// sessions.
type Options struct {
	// Scenario (--scenario) is the path of a scenario file, or the scenario itself if it begins with @, [ or
	// # or contains a newline.
	Scenario string

	// State (--state) is a directory for sessions, so that a later process can load, resume and list them. The agent
	// creates the directory if needed. If State is empty, sessions end with the process, and the agent does not offer
	// to load, resume, list or delete sessions.
	State string

	// Self is the command with which @spawn starts this agent again. The agent appends --scenario and a scenario. Nil
	// means this executable with the arguments "agent predictable".
	Self []string

	// Exit ends the process with an exit code. Kill ends the process as SIGKILL does. IgnoreTerm makes the process
	// ignore SIGTERM from now on. Nil means os.Exit, os.Process.Kill, and an error for @ignore term. If Exit or Kill
	// returns, Serve returns, too.
	Exit       func(code int)
	Kill       func()
	IgnoreTerm func()
}

var (
	// errCancelled ends the script of a cancelled turn.
	errCancelled = errors.New("cancelled")
	// errGone ends a script that can no longer answer, because the client closed standard input, a write failed, or the
	// process is about to end.
	errGone = errors.New("gone")
)

// Serve speaks ACP until the input ends or ctx is cancelled, and then returns nil. If it cannot read the scenario, it
// returns an error before it reads or writes anything else. Later it returns an error only if reading the input fails.
//
// When the input ends, Serve stops scripts that wait and lets the others finish, so that all requests from a file get
// responses. Serve returns after every turn has ended. If ctx ends before the input, a goroutine stays in the pending
// Read of the input. The directive @close closes out if out is an io.Closer. Serve closes nothing else.
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

// lockedWriter makes a writer safe for concurrent use: it passes on one Write at a time.
type lockedWriter struct {
	mu  sync.Mutex
	out io.Writer
}

func (w *lockedWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.out.Write(p)
}
