package policy

import (
	"cmp"
	"slices"
	"time"

	"github.com/perlica/perlica/eventlog/message"
	"github.com/perlica/perlica/policy/shell"
)

// Mode decides the requests that no rule and no standing approval decides.
type Mode string

const (
	ModeAsk   Mode = "ask"   // a person answers
	ModeReads Mode = "reads" // a person answers, except for reads inside the working directory
	ModeDeny  Mode = "deny"  // the answer is no
	ModeAllow Mode = "allow" // the answer to an ordinary request is yes; a person answers the others
)

// By names the source of a decision.
type By string

const (
	ByTier     By = "tier"
	ByRule     By = "rule"
	ByStanding By = "standing"
	ByMode     By = "mode"
)

// Decision is the policy's answer to a request. Ask means that a person must answer. If no person can be asked, the
// answer is no.
type Decision struct {
	Effect   Effect
	Tier     shell.Tier
	By       By
	Why      string    // the reason, for a person
	Rule     *Rule     // the rule that decided, with ByRule
	Approval *Approval // the approval that decided, with ByStanding

	// OptionID is the id of the agent's option for the answer. An Allow always has an option that allows once. A Deny
	// has an option that rejects once. If the agent offers no such option, OptionID is empty and the agent gets the
	// answer "cancelled".
	OptionID string

	// Allow suggests allow rules to the person: each element is the field Command of a new rule. Together these rules
	// would allow the request. It is empty if no new rules can.
	Allow []string

	// Coded is the message code of Why and the values in the message. It is empty if Why is the reason that a rule
	// gives.
	message.Coded

	// Word is the word that a person types to turn this Deny into a yes for this request. It is empty if no word can do
	// this.
	Word string

	// ProgramMayAllow means that a policy program may turn this Ask into a yes. See DecideWith.
	ProgramMayAllow bool
}

// ApprovalID returns the id of the approval that decided, or "".
func (d Decision) ApprovalID() string {
	if d.Approval == nil {
		return ""
	}
	return d.Approval.ID
}

// Decide judges a request in this order: refused commands, rules that deny, ask and allow, standing approvals, the
// mode. It runs nothing. It uses the disk only to resolve symbolic links in the paths of the request.
func (p *Policy) Decide(r Request, m Mode) Decision {
	a := assess(r)
	d := p.judgeRequest(r, m, a)
	d.Tier = a.verdict.Tier
	if d.Why == "" {
		d.Why, d.Coded = a.verdict.Why, a.verdict.Coded
	}
	if stopped := a.verdict.Stopped; stopped != nil {
		if d.Why != "" {
			stopped = whyStoppedToo.With(d.Reason(), stopped)
		}
		d = d.because(stopped)
	} else if d.Effect == Ask {
		d.Allow = p.suggestRules(r, m, a)
	}
	d.ProgramMayAllow = d.programMayAllow(r, a)
	d = d.chooseOption(r.Options)
	if m == ModeDeny && d.Effect == Ask { // in this mode no question is asked
		d.Effect, d.By, d.Rule = Deny, ByMode, nil
		if d.Why == "" {
			d = d.because(whyUnasked)
		} else {
			d = d.because(whyUnaskedBut.With(d.Reason()))
		}
		d = d.chooseOption(r.Options)
	}
	return d
}

// Assessed is a request with the judgement of its commands and paths. It serves several decisions about one request.
type Assessed struct {
	Request
	a assessment
}

// Assess judges the commands and paths of a request.
func Assess(r Request) *Assessed { return &Assessed{r, assess(r)} }

// Tier says how dangerous the request is.
func (q *Assessed) Tier() shell.Tier { return q.a.verdict.Tier }

// Calls returns all calls with which MatchLoose may compare the pattern of a rule.
func (q *Assessed) Calls() []shell.Call { return slices.Concat(q.a.calls, q.a.guesses) }

// NoCommand reports whether the request runs a command that cannot be read. A deny rule for any command matches it.
func (q *Assessed) NoCommand() bool { return q.noCommand() }

// DecideAssessed decides like Decide in ModeAsk. The decision has no suggestions, and its reason may be incomplete.
func (p *Policy) DecideAssessed(q *Assessed) Decision {
	d := p.judgeRequest(q.Request, ModeAsk, q.a)
	d.Tier = q.a.verdict.Tier
	return d.chooseOption(q.Options)
}

// Reason returns the reason as a sentence.
func (d Decision) Reason() *message.Text { return &message.Text{Text: d.Why, Coded: d.Coded} }

