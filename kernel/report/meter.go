package report

import (
	"context"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/kernel/fact"
)

// Meter tells what each run used. An agent reports what its session has cost so far, some report the
// tokens of the session so far, too, and some begin at nothing again when they are started anew: of two
// reports from one session the difference counts, and all of the later one where it is less. The zero
// value is ready.
type Meter struct {
	costs  map[bill]float64
	tokens map[account][2]int64
}

// account is a session of an agent's. Agents may give one id to sessions of several of ours.
type account struct {
	ours   event.SessionID
	theirs event.ConversationID
}

type bill struct {
	account
	currency string
}

func accountOf(refs event.Refs) account { return account{refs.Session, refs.Conversation} }

// Add takes the next report from the agent's session that refs name and returns the tokens and the cost since the one
// before it; 0 where the agent gives no number.
func (m *Meter) Add(refs event.Refs, said kernel.Result) (in, out int64, cost float64) {
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
	m.tokens[a] = [2]int64{in, out} // also of an answer that does not say whose usage it has: of that time when none did
	if a.theirs == "" || !said.OfSession {
		return in, out, cost
	}
	if in >= before[0] && out >= before[1] {
		in, out = in-before[0], out-before[1]
	}
	return in, out, cost
}

// begin prepares the first report that is looked at of its session: what the session had reported
// before is on the log, among what older selects.
func (m *Meter) begin(ctx context.Context, log event.Reader, refs event.Refs, said kernel.Result, older event.Query) error {
	_, paid := m.costs[bill{accountOf(refs), currency(said.Cost)}]
	_, counted := m.tokens[accountOf(refs)]
	paid = paid || said.Cost == nil
	counted = counted || said.Usage == nil || !said.OfSession
	if refs.Conversation == "" || paid && counted {
		return nil
	}
	older.Session, older.Types, older.Newest = refs.Session, []event.Type{event.Responded}, true
	older.Limit = 32 // an agent that reports what it uses does so turn by turn
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
		before := kernel.Result{OfSession: said.OfSession}
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

// currency is empty where there is no cost.
func currency(c *fact.Cost) string {
	if c == nil {
		return ""
	}
	return c.Currency
}

// usedIn returns what changes an outcome from what the agent reported to what the run itself used.
func usedIn(ctx context.Context, log event.Reader) func(event.Event, *StepOutcome) error {
	return func(e event.Event, o *StepOutcome) error {
		var m Meter
		err := m.begin(ctx, log, e.Refs, o.Result, event.Query{Until: e.Seq - 1})
		var cost float64
		o.in, o.out, cost = m.Add(e.Refs, o.Result)
		if o.Cost != nil {
			o.Cost = &fact.Cost{Amount: cost, Currency: o.Cost.Currency}
		}
		return err
	}
}
