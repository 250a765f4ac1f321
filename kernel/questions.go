package kernel

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coder/acp-go-sdk"

	"github.com/perlica/perlica/eventlog"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/message"
	"github.com/perlica/perlica/interaction"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/kernel/hook"
	"github.com/perlica/perlica/kernel/record"
	"github.com/perlica/perlica/policy"
	"github.com/perlica/perlica/policy/shell"
	"github.com/perlica/perlica/provider"
)

// questions handles the agent's questions in a turn. decideLoop takes the questions from the queue in wire order. If a
// rule or a mode decides a question, decideLoop answers it. Otherwise it shows the question to a person, and another
// goroutine waits for the answer. So several questions may be open.
type questions struct {
	c     *client
	queue chan *provider.PermissionRequest // in wire order
	begin sync.Once                        // starts decideLoop at the first question
	loop  sync.WaitGroup                   // the goroutine of decideLoop

	deciding sync.Mutex     // held during judgeRequest and awaitOpen
	open     sync.WaitGroup // one goroutine for each question that waits for a program or a person

	failedMu sync.Mutex
	failed   map[string]bool // the origins of the policy programs that failed; guarded by failedMu
}

// addRequest adds a question to the queue. While the queue is full, the connection's reader waits.
func (q *questions) addRequest(p *provider.PermissionRequest) {
	q.begin.Do(func() { q.loop.Go(q.decideLoop) })
	select {
	case q.queue <- p:
	case <-q.c.lifecycle.gone():
	}
}

func (q *questions) decideLoop() {
	for p := range q.queue {
		q.judgeRequest(p)
	}
}

// awaitOpen waits until the end of every judged question is recorded.
func (q *questions) awaitOpen() {
	q.deciding.Lock()
	defer q.deciding.Unlock()
	q.open.Wait()
}

// closeQueue waits until all questions in the queue were judged and have ended. The caller must not call addRequest
// after closeQueue.
func (q *questions) closeQueue() {
	close(q.queue)
	q.loop.Wait()
	q.open.Wait()
}

// judgeRequest decides one question. It does not handle errors of the log: after such an error, the agent's next line
// cannot be recorded, and the connection ends.
func (q *questions) judgeRequest(p *provider.PermissionRequest) {
	q.deciding.Lock()
	defer q.deciding.Unlock()
	if p.Form != nil {
		q.open.Go(func() { q.fillForm(p) })
		return
	}
	live := q.c.sums.isLive()
	announced, whole := q.c.sums.addQuestion(p.Tool)
	p.Tool = whole
	if n := len(p.Options) - len(unambiguous(p.Options)); n > 0 {
		q.c.warn("ambiguous_options", ambiguousOptions.With(n, p.Tool.Title))
	}
	a := asking{PermissionRequest: p, place: q.c.placeOf(p)}
	read, err := q.c.asker().readQuestion(&a, announced, q.c.changedFiles)
	if err != nil {
		q.c.lifecycle.killAgent()
		return
	}
	if live && !q.c.run.r.opt.Judges.None() {
		if d := q.c.run.r.policy.Decide(read.Request, q.c.run.t.Permissions); d.Effect == policy.Ask {
			q.open.Go(func() { q.settle(a, read, q.askPrograms(a, read, d), live) }) // later questions do not wait
			return
		}
	}
	q.settle(a, read, hook.Ruling{}, live)
}

// settle answers a question by the policy and the ruling of the policy programs, or asks a person.
func (q *questions) settle(a asking, read policy.Reading, ruling hook.Ruling, live bool) {
	for {
		last, _, err := q.c.run.r.log.Last(context.Background(), event.Query{})
		if err != nil {
			q.c.lifecycle.killAgent()
			return
		}
		d := q.c.run.r.policy.DecideWith(read.Request, q.c.run.t.Permissions, ruling.Ruling)
		if q.needsPerson(d) || !live || q.c.lifecycle.isCancelled() {
			q.putQuestion(a, read, d)
			return
		}
		made := decision(a.ID, read.Request, d)
		if d.By == policy.ByProgram {
			made.Program = ruling.Program
		}
		if q.answerDecided(a, made, d, last.Seq) {
			return
		}
	}
}

