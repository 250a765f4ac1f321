package printing

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
		"2026-11-01":                time.Date(2026, 11, 1, 0, 0, 0, 0, zone),
		"2026-11-01 15:04":          time.Date(2026, 11, 1, 15, 4, 0, 0, zone),
		"2026-11-01T15:04:05":       time.Date(2026, 11, 1, 15, 4, 5, 0, zone),
		"2026-11-01T15:04:05Z":      time.Date(2026, 11, 1, 15, 4, 5, 0, time.UTC),
		"2026-11-01T15:04:05.5Z":    time.Date(2026, 11, 1, 15, 4, 5, 5e8, time.UTC),
		"2026-11-01T15:04:05-07:00": time.Date(2026, 11, 1, 22, 4, 5, 0, time.UTC),
	} {
		got, err := ParseWhen(text, now)
		if err != nil || !got.Equal(want) {
			t.Errorf("parseWhen(%q) = %v, %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "yesterday", "-2h", "-1d", "99999999d", "2026-13-01", "7", "d", "1.5d", "2999-01-01", "0001-01-01"} {
		if got, err := ParseWhen(text, now); !errors.Is(err, errWhen) {
			t.Errorf("parseWhen(%q) = %v, %v, want an error", text, got, err)
		}
	}
}
