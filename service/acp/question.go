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
	"github.com/perlica/perlica/provider/jsonrpc"
)

// show shows the client what it does not see otherwise.
func (p *prompt) show(n kernel.Notice) {
	switch n := n.(type) {
	case kernel.Asked:
		p.asked(n)
	case kernel.Closed:
		p.closed(n)
	case kernel.Decided:
		if n.Effect == string(policy.Deny) {
			p.notice(n.Title+" was refused by", n.By+":", n.Why)
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
	q := r.asked[n.Request]
	passable := q != nil && (q.line != nil || q.over)
	r.mu.Unlock()
	if !passable || !r.mayAnswer(n.Question) { // it has no line where the client would do it itself
		p.notice("the agent asks:", n.Title+".", "It waits at another front end: perlica pending show", string(n.ID))
		return
	}
	r.mu.Lock()
	if q.over || q.line == nil { // it has its answer
		r.mu.Unlock()
		return
	}
	question := n.Question
	question.Subject = interaction.Subject{}
	q.question = &question
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
	q := r.asked[n.Request]
	open := q != nil && q.question != nil && !q.over
	if q != nil {
		q.over = true
	}
	r.mu.Unlock()
	if open && n.Reason != interaction.Withdrawn {
		r.say(p.s.at, notificationLine("$/cancel_request", map[string]json.RawMessage{"requestId": json.RawMessage(n.Request)}))
	}
}

// answer hands the client's answer in. The first answer counts, wherever it comes from.
func (r *relay) answer(q *request, m jsonrpc.Message) {
	var v struct {
		Outcome struct{ Outcome, OptionID string }
	}
	_ = json.Unmarshal(m.Result, &v) // what has another form selects nothing
	option := v.Outcome.OptionID
	r.mu.Lock()
	permission, question, by := q.permission, *q.question, cmp.Or(r.client, "an editor")
	r.mu.Unlock()
	if v.Outcome.Outcome != "selected" {
		permission.Dismiss(m.Line)
		return
	}
	if !slices.ContainsFunc(permission.Options, func(o acp.PermissionOption) bool { return string(o.OptionId) == option }) {
		r.record(q.at, false, m.Line) // one of Perlica's own is none that the client was shown
		permission.Dismiss(nil)
		return
	}
	permission.Carry(acp.PermissionOptionId(option), m.Line)
	a := interaction.Answer{Option: option, By: by, Where: "editor", Always: true, Origin: r.opt.Origin}
	if err := q.session.place.Runner.AnswerQuestion(r.ctx, question, a); err != nil {
		r.record(q.at, false, m.Line)
		r.opt.Log("the editor's answer to %q does not count: %v", question.Title, err)
		if dead := q.session.place.Runner.Log().Err(); dead != nil {
			r.fail(dead)
		}
	}
}
