package verify

import (
	"fmt"
	"maps"
	"slices"

	"zombiezen.com/go/sqlite"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/fault"
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

// maxOpenRuns keeps a hostile file from filling the memory.
const maxOpenRuns = 1 << 20

func (o *openRuns) count(e *event.Event) {
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
	case event.Closes:
		o.last = e.Seq
	}
}

// derived reads what the file says beside the events, at the moment at which it is measured.
func (v *verification) derived() error {
	stored := map[event.RunID]event.Seq{}
	err := query(v.conn, `SELECT run_id, seq FROM open_runs`, func(stmt *sqlite.Stmt) error {
		if len(stored) == maxOpenRuns {
			return fmt.Errorf("%w: it lists more than %d open runs", fault.ErrCorrupt, maxOpenRuns)
		}
		stored[event.RunID(stmt.ColumnText(0))] = event.Seq(stmt.ColumnInt64(1))
		return nil
	})
	if err != nil {
		return err
	}
	v.runs.stored = stored
	if !v.opt.NoImport {
		return nil
	}
	// Those whose payload is missing are found in their place.
	return query(v.conn, `
		SELECT count(*), min(seq)
		FROM withheld
		WHERE seq NOT IN (SELECT seq FROM events WHERE payload IS NULL)`, func(stmt *sqlite.Stmt) error {
		if n := stmt.ColumnInt64(0); n > 0 {
			v.find(event.Seq(stmt.ColumnInt64(1)), Deleted, "%d payloads are listed as withheld, as of an import, which this file is not", n)
		}
		return nil
	})
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

// dropped warns of checkpoints that should be there, however few are left: those of the file are
// numbered without a gap, each signed line of the anchor is one of them, and one comes with the end
// of every run.
func (v *verification) dropped() {
	if v.reader.Version < 2 || len(v.absent) > 0 {
		return
	}
	if v.opt.NoImport && v.runs.ended > 0 && v.sizes == 0 && v.anchors == 0 {
		v.warn("runs have ended, and there is neither a checkpoint nor an anchor of them: they were removed, or could not be written")
		return
	}
	if v.numbered > v.stored {
		v.warn("checkpoints of the file are missing: they are numbered up to %d, and there are %d", v.numbered, v.stored)
	}
	if n := v.signatures.lone; n > 0 {
		v.warn("of signed lines of the anchor %d have no checkpoint in the file: it was removed", n)
	}
	if s := v.signatures.newest; v.opt.NoImport && s > 0 && int64(v.runs.last) > s {
		v.warn("the last run that ended lies behind the newest checkpoint, of %d events: its own was removed, or could not be written", s)
	}
}