// askPrograms asks the policy programs. When the question or the turn ends, it ends the programs.
func (q *questions) askPrograms(a asking, read policy.Reading, d policy.Decision) hook.Ruling {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		select {
		case <-ctx.Done():
		case <-q.c.lifecycle.cancelled:
		case <-a.Done():
		case <-q.c.lifecycle.gone():
		case <-q.c.lifecycle.ended:
		}
		cancel()
	}()
	run := q.c.run
	asked := q.question(a.PermissionRequest, read, d)
	return run.r.opt.Judges.Ask(ctx, hook.Question{
		Dir: run.t.Dir, Provider: run.t.Agent.ID, Session: run.refs.Session, Run: run.refs.Run, Input: run.refs.Input,
		Mode: run.t.Permissions, Tier: string(d.Tier), MayAllow: d.ProgramMayAllow, Title: asked.Title, Why: asked.Why,
		Subject: asked.Subject, Options: asked.Options,
		Limit: string(run.t.limited().Limit), Roots: append([]string{run.t.Dir}, run.t.AddDirs...),
	}, q.programFailed)
}

// programFailed records the failure of a policy program and warns of it, once for each program in a run.
func (q *questions) programFailed(f fact.HookFailed) {
	q.failedMu.Lock()
	defer q.failedMu.Unlock()
	if q.failed[f.Origin] {
		return
	}
	if q.failed == nil {
		q.failed = map[string]bool{}
	}
	q.failed[f.Origin] = true
	f.Stderr = q.c.run.r.opt.Redactor.Text(f.Stderr)
	_ = q.c.run.r.log.Record(event.NewFact(event.HookFailed, "policy", q.c.refs(), f)) // an error ends the run later
	why := &message.Text{Text: f.Why, Coded: f.Coded}
	q.c.warn("policy_program_failed", programFailed.With(filepath.Base(f.Command[0]), why))
}

// putQuestion asks a person.
func (q *questions) putQuestion(a asking, read policy.Reading, d policy.Decision) {
	question := q.question(a.PermissionRequest, read, d)
	if q.c.run.t.AnswerIn > 0 {
		if err := q.c.run.r.questions.Reachable(); err != nil {
			q.c.warn("unreachable", unreachable.With(err))
		}
	}
	ticket, err := q.c.run.r.questions.Ask(context.Background(), question)
	if err != nil {
		q.c.lifecycle.killAgent()
		return
	}
	subject := question.Subject
	question = ticket.Question
	question.Subject = subject
	// this notice must precede the notice of the question's end
	q.c.show.addNotice(record.Asked{Question: question, Request: a.ID,
		Answerable: q.c.run.t.AnswerIn > 0 && q.c.sums.isLive()})
	q.open.Go(func() { q.awaitAnswer(ticket, a) })
}

// unambiguous returns the options that have a unique id. If two options had the same id, the agent could take a no for
// a yes. It also omits options with Perlica's own prefix.
func unambiguous(options []acp.PermissionOption) []acp.PermissionOption {
	seen := map[acp.PermissionOptionId]int{}
	for _, o := range options {
		seen[o.OptionId]++
	}
	return slices.DeleteFunc(slices.Clone(options), func(o acp.PermissionOption) bool {
		return seen[o.OptionId] > 1 || strings.HasPrefix(string(o.OptionId), ownPrefix)
	})
}

// needsPerson reports whether a person must answer. A person can allow a refused command by typing a word. So for such
// a command, needsPerson returns true only if a person can answer at all.
func (q *questions) needsPerson(d policy.Decision) bool {
	if d.Effect == policy.Deny {
		return d.Word != "" && q.c.run.t.AnswerIn > 0
	}
	return d.Effect == policy.Ask
}

// answerDecided records and sends the answer of a rule, a standing approval or a mode. If an approval was revoked after
// the event asOf, the decision may be outdated. In that case it records and sends nothing and returns false.
func (q *questions) answerDecided(a asking, made fact.PolicyDecided, d policy.Decision, asOf event.Seq) bool {
	ruling := event.NewFact(event.PolicyDecided, "policy", q.c.refs(), made)
	var unless event.Query
	if d.By == policy.ByStanding {
		unless = event.Query{After: asOf, Types: []event.Type{event.ApprovalRevoked}}
	}
	_, err := q.c.run.r.log.AppendUnless(context.Background(), unless, ruling)
	var conflict *eventlog.ConflictError
	if errors.As(err, &conflict) {
		return false
	}
	if err != nil {
		q.c.lifecycle.killAgent()
		return true
	}
	if a.Claim() {
		q.c.sums.addDecision(a, d.Effect == policy.Allow)
		q.c.show.addNotice(record.Decided{PolicyDecided: made, Request: a.ID})
	} else { // the agent has already received a refusal
		q.countLapse(a.PermissionRequest, interaction.Withdrawn)
	}
	reply(q.c.run.r, a.PermissionRequest, d.OptionID, "policy", q.c.refs())
	return true
}

