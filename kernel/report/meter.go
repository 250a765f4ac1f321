package report

import (
	"context"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/kernel/record"
)

// Meter calculates the tokens and the cost of each run from the agents' reports. An agent reports the cost of its
// session so far. Some agents also report the tokens of the session so far, and some begin at zero again after a
// restart. So a run's share is the difference to the session's previous report. If the new report is lower, the whole
// report counts. The zero value is ready.
type Meter struct {
	costs  map[bill]float64
	tokens map[account][2]int64
}

// account identifies an agent's session. An agent may use the same id in several Perlica sessions.
type account struct {
	ours   event.SessionID
	theirs event.ConversationID
}

type bill struct {
	account
	currency string
}

func accountOf(refs event.Refs) account { return account{refs.Session, refs.Conversation} }

// Add adds the next report of the agent's session in refs. It returns the tokens and the cost since the previous report
// of that session. A number that the agent does not report is 0.
func (m *Meter) Add(refs event.Refs, said record.Result) (in, out int64, cost float64) {
	if m.costs == nil {
		m.costs, m.tokens = map[bill]float64{}, map[account][2]int64{}
	}
	a := accountOf(refs)
	if said.Cost != nil {
		cost = said.Cost.Amount
		b := bill{a, said.Cost.Currency}
		if before := m.costs[b]; a.theirs != "" && cost >= before {
			cost -= before
		}
		m.costs[b] = said.Cost.Amount
	}
	in, out, ok := said.Tokens()
	if !ok {
		return in, out, cost
	}
	before := m.tokens[a]
	m.tokens[a] = [2]int64{in, out}
	if a.theirs == "" || !said.OfSession {
		return in, out, cost
	}
	if in >= before[0] && out >= before[1] {
		in, out = in-before[0], out-before[1]
	}
	return in, out, cost
}

// beginSession prepares the Meter for the first report of an agent's session. It reads earlier reports of that session
// from the log, among the events that older selects.
func (m *Meter) beginSession(ctx context.Context, log event.Reader, refs event.Refs, said record.Result,
	older event.Query) error {
	_, paid := m.costs[bill{accountOf(refs), currency(said.Cost)}]
	_, counted := m.tokens[accountOf(refs)]
	paid = paid || said.Cost == nil
	counted = counted || said.Usage == nil || !said.OfSession
	if refs.Conversation == "" || paid && counted {
		return nil
	}
	older.Session, older.Types, older.Newest = refs.Session, []event.Type{event.Responded}, true
	older.Limit = 32 // an agent reports its usage after each turn or never
	for e, err := range log.Events(ctx, older) {
		if err != nil {
			return err
		}
		if e.Conversation != refs.Conversation || paid && counted {
			break
		}
		a, err := fact.Decode[fact.Responded](e)
		if err != nil {
			continue
		}
		before := record.Result{OfSession: said.OfSession}
		if !paid && currency(a.Cost) == currency(said.Cost) {
			before.Cost, paid = a.Cost, true
		}
		if !counted && a.Usage != nil {
			before.Usage, counted = a.Usage, true
		}
		m.Add(e.Refs, before)
	}
	return nil
}

// currency returns the currency of a cost. Without a cost it returns "".
func currency(c *fact.Cost) string {
	if c == nil {
		return ""
	}
	return c.Currency
}

// usedIn returns a function that replaces the agent's report in an outcome with the usage of the run itself.
func usedIn(ctx context.Context, log event.Reader) func(event.Event, *StepOutcome) error {
	return func(e event.Event, o *StepOutcome) error {
		var m Meter
		err := m.beginSession(ctx, log, e.Refs, o.Result, event.Query{Until: e.Seq - 1})
		var cost float64
		o.in, o.out, cost = m.Add(e.Refs, o.Result)
		if o.Cost != nil {
			o.Cost = &fact.Cost{Amount: cost, Currency: o.Cost.Currency}
		}
		return err
	}
}
