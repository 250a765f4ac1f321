package hub

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"iter"
	"strings"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/evidence"
	"github.com/perlica/perlica/eventlog/message"
	"github.com/perlica/perlica/eventlog/tree"
	"github.com/perlica/perlica/eventlog/verify"
)

// checkpointOnHub is the name of a checkpoint in a finding.
var checkpointOnHub = message.New("hub.checkpoint", "the checkpoint of %d events on the hub")

// CopySource gives verify.Check a copy as it was when ReadCopy began. It can be read once. Package verify makes the
// checks.
type CopySource struct {
	Copy
	conn        *Conn
	rows        *rows                 // set while rows are read
	from        tree.Range            // the verified events, which are not read again
	begun       bool                  // Next was called
	checkpoints []evidence.Checkpoint // the remaining checkpoints with the keepers' signatures, by size
	all         []evidence.Checkpoint
	tree        tree.Range // the tree of the read events
	last        int64      // the number of the last row that was read
	over        bool
}

// ReadCopy calls the function f with the copy of a worker's log. The copy does not change while f runs. The parameter
// "from" is a tree. ReadCopy does not read the events of this tree again. The tree is empty, or it is the Tree of an
// earlier source. The error is ErrNone if the copy does not exist.
//
// While f runs, this process can make no other call of the hub.
func ReadCopy(ctx context.Context, h *Hub, worker string, from tree.Range, f func(*CopySource) error) error {
	return h.Do(ctx, func(ctx context.Context, c *Conn) error {
		under, cancel := context.WithCancel(ctx)
		defer cancel()
		s := &CopySource{conn: c, from: from.Clone(), tree: from.Clone(), last: from.Size}
		if err := c.run(under, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"); err != nil {
			return err
		}
		var err error
		if s.Copy, err = one(under, c, worker); err == nil {
			err = s.readCheckpoints(under)
		}
		if err == nil {
			err = f(s)
		}
		// The function f has left some rows unread, and nobody needs them. Closing the connection drops these rows, and
		// the next call connects again.
		if s.rows != nil && !s.over {
			cancel()
			_ = s.rows.close() // the query was cancelled
			return err
		}
		return cmp.Or(err, c.rollback(under))
	})
}

// readCheckpoints reads the checkpoints. The keepers' signatures follow the log's own one.
func (s *CopySource) readCheckpoints(ctx context.Context) error {
	rows, err := s.conn.query(ctx, `
		SELECT c.size, c.note, coalesce(string_agg(k.line, '' ORDER BY k.keeper), '')
		FROM perlica.checkpoints c
		LEFT JOIN perlica.cosignatures k ON k.worker = c.worker AND k.size = c.size
		WHERE c.worker = $1 AND c.size > $2
		GROUP BY c.size, c.note
		ORDER BY c.size`, s.Worker, s.from.Size)
	if err != nil {
		return err
	}
	var size int64
	var note, lines string
	err = rows.each([]any{&size, &note, &lines}, func() error {
		s.checkpoints = append(s.checkpoints, evidence.Checkpoint{Size: size, Note: withLines(note, lines)})
		return nil
	})
	s.all = s.checkpoints
	return err
}

// withLines adds signature lines to a note. It omits invalid lines, because any member may have
// written them.
func withLines(note, lines string) string {
	for line := range strings.Lines(lines) {
		if more, err := evidence.ParseCheckpoint(note + line); err == nil {
			note = more.Note
		}
	}
	return note
}

// Checkpoint returns the checkpoint of this size with the keepers' signatures. ok is false if it does not exist. The
// caller must verify the signatures.
func (s *CopySource) Checkpoint(size int64) (c evidence.Checkpoint, ok bool) {
	for _, known := range s.all {
		if known.Size == size {
			c, err := evidence.ParseCheckpoint(known.Note)
			return c, err == nil
		}
	}
	return c, false
}

// Tree returns the tree of the read leaves and of the events that were not read again. It is computed from the copy
// alone, so it is only as reliable as the result of verify.Check for this source.
func (s *CopySource) Tree() tree.Range { return s.tree.Clone() }

// Events yields the events of an unread source. It checks nothing.
func (s *CopySource) Events(ctx context.Context) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		for !s.over {
			list, text, err := s.readRows(ctx)
			if err != nil {
				yield(event.Event{}, err)
				return
			}
			from := 0
			for _, r := range list {
				e, err := r.event(text[from:r.payload:r.payload], from)
				if from = r.payload; !yield(e, err) || err != nil {
					return
				}
			}
		}
	}
}

