package report

import (
	"cmp"
	"context"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/interaction"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/kernel/record"
)

// Stats are statistics of the runs of a log.
type Stats struct {
	Total    Numbers   `json:"total"`
	Groups   []Group   `json:"by_day_and_provider"` // ordered by day and then by provider
	Answers  []Answers `json:"answers"`             // the most frequent first
	Withheld int       `json:"withheld_payloads"`   // the number of facts without a payload
	Shares   []share   `json:"shares,omitempty"`    // empty unless StatsQuery.By is set
	// NotCounted lists the logs that could not be read.
	NotCounted []string `json:"not_counted,omitempty"`
}

// share has the numbers of one person, one session, one project or one worker.
type share struct {
	// Of is the person's name or the session's id. For several logs it is the name of the project or of the team's
	// worker.
	Of string `json:"of"`
	// Name is the session's name.
	Name string `json:"name,omitempty"`
	Numbers
}

// Group has the numbers of one provider for the inputs of one day.
type Group struct {
	// Day is a date in the requested time zone.
	Day      string `json:"day"`
	Provider string `json:"provider"`
	Numbers
}

// Numbers counts runs and their events.
type Numbers struct {
	Runs      int `json:"runs"`
	Calls     int `json:"calls"`
	Responded int `json:"responded"`
	Failed    int `json:"provider_errors"`
	Unknown   int `json:"outcome_unknown"`
	// NoOutcome is the number of runs that are still running, or were refused before a call.
	NoOutcome  int                `json:"no_outcome"`
	Asked      int                `json:"questions"`
	Allowed    int                `json:"allowed"`
	Denied     int                `json:"denied"`
	Unanswered int                `json:"unanswered"`
	Blocked    int                `json:"blocked_tool_calls"`
	Unasked    int                `json:"unasked_tools"`
	TokensIn   int64              `json:"input_tokens"`
	TokensOut  int64              `json:"output_tokens"`
	Costs      map[string]float64 `json:"cost,omitempty"` // amounts by currency
}

// Answers is the number of questions that one person, one rule or one reason ended.
type Answers struct {
	Kind string `json:"kind"` // person, rule, mode, standing, tier, or nobody
	// The field Who is the person's name, or the reason for the missing answer. It is empty for the other kinds.
	Who string `json:"who"`
	N   int    `json:"n"`
}

// StatsQuery selects the runs that are counted.
type StatsQuery struct {
	// Since and Before limit the time of the input. Zero means no limit.
	Since, Before time.Time
	Provider      string // empty means all providers
	// By is "person" or "session": Shares then has the numbers of each. Empty means no shares.
	By   string
	Zone *time.Location
}

// ReadStats returns the statistics of the selected runs. It reads facts only. If a payload is missing, it uses only the
// event's type.
func ReadStats(ctx context.Context, log event.Reader, q StatsQuery) (Stats, error) {
	c := counter{q: q, runs: map[event.RunID]*counted{}, providers: map[event.SessionID]string{},
		names: map[event.SessionID]string{}, answers: map[Answers]int{}}
	for e, err := range log.Events(ctx, event.Query{Types: []event.Type{event.SessionCreated, event.SessionRenamed}}) {
		if err != nil {
			return Stats{}, err
		}
		c.session(e)
	}
	// A run that begins before q.Before may end later, so the query has no upper limit.
	for e, err := range log.Events(ctx, event.Query{Class: event.Fact, Types: numbered, Since: q.Since}) {
		if err != nil {
			return Stats{}, err
		}
		c.addEvent(e)
	}
	if err := c.addUsage(ctx, log); err != nil {
		return Stats{}, err
	}
	return c.stats(), nil
}

// numbered has the types of facts that the statistics use.
var numbered = []event.Type{
	event.MessageReceived, event.Requested, event.Responded, event.ProviderError, event.OutcomeUnknown,
	event.CallEnforced, event.ToolBlocked, event.PolicyUnasked, event.PolicyDecided, event.ReplyFailed,
	event.InteractionRequested, event.InteractionAnswered, event.InteractionLapsed,
}

