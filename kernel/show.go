package kernel

import (
	"sync"

	"github.com/perlica/perlica/eventlog"
	"github.com/perlica/perlica/interaction"
	"github.com/perlica/perlica/provider"
)

// Notice is something to be shown while a run goes on. It is one of the types below;
// what it tells is on the record already.
type Notice interface{ notice() }

// The notices.
type (
	// Started says that the agent has a session and the prompt is about to leave.
	Started struct {
		Result // Run, Input, Session and Provider
		Agent  string
		Mode   string // the agent's mode, if it has modes
	}
	// Updated is something that the agent said.
	Updated struct{ provider.Update }
	// Asked is a question for a person. It is closed at once where there is no person to answer.
	Asked struct {
		interaction.Question
		Request    string // the id of the agent's request as it wrote it
		Answerable bool
	}
	// Closed says how a question ended. The question is without its Subject.
	Closed struct {
		Question interaction.Question
		Request  string
		Answer   *interaction.Answer // nil if there was none
		Reason   interaction.Reason  // why there was none
	}
	// Decided says that a rule or a mode answered instead of a person.
	Decided struct {
		Title, Effect, By, Why string
		Request                string // the id of the agent's request as it wrote it
	}
	// Blocked is a request of the agent that was refused.
	Blocked struct{ Method string }
	// Warned is something that is wrong but does not end the run.
	Warned struct{ Subtype, Detail string }
)

func (Started) notice() {}
func (Updated) notice() {}
func (Asked) notice()   {}
func (Closed) notice()  {}
func (Decided) notice() {}
func (Blocked) notice() {}
func (Warned) notice()  {}

// The queue of what is to be shown blocks the caller that adds to it beyond these limits; that
// slows the agent down through its pipe.
const (
	showQueue = 4096
	showBytes = 1 << 20
)

// shower shows notices in order, each after everything recorded before it is on disk.
type shower struct {
	show func(Notice)
	log  *eventlog.Log // waited for; nil: batches may be up to 20 ms behind
	fail func(error)   // called once if the disk fails
	done chan struct{}

	mu     sync.Mutex // guards what follows
	change sync.Cond
	queue  []Notice
	upTo   eventlog.Mark // what the last of the queue tells is recorded before it
	bytes  int
	due    bool // the queue is to be shown
	begun  bool // loop has been
	closed bool
	failed bool
}

func newShower(show func(Notice), log *eventlog.Log, fail func(error)) *shower {
	s := &shower{show: show, log: log, fail: fail, done: make(chan struct{})}
	s.change.L = &s.mu
	if show == nil {
		s.show = func(Notice) {}
		s.log = nil
	}
	return s
}

// add queues a notice, and has it shown with all before it.
func (s *shower) add(n Notice) {
	s.hold(n)
	s.flush()
}

// hold queues a notice until flush is called, or much is queued. After a fault of the disk
// nothing is shown any more.
func (s *shower) hold(n Notice) {
	size := 0
	switch n := n.(type) {
	case Updated:
		size = len(n.Raw)
	case Asked:
		size = len(n.Subject.RawInput)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for (len(s.queue) >= showQueue || s.bytes > showBytes) && !s.closed && !s.failed {
		s.begin()
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

// flush has what is queued shown.
func (s *shower) flush() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.queue) > 0 && !s.due {
		s.begin()
	}
}

// begin has loop show the queue. The caller holds mu.
func (s *shower) begin() {
	s.due = true
	if !s.begun {
		s.begun = true
		go s.loop()
	}
	s.change.Broadcast()
}

func (s *shower) loop() {
	defer close(s.done)
	var batch []Notice
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
				s.stop(err)
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

func (s *shower) stop(err error) {
	s.mu.Lock()
	s.failed = true
	s.change.Broadcast()
	s.mu.Unlock()
	s.fail(err)
}

// close shows what is queued and returns when it has been shown. Later calls do nothing.
func (s *shower) close() {
	s.mu.Lock()
	s.closed = true
	s.begin()
	s.mu.Unlock()
	<-s.done
}