// decision returns the fact of a decision that no person made, about the agent's request with this id.
func decision(id string, req policy.Request, d policy.Decision) fact.PolicyDecided {
	commands, dir := commandTexts(req)
	return fact.PolicyDecided{
		Request: id, Title: req.Title, Commands: commands, Dir: dir, Paths: req.Paths, LeadsTo: req.Targets(),
		Tier: string(d.Tier), Effect: string(d.Effect), By: string(d.By), Rule: d.Rule, Approval: d.ApprovalID(),
		Why: d.Why, Option: d.OptionID, Coded: d.Coded,
	}
}

// commandTexts returns the commands of a request as texts, and the directory in which they start.
func commandTexts(req policy.Request) (texts []string, dir string) {
	dir = req.Place.Dir
	for _, cmd := range req.Commands {
		text := cmd.String()
		switch {
		case cmd.Dir == "":
		case len(req.Commands) == 1:
			dir = cmd.Dir
		default: // each command may start in another directory
			where, _ := shell.Words([]string{"cd", cmd.Dir})
			text = where + " && " + text
		}
		texts = append(texts, text)
	}
	return texts, dir
}

// question returns the question that asks a person about the agent's request.
func (q *questions) question(p *provider.PermissionRequest, read policy.Reading,
	d policy.Decision) interaction.Question {
	req, call := read.Request, p.Tool
	out := interaction.Question{
		Title: call.Title,
		Subject: interaction.Subject{
			Request: p.ID, Provider: q.c.run.t.Agent.ID, Kind: string(call.Kind), Paths: req.Paths,
			LeadsTo: req.Targets(), Tier: string(d.Tier), RawInput: call.RawInput,
		},
		Word: d.Word, Why: d.Why, Coded: d.Coded, Allow: d.Allow,
		Expires: q.c.sums.now().Add(q.c.run.t.AnswerIn),
		Refs:    q.c.refs(),
	}
	out.Subject.Commands, out.Subject.Dir = commandTexts(req)
	for _, f := range req.Fields {
		out.Subject.Fields = append(out.Subject.Fields, interaction.Field{Name: f.Name, Value: f.Value,
			Inert: f.Role == policy.Inert, Unread: f.Role == policy.Unread})
	}
	for _, t := range call.Content {
		switch {
		case t.Type == "diff":
			out.Subject.Diffs = append(out.Subject.Diffs, interaction.Diff{Path: t.Path, Old: t.OldText, New: t.NewText})
		case t.Text != "":
			out.Subject.Text = append(out.Subject.Text, t.Text)
		}
	}
	for _, b := range read.Bodies {
		out.Subject.Diffs = append(out.Subject.Diffs, interaction.Diff{Path: b.Path, Old: b.Old, New: b.New})
	}
	for _, o := range unambiguous(p.Options) {
		out.Options = append(out.Options, interaction.Option{ID: string(o.OptionId), Label: o.Name, Kind: string(o.Kind)})
	}
	for _, o := range req.Offers() {
		out.Options = append(out.Options, interaction.NewOffer(offerPrefix+string(o.Scope), o.Offer(),
			string(acp.PermissionOptionKindAllowOnce)))
	}
	out.Options = interaction.Order(interaction.Refusable(out.Options))
	return out
}

// ownPrefix begins the ids of Perlica's own options. offerPrefix begins the ids of the options that remember the
// answer.
const (
	ownPrefix   = "perlica:"
	offerPrefix = ownPrefix + "remember-"
)