// usageReport is an agent's report of its usage at the end of a run.
type usageReport struct {
	refs event.Refs
	said fact.Responded
}

type counter struct {
	q         StatsQuery
	runs      map[event.RunID]*counted
	order     []*counted
	providers map[event.SessionID]string
	names     map[event.SessionID]string
	answers   map[Answers]int
	// reports has the reports of all runs in order, even of runs that are not counted.
	reports []usageReport
}

// counted is a run that is counted, without its texts.
type counted struct {
	record.Record
	costs    map[string]float64
	in, out  int64 // numbers of tokens
	withheld int
}

// session stores the provider and the name of a session. They are needed for runs that lost their own facts by pruning.
func (c *counter) session(e event.Event) {
	if s, err := fact.Decode[fact.SessionCreated](e); err == nil && e.Type == event.SessionCreated {
		c.providers[e.Session], c.names[e.Session] = s.Provider, s.Name
	}
	if s, err := fact.Decode[fact.SessionRenamed](e); err == nil && e.Type == event.SessionRenamed {
		c.names[e.Session] = s.Name
	}
}

// share returns the person or the session of a run, without numbers.
func (c *counter) share(r *counted) share {
	if c.q.By == "session" {
		return share{Of: string(r.Session), Name: c.names[r.Session]}
	}
	return share{Of: cmp.Or(r.Received.Sender, "unknown")}
}

func (c *counter) addEvent(e event.Event) {
	r := c.runs[e.Run]
	begins := e.Type == event.MessageReceived && (c.q.Before.IsZero() || e.Time.Before(c.q.Before))
	if r == nil && begins {
		r = &counted{}
		c.runs[e.Run] = r
		c.order = append(c.order, r)
	}
	if r == nil { // not in the statistics, but the next run needs this run's report
		r = &counted{}
	}
	_ = r.Apply(e) // if a fact is unreadable, Apply uses its type
	if e.Type == event.Responded && (r.Cost != nil || r.Usage != nil) {
		c.reports = append(c.reports, usageReport{e.Refs, r.Report()})
	}
	if e.Payload == nil {
		r.withheld++
	}
	r.Text, r.Received.Text = "", ""
	if e.Type == event.InteractionRequested {
		r.Questions[len(r.Questions)-1].Subject = interaction.Subject{}
	}
}

// numbers returns the numbers of one run. Its Runs, Calls and outcomes are 0 or 1.
func (r *counted) numbers() Numbers {
	p := r.Counted()
	n := Numbers{
		Runs: 1, Calls: r.Calls, Asked: p.Asked, Allowed: p.Allowed, Denied: p.Denied,
		Blocked: len(r.Refused), Unasked: r.Unreadable + len(r.Unasked) - r.Freed(), Costs: r.costs,
		TokensIn: r.in, TokensOut: r.out,
	}
	for _, q := range r.Questions {
		if !q.Closed.IsZero() && q.Answer == nil {
			n.Unanswered++
		}
	}
	switch r.Outcome {
	case record.OutcomeResponded:
		n.Responded = 1
	case record.OutcomeProviderError:
		n.Failed = 1
	case record.OutcomeUnknown:
		n.Unknown = 1
	default:
		n.NoOutcome = 1
	}
	return n
}

func (r *counted) answered() (list []Answers) {
	const withheld = "withheld"
	for _, q := range r.Questions {
		switch {
		case q.Unsent:
		case q.Answer != nil:
			list = append(list, Answers{Kind: "person", Who: cmp.Or(q.Answer.By, withheld)})
		case !q.Closed.IsZero():
			list = append(list, Answers{Kind: "nobody", Who: cmp.Or(words(string(q.Reason)), withheld)})
		}
	}
	for _, d := range r.Decisions {
		list = append(list, Answers{Kind: cmp.Or(d.By, withheld)})
	}
	return list
}

