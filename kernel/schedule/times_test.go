package schedule

import (
	"strings"
	"testing"
	"time"

	"github.com/perlica/perlica/kernel/config"
)

// newSchedule returns a schedule with a rule such as "every 2h" or "0 8 * * *", in a timezone.
func newSchedule(t *testing.T, rule, zone string) Schedule {
	t.Helper()
	c := config.Schedule{ID: "x", Timezone: zone, Cron: rule, Missed: "skip", Overlap: "skip", Text: "hello"}
	if every, ok := strings.CutPrefix(rule, "every "); ok {
		c.Cron = ""
		var err error
		if c.Every, err = time.ParseDuration(every); err != nil {
			t.Fatal(err)
		}
	}
	s, err := fromTable(c, time.UTC)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestAfter checks the planned times of rules, above all on the days on which clocks are changed. A skipped time moves
// to the next valid minute, and a doubled one is used once.
func TestAfter(t *testing.T) {
	for _, c := range []struct {
		zone, rule, from, want string
	}{
		{"UTC", "0 8 * * 1-5", "2026-11-27T07:00:00Z", "27 08:00 +0000, 30 08:00 +0000, 01 08:00 +0000"},
		{"UTC", "0 8 * * 1-5", "2026-11-27T08:00:00Z", "30 08:00 +0000"},
		{"UTC", "0 0 29 2 *", "2026-11-27T08:00:00Z", "29 00:00 +0000, 29 00:00 +0000"},
		{"UTC", "0 0 30 2 *", "2026-11-27T08:00:00Z", "never"},
		{"UTC", "@daily", "2026-11-27T08:00:00Z", "28 00:00 +0000"},
		{"UTC", "every 7h", "2026-11-27T08:00:00Z", "27 14:00 +0000, 27 21:00 +0000, 28 00:00 +0000, 28 07:00 +0000"},

		// Berlin, 29 March 2026: 02:00 becomes 03:00.
		{"Europe/Berlin", "30 2 * * *", "2026-03-28T12:00:00Z", "29 03:00 +0200, 30 02:30 +0200"},
		{"Europe/Berlin", "*/20 2 * * *", "2026-03-28T12:00:00Z", "29 03:00 +0200, 30 02:00 +0200"},
		{"Europe/Berlin", "*/30 * * * *", "2026-03-29T00:20:00Z", "29 01:30 +0100, 29 03:00 +0200, 29 03:30 +0200"},
		{"Europe/Berlin", "0,30 2,3 * * *", "2026-03-29T00:20:00Z", "29 03:00 +0200, 29 03:30 +0200, 30 02:00 +0200"},
		{"Europe/Berlin", "every 4h", "2026-03-28T22:30:00Z",
			"29 00:00 +0100, 29 05:00 +0200, 29 09:00 +0200, 29 13:00 +0200, 29 17:00 +0200, 29 21:00 +0200, 30 00:00 +0200"},
		// Berlin, 25 October 2026: 03:00 becomes 02:00.
		{"Europe/Berlin", "30 2 * * *", "2026-10-24T12:00:00Z", "25 02:30 +0200, 26 02:30 +0100"},
		{"Europe/Berlin", "*/30 * * * *", "2026-10-24T23:50:00Z",
			"25 02:00 +0200, 25 02:30 +0200, 25 03:00 +0100, 25 03:30 +0100"},
		{"Europe/Berlin", "30 2 * * *", "2026-10-25T01:10:00Z", "26 02:30 +0100"}, // from the second 02:10
		{"Europe/Berlin", "every 30m", "2026-10-25T00:20:00Z",
			"25 02:30 +0200, 25 02:00 +0100, 25 02:30 +0100, 25 03:00 +0100"},

		// Lord Howe, 4 October 2026: 02:00 becomes 02:30. 5 April 2026: 02:00 becomes 01:30.
		{"Australia/Lord_Howe", "15 2 * * *", "2026-10-03T12:00:00Z", "04 02:30 +1100, 05 02:15 +1100"},
		{"Australia/Lord_Howe", "*/15 * * * *", "2026-10-03T15:10:00Z", "04 01:45 +1030, 04 02:30 +1100, 04 02:45 +1100"},
		{"Australia/Lord_Howe", "45 1 * * *", "2026-04-04T12:00:00Z", "05 01:45 +1100, 06 01:45 +1030"},
		{"Australia/Lord_Howe", "*/15 * * * *", "2026-04-04T14:25:00Z", "05 01:30 +1100, 05 01:45 +1100, 05 02:00 +1030"},

		// Santiago, 6 September 2026: 00:00 becomes 01:00. 5 April 2026: 00:00 becomes 23:00 of the day before.
		{"America/Santiago", "0 0 * * *", "2026-09-05T12:00:00Z", "06 01:00 -0300, 07 00:00 -0300"},
		{"America/Santiago", "30 0 * * *", "2026-09-05T12:00:00Z", "06 01:00 -0300, 07 00:30 -0300"},
		{"America/Santiago", "every 12h", "2026-09-05T12:00:00Z",
			"05 12:00 -0400, 06 01:00 -0300, 06 13:00 -0300, 07 00:00 -0300"},
		{"America/Santiago", "30 23 * * *", "2026-04-04T12:00:00Z", "04 23:30 -0300, 05 23:30 -0400"},
		{"America/Santiago", "0 0 * * *", "2026-04-04T12:00:00Z", "05 00:00 -0400, 06 00:00 -0400"},
		{"America/Santiago", "every 6h", "2026-04-04T22:00:00Z", "04 23:00 -0400, 05 00:00 -0400"},

		// St. John's, 7 November 2010: 00:01 becomes 23:01 of the day before. The first 00:00 begins the day.
		{"America/St_Johns", "every 6h", "2010-11-06T21:00:00Z", "07 00:00 -0230, 07 05:00 -0330"},
		{"America/St_Johns", "every 6h", "2010-11-07T02:45:00Z", "07 05:00 -0330, 07 11:00 -0330"}, // the second 23:15
		// Apia, 2011: the day after 29 December is 31 December.
		{"Pacific/Apia", "every 12h", "2011-12-30T03:00:00Z", "31 00:00 +1400, 31 12:00 +1400"},
	} {
		s := newSchedule(t, c.rule, c.zone)
		at, err := time.Parse(time.RFC3339, c.from)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for range strings.Split(c.want, ", ") {
			next, ok := s.After(at)
			if !ok {
				got = append(got, "never")
				break
			}
			if !next.After(at) {
				t.Fatalf("%s %s: %s is not after %s", c.zone, c.rule, next, at)
			}
			got, at = append(got, next.In(s.Zone()).Format("02 15:04 -0700")), next
		}
		if strings.Join(got, ", ") != c.want {
			t.Errorf("%s %q from %s:\n %s, want\n %s", c.zone, c.rule, c.from, strings.Join(got, ", "), c.want)
		}
	}
}
