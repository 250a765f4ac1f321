// Package program starts programs of the user.
//
// The package makes these promises. It starts a program without a shell, with JSON on its standard input, a reduced
// environment and limits of time and output. It then ends the program with all processes that the program started. A
// file inside the project is started only while its bytes are the trusted ones. The program has no rights of a person:
// it counts as a process of an agent.
//
// The one idea is the private copy. Perlica reads a file of the project once and compares these bytes with the
// trusted digest. It then starts a copy of the bytes in the user's own folder. A later change of the file cannot
// reach the start.
//
// The package does not judge the result of a program, and it starts nothing a second time.
package program

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/perlica/perlica/eventlog/message"
	"github.com/perlica/perlica/provider/process"
)

// These are the reasons why a start of a program failed.
var (
	// errUntrusted means that a file of the command lies inside the project, and its bytes are not the trusted ones.
	errUntrusted = message.New("program.untrusted",
		"not started: %s lies inside the project, and its bytes are not trusted; see %s")
	// errNotStarted means that the program could not be started.
	errNotStarted = message.New("program.not-started", "could not be started: %s")
	// errLate means that the time of the program was over before its end.
	errLate = message.New("program.late", "did not end within %s")
	// errStopped means that the start was no longer needed.
	errStopped = message.New("program.stopped", "was ended, because its result is no longer needed")
	// errFlood means that the program wrote too much.
	errFlood = message.New("program.flood", "wrote more than %s")
	// errExit means that the program ended with an exit code other than 0.
	errExit = message.New("program.exit", "ended with exit code %d")
	// errSignal means that a signal ended the program.
	errSignal = message.New("program.signal", "was ended by the signal %s")
)

const (
	// maxOutput is the largest output that a program may write, in bytes, for each of its two streams.
	maxOutput = 64 << 10
	// childGrace is the time that processes of the program have after its end, before they are killed.
	childGrace = 200 * time.Millisecond
)

// These variables mark a program and tell it its project. A Perlica that finds Variable in its environment opens no log
// for work.
const (
	Variable        = "PERLICA_HOOK"
	ProjectVariable = "PERLICA_HOOK_PROJECT"
)

// Start describes one start of a program.
type Start struct {
	Command
	Kind    string        // the value of Variable: "hook" or "policy"
	Input   []byte        // the JSON for standard input
	Timeout time.Duration // the time until the program's end
	Limit   string        // the least strict permission mode of a Perlica that the program starts
	Roots   []string      // further folders whose files need trust: the agent's directories
}

// Result is the result of a program. After an error, the fields have the known part.
type Result struct {
	Stdout []byte
	Stderr string // the last part of its error output
	Files  []File // the files of the command, as they were at the start
	Took   time.Duration
}

// Run starts a program, waits for its end, and ends all processes that the program started. The error is one of the
// reasons above. If ctx ends, Run ends the program at once.
func (s *Store) Run(ctx context.Context, start Start) (res Result, err error) {
	began := time.Now()
	defer func() { res.Took = time.Since(began) }()
	argv, files, err := s.prepare(start.Command, start.Roots)
	res.Files = files
	if err != nil {
		return res, err
	}
	timed, cancel := context.WithTimeout(ctx, start.Timeout)
	defer cancel()
	env, err := process.Environ(s.Environ, nil)
	if err != nil {
		return res, errNotStarted.With(err)
	}
	var flooded atomic.Bool
	var written atomic.Int64
	flood := make(chan struct{}, 1)
	p, err := process.Start(process.Spec{
		Agent: start.Kind, Argv: argv, Dir: s.copies(), Grace: childGrace, Limit: start.Limit,
		Env: append(env, Variable+"="+start.Kind, ProjectVariable+"="+s.Project),
		Stderr: func(line []byte) {
			if written.Add(int64(len(line))+1) > maxOutput && !flooded.Swap(true) {
				flood <- struct{}{}
			}
		},
	})
	if err != nil {
		return res, errNotStarted.With(err)
	}
	stop := context.AfterFunc(timed, func() { _ = p.Kill() }) // an error is ignored: End names remaining processes
	defer stop()
	go func() { // the write blocks if the program ignores its input, until End closes the pipe
		_, _ = p.Stdin().Write(start.Input)
		_ = p.Stdin().Close()
	}()
	ended := make(chan struct{})
	defer close(ended)
	read := make(chan []byte, 1)
	go func() { read <- readOutput(p, ended) }()
	select {
	case res.Stdout = <-read:
	case <-flood:
	}
	if len(res.Stdout) > maxOutput {
		flooded.Store(true)
		res.Stdout = res.Stdout[:maxOutput]
	}
	if flooded.Load() {
		_ = p.Kill()
	}
	select {
	case <-p.Exited():
	case <-flood:
		_ = p.Kill()
		<-p.Exited()
	}
	code, signal, _ := p.ExitState()
	switch { // choose the error before End, because the program's time may pass during End
	case flooded.Load():
		err = errFlood.With(humanize.IBytes(maxOutput))
	case ctx.Err() != nil:
		err = errStopped
	case timed.Err() != nil:
		err = errLate.With(start.Timeout)
	case signal != "":
		err = errSignal.With(signal)
	case code != 0:
		err = errExit.With(code)
	}
	left := p.End(context.WithoutCancel(ctx))
	res.Stderr = p.StderrTail()
	return res, cmp.Or(err, left)
}

// readOutput returns at most maxOutput+1 bytes of a program's standard output. The extra byte shows that the program
// wrote too much. It returns when the program has ended or written too much. The caller closes the channel "ended"
// after its work with the process.
func readOutput(p *process.Process, ended <-chan struct{}) []byte {
	out := p.Output()
	go out.EndWithAgent(ended)
	var b bytes.Buffer
	_, err := io.Copy(&b, io.LimitReader(out, maxOutput+1))
	if cerr := out.Close(); errors.Join(err, cerr) != nil {
		return b.Bytes() // an error is ignored, because the exit code shows whether the program was successful
	}
	return b.Bytes()
}

// Name returns the name of a command for people: the last part of its first word.
func (c Command) Name() string {
	if len(c.Words) == 0 {
		return ""
	}
	return filepath.Base(c.Words[0])
}
