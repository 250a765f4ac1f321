package budget

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/message"
	"github.com/perlica/perlica/eventlog/store"
	"github.com/perlica/perlica/eventlog/view"
	"github.com/perlica/perlica/kernel/config"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/kernel/filelock"
	"github.com/perlica/perlica/kernel/logtrust"
)

// Options are the options of New.
type Options struct {
	Budgets []config.Budget
	Locks   string // the folder of the context's locks
	// Dir is a folder of the user. It contains the databases with the usage, and the lock for all projects of the user.
	Dir   string
	Known logtrust.Store // lists the logs of all projects of the user
	Now   func() time.Time
}

// Guard checks the budgets of one log. Several goroutines may call its methods. The caller must close it. The methods
// of a nil Guard allow every call.
type Guard struct {
	opt    Options
	limits []limit
	user   bool // true if a limit has the scope of the user

	mu  sync.Mutex // guards own
	own *view.View // the view of the guard's log; nil until its first use
}

// New returns a Guard, or nil without a budget.
func New(opt Options) (*Guard, error) {
	if len(opt.Budgets) == 0 {
		return nil, nil
	}
	if opt.Now == nil {
		opt.Now = time.Now
	}
	g := &Guard{opt: opt}
	for _, b := range opt.Budgets {
		l, err := newLimit(b)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", b.Origin, err)
		}
		g.limits = append(g.limits, l)
		g.user = g.user || b.Scope == userScope
	}
	return g, nil
}

// Close closes the views. No other method may be running.
func (g *Guard) Close() error {
	if g == nil || g.own == nil {
		return nil
	}
	return g.own.Close()
}

// Lock lets one process at a time check its budgets and write the intent of its call. The caller must call the function
// unlock after the intent is on disk.
func (g *Guard) Lock(ctx context.Context) (unlock func(), err error) {
	if g == nil {
		return func() {}, nil
	}
	paths := []string{filepath.Join(g.opt.Locks, lockName)}
	if g.user { // every process takes this lock first, so that no two block each other
		if err := os.MkdirAll(g.opt.Dir, 0o700); err != nil {
			return nil, ErrNotChecked.With(err)
		}
		paths = []string{filepath.Join(g.opt.Dir, lockName), paths[0]}
	}
	var held []*filelock.Lock
	unlock = func() {
		for _, l := range slices.Backward(held) {
			l.Free()
		}
	}
	for _, path := range paths {
		l, err := filelock.Queue(ctx, path)
		if err != nil {
			unlock()
			return nil, ErrNotChecked.With(err)
		}
		held = append(held, l)
	}
	return unlock, nil
}

const lockName = "budget.lock"

// A RefusedError means that a budget refuses a call. Nothing was sent.
type RefusedError struct{ fact.BudgetReached }

// Tell returns the error's sentence.
func (e *RefusedError) Tell() *message.Text { return e.Reason() }

func (e *RefusedError) Error() string { return e.Why }

// A Check is the result of a check in which no budget refused the call.
type Check struct {
	// Warnings are the warnings that the caller records and shows.
	Warnings []fact.BudgetReached
	watched  []reading
	log      event.Reader
	refs     event.Refs
}

// reading is a budget and its usage before the call.
type reading struct {
	limit
	period span
	amounts
}

// amounts are the sums of calls.
type amounts struct {
	calls, tokens int64
	money         float64 // in the currency of the limit
}

// Check reads the usage of all budgets that the call concerns. If a budget is used up, the error is a *RefusedError. If
// several are used up, the error names the budget that becomes free last. Without Lock, another process may make a call
// after the check.
func (g *Guard) Check(ctx context.Context, log *store.Reader, c Call) (*Check, error) {
	if g == nil {
		return nil, nil
	}
	check, err := g.check(ctx, log, c)
	if refusal := (*RefusedError)(nil); err != nil && !errors.As(err, &refusal) {
		return nil, ErrNotChecked.With(err)
	}
	return check, err
}

