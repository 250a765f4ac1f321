package verify

import (
	"encoding/json"
	"slices"
	"sort"

	"github.com/perlica/perlica/eventlog/event"
)

// gone are the events with missing payloads that no log.pruned has covered yet, by the fields that
// a pruning selects. The key also says whether the source marks them as withheld. An event takes
// eight bytes, because a log may have lost a million payloads.
type gone map[goneKey][]event.Seq

type goneKey struct {
	Type    event.Type
	Class   event.Class
	Session event.SessionID
	Run     event.RunID
	marked  bool
}

func (g *gone) addEvent(e *event.Event) {
	if *g == nil {
		*g = gone{}
	}
	k := goneKey{e.Type, e.Class, e.Session, e.Run, e.Withheld != "" && e.Withheld != event.Missing}
	(*g)[k] = append((*g)[k], e.Seq)
}

// applyPruning removes the events that an intact log.pruned covers from gone.
func (v *verification) applyPruning(e *event.Event) {
	var p event.Pruning
	if json.Unmarshal(e.Payload, &p) != nil {
		return
	}
	for k, seqs := range v.gone {
		n := sort.Search(len(seqs), func(i int) bool { // The numbers rise, and a pruning has an end.
			return seqs[i] > e.Seq || !p.Covers(&event.Event{Seq: seqs[i], Type: k.Type, Class: k.Class,
				Refs: event.Refs{Session: k.Session, Run: k.Run}})
		})
		v.rep.Pruned += int64(n)
		if v.gone[k] = seqs[n:]; n == len(seqs) {
			delete(v.gone, k)
		}
	}
}

// reportUncovered counts the payloads that are absent from an import, and reports those that are
// missing without a reason.
func (v *verification) reportUncovered() {
	var bad []event.Seq
	for k, seqs := range v.gone {
		if k.marked && !v.opt.NoImport {
			v.rep.Withheld += int64(len(seqs))
		} else {
			bad = append(bad, seqs...)
		}
	}
	slices.Sort(bad)
	for _, seq := range bad {
		v.find(seq, Deleted, payloadMissing.With(seq))
	}
}
