package event

import "time"

// Query selects events. A field that is zero selects everything.
type Query struct {
	After       Seq // events behind this one
	Until       Seq // up to and including this one
	ID          string
	Types       []Type
	Class       Class
	Session     SessionID
	Run         RunID
	Interaction InteractionID
	Input       InputID
	Since       time.Time // not older than
	Before      time.Time // older than
	Limit       int
	Newest      bool // newest first
}

// OnlyFacts reports whether q selects nothing but facts, by its class or its types. A type that
// is not known counts as a fact's.
func (q Query) OnlyFacts() bool {
	if q.Class != "" {
		return q.Class == Fact
	}
	for _, t := range q.Types {
		if t.Class() == Frame {
			return false
		}
	}
	return len(q.Types) > 0
}