func (g *Guard) check(ctx context.Context, log *store.Reader, c Call) (*Check, error) {
	views, err := g.openViews(ctx, log)
	if err != nil {
		return nil, err
	}
	defer views.close()
	check := &Check{log: log, refs: c.Refs}
	var last *RefusedError
	now, project := g.opt.Now(), projectOf(log.Path())
	flow, err := flowOf(ctx, log, c.Refs.Input)
	if err != nil {
		return nil, err
	}
	for _, l := range g.limits {
		if !l.concerns(c, flow, project) {
			continue
		}
		r := reading{limit: l, period: l.period(now, c)}
		if r.amounts, err = views.amounts(ctx, l, r.period); err != nil {
			return nil, err
		}
		cost, err := views.costOf(ctx, l, c.Provider)
		if err != nil {
			return nil, err
		}
		if reached := r.refusal(c, cost); reached != nil {
			if e := (&RefusedError{*reached}); last == nil || e.later(last) {
				last = e
			}
			continue
		}
		for _, w := range r.warnings(c, cost) {
			if known, err := views.warned(ctx, w); err != nil || known {
				if err != nil {
					return nil, err
				}
				continue
			}
			check.Warnings = append(check.Warnings, w)
		}
		if l.Stop {
			check.watched = append(check.watched, r)
		}
	}
	if last != nil {
		return nil, last
	}
	return check, nil
}

// later reports whether e's budget becomes free after o's budget. A budget without an end never becomes free.
func (e *RefusedError) later(o *RefusedError) bool {
	return !o.Until.IsZero() && (e.Until.IsZero() || e.Until.After(o.Until))
}

// The causes of a refusal or a warning.
const (
	causeCalls   = "calls"
	causeTokens  = "tokens"
	causeMoney   = "money"
	causeUnknown = "unknown"
)

// warnAt is the share, in percent, from which on a person is warned.
const warnAt = 80

// cost says whether a provider reports the costs of its calls, and in which currency.
type cost struct {
	known    bool   // true if the provider has answered a call
	currency string // of the newest answer; empty without a cost
}

func (r reading) reached(cause string, why *message.Text) *fact.BudgetReached {
	return &fact.BudgetReached{Budget: r.name, Period: r.period.Key, Cause: cause, Until: r.period.Until, Why: why.Text,
		Coded: why.Coded}
}

// refusal returns the reason to refuse the call, or nil.
func (r reading) refusal(c Call, cost cost) *fact.BudgetReached {
	free := freeSession
	switch {
	case !r.period.Until.IsZero():
		free = freeAt.With(showTime(r.period.Until))
	case r.Per == "run":
		free = freeRun
	}
	no := func(cause string, why *message.Text, free *message.Text) *fact.BudgetReached {
		return r.reached(cause, refused.With(r.name, why, free))
	}
	switch {
	case r.Calls != nil && r.calls >= int64(*r.Calls):
		return no(causeCalls, r.callsUsed(r.calls), free)
	case r.Tokens != nil && r.tokens >= int64(*r.Tokens):
		return no(causeTokens, r.tokensUsed(r.tokens), free)
	case r.limit.money != nil && r.amounts.money >= r.limit.money.Amount-1e-9:
		return no(causeMoney, r.moneyUsed(r.amounts.money), free)
	case r.limit.money != nil && r.Unknown == "refuse" && cost.known && cost.currency != r.limit.money.Currency:
		no := no(causeUnknown, r.unknownCost(c.Provider, cost), freeOther)
		no.Until = time.Time{}
		return no
	}
	return nil
}

// warnings returns all warnings about the coming call, including warnings that a person has already seen.
func (r reading) warnings(c Call, cost cost) (list []fact.BudgetReached) {
	add := func(cause string, why *message.Text) { list = append(list, *r.reached(cause, why)) }
	if n := r.Calls; n != nil && *n > 1 && percent(float64(r.calls+1), float64(*n)) >= warnAt {
		add(causeCalls, nearly.With(r.name, r.callsUsed(r.calls+1)))
	}
	if n := r.Tokens; n != nil && percent(float64(r.tokens), float64(*n)) >= warnAt {
		add(causeTokens, nearly.With(r.name, r.tokensUsed(r.tokens)))
	}
	if m := r.limit.money; m != nil && percent(r.amounts.money, m.Amount) >= warnAt {
		add(causeMoney, nearly.With(r.name, r.moneyUsed(r.amounts.money)))
	}
	if m := r.limit.money; m != nil && cost.known && cost.currency != m.Currency {
		add(causeUnknown, unlimited.With(r.name, r.unknownCost(c.Provider, cost)))
	}
	return list
}

