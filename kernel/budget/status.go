package budget

import (
	"context"
	"strings"
	"time"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/message"
	"github.com/perlica/perlica/eventlog/store"
)

// Status is the state of one budget. From and Until are the beginning and the end of its present period. Both are zero
// for a session and a run.
type Status struct {
	Budget string    `json:"budget"` // the keys as the configuration has them
	From   time.Time `json:"from,omitzero"`
	Until  time.Time `json:"until,omitzero"` // the time of renewal
	Amount []Amount  `json:"amounts"`
	Origin string    `json:"origin"` // file:line
}

// Amount is one limit of a budget, and the used amount. Used and Left are nil if the caller named no period: no session
// for a budget for each session, or a budget for each run.
type Amount struct {
	Of       string   `json:"of"` // calls, tokens or money
	Used     *float64 `json:"used,omitempty"`
	Limit    float64  `json:"limit"`
	Left     *float64 `json:"left,omitempty"`
	Currency string   `json:"currency,omitempty"`
}

// Status returns the state of all budgets. session may be empty. log is nil if no log exists, and the used amounts are
// then 0. A nil Guard has no budgets.
func (g *Guard) Status(ctx context.Context, log *store.Reader, session event.SessionID) (list []Status, err error) {
	if g == nil {
		return nil, nil
	}
	var v *views
	if log != nil {
		if v, err = g.openViews(ctx, log); err != nil {
			return nil, err
		}
		defer v.close()
	}
	now := g.opt.Now()
	for _, l := range g.limits {
		p := l.period(now, Call{Refs: event.Refs{Session: session}})
		var used amounts
		if v != nil {
			if used, err = v.amounts(ctx, l, p); err != nil {
				return nil, err
			}
		}
		s := Status{Budget: l.name, From: p.From, Until: p.Until, Origin: l.Origin}
		add := func(of string, used, limit float64, currency string) {
			a := Amount{Of: of, Limit: limit, Currency: currency}
			if p.Key != "" {
				left := max(limit-used, 0)
				a.Used, a.Left = &used, &left
			}
			s.Amount = append(s.Amount, a)
		}
		if l.Calls != nil {
			add(causeCalls, float64(used.calls), float64(*l.Calls), "")
		}
		if l.Tokens != nil {
			add(causeTokens, float64(used.tokens), float64(*l.Tokens), "")
		}
		if l.money != nil {
			add(causeMoney, used.money, l.money.Amount, l.money.Currency)
		}
		list = append(list, s)
	}
	return list, nil
}

// barWidth is the width of a bar in columns.
const barWidth = 20

// Bar returns the used share as a bar of 20 columns. It is empty if the used amount is not known.
func (a Amount) Bar() string {
	if a.Used == nil {
		return ""
	}
	full := min(percent(*a.Used, a.Limit), 100) * barWidth / 100
	return strings.Repeat("█", full) + strings.Repeat("░", barWidth-full)
}

// Sentence returns the used amount, the limit and the remainder as a sentence.
func (a Amount) Sentence() *message.Text {
	show := func(n float64) string {
		if a.Of == causeMoney {
			return money(n, a.Currency)
		}
		return count(int64(n))
	}
	if a.Used == nil {
		return eachOf[a.Of].With(show(a.Limit))
	}
	return leftOf[a.Of].With(show(*a.Used), show(a.Limit), show(*a.Left))
}

// Renewal returns a sentence with the time at which the budget is renewed, or nil if no time renews the budget.
func (s Status) Renewal() *message.Text {
	if s.Until.IsZero() {
		return nil
	}
	return renewedAt.With(showTime(s.Until))
}

func showTime(t time.Time) string { return t.Format("2006-01-02 15:04 MST") }
