package interaction

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sort"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/perlica/perlica/eventlog"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/message"
)

// Coordinator asks questions and receives answers. The log carries questions and answers between processes. Several
// goroutines may call its methods.
type Coordinator struct {
	log    *eventlog.Log
	dir    string // folder of the sockets; empty means that processes do not wake each other
	now    func() time.Time
	waking *wakeListener

	mu    sync.Mutex // guards the fields below; never held during I/O
	open  []*Ticket  // in the order of asking
	woken func()     // the function of OnWake, or nil
}

// OnWake sets the function that Look calls after it has read the log. Look runs when another process has added an
// answer, and also at regular intervals. Call OnWake before Reachable.
func (c *Coordinator) OnWake(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.woken = f
}

// New returns a Coordinator that stores its questions on log. dir is the folder of the sockets and must be private to
// the user.
func New(log *eventlog.Log, dir string, now func() time.Time) *Coordinator {
	return &Coordinator{log: log, dir: dir, now: now}
}

// Ticket is an open question without its Subject. Many large questions may wait at once, so only the log has their
// Subjects.
type Ticket struct {
	Question

	c    *Coordinator
	once sync.Once
	done chan struct{}
	// asked means that this Coordinator recorded the question.
	asked bool

	// These fields are set before done is closed.
	answer *Answer
	lapsed Reason
	err    error
}

// Done returns a channel that is closed after the question was answered or closed without an answer. By then the end
// is on the log.
func (t *Ticket) Done() <-chan struct{} { return t.done }

// Outcome returns the answer, or the reason for closing without an answer, or an error of the log. Call it after Done
// is closed. After an error the caller must not send anything to the agent.
func (t *Ticket) Outcome() (*Answer, Reason, error) { return t.answer, t.lapsed, t.err }

func (t *Ticket) closeWith(answer *Answer, lapsed Reason, err error) {
	t.once.Do(func() {
		t.answer, t.lapsed, t.err = answer, lapsed, err
		close(t.done)
	})
}

// Ask records the question and opens it for answers. When Ask returns, the question is on disk. Front ends may show
// it only after that. The caller must call Resolve in the end. If other processes may answer, call Reachable before.
func (c *Coordinator) Ask(ctx context.Context, q Question) (*Ticket, error) {
	if q.ID == "" {
		q.ID = event.InteractionID(uuid.Must(uuid.NewV7()).String())
	}
	q.Refs.Interaction = q.ID
	q.Asked, q.Writer = c.now(), c.log.Writer()
	t := &Ticket{Question: q, c: c, done: make(chan struct{}), asked: true}
	t.Subject = Subject{}
	c.mu.Lock()
	c.open = append(c.open, t)
	c.mu.Unlock()
	if _, err := c.log.Append(ctx, event.NewFact(event.InteractionRequested, "agent", q.Refs, q)); err != nil {
		c.removeTicket(t)
		return nil, err
	}
	return t, nil
}

// AskOnce asks a question with an ID that follows from its reason. If the log already has the question, AskOnce records
// nothing and opens the question again. If the log also has its answer, the Ticket is closed at once. For a new
// question, AskOnce does the same as Ask.
func (c *Coordinator) AskOnce(ctx context.Context, q Question) (*Ticket, error) {
	q.Refs.Interaction = q.ID
	q.Asked, q.Writer = c.now(), c.log.Writer()
	t := &Ticket{Question: q, c: c, done: make(chan struct{})}
	c.mu.Lock()
	c.open = append(c.open, t)
	c.mu.Unlock()
	asked := event.Query{Interaction: q.ID, Types: []event.Type{event.InteractionRequested}}
	_, err := c.log.AppendUnless(ctx, asked, event.NewFact(event.InteractionRequested, "perlica", q.Refs, q))
	var conflict *eventlog.ConflictError
	if err != nil && !errors.As(err, &conflict) {
		c.removeTicket(t)
		return nil, err
	}
	c.closeEnded(ctx, false)
	return t, nil
}

// Open returns the open questions of this process, oldest first and without their Subjects.
func (c *Coordinator) Open() []Question {
	c.mu.Lock()
	defer c.mu.Unlock()
	var qs []Question
	for _, t := range c.open {
		qs = append(qs, t.Question)
	}
	return qs
}

// Leave ends the interest of this process in a question. The question stays open on the log, and AskOnce can open it
// again.
func (c *Coordinator) Leave(t *Ticket) { c.removeTicket(t) }

func (c *Coordinator) removeTicket(t *Ticket) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open = slices.DeleteFunc(c.open, func(o *Ticket) bool { return o == t })
}

