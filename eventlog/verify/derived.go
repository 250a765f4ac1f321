package verify

import (
	"maps"
	"slices"

	"github.com/perlica/perlica/eventlog/event"
)

// openRuns has two lists of the runs without an outcome: the list in the file, and the list that the events give.
// Recovery uses the first list. A run that is missing there never gets an outcome. A run that should not be there gets
// a second outcome.
type openRuns struct {
	stored map[event.RunID]event.Seq // nil means that the list was not read
	follow map[event.RunID]event.Seq
	unsure bool      // events are missing or damaged
	ended  int       // runs with an outcome
	last   event.Seq // Seq of the last llm.single_call.enforced
}

// maxStored protects the memory from a hostile file. It is more than the number of stored hashes of 268 million
// events.
const maxStored = 1 << 20

func (o *openRuns) countEvent(e *event.Event) {
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

// compareRuns compares the list of open runs with the events.
func (v *verification) compareRuns() {
	o := &v.runs
	short := slices.ContainsFunc(v.rep.Findings, func(f Finding) bool { return f.Kind == Truncated })
	if o.unsure || short || o.stored == nil {
		return
	}
	for _, run := range slices.Sorted(maps.Keys(o.stored)) {
		if at, ok := o.follow[run]; !ok || at != o.stored[run] {
			v.find(0, Tree, runListed.With(run, o.stored[run]))
		}
	}
	for _, run := range slices.Sorted(maps.Keys(o.follow)) {
		if _, ok := o.stored[run]; !ok {
			v.find(o.follow[run], Tree, runUnlisted.With(run))
		}
	}
}

// signatures records which valid checkpoints are signed by a known key. An unsigned checkpoint is not damage, because
// the user may have had no key. But an attacker without the key cannot sign a checkpoint of a rewritten log.
type signatures struct {
	// first is the size of the first signed checkpoint. newest is the size of the last checkpoint.
	first, newest int64
	// anchored is the size of the last signed line of the anchor.
	anchored int64
	// bare are the unsigned lines of the anchor after the first signed checkpoint.
	bare []seal
	// stored is the size of the last checkpoint in the log's file.
	stored int64
	// lone is the number of signed lines of the anchor without a checkpoint of the same size in the log's file.
	lone int
}

func (n *signatures) countSeal(s *seal) {
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

// warnUnsigned warns about missing signatures.
func (v *verification) warnUnsigned() {
	n := &v.signatures
	for i := range n.bare {
		s := &n.bare[i]
		why := lineUnsigned
		switch {
		case s.bare:
			why = lineBare
		case s.size >= v.rep.Signed:
			continue // newestUnsigned reports the newest one
		}
		v.warn(why.With(s.where))
	}
	if n.first > 0 && n.newest > v.rep.Signed {
		v.warn(newestUnsigned.With(n.newest, v.rep.Signed))
	}
}
