package budget

import (
	"context"
	"errors"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/view"
	"github.com/perlica/perlica/kernel/fact"
)

// usage describes the database with the amounts that a log's calls used. A row has the sums of all calls of one kind in
// one quarter of an hour, one session or one flow run.
func usage(log event.Reader) view.Projection {
	a := adder{log: log}
	return view.Projection{
		Name:    "budgets",
		Version: 1,
		Schema: `
			CREATE TABLE usage (
				subject  TEXT    NOT NULL, -- '', a session or a flow run
				quarter  INTEGER NOT NULL, -- since the Unix epoch; 0 for a session or a flow run
				provider TEXT    NOT NULL,
				schedule TEXT    NOT NULL,
				flow     TEXT    NOT NULL,
				sender   TEXT    NOT NULL,
				currency TEXT    NOT NULL, -- of money; '' for calls and tokens
				calls    INTEGER NOT NULL,
				tokens   INTEGER NOT NULL,
				money    REAL    NOT NULL,
				PRIMARY KEY (subject, quarter, provider, schedule, flow, sender, currency)
			) STRICT, WITHOUT ROWID;
			CREATE TABLE providers (
				provider TEXT PRIMARY KEY,
				currency TEXT NOT NULL -- of the cost in the newest answer; '' means without a cost
			) STRICT;
			CREATE TABLE warned (
				budget TEXT NOT NULL,
				period TEXT NOT NULL,
				cause  TEXT NOT NULL,
				PRIMARY KEY (budget, period, cause)
			) STRICT`,
		Types:    []event.Type{event.MessageReceived, event.Requested, event.Responded, event.BudgetWarned},
		Withheld: true, // a call counts even if its payload is missing
		Apply: func(ctx context.Context, tx *sqlx.Tx, e event.Event) error {
			a.begin(tx)
			switch e.Type {
			case event.MessageReceived:
				a.rows[e.Run] = row{sender: senderOf(e)}
				return nil
			case event.Requested:
				return a.applyCall(ctx, e)
			case event.Responded:
				return a.applyAnswer(ctx, e)
			}
			w, err := fact.Decode[fact.BudgetReached](e)
			if err != nil {
				return nil // the payload is missing, so the person may get this warning a second time
			}
			_, err = tx.ExecContext(ctx, `INSERT OR IGNORE INTO warned (budget, period, cause) VALUES (?, ?, ?)`,
				w.Budget, w.Period, w.Cause)
			return err
		},
	}
}

// adder adds the usage of a log's events to the tables. Within a transaction, no other process applies events, so the
// adder remembers earlier events of the transaction and need not read them again.
type adder struct {
	log        event.Reader
	tx         *sqlx.Tx
	sum        *sqlx.Stmt // adds amounts to a row of usage; nil until its first use in tx
	rows       map[event.RunID]row
	meters     map[event.SessionID]*meter
	currencies map[string]string // of the newest answer of each provider
}

// meter has the reports of one agent's session.
type meter struct {
	fact.Meter
	theirs event.ConversationID
}

// begin makes tx the transaction of the adder.
func (a *adder) begin(tx *sqlx.Tx) {
	if a.tx != tx {
		*a = adder{log: a.log, tx: tx, rows: map[event.RunID]row{}, meters: map[event.SessionID]*meter{},
			currencies: map[string]string{}}
	}
}

// usedBy returns the same usage as fact.UsedBy.
func (a *adder) usedBy(ctx context.Context, e event.Event, answer fact.Responded) (u fact.Used, err error) {
	m := a.meters[e.Session]
	if m == nil || m.theirs != e.Conversation {
		m = &meter{theirs: e.Conversation}
		a.meters[e.Session] = m
	}
	err = m.BeginSession(ctx, a.log, e.Refs, answer, event.Query{Until: e.Seq - 1})
	u.In, u.Out, u.Cost = m.Add(e.Refs, answer)
	return u, err
}

// row identifies one kind of call. Its fields are the key columns of the table usage.
type row struct {
	began                    time.Time // zero before the call
	session, flowRun         string
	provider, schedule, flow string
	sender                   string
}

// senderOf returns the sender of a message, or "" if the payload was pruned.
func senderOf(e event.Event) string {
	m, _ := fact.Decode[fact.MessageReceived](e)
	return m.Sender
}