// Answer answers a question of this or another process. When it returns nil, the answer is on disk and counts. If
// another process asked, Answer has woken that process. If the question was already closed, the error is a TakenError,
// which says how the question ended. An answer that does not count is recorded as rejected.
//
// If the log masks a part of the typed text, the answer does not count. Otherwise the log could not show the text
// that the agent received.
func (c *Coordinator) Answer(ctx context.Context, id event.InteractionID, a Answer) error {
	own := c.findAsked(id)
	var q Question
	if own != nil {
		q = own.Question
	} else {
		var err error
		if q, err = Find(ctx, &c.log.Reader, id); err != nil {
			return err
		}
	}
	if err := q.Check(a); err != nil {
		return c.rejectAnswer(ctx, q, a, err)
	}
	kept := c.maskedAnswer(a)
	if q.Input != nil && kept.Text != a.Text {
		return c.rejectAnswer(ctx, q, a, unfit(beNoSecret))
	}
	_, err := c.log.Append(ctx, event.NewFact(event.InteractionAnswered, "user", q.Refs, a))
	var conflict *eventlog.ConflictError
	if errors.As(err, &conflict) {
		return c.rejectAnswer(ctx, q, a, taken(ctx, &c.log.Reader, id))
	}
	if err != nil {
		return err
	}
	switch {
	case own != nil:
		own.closeWith(&kept, "", nil)
		return nil
	case q.Writer == c.log.Writer():
		c.closeEnded(ctx, false)
		return nil
	}
	return c.Wake(q.Writer)
}

// findAsked returns the Ticket of an open question that this Coordinator recorded, or nil.
func (c *Coordinator) findAsked(id event.InteractionID) *Ticket {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.IndexFunc(c.open, func(t *Ticket) bool { return t.ID == id && t.asked })
	if i < 0 {
		return nil
	}
	return c.open[i]
}

// maskedAnswer returns an answer in the form in which the log stores it.
func (c *Coordinator) maskedAnswer(a Answer) (k Answer) {
	if err := json.Unmarshal(c.log.Kept(event.NewFact(event.InteractionAnswered, "user", event.Refs{}, a).Payload),
		&k); err != nil {
		return Answer{} // the masked answer is no longer valid JSON
	}
	return k
}

// rejectAnswer records an answer that does not count. It returns the error in the parameter "why", together with the
// error of the log if the log cannot be written.
func (c *Coordinator) rejectAnswer(ctx context.Context, q Question, a Answer, why error) error {
	if c.log.Err() != nil {
		return why
	}
	actor := "user"
	if errors.Is(why, ErrAgent) { // An agent ran with the user's name. The user did not answer.
		actor, a.By = "agent", a.Origin.Agent
	}
	fact := event.NewFact(event.InteractionAnswerRejected, actor, q.Refs, Rejected{a, why.Error(), message.Of(why).Coded})
	_, err := c.log.Append(ctx, fact)
	return errors.Join(why, err)
}

// Lapse closes a question without an answer. If an answer came before, that answer stays valid, and Outcome returns
// it. Lapse returns an error only if the log cannot be written.
func (c *Coordinator) Lapse(ctx context.Context, t *Ticket, why Reason) error {
	fact := event.NewFact(event.InteractionLapsed, "perlica", t.Refs, lapse{why})
	_, err := c.log.Append(ctx, fact)
	var conflict *eventlog.ConflictError
	if errors.As(err, &conflict) {
		c.closeEnded(ctx, false)
		return nil
	}
	t.closeWith(nil, why, err)
	return err
}

type lapse struct {
	Reason Reason `json:"reason"`
}

// Resolution describes the reply that the agent received at the end of a question.
type Resolution struct {
	Option string `json:"option,omitempty"` // the agent's option that was sent; empty: cancelled
	Sent   bool   `json:"sent"`             // the reply was sent
	Reason Reason `json:"reason,omitempty"` // why there was no answer
}

// Resolve records the Resolution of a question. It does not wait for the disk, because nothing depends on this event.
func (c *Coordinator) Resolve(t *Ticket, r Resolution) error {
	c.removeTicket(t)
	return c.log.Record(event.NewFact(event.InteractionResolved, "perlica", t.Refs, r))
}

// Look reads the answers that other processes have added to the log. An answering process normally wakes this process.
// It cannot wake this process if it dies first or cannot reach the socket. The caller should therefore call Look
// regularly while a question is open.
func (c *Coordinator) Look(ctx context.Context) {
	c.closeEnded(ctx, true)
	c.mu.Lock()
	woken := c.woken
	c.mu.Unlock()
	if woken != nil {
		woken()
	}
}

