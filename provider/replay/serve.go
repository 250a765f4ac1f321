package replay

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/perlica/perlica/provider/agentside"
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

// Serve speaks ACP until in ends or ctx is cancelled, and then returns nil. Otherwise it returns the error of
// reading or writing. When in ends, it abandons the waiting exchanges without an answer. One goroutine writes
// all lines. Without a Speed the order depends only on the input. When ctx ends first, the goroutine that
// reads from in stays until its Read returns.
func Serve(ctx context.Context, in io.Reader, out io.Writer, r *Record, opt Options) error {
	ctx, leave := context.WithCancel(ctx)
	defer leave()
	lines := bufio.NewWriterSize(out, 1<<16)
	p := &player{
		record: r, opt: opt, conn: agentside.New(lines), out: lines, given: map[*Exchange]bool{},
		sessions: map[string]string{}, taken: map[string]bool{}, openQuestions: map[string]*asking{},
	}
	received, ended := make(chan []byte), make(chan error, 1)
	go func() {
		ended <- agentside.Read(ctx, in, func(line []byte) {
			select {
			case received <- bytes.Clone(line):
			case <-ctx.Done():
			}
		})
	}()
	p.startPlay(&r.opening, agentside.Message{})
	for {
		wait := p.playDue()
		if err := p.out.Flush(); err != nil {
			return err
		}
		select {
		case line := <-received:
			p.handleLine(line)
		case <-wait:
		case err := <-ended:
			return err
		case <-ctx.Done():
			return nil
		}
	}
}

// player is one connection. The loop in Serve owns all its fields.
type player struct {
	record *Record
	opt    Options
	conn   *agentside.Conn // writes to out
	out    *bufio.Writer   // it keeps its first error

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
	answer *agentside.Message
}

// startPlay begins to play an exchange as the answer to a request.
func (p *player) startPlay(x *Exchange, m agentside.Message) {
	y := &play{Exchange: x, id: m.ID, questions: map[int]*asking{}, since: time.Now(), at: x.at}
	y.session = text(member(m.Params, "sessionId"))
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
			message := "the record ends in this " + y.Method + ": the agent's answer is not in it"
			p.refuseRequest(y.id, agentside.CodeInternal, message, nil)
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
			b = bytes.ReplaceAll(b, agentside.Encode(was), agentside.Encode(is))
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

// compareAnswer ends a turn if the answer to its question differs from the record.
func (p *player) compareAnswer(y *play, s *step) {
	q := y.questions[s.question]
	if q == nil || p.opt.AnyAnswer {
		return
	}
	question, _ := agentside.Parse(q.step.line) // this line and the next were parsed before
	recorded, _ := agentside.Parse(s.line)
	got, want := outcome(question.Method, *q.answer), outcome(question.Method, recorded)
	if got == want || y.id == nil {
		return
	}
	what := question.Method
	if title := text(member(member(question.Params, "toolCall"), "title")); title != "" {
		what += fmt.Sprintf(" %q", clip(title))
	}
	message := fmt.Sprintf("%s was answered with %s; in the record it is %s", what, got, want)
	data := agentside.Encode(map[string]string{"expected": want, "got": got})
	p.refuseRequest(y.id, agentside.CodeInternal, message, data)
	p.dropPlay(y)
}

// dropPlay ends a play. Later answers to its questions are ignored.
func (p *player) dropPlay(y *play) {
	for _, q := range y.questions {
		delete(p.openQuestions, q.id)
	}
	p.plays = slices.DeleteFunc(p.plays, func(other *play) bool { return other == y })
}

// refuseRequest answers a request with an error.
func (p *player) refuseRequest(id []byte, code int, message string, data json.RawMessage) {
	p.conn.Refuse(id, &agentside.Error{Code: code, Message: "replay: " + message, Data: data})
}
