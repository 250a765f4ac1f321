package budget

import "time"

// calendar returns the first moment of the day, the week or the month that contains now, and the first moment after it.
// Both are in now's timezone. A week begins on Monday.
func calendar(per string, now time.Time) (from, until time.Time) {
	y, m, d := now.Date()
	switch per {
	case "week":
		d -= (int(now.Weekday()) + 6) % 7
		return firstMoment(y, m, d, now.Location()), firstMoment(y, m, d+7, now.Location())
	case "month":
		return firstMoment(y, m, 1, now.Location()), firstMoment(y, m+1, 1, now.Location())
	}
	return firstMoment(y, m, d, now.Location()), firstMoment(y, m, d+1, now.Location())
}

// quarter is the resolution of the stored usage. It is fine enough, because each timezone's day begins at a multiple of
// 15 minutes.
const quarter = 15 * time.Minute

// firstMoment returns the first moment of a date. On a day with a changed clock, midnight may be missing or occur
// twice. If the whole day is missing, it returns the first moment after it.
func firstMoment(y int, m time.Month, d int, zone *time.Location) time.Time {
	midnight := time.Date(y, m, d, 0, 0, 0, 0, time.UTC)
	for t := midnight.Add(-15 * time.Hour); ; t = t.Add(quarter) {
		ly, lm, ld := t.In(zone).Date()
		if !time.Date(ly, lm, ld, 0, 0, 0, 0, time.UTC).Before(midnight) {
			return t.In(zone)
		}
	}
}