func (c *counter) addUsage(ctx context.Context, log event.Reader) error {
	var m fact.Meter
	older := event.Query{Before: c.q.Since}
	if c.q.Since.IsZero() {
		older.Before = time.Unix(0, 0) // c.reports already has all reports, so read no older ones
	}
	for _, u := range c.reports {
		if err := m.BeginSession(ctx, log, u.refs, u.said, older); err != nil {
			return err
		}
		in, out, cost := m.Add(u.refs, u.said)
		r := c.runs[u.refs.Run]
		if r == nil {
			continue
		}
		r.in, r.out = in, out
		if u.said.Cost != nil {
			r.costs = map[string]float64{u.said.Cost.Currency: cost}
		}
	}
	return nil
}

func (c *counter) stats() Stats {
	s := Stats{Groups: []Group{}, Answers: []Answers{}}
	groups, shares := map[[2]string]*Group{}, map[string]int{}
	for _, r := range c.order {
		// If the run's own facts were pruned, provider is the session's provider.
		provider := cmp.Or(r.Provider, c.providers[r.Session])
		if c.q.Provider != "" && provider != c.q.Provider {
			continue
		}
		n, day := r.numbers(), r.At.In(c.q.Zone).Format(time.DateOnly)
		key := [2]string{day, provider}
		if groups[key] == nil {
			groups[key] = &Group{Day: day, Provider: provider}
		}
		groups[key].addNumbers(n)
		s.Total.addNumbers(n)
		if c.q.By != "" {
			of := c.share(r)
			i, known := shares[of.Of]
			if !known {
				i, s.Shares = len(s.Shares), append(s.Shares, of)
				shares[of.Of] = i
			}
			s.Shares[i].addNumbers(n)
		}
		s.Withheld += r.withheld
		for _, a := range r.answered() {
			c.answers[a]++
		}
	}
	for _, g := range groups {
		s.Groups = append(s.Groups, *g)
	}
	for a, n := range c.answers {
		a.N = n
		s.Answers = append(s.Answers, a)
	}
	s.sortAll()
	return s
}

func (s *Stats) sortAll() {
	sort.Slice(s.Groups, func(i, j int) bool {
		a, b := &s.Groups[i], &s.Groups[j]
		return cmp.Or(strings.Compare(a.Day, b.Day), strings.Compare(a.Provider, b.Provider)) < 0
	})
	sort.Slice(s.Answers, func(i, j int) bool {
		a, b := &s.Answers[i], &s.Answers[j]
		return cmp.Or(b.N-a.N, strings.Compare(a.Kind, b.Kind), strings.Compare(a.Who, b.Who)) < 0
	})
}

// Add adds the statistics o of another log. If "of" is not empty, it is the name of that log, such as a project. All
// runs of o then become one share with this name, instead of the shares in o.
func (s *Stats) Add(of string, o Stats) {
	s.Total.addNumbers(o.Total)
	s.Withheld += o.Withheld
	for _, g := range o.Groups {
		i := slices.IndexFunc(s.Groups, func(x Group) bool { return x.Day == g.Day && x.Provider == g.Provider })
		if i < 0 {
			i, s.Groups = len(s.Groups), append(s.Groups, Group{Day: g.Day, Provider: g.Provider})
		}
		s.Groups[i].addNumbers(g.Numbers)
	}
	for _, a := range o.Answers {
		i := slices.IndexFunc(s.Answers, func(x Answers) bool { return x.Kind == a.Kind && x.Who == a.Who })
		if i < 0 {
			i, s.Answers = len(s.Answers), append(s.Answers, Answers{Kind: a.Kind, Who: a.Who})
		}
		s.Answers[i].N += a.N
	}
	shares := o.Shares
	if of != "" {
		shares = []share{{Of: of, Numbers: o.Total}}
	}
	for _, x := range shares {
		i := slices.IndexFunc(s.Shares, func(y share) bool { return y.Of == x.Of })
		if i < 0 {
			i, s.Shares = len(s.Shares), append(s.Shares, share{Of: x.Of, Name: x.Name})
		}
		s.Shares[i].addNumbers(x.Numbers)
	}
	s.sortAll()
}

func (n *Numbers) addNumbers(o Numbers) {
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