func (l limit) callsUsed(n int64) *message.Text {
	return usedCalls.With(count(n), count(int64(*l.Calls)))
}

func (l limit) tokensUsed(n int64) *message.Text {
	return usedTokens.With(count(n), count(int64(*l.Tokens)))
}

func (l limit) moneyUsed(amount float64) *message.Text {
	return usedMoney.With(money(amount, l.money.Currency), l.money.String())
}

func (l limit) unknownCost(provider string, c cost) *message.Text {
	if c.currency == "" {
		return noCosts.With(provider)
	}
	return otherCosts.With(provider, c.currency, l.money.Currency)
}

// Report is an agent's report of its usage during a call.
type Report struct {
	Cost   *fact.Cost // of the agent's session so far, or nil
	Tokens int64      // of the call so far
}

// Exceeded returns the reason to stop the call after a report of its agent, or nil. Only budgets with stop = true stop
// a call.
func (c *Check) Exceeded(ctx context.Context, said Report) *message.Text {
	if c == nil || len(c.watched) == 0 {
		return nil
	}
	used, err := fact.UsedBy(ctx, c.log, event.Event{Refs: c.refs}, fact.Responded{Cost: said.Cost})
	for _, r := range c.watched {
		if m := r.limit.money; m != nil && err == nil && said.Cost != nil && said.Cost.Currency == m.Currency &&
			r.amounts.money+used.Cost > m.Amount+1e-9 {
			return exceeded.With(r.name, r.moneyUsed(r.amounts.money+used.Cost))
		}
		if n := r.Tokens; n != nil && r.tokens+said.Tokens > int64(*n) {
			return exceeded.With(r.name, r.tokensUsed(r.tokens+said.Tokens))
		}
	}
	return nil
}

// Watches reports whether a report of the call's agent may stop the call.
func (c *Check) Watches() bool { return c != nil && len(c.watched) > 0 }

// views are the views of the logs that a check reads. The first one is the guard's own log.
type views struct {
	g    *Guard
	list []logView
}

type logView struct {
	*view.View
	path string
	log  *store.Reader // nil if another owner closes the log
}

// openViews opens the views of the guard's log and, for a budget of the user, of all other logs of the user. It brings
// them up to date. The caller must close the result.
func (g *Guard) openViews(ctx context.Context, log *store.Reader) (*views, error) {
	g.mu.Lock()
	v := &views{g: g}
	var err error
	if g.own == nil {
		g.own, err = g.openView(ctx, log)
	} else {
		err = g.own.CatchUp(ctx)
	}
	if err != nil {
		g.mu.Unlock()
		return nil, err
	}
	v.list = append(v.list, logView{View: g.own, path: log.Path()})
	if !g.user {
		return v, nil
	}
	logs, err := g.opt.Known.Logs()
	for _, l := range logs {
		if err == nil && l.Path != log.Path() && g.mayCount(l.Path) {
			err = v.openOther(ctx, l.Path)
		}
	}
	if err != nil {
		v.close()
		return nil, err
	}
	return v, nil
}

// mayCount reports whether the log at path may have calls of a current period. If its file was last written before the
// period began, the log has no such calls and need not be opened.
func (g *Guard) mayCount(path string) bool {
	now := g.opt.Now()
	for _, l := range g.limits {
		if l.Scope != userScope || l.Project != "" && l.Project != projectOf(path) {
			continue
		}
		from, _ := calendar(l.Per, now.In(l.zone))
		for _, file := range []string{path, path + "-wal"} {
			if info, err := os.Stat(file); err == nil && !info.ModTime().Before(from) {
				return true
			}
		}
	}
	return false
}

