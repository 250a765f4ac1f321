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
	// InOrder answers a prompt with an unrecorded text with the next turn of the record.
	InOrder bool
	// AnyAnswer accepts any answer to a question. It also continues a turn if the client does not send the recorded
	// session/cancel.
	AnyAnswer bool
	// Speed is the factor by which the replay is faster than the record. 0 means that the replay writes without delays.
	Speed float64
}

// Serve speaks ACP until the input ends or ctx is cancelled, and then returns nil. It returns an error if reading or
// writing fails. Exchanges that wait when the input ends get no answer. One goroutine writes all lines. If Speed is 0,
// the order of the lines depends only on the input. If ctx ends before the input, a goroutine stays in the pending Read
// of the input.
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

// player is the state of one replay. Only the loop in Serve uses its fields.
type player struct {
	record *Record
	opt    Options
	conn   *agentside.Conn // the connection to the client; writes to out
	out    *bufio.Writer   // Flush returns the first error of all writes

	plays         []*play
	given         map[*Exchange]bool
	latest        int               // the index after the last played turn in Record.Turns
	sessions      map[string]string // the current session ids, by recorded id
	taken         map[string]bool   // the session ids in use
	openQuestions map[string]*asking
	ids           int // the number of questions so far, which gives the next id
}

// play is an exchange that the replay currently repeats.
type play struct {
	*Exchange
	id        []byte // the id of the request; nil if no answer is due
	session   string // the current session id
	next      int    // index of the next step
	questions map[int]*asking
	cancelled bool

	since time.Time // the time on the current clock that corresponds to the recorded time in the field at
	at    int64
}

// asking is a question that the replay has asked the client.
type asking struct {
	id     string
	step   *step
	answer *agentside.Message
}

// startPlay starts to play the exchange x as the answer to the request m.
func (p *player) startPlay(x *Exchange, m agentside.Message) {
	y := &play{Exchange: x, id: m.ID, questions: map[int]*asking{}, since: time.Now(), at: x.at}
	y.session = text(member(m.Params, "sessionId"))
	if y.session == "" && x.session != "" { // the request has no session id, and the answer has one
		y.session = x.session
		for n := 2; p.taken[y.session]; n++ {
			y.session = x.session + "-" + strconv.Itoa(n)
		}
	}
	p.taken[y.session], p.sessions[x.session] = true, y.session
	p.given[x] = true
	p.plays = append(p.plays, y)
}

// playDue plays all steps that are due. It returns a channel that delivers when the next step is due, or nil if all
// plays wait for the client.
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

// nextDue returns the time at which the next step of a play is due. ok is false while the play waits for the client.
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

// playStep plays the next step of a play, or ends the play after its last step.
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

// writeStep writes the recorded line of a step with the current session id and the JSON-RPC id in id.
func (p *player) writeStep(y *play, s *step, id []byte) {
	was, is := y.Exchange.session, y.session
	if s.session != "" && s.session != was {
		was, is = s.session, cmp.Or(p.sessions[s.session], s.session)
	}
	part := func(b []byte) {
		if was != is {
			b = bytes.ReplaceAll(b, agentside.Encode(was), agentside.Encode(is))
		}
		_, _ = p.out.Write(b) // Flush returns the error of this write
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

// compareAnswer ends a turn with an error if the answer to its question differs from the recorded answer.
func (p *player) compareAnswer(y *play, s *step) {
	q := y.questions[s.question]
	if q == nil || p.opt.AnyAnswer {
		return
	}
	question, _ := agentside.Parse(q.step.line) // the builder has parsed both lines without an error
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

// dropPlay ends a play. The replay ignores later answers to its questions.
func (p *player) dropPlay(y *play) {
	for _, q := range y.questions {
		delete(p.openQuestions, q.id)
	}
	p.plays = slices.DeleteFunc(p.plays, func(other *play) bool { return other == y })
}

// refuseRequest answers the request with this id with an error.
func (p *player) refuseRequest(id []byte, code int, message string, data json.RawMessage) {
	p.conn.Refuse(id, &agentside.Error{Code: code, Message: "replay: " + message, Data: data})
}