// rowOf returns the kind of the run's call. It reads the log only for a run that the adder does not remember. If a
// payload was pruned, its fields stay empty.
func (a *adder) rowOf(ctx context.Context, run event.RunID) (r row, err error) {
	if r := a.rows[run]; !r.began.IsZero() {
		return r, nil
	}
	for e, err := range a.log.Events(ctx, event.Query{Run: run, Types: []event.Type{event.MessageReceived,
		event.Requested}}) {
		switch {
		case err != nil:
			return r, err
		case e.Type == event.MessageReceived:
			r.sender = senderOf(e)
			continue
		}
		if r, err = a.rowOfCall(ctx, r.sender, e); err != nil {
			return r, err
		}
	}
	return r, nil
}

// rowOfCall returns the kind of the call with the intent e.
func (a *adder) rowOfCall(ctx context.Context, sender string, e event.Event) (row, error) {
	q, _ := fact.Decode[fact.Requested](e)
	flow, err := flowOf(ctx, a.log, e.Input)
	return row{began: e.Time, session: string(e.Session), flowRun: flowRunOf(e.Input), provider: q.Provider,
		schedule: scheduleOf(e.Input), flow: flow, sender: sender}, err
}

// flowOf returns the name of the flow that made the input, or "".
func flowOf(ctx context.Context, log event.Reader, id event.InputID) (string, error) {
	run := flowRunOf(id)
	if run == "" {
		return "", nil
	}
	e, ok, err := log.Last(ctx, event.Query{Run: event.RunID(event.FlowPrefix + run),
		Types: []event.Type{event.FlowStarted}})
	if err != nil || !ok {
		return "", err
	}
	f, _ := fact.Decode[fact.FlowStarted](e) // without a payload, the name is unknown
	return f.Name, nil
}

// add adds amounts to the rows of the call: one row for its quarter of an hour, one for its session and one for its
// flow run.
func (a *adder) add(ctx context.Context, r row, currency string, calls int, tokens int64, money float64) (err error) {
	if calls == 0 && tokens == 0 && money == 0 {
		return nil
	}
	if a.sum == nil {
		a.sum, err = a.tx.PreparexContext(ctx, `
			INSERT INTO usage (subject, quarter, provider, schedule, flow, sender, currency, calls, tokens, money)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
			ON CONFLICT DO UPDATE SET calls = calls + excluded.calls, tokens = min(tokens + excluded.tokens, ?),
				money = min(money + excluded.money, ?)`)
		if err != nil {
			return err
		}
	}
	var errs []error
	for _, of := range []struct {
		subject string
		quarter int64
	}{
		{"", r.began.Unix() / int64(quarter/time.Second)}, {sessionSubject + r.session, 0}, {flowSubject + r.flowRun, 0},
	} {
		if of.subject == flowSubject {
			continue // no flow made the input
		}
		_, err := a.sum.ExecContext(ctx, of.subject, of.quarter, r.provider, r.schedule, r.flow, r.sender, currency,
			calls, tokens, money, mostTokens, mostMoney)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// These prefixes distinguish session ids from flow run ids in the column subject.
const (
	sessionSubject = "session:"
	flowSubject    = "flow:"
)

// These are the largest amounts of a row. An agent may report any number, and larger sums would overflow.
const (
	mostTokens = 1 << 50
	mostMoney  = 1e15
)

func (a *adder) applyCall(ctx context.Context, e event.Event) error {
	known, ok := a.rows[e.Run]
	var r row
	var err error
	if ok {
		r, err = a.rowOfCall(ctx, known.sender, e)
	} else {
		r, err = a.rowOf(ctx, e.Run)
	}
	if err != nil {
		return err
	}
	a.rows[e.Run] = r
	return a.add(ctx, r, "", 1, 0, 0)
}

func (a *adder) applyAnswer(ctx context.Context, e event.Event) error {
	answer, err := fact.Decode[fact.Responded](e)
	if err != nil {
		return nil // the payload was pruned, so the usage is no longer known
	}
	used, err := a.usedBy(ctx, e, answer)
	if err != nil {
		return err
	}
	r, err := a.rowOf(ctx, e.Run)
	if err != nil {
		return err
	}
	currency := ""
	if answer.Cost != nil {
		currency = answer.Cost.Currency
		if err := a.add(ctx, r, currency, 0, 0, min(max(used.Cost, 0), mostMoney)); err != nil {
			return err
		}
	}
	tokens := min(max(used.In, 0), mostTokens) + min(max(used.Out, 0), mostTokens)
	if err := a.add(ctx, r, "", 0, min(tokens, mostTokens), 0); err != nil {
		return err
	}
	if known, ok := a.currencies[answer.Provider]; ok && known == currency {
		return nil
	}
	a.currencies[answer.Provider] = currency
	_, err = a.tx.ExecContext(ctx, `INSERT OR REPLACE INTO providers (provider, currency) VALUES (?, ?)`,
		answer.Provider, currency)
	return err
}
