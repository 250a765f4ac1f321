package frame

import (
	"errors"
	"testing"
	"time"
)

func TestParseWhen(t *testing.T) {
	zone := time.FixedZone("test", 2*60*60)
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, zone)
	for text, want := range map[string]time.Time{
		"90s":                       now.Add(-90 * time.Second),
		"2h":                        now.Add(-2 * time.Hour),
		"7d":                        now.Add(-7 * 24 * time.Hour),
		"2w":                        now.Add(-14 * 24 * time.Hour),
		"1h30m":                     now.Add(-90 * time.Minute),
		"0s":                        now,
		"now":                       now,
		"today":                     time.Date(2026, 11, 21, 0, 0, 0, 0, zone), // The time of the test is a Saturday.
		"Yesterday":                 time.Date(2026, 11, 20, 0, 0, 0, 0, zone),
		"tuesday":                   time.Date(2026, 11, 17, 0, 0, 0, 0, zone),
		"sun":                       time.Date(2026, 11, 15, 0, 0, 0, 0, zone),
		"saturday":                  time.Date(2026, 11, 21, 0, 0, 0, 0, zone),
		"last saturday":             time.Date(2026, 11, 14, 0, 0, 0, 0, zone),
		"last Friday":               time.Date(2026, 11, 20, 0, 0, 0, 0, zone),
		"2 weeks ago":               time.Date(2026, 11, 7, 12, 0, 0, 0, zone),
		"last week":                 time.Date(2026, 11, 14, 12, 0, 0, 0, zone),
		"1 day ago":                 time.Date(2026, 11, 20, 12, 0, 0, 0, zone),
		"an hour ago":               now.Add(-time.Hour),
		"3 months ago":              time.Date(2026, 8, 21, 12, 0, 0, 0, zone),
		"a year ago":                time.Date(2025, 11, 21, 12, 0, 0, 0, zone),
		"2026-11-01":                time.Date(2026, 11, 1, 0, 0, 0, 0, zone),
		"2026-11-01 15:04":          time.Date(2026, 11, 1, 15, 4, 0, 0, zone),
		"2026-11-01T15:04:05":       time.Date(2026, 11, 1, 15, 4, 5, 0, zone),
		"2026-11-01T15:04:05Z":      time.Date(2026, 11, 1, 15, 4, 5, 0, time.UTC),
		"2026-11-01T15:04:05.5Z":    time.Date(2026, 11, 1, 15, 4, 5, 5e8, time.UTC),
		"2026-11-01T15:04:05-07:00": time.Date(2026, 11, 1, 22, 4, 5, 0, time.UTC),
	} {
		got, err := parseTime(text, now)
		if err != nil || !got.Equal(want) {
			t.Errorf("parseWhen(%q) = %v, %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "whenever", "yesterdays", "last", "2 weeks", "-2 weeks ago", "2 moons ago",
		"99999 years ago", "60000 years ago", "-2h", "-1d", "99999999d", "2026-13-01", "7", "d", "1.5d", "2999-01-01",
		"0001-01-01"} {
		if got, err := parseTime(text, now); !errors.Is(err, errWhen) {
			t.Errorf("parseWhen(%q) = %v, %v, want an error", text, got, err)
		}
	}
}
