package kernel

import (
	"sync"

	"github.com/perlica/perlica/provider"
)

// A lifecycle tells the goroutines of a turn about its stages: the agent is attached, the turn is cancelled, the run
// has ended. It closes one channel for each stage, once, and sends nothing on it.
type lifecycle struct {
	attached  chan struct{} // closed when conn is set; a method that needs conn earlier waits
	conn      *provider.Conn
	cancelled chan struct{} // closed when the turn is cancelled; all questions then end without an answer
	cancel    func()        // closes cancelled
	ended     chan struct{} // closed when the run ends
	end       func()        // closes ended

	cancelling sync.WaitGroup // the goroutine that asks the agent to cancel the turn
}

func newLifecycle() *lifecycle {
	l := &lifecycle{attached: make(chan struct{}), cancelled: make(chan struct{}), ended: make(chan struct{})}
	l.cancel = sync.OnceFunc(func() { close(l.cancelled) })
	l.end = sync.OnceFunc(func() { close(l.ended) })
	return l
}

// attachConn gives the turn its connection. The turn calls it once, or never if the agent could not be provided.
func (l *lifecycle) attachConn(conn *provider.Conn) {
	l.conn = conn
	close(l.attached)
}

// gone waits for attachConn. It returns a channel that is closed when the agent's process has ended.
func (l *lifecycle) gone() <-chan struct{} {
	<-l.attached
	return l.conn.Gone()
}

// killAgent ends the agent without sending it anything, because the log cannot be written. If the turn ends without an
// agent, it does nothing.
func (l *lifecycle) killAgent() {
	select {
	case <-l.attached:
	case <-l.ended:
	}
	select {
	case <-l.attached:
		l.conn.Kill()
	default:
	}
}

func (l *lifecycle) isCancelled() bool {
	select {
	case <-l.cancelled:
		return true
	default:
		return false
	}
}
