// Package export writes the events of a log, or some of them, as text from which anybody can
// recompute its root, and makes a log of such a text again; docs/export.md describes it.
//
// It promises that the same events of the same log are the same bytes, and that nothing is written
// or taken in that was not held against its hashes. It verifies no signature.
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

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/evidence"
	"github.com/perlica/perlica/eventlog/fault"
	"github.com/perlica/perlica/eventlog/store"
	"github.com/perlica/perlica/eventlog/tree"
)

// Options say what of a log is exported.
type Options struct {
	Selection

	// Mask reports whether a payload is to be withheld. Nil withholds none but those that
	// the log itself no longer has.
	Mask func(payload []byte) bool

	// Progress, if it is not nil, is called now and then with the number of the event that
	// has been reached.
	Progress func(seq int64)
}

// Summary counts what an export holds, or what was imported from one.
type Summary struct {
	Size   int64     // of the log, as of the export
	Root   tlog.Hash // of its tree
	Signed bool      // a signed checkpoint of that tree is with it
	Events int64     // events that are there
	Masked int64     // of these, without their payload
	Pruned int64     // likewise
	Absent int64     // hashes that stand for events that are not there
}

// Write writes the selected events to w in a form from which anybody can recompute the
// log's root: docs/export.md describes it. The same events of the same log are the same
// bytes. If the newest signed checkpoint covers all that is selected the export is of the
// log as of then, otherwise as of now and unsigned.
//
// It holds every event that it writes against its hashes, and the whole against the root.
// If something is wrong it fails with an error that wraps ErrCorrupt, and what it wrote
// has no end. It reads the log once and keeps little in memory.
func Write(ctx context.Context, r *store.Reader, w io.Writer, opt Options) (Summary, error) {
	x := &exporter{r: r, h: r.Hashes(ctx), opt: opt, w: bufio.NewWriterSize(w, 1<<16), sum: sha256.New()}
	err := x.export(ctx)
	if err != nil {
		err = fmt.Errorf("eventlog: export: %w", err)
	}
	return x.done, err
}

// Copy writes all events up to the head's size, of a log that lies elsewhere than in a file, as Write writes those of
// a file. It holds each against its hashes and the whole against the head's root; that payloads which are not there
// were removed, as the log says, is the caller's to know.
func Copy(w io.Writer, head evidence.Checkpoint, events iter.Seq2[event.Event, error]) (Summary, error) {
	x := &exporter{w: bufio.NewWriterSize(w, 1<<16), sum: sha256.New()}
	err := x.copy(head, events)
	if err != nil {
		err = fmt.Errorf("eventlog: export: %w", err)
	}
	return x.done, err
}

func (x *exporter) copy(head evidence.Checkpoint, events iter.Seq2[event.Event, error]) error {
	x.done.Size, x.done.Root, x.done.Signed = head.Size, head.Root, head.Note != ""
	if err := x.put(Header{Checkpoint: head}.line()); err != nil {
		return err
	}
	for e, err := range events {
		if err != nil {
			return err
		}
		if int64(e.Seq) > head.Size {
			break
		}
		if err := x.check(&e); err != nil {
			return fmt.Errorf("event %d: %w", e.Seq, err)
		}
		if e.Payload == nil {
			e.Withheld = event.Pruned
		}
		if err := x.write(&e); err != nil {
			return err
		}
	}
	return x.end(head.Root)
}

// exporter is one call of Write.
type exporter struct {
	r    *store.Reader
	h    store.Hashes
	opt  Options
	w    *bufio.Writer
	sum  hash.Hash  // of what was written
	tree tree.Range // likewise
	done Summary
}

func (x *exporter) export(ctx context.Context) error {
	head, err := x.head(ctx)
	if err != nil {
		return err
	}
	x.done.Size, x.done.Root, x.done.Signed = head.Size, head.Root, head.Note != ""
	if err := x.put(head.line()); err != nil {
		return err
	}
	if head.Size > 0 { // Until 0 would be no limit
		for e, err := range x.r.Events(ctx, x.opt.query(head.Size)) {
			if err != nil {
				return err
			}
			if err := x.event(ctx, &e); err != nil {
				return err
			}
		}
	}
	if err := x.absent(head.Size); err != nil {
		return err
	}
	return x.end(head.Root)
}

