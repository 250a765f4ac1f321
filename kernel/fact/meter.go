package fact

import (
	"context"
	"encoding/json"

	"github.com/perlica/perlica/eventlog/event"
)

// Meter calculates the tokens and the cost of each run from the agents' reports. An agent reports the cost of its
// session so far. Some agents also report the tokens of the session so far, and some begin at zero again after a
// restart. So a run's share is the difference to the session's previous report. If the new report is lower than the
// previous one, the whole new report is the run's share. The zero value is ready.
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
func (m *Meter) Add(refs event.Refs, said Responded) (in, out int64, cost float64) {
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

// BeginSession prepares the Meter for the first report of an agent's session. It reads earlier reports of that session
// from the log, among the events that the query "older" selects.
func (m *Meter) BeginSession(ctx context.Context, log event.Reader, refs event.Refs, said Responded,
	older event.Query) error {
	_, paid := m.costs[bill{accountOf(refs), currency(said.Cost)}]
	_, counted := m.tokens[accountOf(refs)]
	paid = paid || said.Cost == nil
	counted = counted || said.Usage == nil || !said.OfSession
	if refs.Conversation == "" || paid && counted {
		return nil
	}
	older.Session, older.Types, older.Newest = refs.Session, []event.Type{event.Responded}, true
	// An agent reports its usage after each turn or never. The newest answer usually suffices, and further answers may
	// be long texts.
	for _, older.Limit = range []int{1, 31} {
		for e, err := range log.Events(ctx, older) {
			if err != nil {
				return err
			}
			if e.Conversation != refs.Conversation {
				return nil
			}
			older.Until = e.Seq - 1
			a, err := Decode[Responded](e)
			if err != nil {
				continue
			}
			before := Responded{OfSession: said.OfSession}
			if !paid && currency(a.Cost) == currency(said.Cost) {
				before.Cost, paid = a.Cost, true
			}
			if !counted && a.Usage != nil {
				before.Usage, counted = a.Usage, true
			}
			m.Add(e.Refs, before)
			if paid && counted || older.Until == 0 { // if Until were 0, the query would select everything
				return nil
			}
		}
	}
	return nil
}

// currency returns the currency of a cost. Without a cost it returns "".
func currency(c *Cost) string {
	if c == nil {
		return ""
	}
	return c.Currency
}

// Tokens returns the numbers of input and output tokens in Usage, as agents report them. ok is false if Usage does not
// have them.
func (r Responded) Tokens() (in, out int64, ok bool) {
	var u struct {
		In  *int64 `json:"inputTokens"`
		Out *int64 `json:"outputTokens"`
	}
	if json.Unmarshal(r.Usage, &u) != nil || u.In == nil || u.Out == nil {
		return 0, 0, false
	}
	return *u.In, *u.Out, true
}

// Used is the usage of one run: tokens, and the cost in the currency of the agent's report. A number that the agent
// does not report is 0.
type Used struct {
	In, Out int64
	Cost    float64
}

// UsedBy returns the usage of one run. The event e is the run's outcome, and the parameter "said" is the decoded
// answer in it. It reads earlier reports of the agent's session from the log.
func UsedBy(ctx context.Context, log event.Reader, e event.Event, said Responded) (u Used, err error) {
	var m Meter
	err = m.BeginSession(ctx, log, e.Refs, said, event.Query{Until: e.Seq - 1})
	u.In, u.Out, u.Cost = m.Add(e.Refs, said)
	return u, err
}
