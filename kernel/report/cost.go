package report

import (
	"context"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/store"
	"github.com/perlica/perlica/kernel/fact"
)

// Costs tells what each run cost. An agent reports what its session has cost so far, and some
// begin at nothing again when they are started anew: of two reports from one session the
// difference counts, and all of the later one where it is less. The zero value is ready.
type Costs struct {
	last map[bill]float64
}

type bill struct {
	session  event.ConversationID
	currency string
}

// Add takes the next report from the agent's session and returns what the session has cost since the one
// before it.
func (c *Costs) Add(session event.ConversationID, cost fact.Cost) float64 {
	if c.last == nil {
		c.last = map[bill]float64{}
	}
	b := bill{session, cost.Currency}
	before := c.last[b]
	c.last[b] = cost.Amount
	if session == "" || cost.Amount < before {
		return cost.Amount
	}
	return cost.Amount - before
}

// cost is Add for the first report that is looked at of its session, too: what the session had
// reported before is on the log, among what older selects.
func (c *Costs) cost(ctx context.Context, log *store.Reader, refs event.Refs, cost fact.Cost, older event.Query) (float64, error) {
	if _, known := c.last[bill{refs.Conversation, cost.Currency}]; known || refs.Conversation == "" {
		return c.Add(refs.Conversation, cost), nil
	}
	older.Session, older.Types, older.Newest = refs.Session, []event.Type{event.Responded}, true
	older.Limit = 32 // an agent that reports costs does so turn by turn
	for e, err := range log.Events(ctx, older) {
		if err != nil {
			return 0, err
		}
		if e.Conversation != refs.Conversation {
			break
		}
		if a, err := fact.Decode[fact.Responded](e); err == nil && a.Cost != nil && a.Cost.Currency == cost.Currency {
			c.Add(e.Conversation, *a.Cost)
			break
		}
	}
	return c.Add(refs.Conversation, cost), nil
}

// costIn returns what tells from the outcome of a run, and what it reported, what the run cost.
func costIn(ctx context.Context, log *store.Reader) func(event.Event, fact.Cost) (float64, error) {
	return func(e event.Event, cost fact.Cost) (float64, error) {
		return new(Costs).cost(ctx, log, e.Refs, cost, event.Query{Until: e.Seq - 1})
	}
}
