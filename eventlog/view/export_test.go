package view

import "github.com/perlica/perlica/eventlog/event"

// SetPortion sets the number of events in one transaction of a view. It returns the previous number.
func SetPortion(n event.Seq) (was event.Seq) {
	was, portion = portion, n
	return was
}
