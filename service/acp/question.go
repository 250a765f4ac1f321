package acp

import (
	"cmp"
	"encoding/json"
	"slices"

	"github.com/coder/acp-go-sdk"

	"github.com/perlica/perlica/interaction"
	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/kernel/record"
	"github.com/perlica/perlica/policy"
	"github.com/perlica/perlica/policy/shell"
	"github.com/perlica/perlica/provider"
)

// agentRequest is a request of the agent.
type agentRequest struct {
	method string
	at     *kernel.Attached // records the answer
	judged bool             // the policy or a person decides about the request
	passed bool             // the client has the judged request

	// The fields below belong to a judged request, until it is answered.
	session    *session
	line       []byte // the session/request_permission as the agent wrote it
	permission *provider.PermissionRequest
	question   *interaction.Question // as the client saw it
	over       bool                  // the client has answered the question or knows of its end
	said       []byte                // the client's answer, until it is sent or recorded
	replied    bool                  // the agent has its answer
}

// answeredByClient reports whether the client carries out an allowed request, for example the reading of a file. The
// client's answer to such a request always passes.
func (q *agentRequest) answeredByClient() bool {
	return q.passed && q.method != acp.ClientMethodSessionRequestPermission
}

// twin reports whether an open permission request has the same id as this one. The caller holds mu.
func (r *relay) twin(f provider.Frame) bool {
	const method = acp.ClientMethodSessionRequestPermission
	q := r.agentRequests[f.Key]
	return q != nil && q.method == method && f.Method == method && !q.replied
}

// remembered is the number of answered questions that are kept to recognise late answers of the
// client.
const remembered = 1000

// replied records that the agent gets its answer. The caller holds mu.
func (r *relay) replied(key string, q *agentRequest) {
	if !q.judged || q.answeredByClient() {
		delete(r.agentRequests, key)
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
	if old := r.agentRequests[r.answered[0]]; old != nil && old.replied { // an open request may have the same id by now
		delete(r.agentRequests, r.answered[0])
	}
	r.answered = r.answered[1:]
}

// showNotice tells the client about events that the client cannot see in the agent's own lines.
func (p *prompt) showNotice(n record.Notice) {
	switch n := n.(type) {
	case record.Asked:
		p.passQuestion(n)
	case record.Closed:
		p.closeQuestion(n)
	case record.Decided:
		if n.Effect == string(policy.Deny) {
			p.notice(n.What()+" was refused by", n.By+":", n.Why)
		}
	case record.Blocked:
		p.s.r.opt.Log("%s was refused: an editor's files and terminals are not offered to the agent", n.Method)
	case record.Warned:
		if n.Subtype == "budget" {
			p.notice(n.Detail)
			return
		}
		p.s.r.opt.Log("%s: %s", n.Subtype, n.Detail)
	}
}

func (p *prompt) notice(words ...string) {
	text := notice(words...)
	p.s.r.opt.Log("%s", text[:len(text)-1])
	p.s.r.sendOwn(p.s.at, saysLine(p.s.id, text, true))
}

// passQuestion passes a question to the client if the client may answer it.
func (p *prompt) passQuestion(n record.Asked) {
	r := p.s.r
	if !n.Answerable {
		return
	}
	r.mu.Lock()
	q := r.agentRequests[provider.IDKey(n.Request)]
	// Do not show the question, because it is already answered.
	if q == nil || q.over || q.replied {
		r.mu.Unlock()
		return
	}
	// A request for the client's files or terminals has no line that would ask the client.
	if q.line == nil || !r.mayAnswer(n.Question) {
		r.mu.Unlock()
		p.notice("the agent asks:", n.Title+".", "It waits at another front end: perlica pending show", string(n.ID))
		return
	}
	question := n.Question
	question.Subject = interaction.Subject{}
	q.question, q.passed = &question, true
	line, at := q.line, q.at
	r.mu.Unlock()
	r.out.addLine(line, at.Durable())
}

// mayAnswer reports whether the client's answer to a question may count.
func (r *relay) mayAnswer(q interaction.Question) bool {
	switch r.opt.Answers {
	case AnswersNone:
		return false
	case AnswersOrdinary:
		return q.Word == "" && q.Subject.Tier == string(shell.Ordinary)
	}
	return q.Word == ""
}

// closeQuestion tells the client that the question was answered elsewhere or will stay unanswered.
func (p *prompt) closeQuestion(n record.Closed) {
	r := p.s.r
	r.mu.Lock()
	q := r.agentRequests[provider.IDKey(n.Request)]
	tell := q != nil && q.passed && !q.over
	if q != nil {
		q.over = true
	}
	r.mu.Unlock()
	if tell {
		r.sendOwn(p.s.at, notificationLine(cancelRequest, map[string]json.RawMessage{"requestId": json.RawMessage(n.Request)}))
	}
}

// dropped records an answer of the client that does not pass.
func (r *relay) dropped(q *agentRequest) {
	r.mu.Lock()
	said := q.said
	q.said = nil
	r.mu.Unlock()
	if said != nil {
		r.recordLine(q.at, false, said)
	}
}

// clientResponse handles an answer to a request of the agent. It drops a late answer, an answer to a request that the
// client does not have, and an answer to a request of Perlica.
func (r *relay) clientResponse(m provider.Message) {
	r.mu.Lock()
	q := r.agentRequests[m.Key]
	judged := q != nil && q.judged
	late := r.isOwn(m.Key) || judged && (!q.passed || q.over || q.replied)
	permission := judged && q.method == acp.ClientMethodSessionRequestPermission
	at := r.home
	var with agentRequest // a copy, because an answer from elsewhere may be sent at this moment
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
		r.recordLine(at, false, m.Line)
	case permission:
		r.answerQuestion(q, with, m)
	default:
		// An error means that the agent has ended. Serve reports it.
		_ = r.conn.Carry(m.Line)
	}
}

// answerQuestion submits the client's answer. The first answer from any front end counts.
func (r *relay) answerQuestion(q *agentRequest, with agentRequest, m provider.Message) {
	var v struct {
		Outcome struct{ Outcome, OptionID string }
	}
	// An error is ignored, because an answer of another form selects no option.
	_ = json.Unmarshal(m.Result, &v)
	option := v.Outcome.OptionID
	permission, question := with.permission, *with.question
	r.mu.Lock()
	by := cmp.Or(r.client, "an editor")
	r.mu.Unlock()
	if v.Outcome.Outcome != "selected" {
		permission.Dismiss(m.Line)
		return
	}
	if !slices.ContainsFunc(permission.Options, func(o acp.PermissionOption) bool {
		return string(
			o.OptionId) == option
	}) {
		// The client chose one of Perlica's own options. It was never shown these, so this is not an answer.
		r.dropped(q)
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
			r.failRecord(dead)
		}
	}
}
