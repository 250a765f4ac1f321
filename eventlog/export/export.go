// Package export writes events of a log to a text. Anyone can recompute the root of the log from this text. The
// package also makes a log from such a text. docs/export.md describes the format.
//
// The package promises that it exports equal events of the same log as equal bytes. It compares everything that it
// writes or imports with its hashes. It does not verify signatures.
package export

import (
	"bufio"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"iter"
	"unicode/utf8"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/perlica/perlica/eventlog/disk"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/evidence"
	"github.com/perlica/perlica/eventlog/store"
	"github.com/perlica/perlica/eventlog/tree"
)

// Options select the events of an export.
type Options struct {
	Selection

	// Mask reports whether Write must leave a payload out. If Mask is nil, only the payloads that are absent from the
	// log itself are left out.
	Mask func(payload []byte) bool

	// Progress is called from time to time with the Seq of the current event. It may be nil.
	Progress func(seq int64)
}

// Summary counts the parts of an export or of an import.
type Summary struct {
	// Size is the size of the log at the time of the export.
	Size int64
	// Root is the root of the log's tree.
	Root tlog.Hash
	// Signed means that the export contains a signed checkpoint of that tree.
	Signed bool
	// Events is the number of events in the export.
	Events int64
	// Masked is the number of payloads that Mask left out. Pruned is the number of payloads that were pruned from the
	// log.
	Masked int64
	Pruned int64
	// Absent is the number of hashes that replace events outside the export.
	Absent int64
}

// Write writes the selected events to w in the format of docs/export.md. Anyone can recompute the log's root from the
// output. Equal events of the same log give equal bytes. If a signed checkpoint covers all selected events, the
// header has the newest such checkpoint. Otherwise the header has the tree of the whole log, unsigned.
//
// Write compares every event with its hashes, and all events with the root. If they differ, the error wraps
// ErrCorrupt, and the output has no last line. Write reads the log once and uses little memory.
func Write(ctx context.Context, r *store.Reader, w io.Writer, opt Options) (Summary, error) {
	x := &exporter{r: r, h: r.Hashes(ctx), opt: opt, w: bufio.NewWriterSize(w, 1<<16), sum: sha256.New()}
	err := x.exportEvents(ctx)
	if err != nil {
		err = fmt.Errorf("eventlog: export: %w", err)
	}
	return x.done, err
}

// Copy writes all events up to head.Size as Write does. The events may come from a log that is not a file. Copy
// compares each event with its hashes, and all events with head.Root. Copy marks every missing payload as pruned. The
// caller must have checked that the log says so.
func Copy(w io.Writer, head evidence.Checkpoint, events iter.Seq2[event.Event, error]) (Summary, error) {
	x := &exporter{w: bufio.NewWriterSize(w, 1<<16), sum: sha256.New()}
	err := x.copyEvents(head, events)
	if err != nil {
		err = fmt.Errorf("eventlog: export: %w", err)
	}
	return x.done, err
}

func (x *exporter) copyEvents(head evidence.Checkpoint, events iter.Seq2[event.Event, error]) error {
	x.done.Size, x.done.Root, x.done.Signed = head.Size, head.Root, head.Note != ""
	if err := x.writeLine(Header{Checkpoint: head}.line()); err != nil {
		return err
	}
	for e, err := range events {
		if err != nil {
			return err
		}
		if int64(e.Seq) > head.Size {
			break
		}
		if err := x.checkEvent(&e); err != nil {
			return fmt.Errorf("event %d: %w", e.Seq, err)
		}
		if e.Payload == nil {
			e.Withheld = event.Pruned
		}
		if err := x.writeEvent(&e); err != nil {
			return err
		}
	}
	return x.writeEnd(head.Root)
}

// exporter is the state of one call of Write or Copy.
type exporter struct {
	r   *store.Reader
	h   store.Hashes
	opt Options
	w   *bufio.Writer
	// sum is the hash of the output so far. tree is the tree of the exported events so far.
	sum  hash.Hash
	tree tree.Range
	done Summary
}

func (x *exporter) exportEvents(ctx context.Context) error {
	head, err := x.chooseHead(ctx)
	if err != nil {
		return err
	}
	x.done.Size, x.done.Root, x.done.Signed = head.Size, head.Root, head.Note != ""
	if err := x.writeLine(head.line()); err != nil {
		return err
	}
	if head.Size > 0 { // If Until were 0, the query would have no limit.
		for e, err := range x.r.Events(ctx, x.opt.query(head.Size)) {
			if err != nil {
				return err
			}
			if err := x.writeSelected(ctx, &e); err != nil {
				return err
			}
		}
	}
	if err := x.writeAbsent(head.Size); err != nil {
		return err
	}
	return x.writeEnd(head.Root)
}

// writeEnd writes the last line if the tree of the events has the given root.
func (x *exporter) writeEnd(root tlog.Hash) error {
	if x.tree.Root() != root {
		return fmt.Errorf("%w: its events do not lead to its root", disk.ErrCorrupt)
	}
	end := end{Events: x.done.Events, Withheld: x.done.Masked + x.done.Pruned, Absent: x.done.Absent,
		Sum: [sha256.Size]byte(x.sum.Sum(nil))}
	if err := x.writeLine(end.line()); err != nil {
		return err
	}
	return x.w.Flush()
}

