package kernel

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/coder/acp-go-sdk"

	"github.com/perlica/perlica/eventlog"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/interaction"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/policy"
	"github.com/perlica/perlica/policy/shell"
	"github.com/perlica/perlica/provider"
)

// RequestPermission takes a question off the wire; ask works on them in that order.
func (c *client) RequestPermission(p *provider.PermissionRequest) {
	c.asked.Do(func() { c.asking.Go(c.ask) })
	select {
	case c.asks <- p:
	case <-c.gone():
	}
}

// ask decides about the agent's questions, one after the other, and puts those that a
// person must answer before one. Their answers are awaited side by side.
func (c *client) ask() {
	for p := range c.asks {
		c.judge(p)
	}
}

// judge decides one question. An error of the log needs no handling here: the log is
// dead then, and the connection ends with the next line that cannot be recorded.
func (c *client) judge(p *provider.PermissionRequest) {
	c.judging.Lock()
	defer c.judging.Unlock()
	if p.Form != nil {
		c.open.Go(func() { c.fillForm(p) })
		return
	}
	c.mu.Lock()
	c.perms.Asked++
	announced := c.toolCall(p.Tool.ID)
	tool := c.mergeTool(p.Tool)
	tool.asked = true
	p.Tool = tool.call
	live := c.live
	c.mu.Unlock()
	if n := len(p.Options) - len(unambiguous(p.Options)); n > 0 {
		c.warn("ambiguous_options", fmt.Sprintf("%d of the agent's options share an id with another and cannot be chosen: %s", n, p.Tool.Title))
	}
	a := asking{PermissionRequest: p, place: c.place()}
	unplaced := c.reading(a).Request
	if len(unplaced.Commands) > 0 {
		changed, err := c.changed()
		if err != nil {
			c.kill()
			return
		}
		a.place.Changed = changed
	}
	a.dirs = startsWhere(unplaced, c.read(announced, nil, a.place).Request)
	read := c.reading(a)
	req := read.Request
	for {
		asOf, err := c.lastSeq()
		if err != nil {
			c.kill()
			return
		}
		d := c.run.r.policy.Decide(req, c.run.t.Permissions)
		if c.needsPerson(d) || !live || c.isCancelled() {
			c.put(a, read, d)
			return
		}
		if c.decided(a, req, d, asOf) {
			return
		}
	}
}

// put has a person answer.
func (c *client) put(a asking, read policy.Reading, d policy.Decision) {
	q := c.question(a.Tool, unambiguous(a.Options), read, d)
	if c.run.t.AnswerIn > 0 {
		if err := c.run.r.questions.Reachable(); err != nil {
			c.warn("unreachable", "other processes cannot answer this question: "+err.Error())
		}
	}
	ticket, err := c.run.r.questions.Ask(context.Background(), q)
	if err != nil {
		c.kill()
		return
	}
	subject := q.Subject
	q = ticket.Question
	q.Subject = subject
	c.show.add(Asked{q, a.ID, c.run.t.AnswerIn > 0 && c.isLive()}) // before its end can be
	c.open.Go(func() { c.await(ticket, a) })
}

// unambiguous returns the options whose id says which of them is meant. An id that stands for
// two could be sent as a no and be taken for a yes; one of Perlica's own is no agent's.
func unambiguous(options []acp.PermissionOption) []acp.PermissionOption {
	seen := map[acp.PermissionOptionId]int{}
	for _, o := range options {
		seen[o.OptionId]++
	}
	return slices.DeleteFunc(slices.Clone(options), func(o acp.PermissionOption) bool {
		return seen[o.OptionId] > 1 || strings.HasPrefix(string(o.OptionId), ownPrefix)
	})
}

// needsPerson reports whether a decision leaves the answer to a person. A refused command
// does, where there is one to type the word.
func (c *client) needsPerson(d policy.Decision) bool {
	if d.Effect == policy.Deny {
		return d.Word != "" && c.run.t.AnswerIn > 0
	}
	return d.Effect == policy.Ask
}

func (c *client) isLive() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.live
}

// lastSeq is how far the log goes.
func (c *client) lastSeq() (event.Seq, error) {
	e, _, err := c.run.r.log.Last(context.Background(), event.Query{})
	return e.Seq, err
}

