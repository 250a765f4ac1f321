package kernel

import (
	"sync"

	"github.com/perlica/perlica/eventlog"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/interaction"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/provider"
)

// Notice is something to show during a run. It is one of the types below. Its content is already on record.
type Notice interface{ notice() }

// The notices.
type (
	// Started says that the agent has a session and the prompt is about to leave.
	Started struct {
		Result // Run, Input, Session and Provider
		Agent  string
		Mode   string // the agent's mode, if it has modes
	}
	// Updated is an update of the agent.
	Updated struct{ provider.Update }
	// Asked is a question for a person. If no person can answer, the question is closed at once.
	Asked struct {
		interaction.Question
		Request    string // the id of the agent's request in the agent's spelling
		Answerable bool
	}
	// Closed is the end of a question. The question lacks its Subject.
	Closed struct {
		Question interaction.Question
		Request  string
		Answer   *interaction.Answer // nil if there was none
		Reason   interaction.Reason  // the reason for the lack of an answer
	}
	// Decided says that a rule or a mode answered instead of a person.
	Decided struct {
		fact.PolicyDecided
		Request string // the id of the agent's request in the agent's spelling
	}
	// Blocked is a request of the agent that was refused.
	Blocked struct{ Method string }
	// Warned is a fault that does not end the run.
	Warned struct{ Subtype, Detail string }
)

func (Started) notice() {}
func (Updated) notice() {}
func (Asked) notice()   {}
func (Closed) notice()  {}
func (Decided) notice() {}
func (Blocked) notice() {}
func (Warned) notice()  {}

// Notice applies an event of the run and returns its notice, or nil. The caller passes the run's events in
// their order, from the first one on, from any log. A question is Answerable if a person was asked; it may
// have an answer by now. For a removed payload, the notice says only that something happened.
func (r *Record) Notice(e event.Event) Notice {
	switch err := r.Apply(e); {
	case e.Damage() != nil && e.Type != event.MessageReceived && e.Type != event.Requested && e.Type != event.CallEnforced:
		_ = r.factNotice(e) // the type alone counts
		return Warned{Subtype: "damaged", Detail: e.Damage().Row()}
	case err != nil:
		return Warned{Subtype: "unreadable", Detail: "an event that this version cannot read: " + string(e.Type)}
	case e.Class != event.Frame:
		return r.factNotice(e)
	case r.prompted && (e.Type == event.NotificationReceived || e.Type == event.ResponseReceived) && r.Update.Kind != "":
		return Updated{r.Update}
	}
	return nil
}

// factNotice is Notice for an applied fact.
func (r *Record) factNotice(e event.Event) Notice {
	switch e.Type {
	case event.MessageReceived:
		m := r.Received
		received := Received{Run: e.Run, Session: e.Session, At: e.Time, Pruned: e.Payload == nil, Input: Input{
			ID: e.Input, Text: m.Text, Attachments: m.Attachments, Source: m.Source, Sender: m.Sender,
		}}
		if damage := e.Damage(); damage != nil {
			received.Pruned, received.Damage = false, damage.Row()
		}
		return received
	case event.Requested:
		r.prompted = true
		return Started{Result: r.Result}
	case event.InteractionRequested:
		q := r.Question(e.Interaction)
		return Asked{Question: q.Question, Answerable: q.Expires.After(q.Asked)}
	case event.InteractionAnswered, event.InteractionLapsed:
		q := r.Question(e.Interaction)
		return Closed{Question: q.Question, Answer: q.Answer, Reason: q.Reason}
	case event.PolicyDecided, event.ReplySent:
		return r.decided(e)
	case event.ToolBlocked:
		return Blocked{Method: r.Refused[len(r.Refused)-1].Method}
	case event.CancelRequested:
		return Stopping{Run: e.Run, Stop: *r.Stopped}
	case event.Responded, event.ProviderError, event.OutcomeUnknown:
		r.prompted, r.ended = false, e.Time
	case event.CallEnforced: // the last event of the commit with the outcome
		if r.Outcome != "" {
			return Finished{Result: r.Result, At: r.ended}
		}
	}
	return nil
}

// Beyond these limits the queue of notices blocks the caller, which slows the agent down through its pipe.
const (
	showQueue = 4096
	showBytes = 1 << 20
)

// shower shows notices in order. Before it shows one, all events recorded before it are on disk.
type shower struct {
	show func(Notice)
	log  *eventlog.Log // nil means that the log may be up to 20 ms late
	fail func(error)   // called once if the disk fails
	done chan struct{}

	mu     sync.Mutex // guards the fields below
	change sync.Cond
	queue  []Notice
	upTo   eventlog.Mark // the events of the newest notice are recorded before it
	bytes  int
	due    bool // the queue must be shown
	begun  bool // showLoop was started
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

// addNotice queues a notice and shows it with all earlier ones.
func (s *shower) addNotice(n Notice) {
	s.holdNotice(n)
	s.flushQueue()
}

// holdNotice queues a notice until flushQueue is called or the queue is full. After a fault of the disk nothing is shown.
func (s *shower) holdNotice(n Notice) {
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

// flushQueue shows the queue.
func (s *shower) flushQueue() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.queue) > 0 && !s.due {
		s.wakeLoop()
	}
}

// wakeLoop makes showLoop show the queue. The caller holds mu.
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

// closeQueue shows the queue and waits for the end of showLoop. Later calls do nothing.
func (s *shower) closeQueue() {
	s.mu.Lock()
	s.closed = true
	s.wakeLoop()
	s.mu.Unlock()
	<-s.done
}
