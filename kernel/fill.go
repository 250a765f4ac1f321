package kernel

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"slices"
	"strings"

	"github.com/coder/acp-go-sdk"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/message"
	"github.com/perlica/perlica/interaction"
	"github.com/perlica/perlica/interaction/form"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/kernel/record"
	"github.com/perlica/perlica/policy"
	"github.com/perlica/perlica/policy/shell"
	"github.com/perlica/perlica/provider"
)

// These are ACP's words for the answers to a form.
const (
	actionAccept  = "accept"
	actionDecline = "decline"
	actionCancel  = "cancel"
)

// byForm is the author of a recorded decision in which Perlica itself declined a form, because it cannot show forms of
// this kind.
const byForm = "form"

// fillForm asks a person for the values of the agent's form, one question for each field. If the form only has an
// address, fillForm asks the person to open it. No rule and no mode fills in a form. A form that Perlica must not show
// is declined, with a warning.
func (q *questions) fillForm(p *provider.PermissionRequest) {
	f := &filling{c: q.c, q: q, p: p, content: map[string]json.RawMessage{},
		ends: map[event.InteractionID]interaction.Resolution{}}
	action, by := actionDecline, "policy"
	if why := f.readForm(); why != nil {
		_ = q.c.run.r.log.Record(event.NewFact(event.PolicyDecided, "policy", q.c.refs(), fact.PolicyDecided{
			Title: p.Form.Message, Effect: string(policy.Deny), By: byForm, Why: why.Text, Coded: why.Coded,
		})) // if the log cannot be written, the agent's next line ends the run
		q.c.warn("form_declined", formDeclined.With(why))
	} else {
		action, by = f.askFields()
	}
	var err error
	switch action {
	case actionAccept:
		err = p.Fill(f.content)
	case actionDecline:
		err = p.Decline()
	default:
		err = p.Cancel()
	}
	sent := fact.ReplySent{RequestID: p.ID, Outcome: action, By: by}
	t := event.ReplySent
	if err != nil {
		t, sent.Error = event.ReplyFailed, err.Error()
	}
	if !errors.Is(err, provider.ErrReplied) { // otherwise the agent has withdrawn the form
		refs := q.c.refs()
		if n := len(f.tickets); n > 0 {
			refs = f.tickets[n-1].Refs
		}
		_ = q.c.run.r.log.Record(event.NewFact(t, "perlica", refs, sent)) // an error ends the run at the agent's next line
	}
	for _, t := range f.tickets {
		end := f.ends[t.ID]
		end.Sent = err == nil
		_ = q.c.run.r.questions.Resolve(t, end) // an error ends the run at the agent's next line
	}
}

// filling is a form that a person is filling in.
type filling struct {
	c       *client
	q       *questions
	p       *provider.PermissionRequest
	base    interaction.Question // the common part of the form's questions
	fields  []form.Field         // empty if a yes is the only possible value
	leave   bool                 // true if the form asks for approval
	content map[string]json.RawMessage
	tickets []*interaction.Ticket
	ends    map[event.InteractionID]interaction.Resolution
}

// readForm prepares the questions of the form. If Perlica must not show the form, readForm returns the reason.
func (f *filling) readForm() (why *message.Text) {
	c, ask := f.c, f.p.Form
	if c.run.t.Permissions == policy.ModeDeny {
		return whyModeDeny
	}
	f.leave = ask.Approval || ask.URL == "" && form.Approval(ask.Message, ask.Schema)
	if f.leave {
		tool := f.p.Tool
		if !ask.Approval {
			tool = c.approved(tool, form.Texts(ask.Message, ask.Schema))
		}
		read := c.readTool(tool, nil, c.placeOf(f.p))
		d := c.run.r.policy.Decide(read.Request, c.run.t.Permissions)
		if d.Effect == policy.Deny {
			return d.Reason()
		}
		f.base = f.q.question(&provider.PermissionRequest{ID: f.p.ID, Tool: tool}, read, d)
		f.base.Word = ""
		if !ask.Approval {
			f.base.Subject.Tier = string(shell.AlwaysAsked)
			f.base = f.base.Because(whyFormApproval)
		}
	} else {
		f.base = interaction.Question{
			Title: ask.Message, Subject: interaction.Subject{Provider: c.run.t.Agent.ID, Kind: "form"},
			Expires: c.sums.now().Add(c.run.t.AnswerIn), Refs: c.refs(),
		}
	}
	if ask.URL != "" {
		u, err := url.Parse(ask.URL)
		if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" {
			return whyNoWebAddress
		}
		f.base.Subject.Fields = []interaction.Field{{Name: "address", Value: ask.URL},
			{Name: "host", Value: form.Host(u.Hostname())}}
		f.base = f.base.Because(whyOpenAddress)
		return nil
	}
	var err error
	if f.fields, err = form.Read(ask.Message, ask.Schema); err != nil {
		return message.Of(err)
	}
	return nil
}

// approved returns the tool call that the texts of a form describe. If the policy refuses a part of the texts as a
// command, that part is the call's only command. Otherwise all parts that look like commands are its commands. The call
// also has the unchanged texts, so that the question shows them.
func (c *client) approved(tool provider.ToolCall, texts []string) provider.ToolCall {
	whole := strings.Join(texts, "\n")
	input := map[string]any{"request": whole}
	tool.Kind = acp.ToolKindExecute
	if commands := form.Commands(whole); len(commands) > 0 {
		input["commands"] = commands
	}
	for _, span := range form.Spans(whole) {
		one := provider.ToolCall{ID: tool.ID, Kind: tool.Kind, RawInput: rawJSON(map[string]any{"command": span})}
		if c.run.r.policy.Decide(c.readTool(one, nil, c.place()).Request, c.run.t.Permissions).Effect == policy.Deny {
			input["commands"] = []string{span}
			break
		}
	}
	tool.RawInput = rawJSON(input)
	return tool
}

