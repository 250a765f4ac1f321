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
		Types:    []event.Type{event.Requested, event.Responded, event.BudgetWarned},
		Withheld: true, // a call counts even if its payload is missing
		Apply: func(ctx context.Context, tx *sqlx.Tx, e event.Event) error {
			switch e.Type {
			case event.Requested:
				return applyCall(ctx, tx, log, e)
			case event.Responded:
				return applyAnswer(ctx, tx, log, e)
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

// row identifies one kind of call. Its fields are the key columns of the table usage.
type row struct {
	began                    time.Time
	session, flowRun         string
	provider, schedule, flow string
	sender                   string
}

// readRow reads the kind of the run's call from the events before the answer. If a payload was pruned, its fields stay
// empty.
func readRow(ctx context.Context, log event.Reader, run event.RunID) (r row, err error) {
	for e, err := range log.Events(ctx, event.Query{Run: run, Types: []event.Type{event.MessageReceived,
		event.Requested}}) {
		if err != nil {
			return r, err
		}
		if e.Type == event.MessageReceived {
			m, _ := fact.Decode[fact.MessageReceived](e) // without a payload, the sender is unknown
			r.sender = m.Sender
			continue
		}
		q, _ := fact.Decode[fact.Requested](e)
		r.began, r.provider, r.session = e.Time, q.Provider, string(e.Session)
		r.schedule, r.flowRun = scheduleOf(e.Input), flowRunOf(e.Input)
		if r.flow, err = flowOf(ctx, log, e.Input); err != nil {
			return r, err
		}
	}
	return r, nil
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
func (r row) add(ctx context.Context, tx *sqlx.Tx, currency string, calls int, tokens int64, money float64) error {
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
		_, err := tx.ExecContext(ctx, `
			INSERT INTO usage (subject, quarter, provider, schedule, flow, sender, currency, calls, tokens, money)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
			ON CONFLICT DO UPDATE SET calls = calls + excluded.calls, tokens = min(tokens + excluded.tokens, ?),
				money = min(money + excluded.money, ?)`,
			of.subject, of.quarter, r.provider, r.schedule, r.flow, r.sender, currency, calls, tokens, money, mostTokens,
			mostMoney)
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

func applyCall(ctx context.Context, tx *sqlx.Tx, log event.Reader, e event.Event) error {
	r, err := readRow(ctx, log, e.Run)
	if err != nil {
		return err
	}
	return r.add(ctx, tx, "", 1, 0, 0)
}

func applyAnswer(ctx context.Context, tx *sqlx.Tx, log event.Reader, e event.Event) error {
	a, err := fact.Decode[fact.Responded](e)
	if err != nil {
		return nil // the payload was pruned, so the usage is no longer known
	}
	used, err := fact.UsedBy(ctx, log, e, a)
	if err != nil {
		return err
	}
	r, err := readRow(ctx, log, e.Run)
	if err != nil {
		return err
	}
	currency := ""
	if a.Cost != nil {
		currency = a.Cost.Currency
		if err := r.add(ctx, tx, currency, 0, 0, min(max(used.Cost, 0), mostMoney)); err != nil {
			return err
		}
	}
	tokens := min(max(used.In, 0), mostTokens) + min(max(used.Out, 0), mostTokens)
	if err := r.add(ctx, tx, "", 0, min(tokens, mostTokens), 0); err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, `INSERT OR REPLACE INTO providers (provider, currency) VALUES (?, ?)`,
		a.Provider, currency)
	return err
}
