package verify

import (
	"encoding/json"
	"slices"
	"sort"

	"github.com/perlica/perlica/eventlog/event"
)

// gone has the events with missing payloads that no log.pruned has covered yet. The key has the fields by which a
// pruning selects events. It also says whether the source marks the payloads as withheld. An event takes only eight
// bytes, because a log may have lost a million payloads.
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

// applyPruning handles an intact log.pruned event. It removes the events that the pruning covers from v.gone.
func (v *verification) applyPruning(e *event.Event) {
	var p event.Pruning
	if json.Unmarshal(e.Payload, &p) != nil {
		return
	}
	for k, seqs := range v.gone {
		n := sort.Search(len(seqs), func(i int) bool { // the numbers grow, and the pruning covers the first of them
			return seqs[i] > e.Seq || !p.Covers(&event.Event{Seq: seqs[i], Type: k.Type, Class: k.Class,
				Refs: event.Refs{Session: k.Session, Run: k.Run}})
		})
		v.rep.Pruned += int64(n)
		if v.gone[k] = seqs[n:]; n == len(seqs) {
			delete(v.gone, k)
		}
	}
}

// reportUncovered handles the missing payloads without a pruning. It counts the payloads that an import left out, and
// reports the others.
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
