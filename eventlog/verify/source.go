package verify

import (
	"context"
	"crypto/sha256"
	"fmt"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/evidence"
	"github.com/perlica/perlica/eventlog/tree"
)

// Source is a log wherever it lies: its file, an export, a copy in another database. Its methods are
// called from one goroutine, and not again behind an error. An error that wraps [disk.ErrCorrupt] is
// damage; any other ends the verification.
type Source interface {
	// Head says what the source claims of the log as a whole. It is called once, before the others.
	Head(ctx context.Context) (Head, error)

	// Next returns a function that reads the next stretch of the log into a block, some thousand
	// events at most; behind the last one the error is io.EOF. Stretches come in the order of the
	// log. Several are read at once, each in a goroutine of its own.
	Next(ctx context.Context) (read func(*Block) error, err error)

	// End is called when all stretches were read. A Finding that it returns, as an error, is
	// reported if nothing else was found: damage of a copy that its events do not show.
	End(ctx context.Context) error
}

// Head is what a source claims of the log as a whole, and what it cannot be held against.
type Head struct {
	// Checkpoint names the log, if the source does, and is the newest tree head that the source
	// keeps for all of its events, signed or not; its Root is zero if there is none.
	evidence.Checkpoint
	Where string // where that was read, in words

	// Lacks are the kinds of damage that cannot be found in this source.
	Lacks []Damage
}

// flaw is what is wrong with one row, as far as the row itself tells; or what a row is instead of an
// event.
type flaw byte

const (
	sound         flaw = iota
	payloadEdited      // it has not the length and hash that the header gives
	payloadGone        // and whether something says that it may be is not known yet
	headerEdited       // the leaf is not that of the header
	badColumn          // a value that no event has
	unreadable         // no event could be read
	absent             // a subtree: LeafHash is its root
)

// row is an event as it was read, or a subtree.
type row struct {
	event.Event
	flaw  flaw
	level int // of a subtree
}

// Block takes in a stretch of the log on its way from the source to the one goroutine that puts all
// together. It verifies what needs nothing but the stretch, and keeps no payload. Events and
// subtrees are added in the order in which the source has them.
type Block struct {
	v     *verification
	rows  []row
	seals []seal
	why   error // why the first unreadable row is

	// Of a stretch of the log's file.
	last int64 // the seq that it ends with, also where no event is there
	hole bool  // there are no events

	header []byte // scratch
	read   func(*Block) error
	err    error // ends it all
	done   chan struct{}
}

func (b *Block) reset(read func(*Block) error) {
	*b = Block{v: b.v, rows: b.rows[:0], seals: b.seals[:0], header: b.header[:0], read: read, done: b.done}
}

// Event adds an event with its number and its leaf as they are stored. Its payload is nil if it is
// withheld; Withheld then is empty or [event.Missing] if nothing says why. Neither e nor its payload
// is kept.
func (b *Block) Event(e *event.Event) {
	*b.next() = *e
	b.check(e.Payload, sound)
}

// next returns where the next event is put.
func (b *Block) next() *event.Event {
	b.rows = append(b.rows, row{})
	return &b.rows[len(b.rows)-1].Event
}

// check verifies the event that was put there, of which this flaw is known.
func (b *Block) check(payload []byte, f flaw) {
	r := &b.rows[len(b.rows)-1]
	r.Payload, r.flaw = payload, f
	if f == sound {
		b.header = r.AppendHeader(append(b.header[:0], 0)) // RFC 6962: a leaf
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

// Absent adds what stands for the events of a subtree, which the source does not have.
func (b *Block) Absent(a tree.Subtree) {
	b.rows = append(b.rows, row{Event: event.Event{Seq: event.Seq(a.Seq), LeafHash: a.Hash}, flaw: absent, level: a.Level})
}

// Unreadable says that what comes next cannot be read, and why. It is taken for the events that
// prove to be missing there.
func (b *Block) Unreadable(why error) {
	b.rows = append(b.rows, row{flaw: unreadable})
	if b.why == nil {
		b.why = why
	}
}

// Checkpoint adds a checkpoint that the source keeps for the first size events; that is at most the
// number of the last event of the stretch, unless the log ends before. where says in words which one
// it is.
func (b *Block) Checkpoint(size int64, note, where string) {
	s := seal{Checkpoint: evidence.Checkpoint{Note: note}, size: size, where: where, kind: Checkpoint}
	if b.v.sign(&s); s.fault == "" && s.Size != size {
		s.fault = fmt.Sprintf("it covers %d events and is stored for %d", s.Size, size)
	}
	b.seals = append(b.seals, s)
}

// wellFormed reports whether a is a complete subtree of some tree.
func wellFormed(a tree.Subtree) bool {
	return a.Seq > 0 && a.Seq <= tree.MaxSeq && a.Level >= 0 && a.Level < tree.MaxLevel && (a.Seq-1)&(1<<a.Level-1) == 0
}
