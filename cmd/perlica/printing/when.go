package printing

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

var errWhen = errors.New("a point in time is a duration such as 90s, 2h or 7d, a date such as 2026-11-21, a local time such as \"2026-11-21 15:04\", or RFC 3339")

// ParseWhen reads a point in time: so long before now, or a date or time in now's zone.
func ParseWhen(text string, now time.Time) (time.Time, error) {
	t, err := parseAnyWhen(text, now)
	if err == nil && (t.Year() < 1700 || t.Year() > 2200) { // nanoseconds since 1970 must fit 64 bits
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
	for _, layout := range []string{time.DateOnly, "2006-01-02 15:04", time.DateTime, "2006-01-02T15:04", "2006-01-02T15:04:05"} {
		if t, err := time.ParseInLocation(layout, text, now.Location()); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("%q: %w", text, errWhen)
}

// parseSpan reads a duration; days and weeks count 24 hours and seven days.
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
