package replay

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"
)

// Options control the strictness and the speed of a replay.
type Options struct {
	// InOrder answers a prompt that the record lacks with the record's next turn.
	InOrder bool
	// AnyAnswer accepts every answer to a question, and does not require a recorded session/cancel.
	AnyAnswer bool
	// Speed is the factor by which the replay is faster than the record. 0 means without delays.
	Speed float64
}

// These JSON-RPC error codes are the ones that a replay sends itself.
const (
	codeParse         = -32700
	codeNoMethod      = -32601
	codeInvalidParams = -32602
	codeInternal      = -32603
)

// Serve speaks ACP until in ends or ctx is cancelled, and then returns nil. Otherwise it returns the error of
// reading or writing. When in ends, it abandons the waiting exchanges without an answer. One goroutine writes
// all lines. Without a Speed the order depends only on the input. When ctx ends first, the goroutine that
// reads from in stays until its Read returns.
func Serve(ctx context.Context, in io.Reader, out io.Writer, r *Record, opt Options) error {
	ctx, leave := context.WithCancel(ctx)
	defer leave()
	p := &player{
		record: r, opt: opt, out: bufio.NewWriterSize(out, 1<<16), given: map[*Exchange]bool{},
		sessions: map[string]string{}, taken: map[string]bool{}, openQuestions: map[string]*asking{},
	}
	lines, ended := make(chan []byte), make(chan error, 1)
	go func() { ended <- readLines(ctx, in, lines) }()
	p.startPlay(&r.opening, message{})
	for {
		wait := p.playDue()
		if err := p.out.Flush(); err != nil {
			return err
		}
		select {
		case line := <-lines:
			p.handleLine(line)
		case <-wait:
		case err := <-ended:
			return err
		case <-ctx.Done():
			return nil
		}
	}
}

