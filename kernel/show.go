package kernel

import (
	"sync"

	"github.com/perlica/perlica/eventlog"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/interaction"
	"github.com/perlica/perlica/kernel/fact"
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
		fact.PolicyDecided
		Request string // the id of the agent's request as it wrote it
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

// Notice applies an event of the run and returns what it means to a person who watches, nil if nothing. It is given
// the run's events in their order, from the first one on, wherever they come from. A question is Answerable if it was
// asked of a person: whether it has an answer by now this event does not tell. Of a payload that was removed it tells
// little: that something happened is known all the same.
func (r *Record) Notice(e event.Event) Notice {
	switch err := r.Apply(e); {
	case e.Damage() != nil && e.Type != event.MessageReceived && e.Type != event.Requested && e.Type != event.CallEnforced:
		_ = r.factNotice(e) // what the type says counts
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

// factNotice is Notice for a fact that was applied.
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
	case event.CallEnforced: // in one commit with the outcome, and its last event
		if r.Outcome != "" {
			return Finished{Result: r.Result, At: r.ended}
		}
	}
	return nil
}

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
