package view

import "github.com/perlica/perlica/eventlog/event"

// SetPortion sets how many events a view looks at in one transaction and returns what it was.
func SetPortion(n event.Seq) (was event.Seq) {
	was, portion = portion, n
	return was
}