// because returns a copy of the decision with the reason in the parameter "why".
func (d Decision) because(why *message.Text) Decision {
	d.Why, d.Coded = why.Text, why.Coded
	return d
}

// chooseOption sets OptionID to the agent's option for the decision. If the agent offers no allow_once option, an Allow
// becomes an Ask.
func (d Decision) chooseOption(options []Option) Decision {
	kind := map[Effect]string{Allow: "allow_once", Deny: "reject_once"}[d.Effect]
	i := slices.IndexFunc(options, func(o Option) bool { return o.Kind == kind })
	switch {
	case i >= 0:
		d.OptionID = options[i].ID
	case d.Effect == Allow:
		d.Effect = Ask
		d = d.because(whyNoAllowOnce)
	}
	return d
}

func (p *Policy) judgeRequest(r Request, m Mode, a assessment) Decision {
	denied := p.firstMatching(Deny, r, a)
	if a.verdict.Tier == shell.Refused {
		d := Decision{Effect: Deny, By: ByTier, Why: a.verdict.Why, Coded: a.verdict.Coded, Word: a.verdict.Word}
		if no, _, err := p.inForce(r, a); denied != nil || m == ModeDeny || no != nil || err != nil {
			d.Word = ""
		}
		return d
	}
	if denied != nil {
		d := byRule(Deny, denied)
		if a.unread != nil {
			d = d.because(whyMayBeMeant.With(d.Reason(), a.unread))
		}
		return d
	}
	if rule := p.firstMatching(Ask, r, a); rule != nil {
		return byRule(Ask, rule)
	}
	if rule := p.allowingRule(r, a); rule != nil {
		return byRule(Allow, rule)
	}
	no, yes, err := p.inForce(r, a)
	if err != nil { // an approval that cannot be read may say no
		return Decision{Effect: Ask, By: ByStanding}.because(whyApprovalsUnread)
	}
	if s := cmp.Or(no, yes); s != nil {
		return Decision{Effect: s.Effect, By: ByStanding, Approval: s}.because(s.Subject())
	}
	return byMode(r, m, a)
}

func byRule(e Effect, rule *Rule) Decision {
	d := Decision{Effect: e, By: ByRule, Rule: rule, Why: rule.Reason}
	switch {
	case rule.Reason != "":
		return d
	case rule.Origin != "":
		return d.because(whyRuleOf.With(effects[e], rule.Origin))
	}
	return d.because(whyRule.With(effects[e]))
}

func byMode(r Request, m Mode, a assessment) Decision {
	d := Decision{Effect: Ask, By: ByMode}
	switch {
	case m == ModeDeny:
		d.Effect = Deny
		return d.because(whyUnasked)
	case a.verdict.Tier == shell.AlwaysAsked:
		d.By = ByTier
	case m == ModeAllow:
		d.Effect = Allow
		if r.Place.Sandbox != nil {
			return d.because(whySandboxed)
		}
		return d.because(whyOrdinary)
	case m == ModeReads && readsInside(r):
		d.Effect = Allow
		return d.because(whyReading)
	}
	return d
}

// readsInside reports whether the request only reads files in the working directory.
func readsInside(r Request) bool {
	if !onlyReads(r.Kind) || r.HasCommand || len(r.Commands) > 0 || len(r.Paths) == 0 || r.unread() != nil {
		return false
	}
	return !slices.ContainsFunc(r.Paths, func(p string) bool {
		real, ok := realPath(p)
		return !ok || !insideDir(real, r.Place)
	})
}

// firstMatching returns the first matching rule with the effect e, which is deny or ask. An unknown word of a
// command may leave open whether a rule matches. Then even a deny rule only asks.
func (p *Policy) firstMatching(e Effect, r Request, a assessment) *Rule {
	for i := range p.rules {
		c := &p.rules[i]
		if (c.rule.Effect != e && (e != Ask || c.rule.Effect != Deny)) || !c.fitsRequest(r) {
			continue
		}
		got := shell.Yes
		if c.pattern != nil {
			got = a.mentions(c.pattern, r.Place)
		}
		if c.rule.Effect == Deny && c.pattern != nil && r.noCommand() {
			got = shell.Yes // the unreadable command may be the one that the rule denies
		}
		if got == shell.Yes && c.rule.Effect == e || got == shell.Maybe && e == Ask {
			rule := c.rule
			return &rule
		}
	}
	return nil
}

