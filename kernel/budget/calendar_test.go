package budget

import (
	"testing"
	"time"
)

// TestCalendar checks the first and the last moments of days, weeks and months, also on days with a changed clock.
func TestCalendar(t *testing.T) {
	for _, tt := range []struct{ zone, per, now, from, until string }{
		{"UTC", "day", "2026-11-27T07:00:00Z", "2026-11-27T00:00:00Z", "2026-11-28T00:00:00Z"},
		{"UTC", "day", "2026-11-27T00:00:00Z", "2026-11-27T00:00:00Z", "2026-11-28T00:00:00Z"},
		{"UTC", "week", "2026-11-29T23:59:59Z", "2026-11-23T00:00:00Z", "2026-11-30T00:00:00Z"}, // a Sunday
		{"UTC", "week", "2026-11-30T00:00:00Z", "2026-11-30T00:00:00Z", "2026-12-07T00:00:00Z"},
		{"UTC", "month", "2026-12-31T23:59:59Z", "2026-12-01T00:00:00Z", "2027-01-01T00:00:00Z"},
		{"UTC", "month", "2028-02-29T12:00:00Z", "2028-02-01T00:00:00Z", "2028-03-01T00:00:00Z"},
		{"Europe/Berlin", "day", "2026-03-29T10:00:00Z", "2026-03-28T23:00:00Z", "2026-03-29T22:00:00Z"}, // 23 hours
		{"Europe/Berlin", "day", "2026-10-25T10:00:00Z", "2026-10-24T22:00:00Z", "2026-10-25T23:00:00Z"}, // 25 hours
		{"Australia/Lord_Howe", "day", "2026-10-04T00:00:00Z", "2026-10-03T13:30:00Z", "2026-10-04T13:00:00Z"},
		{"America/Santiago", "day", "2026-09-06T10:00:00Z", "2026-09-06T04:00:00Z", "2026-09-07T03:00:00Z"}, // no midnight
		{"America/Santiago", "day", "2026-09-06T03:59:59Z", "2026-09-05T04:00:00Z", "2026-09-06T04:00:00Z"},
		{"America/Santiago", "week", "2026-09-06T03:30:00Z", "2026-08-31T04:00:00Z", "2026-09-07T03:00:00Z"},
		{"America/Havana", "day", "2026-11-01T12:00:00Z", "2026-11-01T04:00:00Z", "2026-11-02T05:00:00Z"}, // two midnights
		{"Asia/Kathmandu", "day", "2026-11-27T07:00:00Z", "2026-11-26T18:15:00Z", "2026-11-27T18:15:00Z"},
		{"Pacific/Kiritimati", "day", "2026-11-27T11:00:00Z", "2026-11-27T10:00:00Z", "2026-11-28T10:00:00Z"},
		{"Etc/GMT+12", "day", "2026-11-27T11:00:00Z", "2026-11-26T12:00:00Z", "2026-11-27T12:00:00Z"},
		{"Pacific/Apia", "day", "2011-12-30T09:00:00Z", "2011-12-29T10:00:00Z", "2011-12-30T10:00:00Z"}, // no 30th
	} {
		zone, err := time.LoadLocation(tt.zone)
		if err != nil {
			t.Fatal(err)
		}
		now, err := time.Parse(time.RFC3339, tt.now)
		if err != nil {
			t.Fatal(err)
		}
		from, until := calendar(tt.per, now.In(zone))
		if got := [2]string{from.UTC().Format(time.RFC3339), until.UTC().Format(time.RFC3339)}; got !=
			[2]string{tt.from, tt.until} {
			t.Errorf("%s of %s in %s: %v, want %s to %s", tt.per, tt.now, tt.zone, got, tt.from, tt.until)
		}
	}
}
