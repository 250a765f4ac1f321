// Package budget refuses a call over a budget.
//
// A call counts as soon as its intent is on the log, so each of several concurrent calls uses one call of the budget.
// Its tokens and its money count after its answer, and they belong to the period in which the call began. The package
// adds up the usage in a small database for each log, and updates this database from the log's new events. Without a
// budget, the package locks, reads and allocates nothing.
package budget

import (
	"cmp"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/kernel/config"
	"github.com/perlica/perlica/kernel/fact"
)

// span is one period of a budget: a day, a week, a month, a session or a flow run. The limits hold for each span alone.
type span struct {
	// Key identifies the period. For a day, a week or a month, it is the first moment in UTC. Otherwise it is the id of
	// the session or of the flow run.
	Key string `json:"key"`
	// From and Until are the first moment of a day, a week or a month, and the first moment after it. They are zero for
	// a session and a run.
	From  time.Time `json:"from,omitzero"`
	Until time.Time `json:"until,omitzero"`
}

// limit is a configured budget together with its parsed timezone and money.
type limit struct {
	config.Budget
	name  string
	zone  *time.Location
	money *fact.Cost // nil means no limit
}

// newLimit returns a limit. The configuration has checked the values.
func newLimit(b config.Budget) (limit, error) {
	l := limit{Budget: b, zone: time.Local}
	if b.Timezone != "" {
		zone, err := config.Timezone(b.Timezone)
		if err != nil {
			return limit{}, err
		}
		l.zone = zone
	}
	if amount, currency, ok := strings.Cut(b.Money, " "); ok {
		n, err := strconv.ParseFloat(amount, 64)
		if err != nil {
			return limit{}, err
		}
		l.money = &fact.Cost{Amount: n, Currency: currency}
	}
	l.name = nameOf(b)
	return l, nil
}

// nameOf returns the name of a budget for messages and for the log. It is made of the budget's keys, such as "day
// calls=10 provider=codex".
func nameOf(b config.Budget) string {
	words := []string{b.Per}
	add := func(key, value string) {
		if value != "" {
			words = append(words, key+"="+value)
		}
	}
	number := func(n *int) string {
		if n == nil {
			return ""
		}
		return strconv.Itoa(*n)
	}
	add("calls", number(b.Calls))
	add("tokens", number(b.Tokens))
	add("money", strings.ReplaceAll(b.Money, " ", ""))
	add("provider", b.Provider)
	add("schedule", b.Schedule)
	add("flow", b.Flow)
	add("contact", b.Contact)
	add("project", b.Project)
	if b.Scope == userScope {
		add("scope", b.Scope)
	}
	return strings.Join(words, " ")
}

// userScope is the scope of a budget for the calls of all projects of the user.
const userScope = "user"

// Call is a call that is about to be made.
type Call struct {
	Refs     event.Refs
	Provider string
	Sender   string
}

// concerns reports whether the call counts for the budget. flow is the name of the flow that made the input.
func (l limit) concerns(c Call, flow, project string) bool {
	return cmp.Or(l.Provider, c.Provider) == c.Provider &&
		(l.Schedule == "" || l.Schedule == scheduleOf(c.Refs.Input)) &&
		(l.Flow == "" || l.Flow == flow) &&
		(l.Contact == "" || isContact(c.Sender, l.Contact)) &&
		(l.Project == "" || l.Project == project)
}

// period returns the period to which the call belongs. For a budget for each run, a call outside of flows has a period
// of its own.
func (l limit) period(now time.Time, c Call) span {
	switch l.Per {
	case "run":
		return span{Key: cmp.Or(flowRunOf(c.Refs.Input), string(c.Refs.Run))}
	case "session":
		return span{Key: string(c.Refs.Session)}
	}
	from, until := calendar(l.Per, now.In(l.zone))
	return span{Key: from.UTC().Format(time.RFC3339), From: from, Until: until}
}

// flowRunOf returns the id of the flow run that made the input, or "". Such an input has the id flow:RUN/STEP.
func flowRunOf(id event.InputID) string {
	rest, ok := strings.CutPrefix(string(id), event.FlowPrefix)
	if !ok {
		return ""
	}
	run, _, _ := strings.Cut(rest, "/")
	return run
}

// scheduleOf returns the id of the schedule that made the input or its flow run, or "". Such an input or flow run has
// the id schedule:ID@TIME.
func scheduleOf(id event.InputID) string {
	rest, ok := strings.CutPrefix(strings.TrimPrefix(string(id), event.FlowPrefix), event.SchedulePrefix)
	if !ok {
		return ""
	}
	schedule, _, _ := strings.Cut(rest, "@")
	return schedule
}

// isContact reports whether the sender of a message is the contact of a budget. Such a sender has the form "NAME
// (CHANNEL:ID)". The budget may give this whole text, only NAME, or only CHANNEL:ID.
func isContact(sender, contact string) bool {
	return sender == contact || strings.HasPrefix(sender, contact+" (") || strings.HasSuffix(sender, " ("+contact+")")
}

// projectOf returns the name of the folder of the project with the log at path.
func projectOf(path string) string {
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		switch filepath.Base(dir) {
		case config.DirName:
			return filepath.Base(filepath.Dir(dir))
		case dir, ".":
			return ""
		}
	}
}

// percent returns the used share of a limit, in percent. A limit of 0 is always fully used.
func percent(used, limit float64) int {
	if limit <= 0 {
		return 100
	}
	return int(min(used/limit*100+1e-9, 1e6))
}

func money(amount float64, currency string) string {
	return fact.Cost{Amount: amount, Currency: currency}.String()
}

func count(n int64) string { return fmt.Sprintf("%d", n) }