// Head names the log. A copy has no stored hashes, no list of open runs and no anchor.
func (s *CopySource) Head(context.Context) (verify.Head, error) {
	return verify.Head{Checkpoint: evidence.Checkpoint{Origin: s.Origin},
		Lacks: []verify.Damage{verify.Tree, verify.Anchor, verify.Schema}}, nil
}

// End returns nil, because a copy has nothing further to report.
func (s *CopySource) End(context.Context) error { return nil }

// A block of rows ends at the first of these limits.
const (
	blockRows  = 1024
	blockBytes = 1 << 20
)

// row is a row of the table events. leaf, header and payload are the offsets at which these parts end in the bytes of
// the row's block.
type row struct {
	seq                   int64
	leaf, header, payload int
	gone                  bool // the payload was removed
}

// Next reads the next rows. The goroutine that receives the block parses the rows.
func (s *CopySource) Next(ctx context.Context) (func(*verify.Block) error, error) {
	if !s.begun {
		s.begun = true
		if s.from.Size > 0 {
			return s.known, nil
		}
	}
	if s.over {
		return nil, io.EOF
	}
	list, text, err := s.readRows(ctx)
	if err != nil {
		return nil, err
	}
	covers := s.last
	if s.over { // at the end, also check checkpoints that claim more events than the copy has
		covers = max(covers, s.Copy.Checkpoint)
	}
	n := 0
	for n < len(s.checkpoints) && s.checkpoints[n].Size <= covers {
		n++
	}
	seals := s.checkpoints[:n]
	s.checkpoints = s.checkpoints[n:]
	return func(b *verify.Block) error {
		from := 0
		for _, r := range list {
			r.addTo(b, text[from:r.payload:r.payload], from)
			from = r.payload
		}
		for _, c := range seals {
			b.Checkpoint(c.Size, c.Note, checkpointOnHub.With(c.Size))
		}
		return nil
	}, nil
}

// known adds the hashes of the events that are not read again.
func (s *CopySource) known(b *verify.Block) error {
	at, n := int64(0), 0
	for level := tree.MaxLevel; level >= 0; level-- {
		if s.from.Size>>level&1 == 1 {
			b.Absent(tree.Subtree{Seq: at + 1, Level: level, Hash: s.from.Roots[n]})
			at, n = at+1<<level, n+1
		}
	}
	return nil
}

// readRows reads the next rows and all their bytes.
func (s *CopySource) readRows(ctx context.Context) (list []row, text []byte, err error) {
	if s.rows == nil {
		if s.rows, err = s.conn.query(ctx, `
			SELECT seq, leaf, header, payload
			FROM perlica.events
			WHERE worker = $1 AND seq > $2
			ORDER BY seq`, s.Worker, s.from.Size); err != nil {
			return nil, nil, err
		}
	}
	for len(list) < blockRows && len(text) < blockBytes {
		if !s.rows.next() {
			s.over = true
			return list, text, s.rows.close()
		}
		var r row
		var leaf, header, payload []byte
		if err := s.rows.scan(&r.seq, &leaf, &header, &payload); err != nil {
			return nil, nil, err
		}
		r.gone = payload == nil
		text = append(text, leaf...)
		r.leaf = len(text)
		text = append(text, header...)
		r.header = len(text)
		text = append(text, payload...)
		r.payload = len(text)
		list = append(list, r)
		s.last = r.seq
		var e event.Event
		copy(e.LeafHash[:], leaf)
		s.tree.Add(e.LeafHash)
		s.tree.Nodes = nil
	}
	return list, text, nil
}

// addTo adds the row's event to a block. The field text has the row's bytes from the offset "from" on.
func (r *row) addTo(b *verify.Block, text []byte, from int) {
	e, err := r.event(text, from)
	if err != nil {
		b.Unreadable(fmt.Errorf("row %d: %w", r.seq, err))
		return
	}
	b.Event(&e)
}

// event returns the row's event. Only the number in the row counts. A different number in the header would change the
// leaf.
func (r *row) event(text []byte, from int) (event.Event, error) {
	leaf, header, payload := text[:r.leaf-from], text[r.leaf-from:r.header-from], text[r.header-from:]
	e, err := event.ParseHeader(header)
	if err != nil {
		return e, err
	}
	e.Seq = event.Seq(r.seq)
	if len(leaf) == len(e.LeafHash) {
		copy(e.LeafHash[:], leaf)
	}
	if e.Payload = payload; r.gone {
		if e.Payload = nil; e.PayloadLen > 0 {
			e.Withheld = event.Missing
		}
	}
	return e, nil
}
