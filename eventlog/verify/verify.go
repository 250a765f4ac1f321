// Package verify recomputes every hash of a log from its events and compares the results with what is
// stored: leaves, tree, checkpoints, and the anchor beside it.
//
// It promises that damage is in the report, an event's number with it where one is concerned, and that
// an error means that the log could not be read. It writes nothing and judges no rule of its own; an
// Auditor does.
package verify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/perlica/perlica/eventlog/disk"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/evidence"
	"github.com/perlica/perlica/eventlog/store"
)

// Damage is a kind of damage.
type Damage string

// What can be found.
const (
	Edited     Damage = "edited"     // an event is not as it was written
	Deleted    Damage = "deleted"    // events are missing, or a payload is
	Inserted   Damage = "inserted"   // events that were never written there
	Reordered  Damage = "reordered"  // events have each other's places
	Truncated  Damage = "truncated"  // the end is missing
	Unreadable Damage = "unreadable" // the file is broken there
	Tree       Damage = "tree"       // a stored hash, or what else is stored beside the events, does not follow from them
	Checkpoint Damage = "checkpoint" // a checkpoint is not one of this log as it is
	Anchor     Damage = "anchor"     // a line of the anchor is not
	Schema     Damage = "schema"     // the tables are not those of a log
	Rule       Damage = "rule"       // an Auditor says that what happened must not happen
	Unsigned   Damage = "unsigned"   // nothing is signed by a key that must have signed
	Misplaced  Damage = "misplaced"  // the log is not the one that belongs in its place
)

// Finding is something that is wrong with a log.
type Finding struct {
	Seq  event.Seq `json:"seq,omitempty"` // of the first event concerned; 0 if no event is
	Kind Damage    `json:"kind"`
	What string    `json:"what"` // in words
}

// Error makes an error of a finding, for what a Source says of its end.
func (f Finding) Error() string { return string(f.Kind) + ": " + f.What }

// maxFindings is how many findings a report lists; of more, only the number is given.
const maxFindings = 100

// Report is what Verify found.
type Report struct {
	Events   int64     // that were read
	Absent   int64     // that this part of a log lacks; only their hashes came
	Root     tlog.Hash // of the tree they form
	FirstBad event.Seq // the first event that is wrong or missing; 0 if none is
	Findings []Finding // by seq; those that concern no event come last
	More     int       // findings that are not listed
	Warnings []string  // what is no damage, and somebody should know

	Checkpoints int   // stored with the log, whose root and signature hold
	Anchors     int   // lines of the anchor, likewise
	Signed      int64 // how many events a checkpoint covers that a known key signed
	Cosigned    []Cosignature

	// Checkpoints of the file, and lines of the anchor, that could not be checked, because they
	// lie in a part that is absent or damaged. Several for one size count once.
	Unchecked, UncheckedAnchors int

	// Checked are the kinds of damage that were looked for; NotChecked are those that the source
	// does not show, because it lacks what they are found by.
	Checked, NotChecked []Damage

	Pruned   int64 // payloads that are gone, as an event says
	Withheld int64 // payloads that did not come with an import
}

// Cosignature is the newest signature by a known witness under a checkpoint that holds.
type Cosignature struct {
	Name string    `json:"name"`
	Size int64     `json:"size"`
	Time time.Time `json:"time"`
}

// OK reports whether the log is as it was written.
func (r Report) OK() bool { return len(r.Findings) == 0 }

// Options say what a log is compared the log with.
type Options struct {
	Keys  []note.Verifier      // signatures of others are counted, not judged
	Since *evidence.Checkpoint // one that was kept elsewhere

	// RequireSignature says that one of the Signers must have signed a checkpoint that holds: a log
	// without one is damaged. Report.Signed counts theirs alone then. Signers are among the Keys.
	RequireSignature bool
	Signers          []note.Verifier
	Audit            Auditor // judges what happened; nil judges nothing

	// NoImport says that the file is the log itself: nothing may be withheld or absent then. In
	// an import it may, and is counted; so who can write a log could hide a payload by
	// saying that it never came.
	NoImport bool

	// Place returns an error if the file is not the log that belongs in its place, as far as its user
	// knows. Nil takes any log.
	Place func(context.Context, *store.Reader) error

	// Progress is called now and then with the number of events that have been verified.
	Progress func(events int64)
}

// An Auditor judges what happened. Its methods are called from one goroutine, in the order of
// the events.
type Auditor interface {
	// Wants reports whether Event needs the payloads of events of this type.
	Wants(event.Type) bool

	// Event takes an event in, which is as it was written, and says which rules it breaks. It
	// must not keep e. The payload is nil if it is not wanted, or not there.
	Event(e *event.Event) []string

	// Gap is called where events are missing or damaged: what happened there is not known.
	Gap()
}

