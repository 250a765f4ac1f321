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

// Options say how strict a replay is.
type Options struct {
	// InOrder has a prompt that the record does not have answered with the next turn of it.
	InOrder bool
	// AnyAnswer goes on whatever a question is answered, and without a recorded session/cancel.
	AnyAnswer bool
	// Speed is how many times as fast as they were recorded the lines are said. 0: at once.
	Speed float64
}

// The errors of JSON-RPC that a replay gives of its own accord.
const (
	codeParse         = -32700
	codeNoMethod      = -32601
	codeInvalidParams = -32602
	codeInternal      = -32603
)

// Serve speaks ACP until in ends or ctx is cancelled, and returns nil for both, else the error of
// reading or writing. At the end of in what waits is given up without an answer. All lines are
// written by one goroutine, in an order that depends on the input alone unless there is a Speed.
// When ctx ends first, the goroutine that reads from in stays until its Read returns.
func Serve(ctx context.Context, in io.Reader, out io.Writer, r *Record, opt Options) error {
	ctx, leave := context.WithCancel(ctx)
	defer leave()
	p := &player{
		record: r, opt: opt, out: bufio.NewWriterSize(out, 1<<16), given: map[*Exchange]bool{},
		sessions: map[string]string{}, taken: map[string]bool{}, asked: map[string]*asking{},
	}
	lines, ended := make(chan []byte), make(chan error, 1)
	go func() { ended <- read(ctx, in, lines) }()
	p.start(&r.opening, message{})
	for {
		wait := p.play()
		if err := p.out.Flush(); err != nil {
			return err
		}
		select {
		case line := <-lines:
			p.take(line)
		case <-wait:
		case err := <-ended:
			return err
		case <-ctx.Done():
			return nil
		}
	}
}

// read hands on the lines that are not empty; the end of in is no error.
func read(ctx context.Context, in io.Reader, lines chan<- []byte) error {
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

// player is one connection. All of it is the loop's own.
type player struct {
	record *Record
	opt    Options
	out    *bufio.Writer // keeps its first error

	plays    []*play
	given    map[*Exchange]bool
	latest   int               // how many turns of the record lie behind the last one that was chosen
	sessions map[string]string // recorded sessions and what they are called now
	taken    map[string]bool   // sessions of now
	asked    map[string]*asking
	ids      int // how many questions were asked
}

// play is an exchange that is said again.
type play struct {
	*Exchange
	id        []byte // of the request; nil: there is no answer due
	session   string // as it is called now
	next      int    // of the steps
	asked     map[int]*asking
	cancelled bool

	since time.Time // the moment that is at in the record
	at    int64
}

// asking is a question that was asked again.
type asking struct {
	id     string
	step   *step
	answer *message
}

// start begins to play an exchange as the answer to a request.
func (p *player) start(x *Exchange, m message) {
	y := &play{Exchange: x, id: m.id, session: text(m.session()), asked: map[int]*asking{}, since: time.Now(), at: x.at}
	if y.session == "" && x.session != "" { // the answer names one
		y.session = x.session
		for n := 2; p.taken[y.session]; n++ {
			y.session = x.session + "-" + strconv.Itoa(n)
		}
	}
	p.taken[y.session], p.sessions[x.session] = true, y.session
	p.given[x] = true
	p.plays = append(p.plays, y)
}

// play plays what is due, and returns a channel that says when there is more; nil: when the client
// has said something.
func (p *player) play() <-chan time.Time {
	for {
		var first *play
		var due time.Time
		for _, y := range p.plays {
			if at, ok := p.due(y); ok && (first == nil || at.Before(due)) {
				first, due = y, at
			}
		}
		if first == nil {
			return nil
		}
		if wait := time.Until(due); wait > 0 {
			return time.After(wait)
		}
		p.step(first)
	}
}

// due says when the next step of a play is; ok is false as long as it waits for the client.
func (p *player) due(y *play) (at time.Time, ok bool) {
	if y.next == len(y.steps) {
		return y.since, true
	}
	switch s := &y.steps[y.next]; {
	case s.kind == await:
		q := y.asked[s.question]
		return y.since, q == nil || q.answer != nil
	case s.kind == cancel:
		return y.since, y.cancelled || p.opt.AnyAnswer
	case p.opt.Speed > 0:
		return y.since.Add(time.Duration(float64(s.at-y.at) / p.opt.Speed * float64(time.Millisecond))), true
	}
	return y.since, true
}

// step plays the next step, or ends a play that has no more.
func (p *player) step(y *play) {
	if y.next == len(y.steps) {
		if y.id != nil {
			p.fail(y.id, codeInternal, "the record ends in this "+y.Method+": the agent's answer is not in it", nil)
		}
		p.drop(y)
		return
	}
	s := &y.steps[y.next]
	y.next++
	switch s.kind {
	case await:
		y.since, y.at = time.Now(), s.at
		p.compare(y, s)
	case cancel:
		y.since, y.at = time.Now(), s.at
	case ask:
		q := &asking{id: strconv.Itoa(p.ids), step: s}
		p.ids++
		y.asked[s.question], p.asked[q.id] = q, q
		p.say(y, s, []byte(q.id))
	case answer:
		p.say(y, s, y.id)
		y.id = nil
	case say:
		var id []byte
		if q := y.asked[s.question]; q != nil {
			id = []byte(q.id)
		}
		p.say(y, s, id)
	}
}

// say says a line of the record with the ids of now.
func (p *player) say(y *play, s *step, id []byte) {
	was, is := y.Exchange.session, y.session
	if s.session != "" && s.session != was {
		was, is = s.session, cmp.Or(p.sessions[s.session], s.session)
	}
	part := func(b []byte) {
		if was != is {
			b = bytes.ReplaceAll(b, quoted(was), quoted(is))
		}
		_, _ = p.out.Write(b) // Flush has its error
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
	b, _ := json.Marshal(s) // a string always can be
	return b
}

// compare ends a turn whose question was answered otherwise than in the record.
func (p *player) compare(y *play, s *step) {
	q := y.asked[s.question]
	if q == nil || p.opt.AnyAnswer {
		return
	}
	asked, _ := parse(q.step.line) // as all that follows, it was parsed before
	recorded, _ := parse(s.line)
	got, want := outcome(asked.method, *q.answer), outcome(asked.method, recorded)
	if got == want || y.id == nil {
		return
	}
	what := asked.method
	if title := text(member(member(asked.params, "toolCall"), "title")); title != "" {
		what += fmt.Sprintf(" %q", clip(title))
	}
	p.fail(y.id, codeInternal, fmt.Sprintf("%s was answered with %s; in the record it is %s", what, got, want),
		map[string]any{"expected": want, "got": got})
	p.drop(y)
}

// drop ends a play; the answers to its questions count no more.
func (p *player) drop(y *play) {
	for _, q := range y.asked {
		delete(p.asked, q.id)
	}
	p.plays = slices.DeleteFunc(p.plays, func(other *play) bool { return other == y })
}

// fail answers a request with an error. No id: the request could not be read.
func (p *player) fail(id []byte, code int, message string, data any) {
	type fault struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
		Data    any    `json:"data,omitempty"`
	}
	b, _ := json.Marshal(struct { // which these fields always can be
		JSONRPC string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Error   fault           `json:"error"`
	}{"2.0", id, fault{code, "replay: " + message, data}})
	_, _ = p.out.Write(append(b, '\n')) // Flush has its error
}