// awaitAnswer waits for the end of a question and then replies to the agent.
func (q *questions) awaitAnswer(t *interaction.Ticket, a asking) {
	p := a.PermissionRequest
	ctx := context.Background() // the end of the question is recorded even if the caller's ctx ends
	if why := q.awaitEnd(t, p); why != "" {
		// The error may be ignored, because Outcome returns it, too.
		_ = q.c.run.r.questions.Lapse(ctx, t, why)
	}
	answer, lapsed, err := t.Outcome()
	if err != nil {
		q.c.lifecycle.killAgent()
		return
	}
	res := interaction.Resolution{Reason: lapsed}
	if answer != nil {
		if res.Option, err = q.applyAnswer(ctx, t, *answer, a); err != nil {
			q.c.lifecycle.killAgent()
			return
		}
	} else {
		q.countLapse(p, lapsed)
		if lapsed == interaction.Unattended || lapsed == interaction.TimeUp {
			o, _ := t.First(string(acp.PermissionOptionKindRejectOnce)) // without one, the agent gets "cancelled"
			res.Option = o.ID
		}
	}
	by := string(lapsed)
	if answer != nil {
		by = answer.By
	}
	closed := record.Closed{Question: t.Question, Request: p.ID, Answer: answer, Reason: lapsed}
	if answer != nil && !p.Claim() {
		closed.Answer, closed.Reason = nil, interaction.Withdrawn // the agent received a refusal before the answer
	}
	q.c.show.addNotice(closed) // shown before the agent reacts
	res.Sent = lapsed != interaction.Withdrawn && reply(q.c.run.r, p, res.Option, by, t.Refs)
	_ = q.c.run.r.questions.Resolve(t, res) // an error of the log ends the run later
}

// awaitEnd waits for the end of a question. It returns "" after an answer, and otherwise the reason why no answer came.
func (q *questions) awaitEnd(t *interaction.Ticket, p *provider.PermissionRequest) interaction.Reason {
	if q.c.lifecycle.isCancelled() {
		return interaction.Cancelled
	}
	if q.c.run.t.AnswerIn <= 0 {
		return interaction.Unattended
	}
	timer := time.NewTimer(q.c.run.t.AnswerIn)
	defer timer.Stop()
	select {
	case <-t.Done():
		return ""
	case <-q.c.lifecycle.cancelled:
		return interaction.Cancelled
	case <-p.Done():
		if p.Dismissed() {
			return interaction.Dismissed
		}
		return interaction.Withdrawn
	case <-q.c.lifecycle.gone():
		return interaction.AgentGone
	case <-q.c.lifecycle.ended:
		return interaction.RunEnded
	case <-timer.C:
		return interaction.TimeUp
	}
}

// applyAnswer applies a person's answer, and returns the id of the option that the agent gets. "" means "cancelled".
func (q *questions) applyAnswer(ctx context.Context, t *interaction.Ticket, said interaction.Answer,
	a asking) (string, error) {
	i := slices.IndexFunc(t.Options, func(o interaction.Option) bool { return o.ID == said.Option })
	if i < 0 {
		// The coordinator accepts only known options, but other programs can write the log, too.
		q.c.warn("no_such_option",
			noSuchOption.With(said.By))
		q.c.sums.addDecision(a, false)
		return "", nil
	}
	o := t.Options[i]
	req := q.c.reading(a).Request
	option := o.ID
	switch {
	case o.ID == interaction.DenyID:
		option = "" // an empty option is sent as cancelled
	case o.Offer:
		for _, offer := range req.Offers() {
			if offerPrefix+string(offer.Scope) == o.ID {
				if err := q.c.run.r.rememberApproval(ctx, offer, said.By, t.Refs); err != nil {
					return "", err
				}
			}
		}
		once, _ := t.First(string(acp.PermissionOptionKindAllowOnce)) // policy makes an offer only if such an option exists
		option = once.ID
	}
	if !a.Claim() {
		q.countLapse(a.PermissionRequest, interaction.Withdrawn)
		return option, nil
	}
	q.c.sums.addDecision(a, o.Allows())
	if o.Allows() && req.Kind == string(acp.ToolKindSwitchMode) {
		q.c.sums.addAgreement(o.ID, req.Mode)
	}
	return option, nil
}

// countLapse notes that a question ended without an answer. The run counts it as unanswered if nobody could answer or
// the time ran out, but not if the agent or the turn ended first.
func (q *questions) countLapse(p *provider.PermissionRequest, why interaction.Reason) {
	q.c.sums.addLapse(p.Tool.ID, why == interaction.Unattended || why == interaction.TimeUp)
}

// reply sends an option to the agent, and records that it was sent. If option is empty, it sends "cancelled". It
// returns false if sending failed.
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
	_ = r.log.Record(event.NewFact(t, "perlica", refs, sent)) // if the log fails, the agent's next line ends the run
	return err == nil
}