// closeEnded closes the tickets of questions that have ended on the log. The parameter "again" says that the caller
// will call closeEnded again later. If the log cannot be read and no further call comes, closeEnded closes the tickets
// with the error.
func (c *Coordinator) closeEnded(ctx context.Context, again bool) {
	c.mu.Lock()
	waiting := slices.Clone(c.open)
	c.mu.Unlock()
	for _, t := range waiting {
		var end *TakenError
		switch err := taken(ctx, &c.log.Reader, t.ID); {
		case err == nil, again && !errors.As(err, &end): // the question is still open
		case errors.As(err, &end):
			t.closeWith(end.Answer, end.Lapsed, nil)
		default:
			t.closeWith(nil, "", err)
		}
	}
}

// Close stops listening for answers from other processes. The caller must first close its open questions with Lapse.
func (c *Coordinator) Close() error {
	c.mu.Lock()
	b := c.waking
	c.waking = nil
	c.mu.Unlock()
	if b == nil {
		return nil
	}
	err := b.listener.Close()
	b.wg.Wait()
	removeFolder(c.dir, b.path)
	return err
}

// Find returns a question from the log. The error wraps ErrUnknownQuestion if there is no such question.
func Find(ctx context.Context, r event.Reader, id event.InteractionID) (Question, error) {
	for e, err := range r.Events(ctx, event.Query{Interaction: id, Types: []event.Type{event.InteractionRequested}}) {
		if err != nil {
			return Question{}, err
		}
		return Decode(e)
	}
	return Question{}, fmt.Errorf("%w: %s", ErrUnknownQuestion, id)
}

// Decode decodes the payload of an event interaction.requested.
func Decode(e event.Event) (q Question, err error) {
	err = e.Decode(&q)
	q.ID, q.Refs, q.Asked, q.Writer = e.Interaction, e.Refs, e.Time, e.Writer
	return q, err
}

// Pending returns the open questions of the given runs, oldest first.
func Pending(ctx context.Context, r event.Reader, runs []event.RunID) ([]Question, error) {
	var qs []Question
	for _, run := range runs {
		for e, err := range r.Events(ctx, event.Query{Run: run, Types: []event.Type{
			event.InteractionRequested, event.InteractionAnswered, event.InteractionLapsed, event.InteractionResolved,
		}}) {
			if err != nil {
				return nil, err
			}
			if e.Type != event.InteractionRequested {
				qs = slices.DeleteFunc(qs, func(q Question) bool { return q.ID == e.Interaction })
				continue
			}
			q, err := Decode(e)
			// A later version of Perlica wrote this question. This version can only close it.
			if err != nil {
				q.Title, q.Options, q.Expires = "", nil, time.Time{}
			}
			qs = append(qs, q)
		}
	}
	sort.SliceStable(qs, func(i, j int) bool { return qs[i].Asked.Before(qs[j].Asked) })
	return qs, nil
}

// Closed returns the end of a question, or nil if the question is open.
func Closed(ctx context.Context, r event.Reader, id event.InteractionID) (*TakenError, error) {
	err := taken(ctx, r, id)
	var end *TakenError
	if errors.As(err, &end) {
		return end, nil
	}
	return nil, err
}

// taken returns a *TakenError if the question is closed. It returns nil if the question is open.
func taken(ctx context.Context, r event.Reader, id event.InteractionID) error {
	types := []event.Type{event.InteractionAnswered, event.InteractionLapsed}
	e, ok, err := r.Last(ctx, event.Query{Interaction: id, Types: types})
	if err != nil || !ok {
		return err
	}
	end, err := DecodeEnd(e)
	return errors.Join(end, err)
}

// DecodeEnd decodes the event that ended a question: interaction.answered or interaction.lapsed.
func DecodeEnd(e event.Event) (*TakenError, error) {
	if e.Type == event.InteractionLapsed {
		var l lapse
		err := e.Decode(&l)
		return &TakenError{Lapsed: l.Reason, At: e.Time}, err
	}
	var a Answer
	err := e.Decode(&a)
	return &TakenError{Answer: &a, At: e.Time}, err
}

// Abandon closes and resolves a question of a process that has died. If the question is already closed, Abandon only
// resolves it.
func (c *Coordinator) Abandon(ctx context.Context, q Question, why Reason) error {
	_, err := c.log.Append(ctx, event.NewFact(event.InteractionLapsed, "perlica", q.Refs, lapse{why}))
	var conflict *eventlog.ConflictError
	if err != nil && !errors.As(err, &conflict) {
		return err
	}
	return c.log.Record(event.NewFact(event.InteractionResolved, "perlica", q.Refs, Resolution{Reason: why}))
}
