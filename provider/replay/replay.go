// Package replay is an ACP agent that repeats a record. A record has the lines of a real agent and of its client. It
// comes from the log, from an export of the log, or from a file of frames.
//
// The same input gives the same lines. The package asks each recorded question again and compares the answer with the
// recorded one. A request that the record does not have gets an error that names the expected request. The package
// writes lines of the record with the current ids, and only three other kinds of lines. These are errors, the response
// to a cancel that was not recorded, and the response to initialize for an editor's session. The package calls no
// model, starts no process and touches no file.
//
// A record is a list of exchanges. An exchange is a request of the client and the agent's lines until the next request.
// For a request of the current client, the replay finds an exchange with the same method, and for a prompt with the
// same text. It then plays this exchange: it writes the agent's lines.
package replay

import (
	"cmp"
	"fmt"
	"iter"
	"strings"
)

// Record has the lines that [Serve] repeats. All lines are in memory, byte for byte.
type Record struct {
	Exchanges []*Exchange // in the order of the client's requests
	Lines     int
	Millis    int64 // time from the first line to the last, in milliseconds

	opening Exchange // the agent's lines before the first request
}

// Turns returns the exchanges of prompts.
func (r *Record) Turns() (turns []*Exchange) {
	for _, x := range r.Exchanges {
		if x.Method == methodPrompt {
			turns = append(turns, x)
		}
	}
	return turns
}

// Exchange is a request of the client with the lines that followed until the next request.
type Exchange struct {
	Method    string
	Text      string // the text blocks of a prompt, joined by line feeds
	Lines     int    // number of the agent's lines
	Questions int    // number of the agent's requests in the exchange
	Millis    int64  // milliseconds from the request to its answer
	Cancelled bool   // the client cancelled the exchange

	session string // the session id in the request, or if it has none, in the answer
	at      int64  // the time of the request, in milliseconds of the record
	answer  []byte // nil if the record ends without an answer
	steps   []step
}

// End returns the stop reason or the error code with which a turn ended, or "no end" if the record ends before.
func (x *Exchange) End() string {
	m, _ := parse(x.answer) // if answer is nil, m has no members
	switch {
	case x.answer == nil:
		return "no end"
	case isSet(m.fault):
		return "error " + string(member(m.fault, "code"))
	}
	return text(member(m.result, "stopReason"))
}

// kind is the kind of a line in an exchange.
type kind uint8

const (
	say    kind = iota // the agent sent a notification
	ask                // the agent sent a request, such as a question
	await              // the client answered a question
	cancel             // the client sent session/cancel
	answer             // the agent answered the request of the exchange
)

// step is one line of an exchange. line[from:to] is a JSON-RPC id, which the replay replaces by the current id.
type step struct {
	kind     kind
	question int // index of the question that the step asks, answers or withdraws; -1 for none
	from, to int
	at       int64
	session  string
	line     []byte
}

// New makes a record from frames. It returns the first error in the sequence, or an error for a line that is not a
// JSON-RPC message.
func New(frames iter.Seq2[Frame, error]) (*Record, error) {
	b := &builder{record: &Record{}, conns: map[string]*conn{}, names: map[string]string{}}
	for f, err := range frames {
		if err != nil {
			return nil, err
		}
		if err := b.addFrame(f); err != nil {
			return nil, fmt.Errorf("replay: line %d: %w", f.Seq, err)
		}
	}
	return b.record, nil
}

// builder collects the frames of a record into exchanges.
type builder struct {
	record *Record
	conns  map[string]*conn
	names  map[string]string // the string for each session id, see sessionName
	last   *Exchange
}

// conn is the state of one recorded connection while builder reads its lines.
type conn struct {
	open          map[string]*Exchange // unanswered requests of the client, by id
	openQuestions map[string]question  // unanswered requests of the agent, by id
	turns         map[string]*Exchange // running prompts, by session
	last          *Exchange
}

type question struct {
	of *Exchange
	n  int
}

func (b *builder) addFrame(f Frame) error {
	m, err := parse(f.Line)
	if err != nil {
		return err
	}
	b.record.Lines++
	b.record.Millis = max(b.record.Millis, f.Millis)
	c := b.conns[f.conn]
	if c == nil || f.Client && m.method == methodInitialize {
		c = &conn{open: map[string]*Exchange{}, openQuestions: map[string]question{}, turns: map[string]*Exchange{}}
		b.conns[f.conn] = c
	}
	s := step{question: -1, at: f.Millis, line: f.Line, session: b.sessionName(m.session())}
	if f.Client {
		b.addClientLine(c, m, s)
	} else {
		b.addAgentLine(c, m, s)
	}
	return nil
}

// sessionName returns the session id as a string. All lines of a session share one string, which saves memory.
func (b *builder) sessionName(session []byte) string {
	if name, ok := b.names[string(session)]; ok {
		return name
	}
	name := text(session)
	b.names[string(session)] = name
	return name
}

func (b *builder) addClientLine(c *conn, m message, s step) {
	switch {
	case m.method == "":
		if q, ok := c.openQuestions[string(m.id)]; ok {
			delete(c.openQuestions, string(m.id))
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

func (b *builder) addAgentLine(c *conn, m message, s step) {
	if m.method == "" {
		b.addAnswer(c, m, s)
		return
	}
	if strings.HasPrefix(m.method, methodsHTTP) {
		return
	}
	x := cmp.Or(c.turns[s.session], c.last, b.last, &b.record.opening)
	switch {
	case m.id != nil:
		s.kind, s.question = ask, x.Questions
		s.from, s.to = m.spanOf(m.id)
		c.openQuestions[string(m.id)] = question{x, x.Questions}
		x.Questions++
	case m.method == methodWithdraw:
		id := member(m.params, "requestId")
		if q, ok := c.openQuestions[string(id)]; ok {
			x, s.question = q.of, q.n
			s.from, s.to = m.spanOf(id)
		}
	}
	x.addStep(s)
}

// methodsHTTP is the prefix of the methods with which an agent of a model records its HTTP requests. A replay sends no
// HTTP request, so it omits these lines.
const methodsHTTP = "_perlica.dev/http/"

// addAnswer adds the agent's answer to the exchange of its request. It ignores an answer for which the record has no
// request.
func (b *builder) addAnswer(c *conn, m message, s step) {
	id := string(m.id)
	if c.open[id] == nil {
		id = text(m.id) // some agents write the id 2 as "2"
	}
	x := c.open[id]
	if x == nil {
		return
	}
	delete(c.open, id)
	if c.turns[x.session] == x {
		delete(c.turns, x.session)
	}
	x.session = cmp.Or(x.session, s.session)
	s.kind = answer
	s.from, s.to = m.spanOf(m.id)
	x.answer, x.Millis = s.line, s.at-x.at
	x.addStep(s)
}

func (x *Exchange) addStep(s step) {
	x.Lines++
	x.steps = append(x.steps, s)
}
