package verify

import (
	"context"
	"crypto/sha256"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/evidence"
	"github.com/perlica/perlica/eventlog/message"
	"github.com/perlica/perlica/eventlog/tree"
)

// Source is a log to be verified: a file, an export, or a copy in another database. One goroutine calls its methods,
// and it stops after an error. An error that wraps [disk.ErrCorrupt] is reported as damage. Any other error ends the
// verification.
type Source interface {
	// Head returns the source's claims about the whole log. It is called once, before the other
	// methods.
	Head(ctx context.Context) (Head, error)

	// Next returns a function that reads the next stretch of the log into a block. A stretch has at most some
	// thousand events. Stretches come in the order of the log. After the last stretch the error is io.EOF. Several
	// goroutines call the returned functions at the same time.
	Next(ctx context.Context) (read func(*Block) error, err error)

	// End is called after all stretches were read. It may return a Finding as an error, for damage of a copy that the
	// events do not show. That Finding is reported only if there is no other finding.
	End(ctx context.Context) error
}

// Head has the source's claims about the whole log, and the kinds of damage that the source cannot show.
type Head struct {
	// Checkpoint is the newest tree head of all events of the source, signed or not. Its Origin is the name of the
	// log, if the source has one. Its Root is zero if the source has no tree head.
	evidence.Checkpoint
	// Where describes the place of Checkpoint.
	Where *message.Text

	// Lacks are the kinds of damage that cannot be found in this source.
	Lacks []Damage
}

// flaw is the fault of one row, as far as the row itself shows it. It may also say that the row is not an event.
type flaw byte

const (
	sound         flaw = iota
	payloadEdited      // its length or hash differs from the header
	payloadGone        // there is no payload; an event may explain that
	headerEdited       // the leaf does not match the header
	badColumn          // a value that no event has
	unreadable         // no event could be read
	absent             // a subtree: LeafHash is its root
)

// row is an event or an absent subtree.
type row struct {
	event.Event
	flaw  flaw
	level int // the level of the subtree
}

// Block has a stretch of the log. The source adds events and subtrees to it, in the source's order. Block checks each
// event separately and keeps almost no payloads. The caller's goroutine then combines the blocks.
type Block struct {
	v     *verification
	rows  []row
	seals []seal
	// why is the reason why the first unreadable row could not be read.
	why error

	// last is the size of the log. It is set only in the last stretch of the file of a log. The log may have no event
	// with this Seq.
	last int64

	header []byte // reused by checkLast
	read   func(*Block) error
	// err is an error that ends the verification.
	err  error
	done chan struct{}
}

func (b *Block) reset(read func(*Block) error) {
	*b = Block{v: b.v, rows: b.rows[:0], seals: b.seals[:0], header: b.header[:0], read: read, done: b.done}
}

// Event adds an event with its stored number and leaf. The payload of a withheld event is nil, and Withheld has the
// reason. If the reason is not known, Withheld is empty or [event.Missing]. Block does not keep e.
func (b *Block) Event(e *event.Event) {
	*b.newEvent() = *e
	b.checkLast(e.Payload, sound)
}

// newEvent appends a row and returns the row's event.
func (b *Block) newEvent() *event.Event {
	b.rows = append(b.rows, row{})
	return &b.rows[len(b.rows)-1].Event
}

// checkLast checks the event of the last row. If the fault f is not the constant sound, the caller has already found
// this fault.
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

// Absent adds a subtree. The source has its hash, but not its events.
func (b *Block) Absent(a tree.Subtree) {
	b.rows = append(b.rows, row{Event: event.Event{Seq: event.Seq(a.Seq), LeafHash: a.Hash}, flaw: absent, level: a.Level})
}

// Unreadable says that the next row cannot be read, and gives the reason. The events that are missing before the next
// readable row are reported as unreadable.
func (b *Block) Unreadable(why error) {
	b.rows = append(b.rows, row{flaw: unreadable})
	if b.why == nil {
		b.why = why
	}
}

// Checkpoint adds a stored checkpoint of the first size events. size is at most the last Seq of the stretch, unless the
// log ends with that stretch. The parameter "where" describes the checkpoint.
func (b *Block) Checkpoint(size int64, note string, where *message.Text) {
	s := seal{Checkpoint: evidence.Checkpoint{Note: note}, size: size, where: where, kind: Checkpoint}
	if b.v.readNote(&s); s.fault == nil && s.Size != size {
		s.fault = otherSize.With(s.Size, size)
	}
	b.seals = append(b.seals, s)
}

// wellFormed reports whether some tree can have the complete subtree a.
func wellFormed(a tree.Subtree) bool {
	return a.Seq > 0 && a.Seq <= tree.MaxSeq && a.Level >= 0 && a.Level < tree.MaxLevel && (a.Seq-1)&(1<<a.Level-1) == 0
}
