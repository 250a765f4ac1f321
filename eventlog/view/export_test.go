package view

import "github.com/perlica/perlica/eventlog/event"

// SetPortion sets the number of events in one transaction of a view and returns the old number.
func SetPortion(n event.Seq) (was event.Seq) {
	was, portion = portion, n
	return was
}
