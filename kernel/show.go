package kernel

import (
	"sync"

	"github.com/perlica/perlica/eventlog"
	"github.com/perlica/perlica/kernel/record"
)

// If the queue of notices exceeds these limits, it blocks the caller. That slows the agent down, because its output
// pipe becomes full.
const (
	showQueue = 4096
	showBytes = 1 << 20
)

// shower shows notices in order. Before it shows a notice, all events recorded before that notice are on disk.
type shower struct {
	show func(record.Notice)
	log  *eventlog.Log // nil if the output may be shown up to 20 ms before it is on disk
	fail func(error)   // called once if the log cannot be written
	done chan struct{}

	mu     sync.Mutex // guards the fields below
	change sync.Cond
	queue  []record.Notice
	upTo   eventlog.Mark // the position of the log after the events that the newest notice needs
	bytes  int
	due    bool // true if the queue must be shown now
	begun  bool // true after the start of showLoop
	closed bool
	failed bool
}

func newShower(show func(record.Notice), log *eventlog.Log, fail func(error)) *shower {
	s := &shower{show: show, log: log, fail: fail, done: make(chan struct{})}
	s.change.L = &s.mu
	if show == nil {
		s.show = func(record.Notice) {}
		s.log = nil
	}
	return s
}

// addNotice adds a notice to the queue and shows the queue.
func (s *shower) addNotice(n record.Notice) {
	s.holdNotice(n)
	s.flushQueue()
}

// holdNotice adds a notice to the queue. The notice is shown when flushQueue is called or the queue is full. After an
// error of the log, nothing is shown any more.
func (s *shower) holdNotice(n record.Notice) {
	size := 0
	switch n := n.(type) {
	case record.Updated:
		size = len(n.Raw)
	case record.Asked:
		size = len(n.Subject.RawInput)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for (len(s.queue) >= showQueue || s.bytes > showBytes) && !s.closed && !s.failed {
		s.wakeLoop()
		s.change.Wait()
	}
	if s.failed || s.closed {
		return
	}
	s.queue = append(s.queue, n)
	s.bytes += size
	if s.log != nil {
		s.upTo = s.log.Mark()
	}
}

// flushQueue makes showLoop show the queued notices.
func (s *shower) flushQueue() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.queue) > 0 && !s.due {
		s.wakeLoop()
	}
}

// wakeLoop makes showLoop show the queue, and starts showLoop if necessary. The caller holds mu.
func (s *shower) wakeLoop() {
	s.due = true
	if !s.begun {
		s.begun = true
		go s.showLoop()
	}
	s.change.Broadcast()
}

func (s *shower) showLoop() {
	defer close(s.done)
	var batch []record.Notice
	for {
		s.mu.Lock()
		for !s.due {
			s.change.Wait()
		}
		batch, s.queue, s.bytes, s.due = s.queue, batch[:0], 0, false
		upTo, last := s.upTo, s.closed
		s.change.Broadcast()
		s.mu.Unlock()
		if s.log != nil {
			if err := s.log.SyncTo(upTo); err != nil {
				s.setFailed(err)
				return
			}
		}
		for _, n := range batch {
			s.show(n)
		}
		clear(batch)
		if last {
			return
		}
	}
}

func (s *shower) setFailed(err error) {
	s.mu.Lock()
	s.failed = true
	s.change.Broadcast()
	s.mu.Unlock()
	s.fail(err)
}

// closeQueue shows the queue and waits for the end of showLoop. Later notices are dropped.
func (s *shower) closeQueue() {
	s.mu.Lock()
	s.closed = true
	s.wakeLoop()
	s.mu.Unlock()
	<-s.done
}
