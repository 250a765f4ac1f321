package frame

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

var errWhen = errors.New(
	"a point in time is a duration such as 90s, 2h or 7d, words such as yesterday, tuesday or \"2 weeks ago\", a date " +
		"such as 2026-11-21, a local time such as \"2026-11-21 15:04\", or RFC 3339")

// parseTime parses a point in time: a duration before now, a day in words, or a date or time in the time zone of
// now. A day begins at midnight. parseTime has its own parser for words. Libraries find words in any text, and they
// compile their expressions at each start.
func parseTime(text string, now time.Time) (time.Time, error) {
	t, err := parseAnyWhen(text, now)
	if err == nil && (t.Year() < 1700 || t.Year() > 2200) { // The time in nanoseconds since 1970 must fit 64 bits.
		err = fmt.Errorf("%q: %w; and it lies between 1700 and 2200", text, errWhen)
	}
	return t, err
}

func parseAnyWhen(text string, now time.Time) (time.Time, error) {
	if d, ok := parseSpan(text); ok {
		return now.Add(-d), nil
	}
	if t, err := time.Parse(time.RFC3339Nano, text); err == nil {
		return t, nil
	}
	for _, layout := range []string{time.DateOnly, "2006-01-02 15:04", time.DateTime, "2006-01-02T15:04",
		"2006-01-02T15:04:05"} {
		if t, err := time.ParseInLocation(layout, text, now.Location()); err == nil {
			return t, nil
		}
	}
	if t, ok := parseWords(strings.Fields(strings.ToLower(text)), now); ok {
		return t, nil
	}
	return time.Time{}, fmt.Errorf("%q: %w", text, errWhen)
}

// parseWords parses a point in time in words.
func parseWords(words []string, now time.Time) (time.Time, bool) {
	midnight := func(daysAgo int) time.Time {
		return time.Date(now.Year(), now.Month(), now.Day()-daysAgo, 0, 0, 0, 0, now.Location())
	}
	switch {
	case len(words) == 1 && words[0] == "now":
		return now, true
	case len(words) == 1 && words[0] == "today":
		return midnight(0), true
	case len(words) == 1 && words[0] == "yesterday":
		return midnight(1), true
	case len(words) == 1:
		day, ok := weekday(words[0])
		return midnight((int(now.Weekday()) - day + 7) % 7), ok
	case len(words) == 2 && words[0] == "last":
		if day, ok := weekday(words[1]); ok { // "last saturday" on a Saturday is a week ago.
			return midnight((int(now.Weekday())-day+6)%7 + 1), true
		}
		return timeBefore("1", words[1], now)
	case len(words) == 3 && words[2] == "ago":
		return timeBefore(words[0], words[1], now)
	}
	return time.Time{}, false
}

// weekday parses the name of a day of the week or its first three letters.
func weekday(word string) (day int, ok bool) {
	for d := time.Sunday; d <= time.Saturday; d++ {
		if name := strings.ToLower(d.String()); word == name || word == name[:3] {
			return int(d), true
		}
	}
	return 0, false
}

// timeBefore returns the time that is count units before now. For days and longer units the time of day stays the
// same.
func timeBefore(count, unit string, now time.Time) (time.Time, bool) {
	if count == "a" || count == "an" {
		count = "1"
	}
	n, err := strconv.ParseUint(count, 10, 16)
	if err != nil {
		return time.Time{}, false
	}
	i := int(n)
	switch strings.TrimSuffix(unit, "s") {
	case "second":
		return now.Add(-time.Duration(i) * time.Second), true
	case "minute":
		return now.Add(-time.Duration(i) * time.Minute), true
	case "hour":
		return now.Add(-time.Duration(i) * time.Hour), true
	case "day":
		return now.AddDate(0, 0, -i), true
	case "week":
		return now.AddDate(0, 0, -7*i), true
	case "month":
		return now.AddDate(0, -i, 0), true
	case "year":
		return now.AddDate(-i, 0, 0), true
	}
	return time.Time{}, false
}

// parseSpan parses a duration. A day is always 24 hours and a week seven days.
func parseSpan(text string) (time.Duration, bool) {
	for suffix, unit := range map[string]time.Duration{"d": 24 * time.Hour, "w": 7 * 24 * time.Hour} {
		digits, ok := strings.CutSuffix(text, suffix)
		if !ok {
			continue
		}
		if n, err := strconv.ParseUint(digits, 10, 16); err == nil {
			return time.Duration(n) * unit, true
		}
	}
	d, err := time.ParseDuration(text)
	return d, err == nil && d >= 0
}