func (v *views) openOther(ctx context.Context, path string) error {
	log, err := store.OpenReader(ctx, path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // a log that is gone has no calls
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	other, err := v.g.openView(ctx, log)
	if err != nil {
		return fmt.Errorf("%s: %w", path, errors.Join(err, log.Close()))
	}
	v.list = append(v.list, logView{other, path, log})
	return nil
}

// openView opens the database with the usage of a log. The database is in the user's own folder, because a file in a
// project's folder could be forged.
func (g *Guard) openView(ctx context.Context, log *store.Reader) (*view.View, error) {
	if err := os.MkdirAll(g.opt.Dir, 0o700); err != nil {
		return nil, err
	}
	name := sha256.Sum256([]byte(log.Path()))
	return view.Open(ctx, log, filepath.Join(g.opt.Dir, hex.EncodeToString(name[:16])+".db"), nil, usage(log))
}

// close closes the views of the other logs.
func (v *views) close() {
	for _, l := range v.list {
		if l.log != nil {
			_ = l.Close() // only read, so the error does not matter
			_ = l.log.Close()
		}
	}
	v.g.mu.Unlock()
}

// counted returns the views with the calls of a budget.
func (v *views) counted(l limit) []logView {
	if l.Scope != userScope || l.Per == "session" || l.Per == "run" {
		return v.list[:1]
	}
	var list []logView
	for _, of := range v.list {
		if l.Project == "" || l.Project == projectOf(of.path) {
			list = append(list, of)
		}
	}
	return list
}

// amounts returns the sums of the budget's calls in a period.
func (v *views) amounts(ctx context.Context, l limit, p span) (a amounts, err error) {
	subject, from, until := "", p.From.Unix()/int64(quarter/time.Second), p.Until.Unix()/int64(quarter/time.Second)
	switch l.Per {
	case "session":
		subject, from, until = sessionSubject+p.Key, 0, 1
	case "run":
		subject, from, until = flowSubject+p.Key, 0, 1
	}
	currency := ""
	if l.money != nil {
		currency = l.money.Currency
	}
	for _, of := range v.counted(l) {
		rows, err := of.DB().QueryxContext(ctx, `
			SELECT sender, total(calls), total(tokens), total(CASE currency WHEN ? THEN money END)
			FROM usage
			WHERE subject = ? AND quarter >= ? AND quarter < ? AND provider = coalesce(nullif(?, ''), provider)
				AND schedule = coalesce(nullif(?, ''), schedule) AND flow = coalesce(nullif(?, ''), flow)
			GROUP BY sender`,
			currency, subject, from, until, l.Provider, l.Schedule, l.Flow)
		if err != nil {
			return a, err
		}
		for rows.Next() {
			var sender string
			var calls, tokens, money float64
			if err := rows.Scan(&sender, &calls, &tokens, &money); err != nil {
				return a, errors.Join(err, rows.Close())
			}
			if l.Contact == "" || isContact(sender, l.Contact) {
				a.calls, a.tokens, a.money = a.calls+int64(calls), a.tokens+int64(tokens), a.money+money
			}
		}
		if err := errors.Join(rows.Err(), rows.Close()); err != nil {
			return a, err
		}
	}
	return a, nil
}

// costOf returns the currency in which a provider reported its costs. If any of the logs has an answer with the
// budget's currency, costOf returns that currency.
func (v *views) costOf(ctx context.Context, l limit, provider string) (c cost, err error) {
	if l.money == nil {
		return c, nil
	}
	for _, of := range v.list {
		var list []string
		if err := of.DB().SelectContext(ctx, &list, `SELECT currency FROM providers WHERE provider = ?`,
			provider); err != nil {
			return c, err
		}
		for _, currency := range list {
			if !c.known || currency == l.money.Currency {
				c = cost{true, currency}
			}
		}
	}
	return c, nil
}

// warned reports whether a log already has this warning, so that a person gets it once in each period.
func (v *views) warned(ctx context.Context, w fact.BudgetReached) (known bool, err error) {
	for _, of := range v.list {
		if err == nil && !known {
			err = of.DB().GetContext(ctx, &known, `
				SELECT count(*) > 0
				FROM warned
				WHERE budget = ? AND period = ? AND cause = ?`, w.Budget, w.Period, w.Cause)
		}
	}
	return known, err
}
