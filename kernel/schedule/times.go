package schedule

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"os"
	"strings"
	"time"

	"github.com/adhocore/gronx"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/kernel/config"
)

// Schedule is one table of the configuration together with its timezone.
type Schedule struct {
	config.Schedule
	zone *time.Location
}

// fromTable returns the schedule of a table. If the table names no timezone, local is used.
func fromTable(c config.Schedule, local *time.Location) (Schedule, error) {
	s := Schedule{c, local}
	if c.Timezone == "" {
		return s, nil
	}
	var err error
	s.zone, err = config.Timezone(c.Timezone)
	return s, err
}

// Zone returns the timezone of the schedule's times.
func (s Schedule) Zone() *time.Location { return s.zone }

// Rule describes the times of the schedule. If the rule changes, the schedule starts again. A rule without a timezone
// uses the system's.
func (s Schedule) Rule() string {
	rule := "every " + s.Every.String()
	if s.Cron != "" {
		rule = "cron " + s.Cron
	}
	if s.Timezone != "" {
		rule += " " + s.Timezone
	}
	return rule
}

// Input returns the id of the input of a planned time. It follows from the schedule's id and the time.
func (s Schedule) Input(at time.Time) event.InputID {
	return event.InputID(event.SchedulePrefix + s.ID + "@" + at.UTC().Format(time.RFC3339Nano))
}

// After returns the first planned time after the time "at". ok is false if no time follows.
func (s Schedule) After(at time.Time) (next time.Time, ok bool) {
	if s.Cron == "" {
		return s.afterEvery(at), true
	}
	for wall := wallClock(at, s.zone); ; {
		var err error
		if wall, err = gronx.NextTickAfter(s.Cron, wall, false); err != nil {
			return time.Time{}, false
		}
		// When clocks go back, they show some times twice. In the second pass, next lies before at, so the search goes
		// on.
		if next = instantOf(wall, s.zone); next.After(at) {
			return next, true
		}
	}
}

// afterEvery returns the first time after "at" that is a multiple of Every after the start of its day.
func (s Schedule) afterEvery(at time.Time) time.Time {
	y, m, d := at.In(s.zone).Date()
	for day := time.Date(y, m, d, 0, 0, 0, 0, time.UTC); ; day = day.AddDate(0, 0, 1) {
		start, end := instantOf(day, s.zone), instantOf(day.AddDate(0, 0, 1), s.zone)
		if start.After(at) {
			return start
		}
		if next := start.Add((at.Sub(start)/s.Every + 1) * s.Every); next.Before(end) {
			return next
		}
	}
}

// wallClock returns the reading of a clock in the zone, as a time in UTC. gronx then knows no daylight saving.
func wallClock(at time.Time, zone *time.Location) time.Time {
	at = at.In(zone)
	y, m, d := at.Date()
	return time.Date(y, m, d, at.Hour(), at.Minute(), at.Second(), at.Nanosecond(), time.UTC)
}

// instantOf returns the first moment at which a clock in the zone shows wall. If no clock ever shows it, instantOf
// returns the moment at which the clock skips it.
func instantOf(wall time.Time, zone *time.Location) time.Time {
	// Start 26 hours earlier. No offset from UTC is as large, so the result cannot lie before this moment.
	for at := wall.Add(-26 * time.Hour).In(zone); ; {
		start, end := at.ZoneBounds()
		_, offset := at.Zone()
		there := wall.Add(-time.Duration(offset) * time.Second).In(zone)
		switch {
		case there.Before(start):
			return start
		case end.IsZero() || there.Before(end):
			return there
		}
		at = end
	}
}

// mostCounted is the largest number of missed times that Perlica counts. Counting more takes too long.
const mostCounted = 100_000

// count returns the number of planned times after "from" and before "to", and the first of these times.
func (s Schedule) count(from, to time.Time) (n int, first time.Time) {
	for at, ok := s.After(from); ok && at.Before(to) && n < mostCounted; at, ok = s.After(at) {
		if n++; n == 1 {
			first = at
		}
	}
	return n, first
}

// latest returns the newest planned time t with from < t ≤ to. ok is false without such a time.
func (s Schedule) latest(from, to time.Time) (last time.Time, ok bool) {
	// Look back a minute, then four minutes, and so on, until a planned time is found. The newest time is usually near.
	for window := time.Minute; ; window *= 4 {
		start := to.Add(-window)
		whole := start.Before(from)
		if whole {
			start = from
		}
		at, found := s.After(start)
		for ; found && !at.After(to); at, found = s.After(at) {
			last, ok = at, true
		}
		if ok || whole {
			return last, ok
		}
	}
}

// Delay returns the delay of a planned time. It is less than the jitter and less than the time until the next planned
// time, so that the inputs keep their order. It follows from the id and the time alone.
func (s Schedule) Delay(at time.Time) time.Duration {
	most := s.Jitter
	if next, ok := s.After(at); ok && most > 0 {
		most = min(most, next.Sub(at))
	}
	if most <= 0 {
		return 0
	}
	sum := sha256.Sum256([]byte(s.Input(at)))
	return time.Duration(binary.BigEndian.Uint64(sum[:]) % uint64(most)).Truncate(time.Second)
}

// ZoneName returns the name of the schedule's timezone. For the system's timezone it returns the name that the system
// gives, or "local".
func (s Schedule) ZoneName() string {
	if s.Timezone != "" {
		return s.Timezone
	}
	if name, set := os.LookupEnv("TZ"); set {
		return cmp.Or(strings.TrimPrefix(name, ":"), "UTC")
	}
	path, err := os.Readlink("/etc/localtime")
	if _, name, found := strings.Cut(path, "zoneinfo/"); err == nil && found {
		return name
	}
	return "local"
}