// end writes the last line, if the events lead to the root.
func (x *exporter) end(root tlog.Hash) error {
	if x.tree.Root() != root {
		return fmt.Errorf("%w: its events do not lead to its root", fault.ErrCorrupt)
	}
	end := end{Events: x.done.Events, Withheld: x.done.Masked + x.done.Pruned, Absent: x.done.Absent, Sum: [sha256.Size]byte(x.sum.Sum(nil))}
	if err := x.put(end.line()); err != nil {
		return err
	}
	return x.w.Flush()
}

// put writes a line.
func (x *exporter) put(line []byte, err error) error {
	if err != nil {
		return err
	}
	line = append(line, '\n')
	_, _ = x.sum.Write(line) // it never fails
	_, err = x.w.Write(line)
	return err
}

// head chooses the tree that the export is of.
func (x *exporter) head(ctx context.Context) (h Header, err error) {
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
	if errors.Is(err, fault.ErrPart) {
		return h, nil // a part of a log knows the root of its own checkpoint only
	}
	if err != nil {
		return h, err
	}
	if f.Root() != c.Root || c.Origin != h.Origin {
		return h, fmt.Errorf("%w: the checkpoint of its first %d events is one of other events", fault.ErrCorrupt, c.Size)
	}
	h.Checkpoint = c
	return h, nil
}

// event writes an event, and before it what stands for those between it and the last one.
func (x *exporter) event(ctx context.Context, e *event.Event) error {
	if err := x.absent(int64(e.Seq) - 1); err != nil {
		return err
	}
	if err := x.check(e); err != nil {
		return fmt.Errorf("event %d: %w", e.Seq, err)
	}
	if e.Payload != nil && x.opt.Mask != nil && x.opt.Mask(e.Payload) {
		e.Payload, e.Withheld = nil, event.Masked
	}
	return x.write(e)
}

// write writes an event that was held against its hashes.
func (x *exporter) write(e *event.Event) error {
	switch e.Withheld {
	case event.Masked:
		x.done.Masked++
	case event.Pruned:
		x.done.Pruned++
	}
	x.tree.Add(e.LeafHash)
	x.tree.Nodes = nil // they are not needed
	x.done.Events++
	if x.opt.Progress != nil && x.done.Events%1000 == 0 {
		x.opt.Progress(int64(e.Seq))
	}
	return x.put(e.MarshalJSON())
}

// check holds an event against its hashes and sees that it can be written as text.
func (x *exporter) check(e *event.Event) error {
	if damage := x.damage(e); damage != "" {
		return fmt.Errorf("%w: %s", fault.ErrCorrupt, damage)
	}
	return isText(e)
}

// damage says what speaks against the next event's being as it was written, as far as it tells by itself.
func (x *exporter) damage(e *event.Event) string {
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

// isText returns an error unless an event can be written as JSON.
func isText(e *event.Event) error {
	for _, text := range []string{e.ID, string(e.Type), e.Actor, e.Writer, e.Context, string(e.Session),
		string(e.Conversation), string(e.Run), string(e.Trace), string(e.Interaction), string(e.Input)} {
		if !utf8.ValidString(text) {
			return fmt.Errorf("%q in its header is not UTF-8, and cannot be written as JSON", text)
		}
	}
	return nil
}

// absent writes what stands for the leaves from the last one written up to number to.
func (x *exporter) absent(to int64) error {
	for x.tree.Size < to {
		level := tree.Widest(x.tree.Size, to)
		a, err := x.absence(level)
		if err != nil {
			return err
		}
		x.tree.AddSubtree(level, a.Hash)
		x.done.Absent++
		if err := x.put(absentLine(a)); err != nil {
			return err
		}
	}
	return nil
}

// absence returns what stands for the next 2^level leaves. If all events are selected they
// are not in the file, and then it must be known to be a part: their hashes alone would make
// good what was deleted.
func (x *exporter) absence(level int) (tree.Subtree, error) {
	if x.opt.all() && !x.h.Old {
		a, ok, err := x.h.AbsentAt(x.tree.Size)
		if err == nil && (!ok || int64(a.Seq) != x.tree.Size+1 || a.Level != level) {
			err = fmt.Errorf("%w: event %d is missing", fault.ErrCorrupt, x.tree.Size+1)
		}
		return a, err
	}
	hash, err := x.h.Subtree(level, x.tree.Size>>level)
	return tree.Subtree{Seq: event.Seq(x.tree.Size + 1), Level: level, Hash: hash}, err
}
