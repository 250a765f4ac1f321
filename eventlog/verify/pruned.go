package verify

import (
	"encoding/json"
	"slices"
	"sort"

	"github.com/perlica/perlica/eventlog/event"
)

// gone are the numbers of the events whose payload is missing and that no log.pruned has covered
// yet, by all that a pruning asks for and whether the source says that they are withheld. A number
// takes eight bytes: a log may have lost a million payloads.
type gone map[goneKey][]event.Seq

type goneKey struct {
	Type    event.Type
	Class   event.Class
	Session event.SessionID
	Run     event.RunID
	marked  bool
}

func (g *gone) add(e *event.Event) {
	if *g == nil {
		*g = gone{}
	}
	k := goneKey{e.Type, e.Class, e.Session, e.Run, e.Withheld != "" && e.Withheld != event.Missing}
	(*g)[k] = append((*g)[k], e.Seq)
}

// prune takes in a log.pruned whose payload is whole: what is missing of the events before it is
// covered as far as it says.
func (v *verification) prune(e *event.Event) {
	var p event.Pruning
	if json.Unmarshal(e.Payload, &p) != nil {
		return
	}
	for k, seqs := range v.gone {
		n := sort.Search(len(seqs), func(i int) bool { // they rise, and a pruning has an end
			return seqs[i] > e.Seq || !p.Covers(&event.Event{Seq: seqs[i], Type: k.Type, Class: k.Class, Refs: event.Refs{Session: k.Session, Run: k.Run}})
		})
		v.rep.Pruned += int64(n)
		if v.gone[k] = seqs[n:]; n == len(seqs) {
			delete(v.gone, k)
		}
	}
}

// uncovered counts the payloads that did not come with an import, and reports those of which nothing
// says why they are missing.
func (v *verification) uncovered() {
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
		v.find(seq, Deleted, "event %d: the payload is missing, and nothing says why", seq)
	}
}
