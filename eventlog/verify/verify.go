// Package verify recomputes every hash of a log from its events. It compares the results with the
// stored leaves, tree and checkpoints, and with the anchor.
//
// The package promises that the report names the damage, with the number of a damaged event. An
// error means that the log could not be read. The package writes nothing. It applies no rules about
// the meaning of events; an Auditor does.
package verify

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/perlica/perlica/eventlog/disk"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/evidence"
	"github.com/perlica/perlica/eventlog/message"
	"github.com/perlica/perlica/eventlog/store"
)

// Damage is a kind of damage.
type Damage string

// These are the kinds of damage.
const (
	Edited     Damage = "edited"     // an event was changed
	Deleted    Damage = "deleted"    // events or a payload are missing
	Inserted   Damage = "inserted"   // events were added later
	Reordered  Damage = "reordered"  // events have exchanged their places
	Truncated  Damage = "truncated"  // the end is missing
	Unreadable Damage = "unreadable" // the file is broken there
	Tree       Damage = "tree"       // a stored hash or a derived table does not follow from the events
	Checkpoint Damage = "checkpoint" // a checkpoint does not match the log
	Anchor     Damage = "anchor"     // a line of the anchor does not match the log
	Schema     Damage = "schema"     // the tables are not those of a log
	Rule       Damage = "rule"       // an Auditor objects to an event
	Unsigned   Damage = "unsigned"   // a required signature is missing
	Misplaced  Damage = "misplaced"  // another log belongs in this place
)

// Finding is one fault of a log.
type Finding struct {
	// Seq is the first event concerned, or 0.
	Seq  event.Seq `json:"seq,omitempty"`
	Kind Damage    `json:"kind"`
	// What describes the fault.
	What string `json:"what"`
	message.Coded
}

// NewFinding returns the Finding with this sentence.
func NewFinding(seq event.Seq, kind Damage, what *message.Text) Finding {
	return Finding{seq, kind, what.Text, what.Coded}
}

// Error makes a Finding an error, for Source.End.
func (f Finding) Error() string { return string(f.Kind) + ": " + f.What }

// maxFindings is the maximum number of findings in a report. It only counts the others.
const maxFindings = 100

// Report is the result of a verification.
type Report struct {
	// Events is the number of events that were read.
	Events int64
	// Absent is the number of events of which this part of a log has only hashes.
	Absent int64
	// Root is the root of the tree.
	Root tlog.Hash
	// FirstBad is the first wrong or missing event, or 0.
	FirstBad event.Seq
	// Findings are ordered by Seq. Those without an event come last.
	Findings []Finding
	// More is the number of findings that are not listed.
	More int
	// Warnings are not damage, but a person should know them.
	Warnings []*message.Text

	// Checkpoints is the number of valid stored checkpoints.
	Checkpoints int
	// Anchors is the number of valid lines of the anchor.
	Anchors int
	// Signed is the number of events that a checkpoint signed by a known key covers.
	Signed   int64
	Cosigned []Cosignature

	// Unchecked and UncheckedAnchors count the stored checkpoints and lines of the anchor in absent
	// or damaged parts. Several of one size count once.
	Unchecked, UncheckedAnchors int

	// Checked are the kinds of damage that were checked. NotChecked are those that this source
	// cannot show.
	Checked, NotChecked []Damage

	// Pruned is the number of payloads that a log.pruned covers.
	Pruned int64
	// Withheld is the number of payloads that are absent from an import.
	Withheld int64
}

// Cosignature is the newest signature of a known witness under a valid checkpoint.
type Cosignature struct {
	Name string    `json:"name"`
	Size int64     `json:"size"`
	Time time.Time `json:"time"`
}

// WarningTexts returns the English words of the warnings.
func (r Report) WarningTexts() (list []string) {
	for _, w := range r.Warnings {
		list = append(list, w.Text)
	}
	return list
}

// OK reports whether the log has no findings.
func (r Report) OK() bool { return len(r.Findings) == 0 }

// Options select the checks.
type Options struct {
	// Keys are the known keys. Signatures of other keys are only counted.
	Keys []note.Verifier
	// Since is a checkpoint that was kept elsewhere, or nil.
	Since *evidence.Checkpoint

	// RequireSignature requires a valid checkpoint that one of the Signers signed. A log without
	// one is damaged. Report.Signed then counts only their signatures. Signers must be among the
	// Keys.
	RequireSignature bool
	Signers          []note.Verifier
	// Audit judges the events. nil judges nothing.
	Audit Auditor

	// NoImport says that the file is the log itself, so no payload may be withheld and no event
	// absent. An import may have both, and they are counted. Otherwise a person with access to the
	// log could hide payloads.
	NoImport bool

	// Place returns an error if another log belongs in the place of this file, according to the
	// user. nil accepts any log.
	Place func(context.Context, *store.Reader) error

	// Progress is called from time to time with the number of verified events.
	Progress func(events int64)
}

