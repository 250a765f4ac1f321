package schedule

import (
	"time"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/kernel/fact"
)

// late is the delay after which a planned time counts as missed, because no process handled it in time.
const late = 15 * time.Minute

// State is the state of a schedule. It follows from the schedule's newest event.
type State struct {
	// From is the newest handled time, or the time at which the schedule started. Decide handles the planned times after
	// From. From is the zero time before the first event.
	From   time.Time
	Rule   string // the rule of the times at the newest event; "" while the schedule is paused
	Paused bool
	// Open is the id of the newest planned input if no process has begun to answer it. From is then before the input's
	// time, so that Decide returns this time once more.
	Open event.InputID
	// Unfinished is the newest planned time of a flow if its flow run has begun and has not ended. The zero time means
	// that no flow run goes on.
	Unfinished time.Time

	first   bool          // the newest event is the schedule's first one
	planned event.InputID // the input of the newest event, if that event is its plan
	seq     event.Seq     // the number of the newest event
}

// Decision has the events and the call that follow from a schedule, its state and the time. All fields may be empty.
type Decision struct {
	Start  *fact.ScheduleStarted
	Missed *fact.ScheduleMissed
	// Due is the planned time of the input that is due. It is the zero time if no input is due.
	Due time.Time
	// MadeUp means that Due is the latest of the missed times, and that the schedule makes its input now.
	MadeUp bool
}

// Decide returns the events and the input that follow at the time now. At most one input is due. If several times
// were missed since the last call, one event records them all. The parameter "since" is the time at which a process
// began to wait for this schedule. It equals "now" for a process that did not wait.
func (s Schedule) Decide(st State, since, now time.Time) (d Decision) {
	start := func(why string) Decision {
		return Decision{Start: &fact.ScheduleStarted{Schedule: s.ID, From: now.UTC(), Rule: s.Rule(), Why: why}}
	}
	switch {
	case st.Paused:
		return d
	case st.From.IsZero():
		return start(fact.StartNew)
	case st.Rule != s.Rule():
		return start(fact.StartChanged)
	// The clock went back by more than late, so the schedule starts again. After a smaller step back, a mere
	// correction, the schedule waits until the clock reaches From.
	case now.Before(st.From.Add(-late)):
		return start(fact.StartClock)
	}
	last, ok := s.latest(st.From, now)
	if ok && last.Add(s.Delay(last)).After(now) { // this time is not due yet, but the time before it is
		last, ok = s.latest(st.From, last.Add(-1))
	}
	if !ok {
		return d
	}
	gap := last.Add(1)
	onTime := !last.Add(s.Delay(last)).Before(since.Add(-late))
	if onTime || s.Missed == "latest" {
		d.Due, d.MadeUp, gap = last, !onTime, last
	}
	if n, first := s.count(st.From, gap); n > 0 {
		end, _ := s.latest(st.From, gap.Add(-1))
		d.Missed = &fact.ScheduleMissed{Schedule: s.ID, Count: n, First: first.UTC(), Last: end.UTC(),
			Why: fact.MissedLate, Rule: s.Rule()}
	}
	return d
}

// idle reports whether nothing is to be done at the time now.
func (s Schedule) idle(st State, now time.Time) bool {
	return s.unfinished(st).IsZero() && s.Decide(st, now, now) == (Decision{})
}

// Next returns the next planned time, and the time at which its input is due, which may be later by a delay. ok is
// false if the schedule has no next time.
func (s Schedule) Next(st State, now time.Time) (planned, due time.Time, ok bool) {
	from := st.From
	if from.IsZero() || st.Rule != s.Rule() || now.Before(from.Add(-late)) {
		from = now
	}
	if last, found := s.latest(from, now); found {
		if due = last.Add(s.Delay(last)); due.After(now) {
			return last, due, true
		}
		from = last
	}
	if planned, ok = s.After(from); !ok || st.Paused {
		return time.Time{}, time.Time{}, false
	}
	return planned, planned.Add(s.Delay(planned)), true
}

// leaveOut returns a decision that records the due input of d as missed.
func (s Schedule) leaveOut(d Decision, why string) Decision {
	missed := fact.ScheduleMissed{Schedule: s.ID, First: d.Due.UTC(), Rule: s.Rule()}
	if d.Missed != nil {
		missed = *d.Missed
	}
	missed.Count, missed.Last, missed.Why = missed.Count+1, d.Due.UTC(), why
	return Decision{Missed: &missed}
}

// unfinished returns the planned time of the flow run that the schedule must continue, or the zero time. A schedule
// that now has a text leaves its old flow run to a person.
func (s Schedule) unfinished(st State) time.Time {
	if s.Flow == "" {
		return time.Time{}
	}
	return st.Unfinished
}