// decided answers for a rule, a standing approval or a mode. It returns false, and nothing was
// recorded or answered, if an approval was revoked since the log ended with asOf: what was
// decided may rest on it.
func (c *client) decided(a asking, req policy.Request, d policy.Decision, asOf event.Seq) bool {
	made := decision(req, d)
	ruling := event.NewFact(event.PolicyDecided, "policy", c.refs(), made)
	var unless event.Query
	if d.By == policy.ByStanding {
		unless = event.Query{After: asOf, Types: []event.Type{event.ApprovalRevoked}}
	}
	_, err := c.run.r.log.AppendUnless(context.Background(), unless, ruling)
	var conflict *eventlog.ConflictError
	if errors.As(err, &conflict) {
		return false
	}
	if err != nil {
		c.kill()
		return true
	}
	if a.Claim() {
		c.count(a, d.Effect == policy.Allow)
		c.show.add(Decided{made, a.ID})
	} else { // the agent has been refused since
		c.unanswered(a.PermissionRequest, interaction.Withdrawn)
	}
	reply(c.run.r, a.PermissionRequest, d.OptionID, "policy", c.refs())
	return true
}

// decision is what is on record of a decision that no person made.
func decision(req policy.Request, d policy.Decision) fact.PolicyDecided {
	commands, _ := commandTexts(req)
	return fact.PolicyDecided{
		Title: req.Title, Commands: commands, Paths: req.Paths,
		Effect: string(d.Effect), By: string(d.By), Rule: d.Rule, Approval: d.ApprovalID(), Why: d.Why, Option: d.OptionID,
	}
}

// commandTexts are the commands of a request as they are shown, and the directory in which they start.
func commandTexts(req policy.Request) (texts []string, dir string) {
	dir = req.Place.Dir
	for _, cmd := range req.Commands {
		text := cmd.String()
		switch {
		case cmd.Dir == "":
		case len(req.Commands) == 1:
			dir = cmd.Dir
		default: // each may start elsewhere
			where, _ := shell.Words([]string{"cd", cmd.Dir})
			text = where + " && " + text
		}
		texts = append(texts, text)
	}
	return texts, dir
}

// count adds a yes or a no to the run's numbers, and to what is known of the tool.
func (c *client) count(a asking, yes bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.mergeTool(provider.ToolCall{ID: a.Tool.ID})
	if !yes {
		c.perms.Denied++
		s.refused = true
		return
	}
	c.perms.Allowed++
	s.approved = append(s.approved, a)
}

// question makes what a person is asked of what the agent asked.
func (c *client) question(call provider.ToolCall, options []acp.PermissionOption, read policy.Reading, d policy.Decision) interaction.Question {
	req := read.Request
	q := interaction.Question{
		Title: call.Title,
		Subject: interaction.Subject{
			Provider: c.run.t.Agent.ID, Kind: string(call.Kind), Paths: req.Paths, Tier: string(d.Tier), RawInput: call.RawInput,
		},
		Word: d.Word, Why: d.Why, Allow: d.Allow,
		Expires: c.now().Add(c.run.t.AnswerIn),
		Refs:    c.refs(),
	}
	q.Subject.Commands, q.Subject.Dir = commandTexts(req)
	for _, f := range req.Fields {
		q.Subject.Fields = append(q.Subject.Fields, interaction.Field{Name: f.Name, Value: f.Value, Inert: f.Role == policy.Inert, Unread: f.Role == policy.Unread})
	}
	for _, t := range call.Content {
		switch {
		case t.Type == "diff":
			q.Subject.Diffs = append(q.Subject.Diffs, interaction.Diff{Path: t.Path, Old: t.OldText, New: t.NewText})
		case t.Text != "":
			q.Subject.Text = append(q.Subject.Text, t.Text)
		}
	}
	for _, b := range read.Bodies {
		q.Subject.Diffs = append(q.Subject.Diffs, interaction.Diff{Path: b.Path, Old: b.Old, New: b.New})
	}
	for _, o := range options {
		q.Options = append(q.Options, interaction.Option{ID: string(o.OptionId), Label: o.Name, Kind: string(o.Kind)})
	}
	for _, o := range req.Offers() {
		q.Options = append(q.Options, interaction.Option{
			ID: offerPrefix + string(o.Scope), Label: o.Offer(), Kind: string(acp.PermissionOptionKindAllowOnce), Offer: true,
		})
	}
	q.Options = interaction.Order(interaction.Refusable(q.Options))
	return q
}

// ownPrefix marks the ids of options that are Perlica's own, offerPrefix those that remember.
const (
	ownPrefix   = "perlica:"
	offerPrefix = ownPrefix + "remember-"
)