// allowingRule returns a rule that allows the request. If several rules together allow its commands, it returns the
// rule for the first command.
func (p *Policy) allowingRule(r Request, a assessment) *Rule {
	asked := a.verdict.Tier == shell.AlwaysAsked
	var patterns []compiled
	for _, c := range p.rules {
		switch {
		case c.rule.Effect != Allow || asked && c.rule.Tier == shell.Ordinary || !c.fitsRequest(r):
		case (a.unread != nil || r.isGrave() || len(r.Guesses) > 0) && !c.exactly():
		case c.pattern != nil:
			if !asked || c.pattern.Names() {
				patterns = append(patterns, c)
			}
		case a.commands && !asked && (len(c.rule.Kind) == 0 || slices.Contains(c.rule.Kind, "execute")):
			return &c.rule
		case !a.commands && (!asked || c.rule.Path != ""):
			return &c.rule
		}
	}
	if len(patterns) == 0 || len(r.Commands) == 0 {
		return nil
	}
	return covering(patterns, r)
}

func covering(patterns []compiled, r Request) *Rule {
	var rule *Rule
	for _, command := range r.Commands {
		calls, ok := command.Simple(r.Place)
		if !ok {
			return nil
		}
		for _, call := range calls {
			i := slices.IndexFunc(patterns, func(c compiled) bool { return c.pattern.MatchExact(call, r.Place) })
			if i < 0 {
				return nil
			}
			if rule == nil {
				rule = &patterns[i].rule
			}
		}
	}
	return rule
}

// inForce returns the first standing no and the first standing yes that cover the request. With an error, the list of
// approvals may be incomplete.
func (p *Policy) inForce(r Request, a assessment) (no, yes *Approval, err error) {
	if p.standing == nil {
		return nil, nil, nil
	}
	var now time.Time
	if p.now != nil {
		now = p.now()
	}
	list, err := p.standing()
	for _, s := range list {
		switch {
		case s.Effect == Deny && no == nil && s.covers(r, now, a):
			no = &s
		case s.Effect == Allow && yes == nil && s.covers(r, now, a):
			yes = &s
		}
	}
	return no, yes, err
}

// assessment is the judgement of the commands and paths of a request.
type assessment struct {
	verdict  shell.Verdict
	commands bool // there is at least one command
	calls    []shell.Call
	guesses  []shell.Call  // the calls of the texts that may be commands
	unread   *message.Text // the reason why the request is unreadable
}

func assess(r Request) assessment {
	a := assessment{verdict: shell.Verdict{Tier: shell.Ordinary}, unread: r.unread()}
	a.commands = r.HasCommand || len(r.Commands) > 0 || r.Kind == "execute"
	at := r.Place
	for _, c := range r.Commands {
		j := shell.Judge(c, at)
		a.calls = append(a.calls, j.Calls...)
		a.addVerdict(j.Verdict)
		at.Changed = at.Changed.With(j.Changed)
	}
	for _, c := range r.Guesses {
		j := shell.Judge(c, r.Place)
		a.guesses = append(a.guesses, j.Calls...)
		switch {
		case j.Verdict.Tier != shell.Refused:
		case r.noCommand():
			a.addVerdict(j.Verdict)
		default:
			a.addVerdict(shell.Unclear(whyMayRead.With(j.Verdict.Reason())))
		}
	}
	for _, path := range r.Paths {
		a.addVerdict(r.pathVerdict(path))
		if r.writes(path) {
			a.addVerdict(r.Place.ToolWrites(path))
		} else {
			a.addVerdict(r.Place.ToolReads(path))
		}
	}
	for _, f := range r.Fields {
		if f.Role == Grave {
			why := whyField.With(f.Cause, shell.Printable(f.Name), shell.Printable(f.Value))
			a.addVerdict(shell.Verdict{Tier: shell.AlwaysAsked, Why: why.Text, Coded: why.Coded})
		}
	}
	a.addVerdict(r.modeVerdict())
	if a.unread != nil {
		a.addVerdict(shell.Unclear(a.unread))
	}
	return a
}

func (a *assessment) addVerdict(v shell.Verdict) {
	unknown, stopped := a.verdict.Unknown || v.Unknown, cmp.Or(a.verdict.Stopped, v.Stopped)
	if v.Tier.Above(a.verdict.Tier) || v.Tier == a.verdict.Tier && a.verdict.Why == "" {
		a.verdict = v
	}
	a.verdict.Unknown, a.verdict.Stopped = unknown, stopped
}

func (a assessment) mentions(p *shell.Pattern, at shell.Place) shell.Answer {
	best := shell.No
	for _, call := range a.calls {
		best = max(best, p.MatchLoose(call, at))
	}
	for _, call := range a.guesses {
		if p.MatchLoose(call, at) == shell.Yes { // perhaps the text is no command, so only a certain match counts
			best = shell.Yes
		}
	}
	return best
}
