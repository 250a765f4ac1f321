package verify

import (
	"golang.org/x/mod/sumdb/tlog"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/message"
)

// classify turns the bad events into findings. If a header does not match its leaf, the event was edited, or it got
// the number of another event. In the second case the header matches its leaf with the original number.
func (v *verification) classify() {
	from := v.origins()
	inserted := v.reportShift(from)
	for i := range v.bad {
		r := &v.bad[i]
		switch t, moved := from[r.Seq]; {
		case inserted[r.Seq]:
		case moved && t == 0: // reportShift has reported this event
		case moved:
			v.find(r.Seq, Reordered, eventMoved.With(r.Seq, t))
		case r.flaw == badColumn:
			v.find(r.Seq, Edited, valueWrong.With(r.Seq))
		case r.flaw == payloadEdited:
			v.find(r.Seq, Edited, payloadChanged.With(r.Seq))
		default:
			v.find(r.Seq, Edited, headerChanged.With(r.Seq))
		}
	}
	v.rep.More += v.moreBad
}

// maxTries limits the search for the original numbers of bad events. It is the maximum number of headers that are
// hashed with another number.
const maxTries = 2_000_000

// nearby is the distance from an event's number within which its original number is searched first.
const nearby = 16

// origins returns the original number of each bad event for which it finds one.
func (v *verification) origins() map[event.Seq]event.Seq {
	from := map[event.Seq]event.Seq{}
	leaves := map[tlog.Hash]event.Seq{} // Leaves of bad rows may be in place although the headers moved.
	for i := range v.bad {
		leaves[v.bad[i].LeafHash] = v.bad[i].Seq
	}
	tries := 0
	is := func(r *row, t event.Seq) bool {
		if t < 1 || t == r.Seq || tries > maxTries {
			return false
		}
		tries++
		e := r.Event
		e.Seq = t
		h := e.Leaf()
		at, there := leaves[h]
		return h == r.LeafHash || there && at == t
	}
	var delta event.Seq
	for i := range v.bad {
		r := &v.bad[i]
		if r.flaw != headerEdited {
			continue
		}
		if t, ok := v.findOrigin(r, delta, is); ok {
			from[r.Seq], delta = t, t-r.Seq
		}
	}
	return from
}

// findOrigin looks for the original number of one event. It first tries the distance in the parameter "delta", because
// the previous bad event was moved by this distance. Then it tries numbers nearby, the numbers of the other bad events,
// and at last all numbers.
func (v *verification) findOrigin(r *row, delta event.Seq, is func(*row, event.Seq) bool) (event.Seq, bool) {
	if is(r, r.Seq+delta) {
		return r.Seq + delta, true
	}
	for d := event.Seq(1); d <= nearby; d++ {
		for _, t := range []event.Seq{r.Seq + d, r.Seq - d} {
			if is(r, t) {
				return t, true
			}
		}
	}
	for i := range v.bad {
		if is(r, v.bad[i].Seq) {
			return v.bad[i].Seq, true
		}
	}
	if v.size+int64(nearby) > maxTries/4 {
		return 0, false
	}
	for t := event.Seq(1); int64(t) <= v.size; t++ {
		if is(r, t) {
			return t, true
		}
	}
	return 0, false
}

// reportShift reports deleted or inserted events after which all later events were renumbered. All these later events
// have the same distance from their original numbers, up to the end of the log. reportShift sets their entries in the
// map "from" to zero, and returns the inserted events.
func (v *verification) reportShift(from map[event.Seq]event.Seq) map[event.Seq]bool {
	inserted := map[event.Seq]bool{}
	end := event.Seq(v.size)
	if v.moreBad > 0 && len(v.bad) > 0 {
		end = v.bad[len(v.bad)-1].Seq
	}
	if len(from) == 0 || from[end] == 0 {
		return inserted
	}
	delta, first := from[end]-end, end
	for from[first-1] != 0 && from[first-1]-(first-1) == delta {
		first--
	}
	if taken(from, first, end) {
		return inserted
	}
	for s := first; s <= end; s++ {
		from[s] = 0
	}
	if delta > 0 {
		v.find(first, Deleted, rangeOf(first, first+delta-1, eventCut, eventsCut))
		return inserted
	}
	v.find(first+delta, Inserted, rangeOf(first+delta, first-1, eventAdded, eventsAdded))
	for s := first + delta; s < first; s++ {
		inserted[s] = true
	}
	return inserted
}

// taken reports whether the events from the number "first" to the number "end" were not renumbered but exchanged with
// other events. In that case another event has one of their numbers as its original number.
func taken(from map[event.Seq]event.Seq, first, end event.Seq) bool {
	for s, t := range from {
		if (s < first || s > end) && t >= first && t <= end {
			return true
		}
	}
	return false
}

// rangeOf returns the sentence "one" for a single event, or the sentence "many" for the events from a to b.
func rangeOf(a, b event.Seq, one, many *message.Text, more ...any) *message.Text {
	if a == b {
		return one.With(append([]any{a}, more...)...)
	}
	return many.With(append([]any{a, b}, more...)...)
}