// await waits for the end of a question and tells the agent.
func (c *client) await(t *interaction.Ticket, a asking) {
	p := a.PermissionRequest
	ctx := context.Background() // what has been asked gets an end on the log, whatever else ends
	if why := c.wait(t, p); why != "" {
		// An error of the log is in the ticket's outcome.
		_ = c.run.r.questions.Lapse(ctx, t, why)
	}
	answer, lapsed, err := t.Outcome()
	if err != nil {
		c.kill()
		return
	}
	res := interaction.Resolution{Reason: lapsed}
	if answer != nil {
		if res.Option, err = c.applyAnswer(ctx, t, *answer, a); err != nil {
			c.kill()
			return
		}
	} else {
		c.unanswered(p, lapsed)
		if lapsed == interaction.Unattended || lapsed == interaction.TimeUp {
			o, _ := t.First(string(acp.PermissionOptionKindRejectOnce)) // one of Perlica's own is cancelled
			res.Option = o.ID
		}
	}
	by := string(lapsed)
	if answer != nil {
		by = answer.By
	}
	closed := Closed{Question: t.Question, Request: p.ID, Answer: answer, Reason: lapsed}
	if answer != nil && !p.Claim() {
		closed.Answer, closed.Reason = nil, interaction.Withdrawn // the agent was refused before it had the answer
	}
	c.show.add(closed) // before what the agent makes of it
	res.Sent = lapsed != interaction.Withdrawn && reply(c.run.r, p, res.Option, by, t.Refs)
	_ = c.run.r.questions.Resolve(t, res) // the log's end is the run's
}

// wait returns "" when the question has been answered, else why it will not be.
func (c *client) wait(t *interaction.Ticket, p *provider.PermissionRequest) interaction.Reason {
	if c.isCancelled() {
		return interaction.Cancelled
	}
	if c.run.t.AnswerIn <= 0 {
		return interaction.Unattended
	}
	timer := time.NewTimer(c.run.t.AnswerIn)
	defer timer.Stop()
	select {
	case <-t.Done():
		return ""
	case <-c.cancelled:
		return interaction.Cancelled
	case <-p.Done():
		if p.Dismissed() {
			return interaction.Dismissed
		}
		return interaction.Withdrawn
	case <-c.gone():
		return interaction.AgentGone
	case <-c.ended:
		return interaction.RunEnded
	case <-timer.C:
		return interaction.TimeUp
	}
}

func (c *client) isCancelled() bool {
	select {
	case <-c.cancelled:
		return true
	default:
		return false
	}
}

// applyAnswer carries out a person's answer and returns the agent's option that says it.
func (c *client) applyAnswer(ctx context.Context, t *interaction.Ticket, said interaction.Answer, a asking) (string, error) {
	i := slices.IndexFunc(t.Options, func(o interaction.Option) bool { return o.ID == said.Option })
	if i < 0 {
		// The coordinator lets nothing else through, but others write this log, too.
		c.warn("no_such_option", fmt.Sprintf("the answer of %s is none of the options, so the agent was told cancelled", said.By))
		c.count(a, false)
		return "", nil
	}
	o := t.Options[i]
	req := c.reading(a).Request
	option := o.ID
	switch {
	case o.ID == interaction.DenyID:
		option = "" // which is sent as cancelled
	case o.Offer:
		for _, offer := range req.Offers() {
			if offerPrefix+string(offer.Scope) == o.ID {
				if err := c.run.r.remember(ctx, offer, said.By, t.Refs); err != nil {
					return "", err
				}
			}
		}
		once, _ := t.First(string(acp.PermissionOptionKindAllowOnce)) // policy offers nothing without one
		option = once.ID
	}
	if !a.Claim() {
		c.unanswered(a.PermissionRequest, interaction.Withdrawn)
		return option, nil
	}
	c.count(a, o.Allows())
	if o.Allows() && req.Kind == string(acp.ToolKindSwitchMode) {
		c.mu.Lock()
		c.agreed[o.ID], c.agreed[req.Mode] = true, true
		c.mu.Unlock()
	}
	return option, nil
}

// unanswered takes in that there was no answer. For the agent that is no. It counts if it
// was for want of anybody, not if the agent or its turn ended first.
func (c *client) unanswered(p *provider.PermissionRequest, why interaction.Reason) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if why == interaction.Unattended || why == interaction.TimeUp {
		c.perms.Unanswered++
	}
	c.mergeTool(provider.ToolCall{ID: p.Tool.ID}).refused = true
}

// reply sends an option, or cancelled if there is none, and records that it has left.
func reply(r *Runner, p *provider.PermissionRequest, option, by string, refs event.Refs) bool {
	sent := fact.ReplySent{RequestID: p.ID, Outcome: "cancelled", By: by}
	var err error
	if option == "" {
		err = p.Cancel()
	} else {
		sent.Outcome, sent.Option = "selected", option
		for _, o := range p.Options {
			if string(o.OptionId) == option {
				sent.Kind = string(o.Kind)
			}
		}
		err = p.Select(acp.PermissionOptionId(option))
	}
	t := event.ReplySent
	if err != nil {
		t, sent.Error = event.ReplyFailed, err.Error()
	}
	_ = r.log.Record(event.NewFact(t, "perlica", refs, sent)) // a dead log ends the run at its next line
	return err == nil
}