// readLines passes on the lines that are not empty. The end of in is not an error.
func readLines(ctx context.Context, in io.Reader, lines chan<- []byte) error {
	r := bufio.NewReaderSize(in, 1<<16)
	for {
		line, err := r.ReadBytes('\n')
		if line = bytes.TrimSpace(line); len(line) > 0 {
			select {
			case lines <- line:
			case <-ctx.Done():
				return nil
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
	}
}

// player is one connection. The loop in Serve owns all its fields.
type player struct {
	record *Record
	opt    Options
	out    *bufio.Writer // it keeps its first error

	plays         []*play
	given         map[*Exchange]bool
	latest        int               // the number of recorded turns up to the last selected one
	sessions      map[string]string // the current session ids, by recorded id
	taken         map[string]bool   // the current session ids
	openQuestions map[string]*asking
	ids           int // the number of questions asked
}

// play is an exchange that is being repeated.
type play struct {
	*Exchange
	id        []byte // the id of the request; nil if no answer is due
	session   string // the current session id
	next      int    // index of the next step
	questions map[int]*asking
	cancelled bool

	since time.Time // the time that corresponds to the time at of the record
	at    int64
}

// asking is a question that the replay has asked.
type asking struct {
	id     string
	step   *step
	answer *message
}

// startPlay begins to play an exchange as the answer to a request.
func (p *player) startPlay(x *Exchange, m message) {
	y := &play{Exchange: x, id: m.id, session: text(m.session()), questions: map[int]*asking{}, since: time.Now(), at: x.at}
	if y.session == "" && x.session != "" { // the answer contains the session id
		y.session = x.session
		for n := 2; p.taken[y.session]; n++ {
			y.session = x.session + "-" + strconv.Itoa(n)
		}
	}
	p.taken[y.session], p.sessions[x.session] = true, y.session
	p.given[x] = true
	p.plays = append(p.plays, y)
}

// playDue plays all due steps. It returns a channel that fires when the next step is due. A nil channel means
// that the play waits for the client.
func (p *player) playDue() <-chan time.Time {
	for {
		var first *play
		var due time.Time
		for _, y := range p.plays {
			if at, ok := p.nextDue(y); ok && (first == nil || at.Before(due)) {
				first, due = y, at
			}
		}
		if first == nil {
			return nil
		}
		if wait := time.Until(due); wait > 0 {
			return time.After(wait)
		}
		p.playStep(first)
	}
}

// nextDue returns the time of a play's next step. ok is false while the play waits for the client.
func (p *player) nextDue(y *play) (at time.Time, ok bool) {
	if y.next == len(y.steps) {
		return y.since, true
	}
	switch s := &y.steps[y.next]; {
	case s.kind == await:
		q := y.questions[s.question]
		return y.since, q == nil || q.answer != nil
	case s.kind == cancel:
		return y.since, y.cancelled || p.opt.AnyAnswer
	case p.opt.Speed > 0:
		return y.since.Add(time.Duration(float64(s.at-y.at) / p.opt.Speed * float64(time.Millisecond))), true
	}
	return y.since, true
}

// playStep plays the next step, or ends a play after its last step.
func (p *player) playStep(y *play) {
	if y.next == len(y.steps) {
		if y.id != nil {
			p.writeError(y.id, codeInternal, "the record ends in this "+y.Method+": the agent's answer is not in it", nil)
		}
		p.dropPlay(y)
		return
	}
	s := &y.steps[y.next]
	y.next++
	switch s.kind {
	case await:
		y.since, y.at = time.Now(), s.at
		p.compareAnswer(y, s)
	case cancel:
		y.since, y.at = time.Now(), s.at
	case ask:
		q := &asking{id: strconv.Itoa(p.ids), step: s}
		p.ids++
		y.questions[s.question], p.openQuestions[q.id] = q, q
		p.writeStep(y, s, []byte(q.id))
	case answer:
		p.writeStep(y, s, y.id)
		y.id = nil
	case say:
		var id []byte
		if q := y.questions[s.question]; q != nil {
			id = []byte(q.id)
		}
		p.writeStep(y, s, id)
	}
}

// writeStep writes a line of the record with the current ids.
func (p *player) writeStep(y *play, s *step, id []byte) {
	was, is := y.Exchange.session, y.session
	if s.session != "" && s.session != was {
		was, is = s.session, cmp.Or(p.sessions[s.session], s.session)
	}
	part := func(b []byte) {
		if was != is {
			b = bytes.ReplaceAll(b, quoted(was), quoted(is))
		}
		_, _ = p.out.Write(b) // Flush returns the error
	}
	if id == nil {
		part(s.line)
	} else {
		part(s.line[:s.from])
		_, _ = p.out.Write(id)
		part(s.line[s.to:])
	}
	_ = p.out.WriteByte('\n')
}

func quoted(s string) []byte {
	b, _ := json.Marshal(s) // every string can be encoded
	return b
}

// compareAnswer ends a turn if the answer to its question differs from the record.
func (p *player) compareAnswer(y *play, s *step) {
	q := y.questions[s.question]
	if q == nil || p.opt.AnyAnswer {
		return
	}
	question, _ := parse(q.step.line) // this line and the next were parsed before
	recorded, _ := parse(s.line)
	got, want := outcome(question.method, *q.answer), outcome(question.method, recorded)
	if got == want || y.id == nil {
		return
	}
	what := question.method
	if title := text(member(member(question.params, "toolCall"), "title")); title != "" {
		what += fmt.Sprintf(" %q", clip(title))
	}
	p.writeError(y.id, codeInternal, fmt.Sprintf("%s was answered with %s; in the record it is %s", what, got, want),
		map[string]any{"expected": want, "got": got})
	p.dropPlay(y)
}

// dropPlay ends a play. Later answers to its questions are ignored.
func (p *player) dropPlay(y *play) {
	for _, q := range y.questions {
		delete(p.openQuestions, q.id)
	}
	p.plays = slices.DeleteFunc(p.plays, func(other *play) bool { return other == y })
}

// writeError answers a request with an error. A nil id means that the request could not be read.
func (p *player) writeError(id []byte, code int, message string, data any) {
	type fault struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
		Data    any    `json:"data,omitempty"`
	}
	b, _ := json.Marshal(struct { // these fields can always be encoded
		JSONRPC string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Error   fault           `json:"error"`
	}{"2.0", id, fault{code, "replay: " + message, data}})
	_, _ = p.out.Write(append(b, '\n')) // Flush returns the error
}