// ErrOtherLog says that a checkpoint is one of another log.
var ErrOtherLog = errors.New("the checkpoint is one of another log")

// Check recomputes every hash of a log from the events themselves and compares the results with
// what its source has: leaves, tree, checkpoints. An error means that it could not be read; damage
// is in the report, and so is which kinds of damage this source does not show. The error wraps
// ErrOtherLog if Options.Since is no checkpoint of this log, and [evidence.ErrCheckpoint] if its
// signature by a known key is false.
//
// It finds edits, deletions, insertions and reorderings by a writer who did not recompute the tree
// and sign it. Against one who holds the key as well it takes a checkpoint kept elsewhere.
func Check(ctx context.Context, src Source, opt Options) (Report, error) {
	v := &verification{source: src, opt: opt}
	return v.finish(v.verify(ctx))
}

// find adds a finding.
func (v *verification) find(seq event.Seq, kind Damage, format string, args ...any) {
	v.report(Finding{seq, kind, fmt.Sprintf(format, args...)})
}

func (v *verification) report(f Finding) {
	if f.Seq > 0 && (v.rep.FirstBad == 0 || f.Seq < v.rep.FirstBad) {
		v.rep.FirstBad = f.Seq
	}
	if len(v.rep.Findings) >= maxFindings {
		v.rep.More++
		return
	}
	v.rep.Findings = append(v.rep.Findings, f)
}

func (v *verification) warn(format string, args ...any) {
	v.rep.Warnings = append(v.rep.Warnings, fmt.Sprintf(format, args...))
}

// finish puts the report in order. What ended the verification is damage, too, if it says so.
func (v *verification) finish(err error) (Report, error) {
	if errors.Is(err, disk.ErrCorrupt) {
		v.find(0, Unreadable, "%v", err)
		err = nil
	}
	if err != nil {
		return Report{}, err
	}
	v.classify()
	v.uncovered()
	if v.last != nil && len(v.rep.Findings) == 0 {
		v.report(*v.last)
	}
	v.rep.Events, v.rep.Absent, v.rep.Root = v.events, v.absentEvents, v.tree.Root()
	for _, k := range v.unknown.list() {
		v.warn("%s", k)
	}
	if n := v.clock.back; n > 0 {
		often := "once"
		if n > 1 {
			often = fmt.Sprintf("%d times", n)
		}
		v.warn("the clock went back %s, first by %v at event %d", often, v.clock.by, v.clock.first)
	}
	v.unsigned()
	if v.opt.RequireSignature && v.rep.Signed == 0 {
		v.find(0, Unsigned, "no checkpoint that holds is signed by a key that was asked for")
	}
	if n := v.rep.Unchecked; n > 0 {
		v.warn("checkpoints of the file that could not be checked, in a part that is absent or damaged: %d", n)
	}
	if n := v.rep.UncheckedAnchors; n > 0 {
		v.warn("lines of the anchor that could not be checked, in a part that is absent or damaged: %d", n)
	}
	if v.file != nil {
		v.file.dropped()
	}
	if v.broken {
		v.rep.Root = tlog.Hash{}
	}
	slices.SortStableFunc(v.rep.Findings, func(a, b Finding) int {
		switch {
		case a.Seq == b.Seq:
			return 0
		case a.Seq == 0:
			return 1
		case b.Seq == 0:
			return -1
		}
		return cmp.Compare(a.Seq, b.Seq)
	})
	v.looked()
	return v.rep, nil
}

// looked says which kinds of damage were looked for.
func (v *verification) looked() {
	for _, k := range []Damage{Edited, Deleted, Inserted, Reordered, Truncated, Unreadable, Tree, Checkpoint, Anchor, Schema, Rule, Unsigned, Misplaced} {
		switch {
		case slices.Contains(v.head.Lacks, k):
			v.rep.NotChecked = append(v.rep.NotChecked, k)
		case (k != Rule || v.opt.Audit != nil) && (k != Unsigned || v.opt.RequireSignature) && (k != Misplaced || v.opt.Place != nil):
			v.rep.Checked = append(v.rep.Checked, k)
		}
	}
}

// clock watches the times of events.
type clock struct {
	last   time.Time
	writer string
	back   int // how often the clock went back
	first  event.Seq
	by     time.Duration
}

// acrossWriters is how far the times of two processes may lie apart in the wrong order
// although no clock jumped: an event gets its time when it is recorded and its place when it
// is written.
const acrossWriters = 10 * time.Second

func (c *clock) tick(e *event.Event) {
	by := c.last.Sub(e.Time)
	if by > 0 && (e.Writer == c.writer || by > acrossWriters) {
		if c.back++; c.back == 1 {
			c.first, c.by = e.Seq, by
		}
	}
	c.last, c.writer = e.Time, e.Writer
}
