package process

import (
	"context"
	"reflect"
	"slices"
	"sync"

	"github.com/perlica/perlica/provider/proxy"
)

// Launched is an agent's process that is started in the background before Start takes it, for example while a
// log is opened. Until then nothing is written to the process, and its output is not read.
type Launched struct {
	spec  Spec
	ready chan struct{} // closed after p and err are set
	p     *Process
	err   error

	once    sync.Once     // guards the closing of decided
	decided chan struct{} // closed after stderr and connected are set, or when the process is ended unused
	stderr  func([]byte)  // receives the lines of stderr
	// connected receives the connections of the sandbox.
	connected func(proxy.Connection)
	taken     bool // written before decided is closed
}

// Launch starts an agent in the background and returns at once. The Start that takes the process supplies
// Spec.Stderr and Spec.Connected. The caller must call End.
func Launch(spec Spec) *Launched {
	l := &Launched{spec: spec, ready: make(chan struct{}), decided: make(chan struct{})}
	spec.Launched, spec.Stderr, spec.Connected = nil, l.passLine, l.passConnection
	go func() { // End and takeProcess wait for this goroutine
		l.p, l.err = Start(spec)
		close(l.ready)
	}()
	return l
}

// passLine passes a line of stderr on after the receiver is known.
func (l *Launched) passLine(b []byte) {
	<-l.decided
	if l.stderr != nil {
		l.stderr(b)
	}
}

// passConnection passes a connection on after the receiver is known.
func (l *Launched) passConnection(c proxy.Connection) {
	<-l.decided
	if l.connected != nil {
		l.connected(c)
	}
}

// takeProcess returns the process, or the error of its start. ok is false if the process was started with another
// spec, or was already taken or ended.
func (l *Launched) takeProcess(spec Spec) (p *Process, err error, ok bool) {
	same := l.spec.Agent == spec.Agent && l.spec.Dir == spec.Dir && l.spec.Limit == spec.Limit &&
		l.spec.Grace == spec.Grace &&
		reflect.DeepEqual(l.spec.Sandbox, spec.Sandbox) &&
		slices.Equal(l.spec.Argv, spec.Argv) && slices.Equal(l.spec.Env, spec.Env)
	if !same {
		return nil, nil, false
	}
	l.once.Do(func() {
		l.stderr, l.connected, l.taken, ok = spec.Stderr, spec.Connected, true, true
		close(l.decided)
	})
	if !ok {
		return nil, nil, false
	}
	<-l.ready
	return l.p, l.err, true
}

// End ends the process without grace and without writing to it, unless a Start has taken it. It returns the
// error of Process.End after all its processes have ended.
func (l *Launched) End() error {
	l.once.Do(func() { close(l.decided) })
	<-l.ready
	if l.taken || l.err != nil {
		return nil
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	err := l.p.End(ctx)
	_ = l.p.stdout.Close() // nothing reads the output
	return err
}
