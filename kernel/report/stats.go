package report

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/perlica/perlica/eventlog"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/interaction"
	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/kernel/fact"
)

// Stats are numbers of the runs of a log.
type Stats struct {
	Total    Numbers   `json:"total"`
	Groups   []Group   `json:"by_day_and_provider"` // by day, then by provider
	Answers  []Answers `json:"answers"`             // the most first
	Withheld int       `json:"withheld_payloads"`   // facts that could not be counted in full
}

// Group is the runs of a provider whose input came on one day.
type Group struct {
	Day      string `json:"day"` // of the zone that was asked for
	Provider string `json:"provider"`
	Numbers
}

// Numbers are counts of runs and of what happened in them.
type Numbers struct {
	Runs       int                `json:"runs"`
	Calls      int                `json:"calls"`
	Responded  int                `json:"responded"`
	Failed     int                `json:"provider_errors"`
	Unknown    int                `json:"outcome_unknown"`
	NoOutcome  int                `json:"no_outcome"` // yet, or refused before there was a call
	Asked      int                `json:"questions"`
	Allowed    int                `json:"allowed"`
	Denied     int                `json:"denied"`
	Unanswered int                `json:"unanswered"`
	Blocked    int                `json:"blocked_tool_calls"`
	Unasked    int                `json:"unasked_tools"`
	TokensIn   int64              `json:"input_tokens"`
	TokensOut  int64              `json:"output_tokens"`
	Costs      map[string]float64 `json:"cost,omitempty"` // by currency
}

// Answers are how many questions somebody or something answered.
type Answers struct {
	Kind string `json:"kind"` // person, rule, mode, standing, tier, nobody
	Who  string `json:"who"`  // the person's name; why nobody did; empty for the others
	N    int    `json:"n"`
}

// StatsQuery says of which runs the numbers are.
type StatsQuery struct {
	Since, Before time.Time // when the input came; zero: no limit
	Provider      string    // empty: all
	Zone          *time.Location
}

// ReadStats counts. It reads facts only. Of a fact whose payload is withheld its type is
// counted.
func ReadStats(ctx context.Context, log *eventlog.Reader, q StatsQuery) (Stats, error) {
	c := counter{q: q, runs: map[event.RunID]*runNumbers{}, providers: map[event.SessionID]string{}, answers: map[Answers]int{}}
	for e, err := range log.Events(ctx, event.Query{Types: []event.Type{event.SessionCreated}}) {
		if err != nil {
			return Stats{}, err
		}
		if s, err := fact.Decode[fact.SessionCreated](e); err == nil {
			c.providers[e.Session] = s.Provider // known when the run's own facts were pruned
		}
	}
	// What begins before Before may end behind it.
	for e, err := range log.Events(ctx, event.Query{Class: event.Fact, Types: counted, Since: q.Since}) {
		if err != nil {
			return Stats{}, err
		}
		c.add(e)
	}
	if err := c.spend(ctx, log); err != nil {
		return Stats{}, err
	}
	return c.stats(), nil
}

// counted are the facts that say something in numbers.
var counted = []event.Type{
	event.MessageReceived, event.Requested, event.Responded, event.ProviderError, event.OutcomeUnknown,
	event.CallEnforced, event.ToolBlocked, event.PolicyUnasked, event.PolicyDecided,
	event.InteractionRequested, event.InteractionAnswered, event.InteractionLapsed,
}

// runNumbers are those of one run; its Runs, Calls and outcomes are 0 or 1.
type runNumbers struct {
	Numbers
	day      string
	provider string
	answers  []Answers
	withheld int
	options  map[event.InteractionID][]interaction.Option
}

// costReport is what an agent's session had cost when a run ended.
type costReport struct {
	refs event.Refs
	cost fact.Cost
}

type counter struct {
	q         StatsQuery
	runs      map[event.RunID]*runNumbers
	order     []*runNumbers
	providers map[event.SessionID]string
	answers   map[Answers]int
	reports   []costReport // in order, also of runs that are not counted
}

func (c *counter) add(e event.Event) {
	if e.Type == event.Responded {
		if a, err := fact.Decode[fact.Responded](e); err == nil && a.Cost != nil {
			c.reports = append(c.reports, costReport{e.Refs, *a.Cost})
		}
	}
	r := c.runs[e.Run]
	if r == nil {
		begins := e.Type == event.MessageReceived
		if !begins || !c.q.Before.IsZero() && !e.Time.Before(c.q.Before) {
			return // of a run that began before Since, or behind Before
		}
		r = &runNumbers{
			Numbers: Numbers{Runs: 1}, day: e.Time.In(c.q.Zone).Format(time.DateOnly), provider: c.providers[e.Session],
			options: map[event.InteractionID][]interaction.Option{},
		}
		c.runs[e.Run] = r
		c.order = append(c.order, r)
	}
	if e.Payload == nil {
		r.withheld++
	}
	r.apply(e)
}

