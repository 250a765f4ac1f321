package process

import (
	"context"
	"slices"
	"sync"
)

// Launched is an agent's process that is started in the background, ahead of the Start that takes it:
// while a log is opened, say. Until then nothing is written to it, and nothing that it says is read.
type Launched struct {
	spec  Spec
	ready chan struct{} // closed when p and err are set
	p     *Process
	err   error

	once    sync.Once     // guards the closing of decided
	decided chan struct{} // closed when stderr is set, or the process is ended unused
	stderr  func([]byte)  // who gets the lines of stderr
	taken   bool          // written before decided is closed
}

// Launch begins to start an agent and returns at once; Spec.Stderr is that of the Start that takes the
// process. The caller must call End.
func Launch(spec Spec) *Launched {
	l := &Launched{spec: spec, ready: make(chan struct{}), decided: make(chan struct{})}
	spec.Launched, spec.Stderr = nil, l.line
	go func() { // End and take wait for it
		l.p, l.err = Start(spec)
		close(l.ready)
	}()
	return l
}

// line hands a line of stderr on, once it is known to whom.
func (l *Launched) line(b []byte) {
	<-l.decided
	if l.stderr != nil {
		l.stderr(b)
	}
}

// take returns the process, or why it did not start. ok is false where it is another than spec's, or was
// taken or ended before.
func (l *Launched) take(spec Spec) (p *Process, err error, ok bool) {
	same := l.spec.Agent == spec.Agent && l.spec.Dir == spec.Dir && l.spec.Limit == spec.Limit && l.spec.Grace == spec.Grace &&
		slices.Equal(l.spec.Argv, spec.Argv) && slices.Equal(l.spec.Env, spec.Env)
	if !same {
		return nil, nil, false
	}
	l.once.Do(func() {
		l.stderr, l.taken, ok = spec.Stderr, true, true
		close(l.decided)
	})
	if !ok {
		return nil, nil, false
	}
	<-l.ready
	return l.p, l.err, true
}

// End ends the process, without grace and without a byte to it, unless a Start has taken it. It returns
// when nothing of it is left, with the error of Process.End.
func (l *Launched) End() error {
	l.once.Do(func() { close(l.decided) })
	<-l.ready
	if l.taken || l.err != nil {
		return nil
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	err := l.p.End(ctx)
	_ = l.p.stdout.Close() // no one reads it
	return err
}
