package acp

import (
	"cmp"
	"encoding/json"
	"slices"

	"github.com/coder/acp-go-sdk"

	"github.com/perlica/perlica/interaction"
	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/policy"
	"github.com/perlica/perlica/policy/shell"
	"github.com/perlica/perlica/provider"
)

// asking is a request of the agent.
type asking struct {
	method string
	at     *kernel.Attached // what records its answer
	judged bool             // somebody decides about it, and does not just carry it
	passed bool             // the client has got it, if it is judged

	// Of what is judged, until it is answered:
	session    *session
	line       []byte // of session/request_permission, as the agent wrote it
	permission *provider.PermissionRequest
	question   *interaction.Question // as the client was asked
	over       bool                  // the client has answered it, or knows of its end
	said       []byte                // what the client answered, until it has left or is recorded
	replied    bool                  // the agent has its answer
}

// answeredByClient reports whether a request that was allowed is with the client, whose answer to it goes
// on whenever it comes.
func (q *asking) answeredByClient() bool {
	return q.passed && q.method != acp.ClientMethodSessionRequestPermission
}

// twin reports whether a request for permission has the id of another that is open. The caller holds mu.
func (r *relay) twin(f provider.Frame) bool {
	const method = acp.ClientMethodSessionRequestPermission
	q := r.asked[f.Key]
	return q != nil && q.method == method && f.Method == method && !q.replied
}

// remembered is how many questions that were answered are kept, by which an answer of the client's that
// comes late is known.
const remembered = 1000

// replied takes in that the agent gets its answer. The caller holds mu.
func (r *relay) replied(key string, q *asking) {
	if !q.judged || q.answeredByClient() {
		delete(r.asked, key)
		return
	}
	if q.replied {
		return
	}
	q.line, q.permission, q.said, q.replied = nil, nil, nil, true
	r.answered = append(r.answered, key)
	if len(r.answered) <= remembered {
		return
	}
	if old := r.asked[r.answered[0]]; old != nil && old.replied { // else the agent has used the id again
		delete(r.asked, r.answered[0])
	}
	r.answered = r.answered[1:]
}

// show shows the client what it does not see otherwise.
func (p *prompt) show(n kernel.Notice) {
	switch n := n.(type) {
	case kernel.Asked:
		p.asked(n)
	case kernel.Closed:
		p.closed(n)
	case kernel.Decided:
		if n.Effect == string(policy.Deny) {
			p.notice(n.What()+" was refused by", n.By+":", n.Why)
		}
	case kernel.Blocked:
		p.s.r.opt.Log("%s was refused: an editor's files and terminals are not offered to the agent", n.Method)
	case kernel.Warned:
		p.s.r.opt.Log("%s: %s", n.Subtype, n.Detail)
	}
}

func (p *prompt) notice(words ...string) {
	text := notice(words...)
	p.s.r.opt.Log("%s", text[:len(text)-1])
	p.s.r.say(p.s.at, saysLine(p.s.id, text, true))
}

// asked passes a question on, if the client may answer it.
func (p *prompt) asked(n kernel.Asked) {
	r := p.s.r
	if !n.Answerable {
		return
	}
	r.mu.Lock()
	q := r.asked[provider.IDKey(n.Request)]
	if q == nil || q.over || q.replied { // it has its answer
		r.mu.Unlock()
		return
	}
	if q.line == nil || !r.mayAnswer(n.Question) { // it has no line where the client would do it itself
		r.mu.Unlock()
		p.notice("the agent asks:", n.Title+".", "It waits at another front end: perlica pending show", string(n.ID))
		return
	}
	question := n.Question
	question.Subject = interaction.Subject{}
	q.question, q.passed = &question, true
	line, at := q.line, q.at
	r.mu.Unlock()
	r.out.add(line, at.Durable())
}

// mayAnswer reports whether a click of the client's may answer a question.
func (r *relay) mayAnswer(q interaction.Question) bool {
	switch r.opt.Answers {
	case AnswersNone:
		return false
	case AnswersOrdinary:
		return q.Word == "" && q.Subject.Tier == string(shell.Ordinary)
	}
	return q.Word == ""
}

// closed tells the client that somebody else has answered, or nobody will.
func (p *prompt) closed(n kernel.Closed) {
	r := p.s.r
	r.mu.Lock()
	q := r.asked[provider.IDKey(n.Request)]
	tell := q != nil && q.passed && !q.over
	if q != nil {
		q.over = true
	}
	r.mu.Unlock()
	if tell {
		r.say(p.s.at, notificationLine(cancelRequest, map[string]json.RawMessage{"requestId": json.RawMessage(n.Request)}))
	}
}

// dropped records what the client answered, which does not go on.
func (r *relay) dropped(q *asking) {
	r.mu.Lock()
	said := q.said
	q.said = nil
	r.mu.Unlock()
	if said != nil {
		r.record(q.at, false, said)
	}
}

// clientResponse takes an answer to a request of the agent. One that comes too late, to a request that
// the client has not got, or to one of Perlica's own, goes no further.
func (r *relay) clientResponse(m provider.Message) {
	r.mu.Lock()
	q := r.asked[m.Key]
	judged := q != nil && q.judged
	late := r.isOwn(m.Key) || judged && (!q.passed || q.over || q.replied)
	permission := judged && q.method == acp.ClientMethodSessionRequestPermission
	at := r.home
	var with asking // what it is now: an answer from elsewhere may leave at this moment
	if q != nil {
		at = q.at
		if permission && !late {
			q.over, q.said = true, m.Line
			with = *q
		}
	}
	r.mu.Unlock()
	switch {
	case late:
		r.record(at, false, m.Line)
	case permission:
		r.answer(q, with, m)
	default:
		_ = r.conn.Carry(m.Line) // as in carry
	}
}

// answer hands the client's answer in. The first answer counts, wherever it comes from.
func (r *relay) answer(q *asking, with asking, m provider.Message) {
	var v struct {
		Outcome struct{ Outcome, OptionID string }
	}
	_ = json.Unmarshal(m.Result, &v) // what has another form selects nothing
	option := v.Outcome.OptionID
	permission, question := with.permission, *with.question
	r.mu.Lock()
	by := cmp.Or(r.client, "an editor")
	r.mu.Unlock()
	if v.Outcome.Outcome != "selected" {
		permission.Dismiss(m.Line)
		return
	}
	if !slices.ContainsFunc(permission.Options, func(o acp.PermissionOption) bool { return string(o.OptionId) == option }) {
		r.dropped(q) // one of Perlica's own is none that the client was shown
		permission.Dismiss(nil)
		return
	}
	permission.Carry(acp.PermissionOptionId(option), m.Line)
	a := interaction.Answer{Option: option, By: by, Where: "editor", Always: true, Origin: r.opt.Origin}
	if r.opt.Visitor != "" {
		a.Where = "web"
	}
	if err := q.session.place.Runner.AnswerQuestion(r.ctx, question, a); err != nil {
		r.dropped(q)
		r.opt.Log("the editor's answer to %q does not count: %v", question.Title, err)
		if dead := q.session.place.Runner.Log().Err(); dead != nil {
			r.fail(dead)
		}
	}
}