// An Auditor judges the events. One goroutine calls its methods, in the order of the events.
type Auditor interface {
	// Wants reports whether Event needs the payloads of events of this type.
	Wants(event.Type) bool

	// Event examines an intact event and returns the rules that it breaks. It must not keep e. The
	// payload is nil if it is not wanted, or missing.
	Event(e *event.Event) []*message.Text

	// Gap is called at the place of missing or damaged events.
	Gap()
}

// ErrOtherLog says that a checkpoint belongs to another log.
var ErrOtherLog = errors.New("the checkpoint belongs to another log")

// Check recomputes every hash of a log from its events. It compares the results with the leaves,
// tree and checkpoints of its source. The report names the damage, and the kinds of damage that
// this source cannot show. An error means that the log could not be read. It wraps ErrOtherLog if
// Options.Since belongs to another log, and [evidence.ErrCheckpoint] if a signature of a known key
// under it is invalid.
//
// Check finds edits, deletions, insertions and reorderings by an attacker who did not recompute and
// sign the tree. Against an attacker with the key, only a checkpoint kept elsewhere helps.
func Check(ctx context.Context, src Source, opt Options) (Report, error) {
	v := &verification{source: src, opt: opt}
	return v.finish(v.verifySource(ctx))
}

// find adds a finding.
func (v *verification) find(seq event.Seq, kind Damage, what *message.Text) {
	v.report(NewFinding(seq, kind, what))
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

func (v *verification) warn(what *message.Text) { v.rep.Warnings = append(v.rep.Warnings, what) }

// finish completes the report. An error that says so is damage.
func (v *verification) finish(err error) (Report, error) {
	if errors.Is(err, disk.ErrCorrupt) {
		v.find(0, Unreadable, message.Of(err))
		err = nil
	}
	if err != nil {
		return Report{}, err
	}
	v.classify()
	v.reportUncovered()
	if v.last != nil && len(v.rep.Findings) == 0 {
		v.report(*v.last)
	}
	v.rep.Events, v.rep.Absent, v.rep.Root = v.events, v.absentEvents, v.tree.Root()
	v.rep.Warnings = append(v.rep.Warnings, v.unknown.sentences()...)
	if n := v.clock.back; n > 0 {
		back := clockBack.With(v.clock.by, v.clock.first)
		if n > 1 {
			back = clockBackOften.With(n, v.clock.by, v.clock.first)
		}
		v.warn(back)
	}
	v.warnUnsigned()
	if v.opt.RequireSignature && v.rep.Signed == 0 {
		v.find(0, Unsigned, unsigned)
	}
	if n := v.rep.Unchecked; n > 0 {
		v.warn(uncheckedOfFile.With(n))
	}
	if n := v.rep.UncheckedAnchors; n > 0 {
		v.warn(uncheckedLines.With(n))
	}
	if v.file != nil {
		v.file.warnDropped()
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
	v.listKinds()
	return v.rep, nil
}

// listKinds sets Checked and NotChecked.
func (v *verification) listKinds() {
	for _, k := range []Damage{Edited, Deleted, Inserted, Reordered, Truncated, Unreadable, Tree, Checkpoint, Anchor,
		Schema, Rule, Unsigned, Misplaced} {
		switch {
		case slices.Contains(v.head.Lacks, k):
			v.rep.NotChecked = append(v.rep.NotChecked, k)
		case (k != Rule || v.opt.Audit != nil) && (k != Unsigned || v.opt.RequireSignature) &&
			(k != Misplaced || v.opt.Place != nil):
			v.rep.Checked = append(v.rep.Checked, k)
		}
	}
}

// clock checks the times of events.
type clock struct {
	last   time.Time
	writer string
	back   int // how often the clock went back
	first  event.Seq
	by     time.Duration
}

// acrossWriters is the maximum disorder between the times of two processes without a jump of a
// clock. An event gets its time when it is recorded, and its place when it is written.
const acrossWriters = 10 * time.Second

func (c *clock) addTime(e *event.Event) {
	by := c.last.Sub(e.Time)
	if by > 0 && (e.Writer == c.writer || by > acrossWriters) {
		if c.back++; c.back == 1 {
			c.first, c.by = e.Seq, by
		}
	}
	c.last, c.writer = e.Time, e.Writer
}
