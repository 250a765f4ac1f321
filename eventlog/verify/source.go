package verify

import (
	"context"
	"crypto/sha256"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/evidence"
	"github.com/perlica/perlica/eventlog/message"
	"github.com/perlica/perlica/eventlog/tree"
)

// Source is a log at any place: a file, an export, or a copy in another database. One goroutine
// calls its methods, and stops after an error. An error that wraps [disk.ErrCorrupt] is damage. Any
// other error ends the verification.
type Source interface {
	// Head returns the source's claims about the whole log. It is called once, before the other
	// methods.
	Head(ctx context.Context) (Head, error)

	// Next returns a function that reads the next stretch of the log into a block, at most some
	// thousand events. After the last stretch the error is io.EOF. Stretches come in the order of
	// the log. Several goroutines read them at once.
	Next(ctx context.Context) (read func(*Block) error, err error)

	// End is called after all stretches were read. If it returns a Finding as an error, the Finding
	// is reported if there is no other finding. It is damage of a copy that the events do not show.
	End(ctx context.Context) error
}

// Head holds the source's claims about the whole log, and the kinds of damage that the source
// cannot show.
type Head struct {
	// Checkpoint names the log, if the source does. It is the newest tree head of all events of the
	// source, signed or not. Its Root is zero if the source has none.
	evidence.Checkpoint
	// Where describes the place of Checkpoint.
	Where *message.Text

	// Lacks are the kinds of damage that cannot be found in this source.
	Lacks []Damage
}

// flaw is the fault of one row as far as the row itself shows it, or the kind of a row that is not
// an event.
type flaw byte

const (
	sound         flaw = iota
	payloadEdited      // its length or hash differs from the header
	payloadGone        // it is not yet known whether an event explains that
	headerEdited       // the leaf does not match the header
	badColumn          // a value that no event has
	unreadable         // no event could be read
	absent             // a subtree: LeafHash is its root
)

// row is an event as it was read, or a subtree.
type row struct {
	event.Event
	flaw  flaw
	level int // the level of a subtree
}

// Block holds a stretch of the log between the source and the goroutine that combines all
// stretches. It checks each event alone and keeps no payload. The source adds events and subtrees
// in its own order.
type Block struct {
	v     *verification
	rows  []row
	seals []seal
	// why is the reason of the first unreadable row.
	why error

	// The two fields below are for a stretch of the log's file.
	// last is the last Seq of the stretch, even if no event has it.
	last int64
	// hole means that the stretch has no events.
	hole bool

	header []byte // scratch
	read   func(*Block) error
	// err ends the verification.
	err  error
	done chan struct{}
}

func (b *Block) reset(read func(*Block) error) {
	*b = Block{v: b.v, rows: b.rows[:0], seals: b.seals[:0], header: b.header[:0], read: read, done: b.done}
}

// Event adds an event with its stored number and leaf. Its payload is nil if it is withheld.
// Withheld is empty or [event.Missing] if no reason is known. Block keeps neither e nor its
// payload.
func (b *Block) Event(e *event.Event) {
	*b.newEvent() = *e
	b.checkLast(e.Payload, sound)
}

// newEvent returns a new row's event.
func (b *Block) newEvent() *event.Event {
	b.rows = append(b.rows, row{})
	return &b.rows[len(b.rows)-1].Event
}

// checkLast checks the event of the last row, with a flaw that is already known.
func (b *Block) checkLast(payload []byte, f flaw) {
	r := &b.rows[len(b.rows)-1]
	r.Payload, r.flaw = payload, f
	if f == sound {
		b.header = r.AppendHeader(append(b.header[:0], 0)) // the prefix of a leaf in RFC 6962
		if sha256.Sum256(b.header) != r.LeafHash {
			r.flaw = headerEdited
		}
	}
	wanted := false
	switch {
	case payload == nil && r.PayloadLen > 0:
		if r.flaw == sound {
			r.flaw = payloadGone
		}
	case r.flaw != sound && r.Type != event.LogPruned:
	case !r.PayloadMatches():
		r.flaw = max(r.flaw, payloadEdited)
	default:
		wanted = r.Type == event.LogPruned || b.v.opt.Audit != nil && b.v.opt.Audit.Wants(r.Type)
	}
	if r.Payload = nil; wanted {
		r.Payload = append([]byte{}, payload...)
	}
}

// Absent adds a subtree whose events the source does not have.
func (b *Block) Absent(a tree.Subtree) {
	b.rows = append(b.rows, row{Event: event.Event{Seq: event.Seq(a.Seq), LeafHash: a.Hash}, flaw: absent, level: a.Level})
}

// Unreadable says that the next row cannot be read, and why. The events that are missing there
// count as unreadable.
func (b *Block) Unreadable(why error) {
	b.rows = append(b.rows, row{flaw: unreadable})
	if b.why == nil {
		b.why = why
	}
}

// Checkpoint adds a stored checkpoint of the first size events. size is at most the last Seq of the
// stretch, unless the log ends before it. where describes the checkpoint.
func (b *Block) Checkpoint(size int64, note string, where *message.Text) {
	s := seal{Checkpoint: evidence.Checkpoint{Note: note}, size: size, where: where, kind: Checkpoint}
	if b.v.readNote(&s); s.fault == nil && s.Size != size {
		s.fault = otherSize.With(s.Size, size)
	}
	b.seals = append(b.seals, s)
}

// wellFormed reports whether a is a complete subtree of some tree.
func wellFormed(a tree.Subtree) bool {
	return a.Seq > 0 && a.Seq <= tree.MaxSeq && a.Level >= 0 && a.Level < tree.MaxLevel && (a.Seq-1)&(1<<a.Level-1) == 0
}