// rawJSON encodes a value that always can be encoded.
func rawJSON(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil { // cannot happen: v has strings and lists of strings
		return nil
	}
	return b
}

// goOnID is the id of the option that accepts without a value. againID is the id of the option that asks for all values
// once more.
const (
	goOnID  = "perlica:go-on"
	againID = "perlica:again"
)

// askFields asks one question after the other. It returns the answer to the form and the author of that answer. If the
// form has several fields, the person sees all values once more. The person can then send them or enter them again.
func (f *filling) askFields() (action, by string) {
	if len(f.fields) == 0 {
		q := f.base
		label := labelGoOn
		if f.p.Form.URL != "" {
			label = labelGoOnAddress
		}
		q.Options = []interaction.Option{interaction.NewOffer(goOnID, label, "answer"), form.Decline()}
		a, why := f.putQuestion(q)
		return f.action(a, why)
	}
	for {
		clear(f.content)
		for i := range f.fields {
			if action, by = f.askField(i); action != actionAccept {
				return action, by
			}
		}
		if len(f.fields) == 1 {
			return action, by
		}
		a, why := f.putQuestion(f.review())
		if action, by = f.action(a, why); action != actionAccept || a.Option != againID {
			return action, by
		}
	}
}

// askField asks for the value of the i-th field. The question suggests the earlier value first.
func (f *filling) askField(i int) (action, by string) {
	field, q := &f.fields[i], f.base
	q.Title = field.Title
	q.Subject.Text = append([]string{f.p.Form.Message}, field.Says()...)
	q = q.Because(whyValue)
	if len(f.fields) > 1 {
		q = q.Because(whyValueOf.With(i+1, len(f.fields)))
	}
	if f.leave {
		q.Why, q.Coded = f.base.Why, f.base.Coded
		field.AskLeave(&q)
	} else {
		field.Ask(&q)
	}
	a, why := f.putQuestion(q)
	if action, by = f.action(a, why); action != actionAccept {
		return action, by
	}
	value, ok, err := field.Value(*a)
	if err != nil { // the coordinator accepts only valid values, but other programs can write the log, too
		return actionCancel, err.Error()
	}
	if ok {
		f.content[field.Name] = value
		field.Prefer(value)
	}
	return action, by
}

// review returns the question whether the values may be sent to the agent.
func (f *filling) review() interaction.Question {
	q := f.base
	q.Title = f.p.Form.Message
	q = q.Because(whyReview)
	q.Subject.Fields = slices.Clone(q.Subject.Fields)
	for _, field := range f.fields {
		value, ok := f.content[field.Name]
		if !ok {
			continue
		}
		text := string(value)
		_ = json.Unmarshal(value, &text) // if the value is not a string, the text stays JSON
		q.Subject.Fields = append(q.Subject.Fields, interaction.Field{Name: field.Title, Value: text})
	}
	q.Options = []interaction.Option{
		interaction.NewOffer(goOnID, labelSend, "answer"),
		interaction.NewOffer(againID, labelAgain, "answer"), form.Decline(),
	}
	return q
}

// action returns the answer to the form after the end of one question, and the author of that answer.
func (f *filling) action(a *interaction.Answer, why interaction.Reason) (action, by string) {
	switch {
	case a == nil:
		return actionCancel, string(why)
	case a.Option == form.DeclineID:
		return actionDecline, a.By
	}
	return actionAccept, a.By
}

// putQuestion asks one question and waits for the end of the question.
func (f *filling) putQuestion(q interaction.Question) (*interaction.Answer, interaction.Reason) {
	c, ctx := f.c, context.Background() // the end of the question is recorded even if the caller's ctx ends
	if c.run.t.AnswerIn > 0 {
		if err := c.run.r.questions.Reachable(); err != nil {
			c.warn("unreachable", unreachable.With(err))
		}
	}
	q.Expires = c.sums.now().Add(c.run.t.AnswerIn)
	t, err := c.run.r.questions.Ask(ctx, q)
	if err != nil {
		c.lifecycle.killAgent()
		return nil, interaction.RunEnded
	}
	f.tickets = append(f.tickets, t)
	subject := q.Subject
	q = t.Question
	q.Subject = subject
	c.show.addNotice(record.Asked{Question: q, Request: f.p.ID, Answerable: c.run.t.AnswerIn > 0 && c.sums.isLive()})
	if why := f.q.awaitEnd(t, f.p); why != "" {
		_ = c.run.r.questions.Lapse(ctx, t, why) // Outcome returns the same error
	}
	a, lapsed, err := t.Outcome()
	if err != nil {
		c.lifecycle.killAgent()
		return nil, interaction.RunEnded
	}
	end := interaction.Resolution{Reason: lapsed}
	if a != nil {
		end.Option = a.Option
	}
	f.ends[t.ID] = end
	c.show.addNotice(record.Closed{Question: t.Question, Request: f.p.ID, Answer: a, Reason: lapsed})
	return a, lapsed
}