// apply adds what a fact says; what cannot be read is counted by its type.
func (r *runNumbers) apply(e event.Event) {
	switch e.Type {
	case event.MessageReceived:
		if m, err := fact.Decode[fact.MessageReceived](e); err == nil {
			r.provider = cmp.Or(m.Provider, r.provider)
		}
	case event.Responded:
		r.Responded, r.Calls = 1, 1
		if a, err := fact.Decode[fact.Responded](e); err == nil {
			r.spent(a)
		}
	case event.ProviderError:
		r.Failed = 1
	case event.OutcomeUnknown:
		r.Unknown, r.Calls = 1, 1
	case event.CallEnforced:
		if n, err := fact.Decode[fact.Enforced](e); err == nil {
			r.Calls = n.Calls
		}
	case event.ToolBlocked:
		r.Blocked++
	case event.PolicyUnasked:
		if u, err := fact.Decode[fact.UnaskedTool](e); err != nil || u.FreedBy == "" {
			r.Unasked++
		}
	default:
		r.question(e)
	}
}

func (r *runNumbers) spent(a fact.Responded) {
	in, out, _ := kernel.Result{Usage: a.Usage}.Tokens()
	r.TokensIn, r.TokensOut = in, out
}

// question counts questions and who answered them.
func (r *runNumbers) question(e event.Event) {
	switch e.Type {
	case event.InteractionRequested:
		r.Asked++
		if q, err := fact.Decode[interaction.Question](e); err == nil {
			r.options[e.Interaction] = q.Options
		}
	case event.InteractionAnswered:
		a, err := fact.Decode[interaction.Answer](e)
		r.answers = append(r.answers, Answers{Kind: "person", Who: nameOf(a.By, err)})
		for _, o := range r.options[e.Interaction] {
			if err == nil && o.ID == a.Option {
				r.decided(o.Allows())
			}
		}
	case event.InteractionLapsed:
		l, err := fact.Decode[interaction.Resolution](e)
		r.answers = append(r.answers, Answers{Kind: "nobody", Who: nameOf(words(string(l.Reason)), err)})
		r.Unanswered++
	case event.PolicyDecided:
		r.Asked++
		d, err := fact.Decode[fact.PolicyDecided](e)
		r.answers = append(r.answers, Answers{Kind: nameOf(d.By, err)})
		if err == nil {
			r.decided(d.Effect == "allow")
		}
	}
}

// nameOf is a name, unless the payload with it is gone.
func nameOf(name string, err error) string {
	if err != nil {
		return "withheld"
	}
	return name
}

func (r *runNumbers) decided(yes bool) {
	if yes {
		r.Allowed++
	} else {
		r.Denied++
	}
}

// spend tells the runs what they cost.
func (c *counter) spend(ctx context.Context, log *eventlog.Reader) error {
	var costs Costs
	older := event.Query{Before: c.q.Since}
	if c.q.Since.IsZero() {
		older.Before = time.Unix(0, 0) // all was looked at
	}
	for _, said := range c.reports {
		amount, err := costs.spent(ctx, log, said.refs, said.cost, older)
		if err != nil {
			return err
		}
		if r := c.runs[said.refs.Run]; r != nil {
			r.Costs = map[string]float64{said.cost.Currency: amount}
		}
	}
	return nil
}

// stats sums the runs up.
func (c *counter) stats() Stats {
	s := Stats{Groups: []Group{}, Answers: []Answers{}}
	groups := map[[2]string]*Group{}
	for _, r := range c.order {
		if c.q.Provider != "" && r.provider != c.q.Provider {
			continue
		}
		r.NoOutcome = 1 - r.Responded - r.Failed - r.Unknown
		key := [2]string{r.day, r.provider}
		if groups[key] == nil {
			groups[key] = &Group{Day: r.day, Provider: r.provider}
		}
		groups[key].add(r.Numbers)
		s.Total.add(r.Numbers)
		s.Withheld += r.withheld
		for _, a := range r.answers {
			c.answers[a]++
		}
	}
	for _, g := range groups {
		s.Groups = append(s.Groups, *g)
	}
	slices.SortFunc(s.Groups, func(a, b Group) int {
		return cmp.Or(strings.Compare(a.Day, b.Day), strings.Compare(a.Provider, b.Provider))
	})
	for a, n := range c.answers {
		a.N = n
		s.Answers = append(s.Answers, a)
	}
	slices.SortFunc(s.Answers, func(a, b Answers) int {
		return cmp.Or(b.N-a.N, strings.Compare(a.Kind, b.Kind), strings.Compare(a.Who, b.Who))
	})
	return s
}

func (n *Numbers) add(o Numbers) {
	for _, c := range []struct {
		to   *int
		more int
	}{
		{&n.Runs, o.Runs}, {&n.Calls, o.Calls}, {&n.Responded, o.Responded}, {&n.Failed, o.Failed}, {&n.Unknown, o.Unknown},
		{&n.NoOutcome, o.NoOutcome}, {&n.Asked, o.Asked}, {&n.Allowed, o.Allowed}, {&n.Denied, o.Denied},
		{&n.Unanswered, o.Unanswered}, {&n.Blocked, o.Blocked}, {&n.Unasked, o.Unasked},
	} {
		*c.to += c.more
	}
	n.TokensIn += o.TokensIn
	n.TokensOut += o.TokensOut
	for currency, amount := range o.Costs {
		if n.Costs == nil {
			n.Costs = map[string]float64{}
		}
		n.Costs[currency] += amount
	}
}
