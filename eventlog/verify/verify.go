// Package verify recomputes every hash of a log from its events. It compares the results with the
// stored leaves, tree and checkpoints, and with the anchor.
//
// The package promises that the report names the damage and the number of a damaged event. An error means that the
// log could not be read. The package writes nothing. It applies no rules about the meaning of events. An Auditor does
// that.
package verify

import (
	"context"
	"errors"
	"slices"
	"sort"
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
	Unreadable Damage = "unreadable" // the file cannot be read at this place
	Tree       Damage = "tree"       // a stored hash or a derived table does not follow from the events
	Checkpoint Damage = "checkpoint" // a checkpoint does not match the log
	Anchor     Damage = "anchor"     // a line of the anchor does not match the log
	Schema     Damage = "schema"     // the file's tables differ from the tables of a log
	Rule       Damage = "rule"       // an Auditor objects to an event
	Unsigned   Damage = "unsigned"   // a required signature is missing
	Misplaced  Damage = "misplaced"  // the file is another log than the user expects
)

// Finding is one fault of a log.
type Finding struct {
	// Seq is the first event with the fault, or 0.
	Seq  event.Seq `json:"seq,omitempty"`
	Kind Damage    `json:"kind"`
	// What describes the fault in one English sentence.
	What string `json:"what"`
	message.Coded
}

// NewFinding returns a Finding. The parameter "what" is the sentence that describes the fault.
func NewFinding(seq event.Seq, kind Damage, what *message.Text) Finding {
	return Finding{seq, kind, what.Text, what.Coded}
}

// Error makes Finding an error, so that Source.End can return it.
func (f Finding) Error() string { return string(f.Kind) + ": " + f.What }

// maxFindings is the maximum number of findings in a report. Further findings are only counted.
const maxFindings = 100

// Report is the result of a verification.
type Report struct {
	// Events is the number of events that were read.
	Events int64
	// Absent is the number of events of which the verified file has only the hashes.
	Absent int64
	// Root is the root of the tree.
	Root tlog.Hash
	// FirstBad is the Seq of the first wrong or missing event, or 0.
	FirstBad event.Seq
	// Findings are ordered by Seq. Findings without an event come last.
	Findings []Finding
	// More is the number of further findings.
	More int
	// Warnings are facts that a person should know and that are not damage.
	Warnings []*message.Text

	// Checkpoints is the number of stored checkpoints that are valid.
	Checkpoints int
	// Anchors is the number of lines of the anchor that are valid.
	Anchors int
	// Signed is the number of events that a checkpoint signed by a known key covers.
	Signed   int64
	Cosigned []Cosignature

	// Unchecked is the number of stored checkpoints that could not be checked, because they cover absent or damaged
	// events. UncheckedAnchors is this number for the lines of the anchor. Several checkpoints of one size count once.
	Unchecked, UncheckedAnchors int

	// Checked are the kinds of damage that were looked for. NotChecked are the kinds that this source cannot show.
	Checked, NotChecked []Damage

	// Pruned is the number of payloads that a log.pruned covers.
	Pruned int64
	// Withheld is the number of payloads that an import left out.
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
	// Keys are the known keys. A signature of another key is only counted.
	Keys []note.Verifier
	// Since is a checkpoint that the user has from another place, or nil.
	Since *evidence.Checkpoint

	// RequireSignature requires a valid checkpoint that one of the Signers signed. A log without such a checkpoint is
	// damaged. Report.Signed then considers only signatures of the Signers. Each of the Signers must also be in Keys.
	RequireSignature bool
	Signers          []note.Verifier
	// Audit checks the events against rules. It may be nil.
	Audit Auditor

	// NoImport means that the file is the log itself and not an import. A withheld payload or an absent event is then
	// damage. Otherwise a person with access to the log could hide payloads. In an import, both are allowed and
	// counted.
	NoImport bool

	// Place returns an error if the file is not the log that the user expects at its path. If Place is nil, any log
	// is accepted.
	Place func(context.Context, *store.Reader) error

	// Progress is called from time to time with the number of verified events. It may be nil.
	Progress func(events int64)
}

// An Auditor checks the events against rules. One goroutine calls its methods, in the order of the events.
type Auditor interface {
	// Wants reports whether the method Event needs the payload of events of this type.
	Wants(event.Type) bool

	// Event examines an intact event and returns a sentence for each rule that the event breaks. It must not keep e.
	// The payload is nil if Wants did not ask for it, or if the payload is missing.
	Event(e *event.Event) []*message.Text

	// Gap is called when events are missing or damaged. The next call of Event is for an event after them.
	Gap()
}

// ErrOtherLog says that a checkpoint belongs to another log.
var ErrOtherLog = errors.New("the checkpoint belongs to another log")

// Check recomputes every hash of a log from its events. It compares the results with the leaves, tree and checkpoints
// of its source. The report names the damage, and the kinds of damage that this source cannot show. An error means
// that the log could not be read. The error wraps ErrOtherLog if Options.Since belongs to another log. It wraps
// [evidence.ErrCheckpoint] if Options.Since has an invalid signature of a known key.
//
// Check finds edits, deletions, insertions and reorderings by an attacker, unless the attacker also recomputed and
// signed the tree. If the attacker has the key, only a checkpoint that was stored elsewhere helps.
func Check(ctx context.Context, src Source, opt Options) (Report, error) {
	v := &verification{source: src, opt: opt}
	return v.finish(v.verifySource(ctx))
}

// find adds a finding. Copies of find at its many uses would make the program larger.
//
//go:noinline
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

// finish completes the report. If err says that the log is damaged, finish reports that damage.
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
	sort.SliceStable(v.rep.Findings, func(i, j int) bool { // findings without a number come last
		a, b := v.rep.Findings[i].Seq, v.rep.Findings[j].Seq
		return a != 0 && (a < b || b == 0)
	})
	v.listKinds()
	return v.rep, nil
}

// listKinds sets Checked and NotChecked of the report.
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

// clock checks that the times of events grow.
type clock struct {
	last   time.Time
	writer string
	back   int // how often the clock went back
	first  event.Seq
	by     time.Duration
}

// acrossWriters is the maximum disorder between the times of two processes, if no clock jumps. An event gets its time
// when it is recorded, and its Seq when it is written.
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