// writeLine writes a line and adds it to sum.
func (x *exporter) writeLine(line []byte, err error) error {
	if err != nil {
		return err
	}
	line = append(line, '\n')
	_, _ = x.sum.Write(line) // never fails
	_, err = x.w.Write(line)
	return err
}

// chooseHead chooses the checkpoint or the tree for the header.
func (x *exporter) chooseHead(ctx context.Context) (h Header, err error) {
	h.Selection = x.opt.Selection
	if h.Size, h.Root, err = x.r.Head(ctx); err != nil || h.Size == 0 {
		return h, err
	}
	if h.Origin, err = x.r.Origin(ctx); err != nil {
		return h, err
	}
	last := h.Size
	if !h.all() {
		e, _, err := x.r.Last(ctx, h.query(h.Size))
		if err != nil {
			return h, err
		}
		last = int64(e.Seq)
	}
	c, ok, err := x.r.NewestCheckpoint(ctx, last, h.Size)
	if err != nil || !ok {
		return h, err
	}
	f, err := x.h.Frontier(c.Size)
	if errors.Is(err, disk.ErrPart) {
		return h, nil // This part of a log lacks hashes to check c, so the header stays unsigned.
	}
	if err != nil {
		return h, err
	}
	if f.Root() != c.Root || c.Origin != h.Origin {
		return h, fmt.Errorf("%w: the checkpoint of its first %d events is one of other events", disk.ErrCorrupt, c.Size)
	}
	h.Checkpoint = c
	return h, nil
}

// writeSelected writes a selected event. First it writes hashes for the events between the previous selected event
// and this one.
func (x *exporter) writeSelected(ctx context.Context, e *event.Event) error {
	if err := x.writeAbsent(int64(e.Seq) - 1); err != nil {
		return err
	}
	if err := x.checkEvent(e); err != nil {
		return fmt.Errorf("event %d: %w", e.Seq, err)
	}
	if e.Payload != nil && x.opt.Mask != nil && x.opt.Mask(e.Payload) {
		e.Payload, e.Withheld = nil, event.Masked
	}
	return x.writeEvent(e)
}

// writeEvent writes an event that was compared with its hashes.
func (x *exporter) writeEvent(e *event.Event) error {
	switch e.Withheld {
	case event.Masked:
		x.done.Masked++
	case event.Pruned:
		x.done.Pruned++
	}
	x.tree.Add(e.LeafHash)
	x.tree.Nodes = nil // Write does not need the stored nodes.
	x.done.Events++
	if x.opt.Progress != nil && x.done.Events%1000 == 0 {
		x.opt.Progress(int64(e.Seq))
	}
	return x.writeLine(e.MarshalJSON())
}

// checkEvent compares an event with its hashes. It also checks that the header can be written as text.
func (x *exporter) checkEvent(e *event.Event) error {
	if damage := x.damageOf(e); damage != "" {
		return fmt.Errorf("%w: %s", disk.ErrCorrupt, damage)
	}
	return isText(e)
}

// damageOf describes the damage of the event e, or returns "".
func (x *exporter) damageOf(e *event.Event) string {
	switch {
	case int64(e.Seq) != x.tree.Size+1:
		return "it is there twice, or one before it is missing"
	case e.Leaf() != e.LeafHash:
		return "the header was edited"
	case e.Withheld == event.Damaged, e.Payload != nil && !e.PayloadMatches():
		return "the payload was edited"
	}
	return ""
}

// isText returns an error if an event cannot be written as JSON.
func isText(e *event.Event) error {
	for _, text := range []string{e.ID, string(e.Type), e.Actor, e.Writer, e.Context, string(e.Session),
		string(e.Conversation), string(e.Run), string(e.Trace), string(e.Interaction), string(e.Input)} {
		if !utf8.ValidString(text) {
			return fmt.Errorf("%q in its header is not UTF-8, and cannot be written as JSON", text)
		}
	}
	return nil
}

// writeAbsent writes hashes for the events that are not exported, up to the event with the number "to".
func (x *exporter) writeAbsent(to int64) error {
	for x.tree.Size < to {
		level := tree.Widest(x.tree.Size, to)
		a, err := x.absentSubtree(level)
		if err != nil {
			return err
		}
		x.tree.AddSubtree(level, a.Hash)
		x.done.Absent++
		if err := x.writeLine(absentLine(a)); err != nil {
			return err
		}
	}
	return nil
}

// absentSubtree returns the subtree for the next 2^level leaves. In an export of all events, only an imported log may
// lack events, and its file lists the subtree as absent. An event that is missing without such an entry was deleted. A
// hash from the nodes table would hide the deletion.
func (x *exporter) absentSubtree(level int) (tree.Subtree, error) {
	if x.opt.all() {
		a, ok, err := x.h.AbsentAt(x.tree.Size)
		if err == nil && (!ok || int64(a.Seq) != x.tree.Size+1 || a.Level != level) {
			err = fmt.Errorf("%w: event %d is missing", disk.ErrCorrupt, x.tree.Size+1)
		}
		return a, err
	}
	hash, err := x.h.Subtree(level, x.tree.Size>>level)
	return tree.Subtree{Seq: x.tree.Size + 1, Level: level, Hash: hash}, err
}
