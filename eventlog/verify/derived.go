package verify

import (
	"fmt"
	"maps"
	"slices"

	"github.com/perlica/perlica/eventlog/event"
)

// openRuns are the runs whose intent has no outcome, as the file says and as follows from the
// events. By the one recovery finds what to end: a row too few and a run would have no outcome
// for ever, one too many and it would get a second.
type openRuns struct {
	stored map[event.RunID]event.Seq // nil: not read
	follow map[event.RunID]event.Seq
	unsure bool      // events are missing or damaged
	ended  int       // runs that have an outcome
	last   event.Seq // of the last llm.single_call.enforced
}

// maxStored keeps a hostile file from filling the memory. It is more than the hashes of 268 million
// events.
const maxStored = 1 << 20

func (o *openRuns) count(e *event.Event) {
	if e.Type.Closes() {
		o.last = e.Seq
	}
	switch e.Type.Step() {
	case event.Opens:
		if o.follow == nil {
			o.follow = map[event.RunID]event.Seq{}
		}
		if _, ok := o.follow[e.Run]; !ok {
			o.follow[e.Run] = e.Seq
		}
	case event.Ends:
		delete(o.follow, e.Run)
		o.ended++
	}
}

// compareRuns compares the list of open runs with what follows from the events.
func (v *verification) compareRuns() {
	o := &v.runs
	short := slices.ContainsFunc(v.rep.Findings, func(f Finding) bool { return f.Kind == Truncated })
	if o.unsure || short || o.stored == nil {
		return
	}
	for _, run := range slices.Sorted(maps.Keys(o.stored)) {
		if at, ok := o.follow[run]; !ok || at != o.stored[run] {
			v.find(0, Tree, "run %.80q is listed as open by event %d, and that does not follow from the events", run, o.stored[run])
		}
	}
	for _, run := range slices.Sorted(maps.Keys(o.follow)) {
		if _, ok := o.stored[run]; !ok {
			v.find(o.follow[run], Tree, "run %.80q has an intent and no outcome, and is not listed as open", run)
		}
	}
}

// signatures watches which of the checkpoints that hold are signed by a known key. That some
// are not is no damage: the key may not have been there. But who rewrites a log cannot sign
// it.
type signatures struct {
	first, newest int64  // the size of the first that is signed; of the last of all
	anchored      int64  // the size of the last line of the anchor with a signature
	bare          []seal // lines without one, behind the first
	stored        int64  // the size of the last that is stored in the file
	lone          int    // signed lines of which none is stored
}

func (n *signatures) count(s *seal) {
	if s.where == keptElsewhere {
		return
	}
	n.newest = s.size
	switch {
	case s.kind != Anchor:
		n.stored = s.size
	case s.Note != "" && n.stored != s.size:
		n.lone++
	}
	if s.known && n.first == 0 {
		n.first = s.size
	}
	switch {
	case s.kind != Anchor:
	case s.Note != "":
		n.anchored = s.size
		n.bare = slices.DeleteFunc(n.bare, func(b seal) bool { return b.size == s.size })
	case s.size != n.anchored && (n.first > 0 || s.bare) && len(n.bare) < maxFindings:
		n.bare = append(n.bare, *s)
	}
}

// unsigned warns of signatures that should be there.
func (v *verification) unsigned() {
	n := &v.signatures
	for i := range n.bare {
		s := &n.bare[i]
		why := "although lines before and behind it are"
		switch {
		case s.bare:
			why = "although a signed checkpoint of as many events is stored with the log"
		case s.size >= v.rep.Signed:
			continue // the newest: see below
		}
		v.warn("%s is not signed, %s: it may have been put in the place of another", s.where, why)
	}
	if n.first > 0 && n.newest > v.rep.Signed {
		v.warn("%s", fmt.Sprintf("the newest checkpoint, of %d events, is not signed by a key that is known here, and older ones are, up to event %d", n.newest, v.rep.Signed))
	}
}
