// Package replay is an ACP agent whose every word comes from a record: what a real agent said,
// and what its client answered, read from the log, from an export of it, or from a file of frames.
//
// It promises that each line it says is a line of the record with the ids of the present, that the
// same input gives the same lines, and that a question is asked again and its answer compared with
// the recorded one. It refuses what the record does not have, with an error that says what was
// expected; these errors, the answer to a cancel that was not recorded, and that to initialize of an editor's
// session, made of its record, are all that it says of its own. It calls no model, starts nothing and touches no file.
//
// The one idea a reader needs: a record is a list of exchanges, each a request of the client with
// what the agent said until the next. A request is answered by playing its exchange, and a prompt
// chooses its exchange by its text.
package replay

import (
	"cmp"
	"fmt"
	"iter"
	"strings"
)

// Record is what was said, as [Serve] says it again. All lines are in memory, as they
// were said.
type Record struct {
	Exchanges []*Exchange // in the order in which the client began them
	Lines     int
	Millis    int64 // from the first line to the last

	opening Exchange // what the agent said before it was asked anything
}

// Turns returns the exchanges that are prompts.
func (r *Record) Turns() (turns []*Exchange) {
	for _, x := range r.Exchanges {
		if x.Method == methodPrompt {
			turns = append(turns, x)
		}
	}
	return turns
}

// Exchange is a request of the client and what followed it until the next.
type Exchange struct {
	Method    string
	Text      string // of a prompt: its text blocks, joined by line feeds
	Lines     int    // of the agent
	Questions int    // of these, requests
	Millis    int64  // from the request to its answer
	Cancelled bool   // the client cancelled it

	session string // of the request; if it has none the one that its answer names
	at      int64  // when the request was made, in milliseconds of the record
	answer  []byte // nil: the record ends without one
	steps   []step
}

// End says how a turn ended: its stop reason, its error's code, or that the record has no end of it.
func (x *Exchange) End() string {
	m, _ := parse(x.answer) // nil has no members
	switch {
	case x.answer == nil:
		return "no end"
	case isSet(m.fault):
		return "error " + string(member(m.fault, "code"))
	}
	return text(member(m.result, "stopReason"))
}

// kind says what is done at a step.
type kind uint8

const (
	say    kind = iota // the agent's notification
	ask                // the agent's request
	await              // the client's answer to one
	cancel             // the client's session/cancel
	answer             // the agent's answer to the request
)

// step is one line of an exchange. The value in line[from:to] is an id, which is replaced.
type step struct {
	kind     kind
	question int // which of the exchange's it is, answers or withdraws; -1: none
	from, to int
	at       int64
	session  string
	line     []byte
}

// New makes a record of frames. It fails if a line is no JSON-RPC message, and with the error of
// the sequence.
func New(frames iter.Seq2[Frame, error]) (*Record, error) {
	b := &builder{record: &Record{}, conns: map[string]*conn{}, names: map[string]string{}}
	for f, err := range frames {
		if err != nil {
			return nil, err
		}
		if err := b.add(f); err != nil {
			return nil, fmt.Errorf("replay: line %d: %w", f.Seq, err)
		}
	}
	return b.record, nil
}

// builder sorts frames into exchanges.
type builder struct {
	record *Record
	conns  map[string]*conn
	names  map[string]string // of sessions, each once
	last   *Exchange
}

// conn is what is known of one connection. Ids are its own.
type conn struct {
	open  map[string]*Exchange // requests of the client without an answer, by id
	asked map[string]question  // those of the agent
	turns map[string]*Exchange // prompts under way, by session
	last  *Exchange
}

type question struct {
	of *Exchange
	n  int
}

func (b *builder) add(f Frame) error {
	m, err := parse(f.Line)
	if err != nil {
		return err
	}
	b.record.Lines++
	b.record.Millis = max(b.record.Millis, f.Millis)
	c := b.conns[f.conn]
	if c == nil || f.Client && m.method == methodInitialize {
		c = &conn{open: map[string]*Exchange{}, asked: map[string]question{}, turns: map[string]*Exchange{}}
		b.conns[f.conn] = c
	}
	s := step{question: -1, at: f.Millis, line: f.Line, session: b.name(m.session())}
	if f.Client {
		b.client(c, m, s)
	} else {
		b.agent(c, m, s)
	}
	return nil
}

// name keeps one string for all lines of a session.
func (b *builder) name(session []byte) string {
	if name, ok := b.names[string(session)]; ok {
		return name
	}
	name := text(session)
	b.names[string(session)] = name
	return name
}

func (b *builder) client(c *conn, m message, s step) {
	switch {
	case m.method == "":
		if q, ok := c.asked[string(m.id)]; ok {
			delete(c.asked, string(m.id))
			s.kind, s.question = await, q.n
			q.of.steps = append(q.of.steps, s)
		}
	case m.id != nil:
		x := &Exchange{Method: m.method, session: s.session, at: s.at}
		if m.method == methodPrompt {
			x.Text = promptText(m.params)
			c.turns[s.session] = x
		}
		b.record.Exchanges = append(b.record.Exchanges, x)
		c.open[string(m.id)], c.last, b.last = x, x, x
	case m.method == methodCancel:
		if x := c.turns[s.session]; x != nil && !x.Cancelled {
			s.kind, x.Cancelled = cancel, true
			x.steps = append(x.steps, s)
		}
	}
}

func (b *builder) agent(c *conn, m message, s step) {
	if m.method == "" {
		b.answer(c, m, s)
		return
	}
	if strings.HasPrefix(m.method, methodsHTTP) {
		return
	}
	x := cmp.Or(c.turns[s.session], c.last, b.last, &b.record.opening)
	switch {
	case m.id != nil:
		s.kind, s.question = ask, x.Questions
		s.from, s.to = m.span(m.id)
		c.asked[string(m.id)] = question{x, x.Questions}
		x.Questions++
	case m.method == methodWithdraw:
		id := member(m.params, "requestId")
		if q, ok := c.asked[string(id)]; ok {
			x, s.question = q.of, q.n
			s.from, s.to = m.span(id)
		}
	}
	x.add(s)
}

// methodsHTTP begins the methods by which a model agent has its exchange over HTTP recorded. Nothing is
// sent when it is said again, so they are left out.
const methodsHTTP = "_perlica.dev/http/"

// answer takes in the agent's answer to a request; one to no request is not part of the record.
func (b *builder) answer(c *conn, m message, s step) {
	x := c.open[string(m.id)]
	if x == nil {
		return
	}
	delete(c.open, string(m.id))
	if c.turns[x.session] == x {
		delete(c.turns, x.session)
	}
	x.session = cmp.Or(x.session, s.session)
	s.kind = answer
	s.from, s.to = m.span(m.id)
	x.answer, x.Millis = s.line, s.at-x.at
	x.add(s)
}

func (x *Exchange) add(s step) {
	x.Lines++
	x.steps = append(x.steps, s)
}
