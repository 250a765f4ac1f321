package hub

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/evidence"
	"github.com/perlica/perlica/eventlog/tree"
	"github.com/perlica/perlica/eventlog/verify"
)

// CopySource is a copy as a source for verify.Check, as it was when it was opened. It is read once. The checks are
// verify's.
type CopySource struct {
	Copy
	conn  *pgx.Conn
	rows  pgx.Rows              // once they are read
	open  *pgx.Rows             // those of the connection that were not read to their end
	from  tree.Range            // what was verified before: it is not read again
	begun bool                  // that was handed out
	seals []evidence.Checkpoint // with the keepers' signatures, by size: what is left of them
	all   []evidence.Checkpoint
	tree  tree.Range // of what was read
	last  int64      // the number of the last row that was read
	over  bool
}

// ReadCopy calls f with the copy of a worker's log, which does not change while f runs. The events of from, an empty
// tree or the Tree of an earlier Source, are not read. The error is ErrNone if there is no such copy.
//
// While f runs the hub does nothing else for this process.
func ReadCopy(ctx context.Context, h *Hub, worker string, from tree.Range, f func(*CopySource) error) error {
	return h.Do(ctx, func(ctx context.Context, c *pgx.Conn) error {
		under, cancel := context.WithCancel(ctx)
		defer cancel()
		tx, err := c.BeginTx(under, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
		if err != nil {
			return err
		}
		var open pgx.Rows
		s := &CopySource{conn: c, open: &open, from: from.Clone(), tree: from.Clone(), last: from.Size}
		if s.Copy, err = one(under, c, worker); err == nil {
			err = s.readSeals(under)
		}
		if err == nil {
			err = f(s)
		}
		if open != nil { // nobody wants the rest: the connection goes, and is made again
			cancel()
			open.Close()
			return err
		}
		return errors.Join(err, tx.Rollback(under))
	})
}

// readSeals reads the checkpoints, with the keepers' signatures behind their own.
func (s *CopySource) readSeals(ctx context.Context) error {
	rows, err := s.conn.Query(ctx, `
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
	_, err = pgx.ForEachRow(rows, []any{&size, &note, &lines}, func() error {
		s.seals = append(s.seals, evidence.Checkpoint{Size: size, Note: withLines(note, lines)})
		return nil
	})
	s.all = s.seals
	return err
}

// withLines puts signature lines under a note. What is none is left out: anybody may have put it there.
func withLines(note, lines string) string {
	for line := range strings.Lines(lines) {
		if more, err := evidence.ParseCheckpoint(note + line); err == nil {
			note = more.Note
		}
	}
	return note
}

// Checkpoint returns the checkpoint of that size, with the keepers' signatures; ok is false if there is none. What it
// is worth is not known.
func (s *CopySource) Checkpoint(size int64) (c evidence.Checkpoint, ok bool) {
	for _, known := range s.all {
		if known.Size == size {
			c, err := evidence.ParseCheckpoint(known.Note)
			return c, err == nil
		}
	}
	return c, false
}

// Tree is that of the leaves that were read, with those that were not read again. It follows from the copy's word
// alone: it is worth what verify.Check said of the Source.
func (s *CopySource) Tree() tree.Range { return s.tree.Clone() }

// Events yields the events, of a Source of which nothing was read yet. It checks nothing.
func (s *CopySource) Events(ctx context.Context) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		for !s.over {
			list, text, err := s.read(ctx)
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
	return verify.Head{Checkpoint: evidence.Checkpoint{Origin: s.Origin}, Lacks: []verify.Damage{verify.Tree, verify.Anchor, verify.Schema}}, nil
}

// End has nothing more to say.
func (s *CopySource) End(context.Context) error { return nil }

// A stretch ends with the first of these.
const (
	stretchRows  = 1024
	stretchBytes = 1 << 20
)

// row is a row of events. Its bytes are pieces of those of its stretch, which end there.
type row struct {
	seq                   int64
	leaf, header, payload int
	gone                  bool // there is no payload
}

// Next reads rows. They are parsed by the goroutine that reads the stretch.
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
	list, text, err := s.read(ctx)
	if err != nil {
		return nil, err
	}
	covers := s.last
	if s.over { // and those of more events than there are
		covers = max(covers, s.Copy.Checkpoint)
	}
	n := 0
	for n < len(s.seals) && s.seals[n].Size <= covers {
		n++
	}
	seals := s.seals[:n]
	s.seals = s.seals[n:]
	return func(b *verify.Block) error {
		from := 0
		for _, r := range list {
			r.add(b, text[from:r.payload:r.payload], from)
			from = r.payload
		}
		for _, c := range seals {
			b.Checkpoint(c.Size, c.Note, fmt.Sprintf("the checkpoint of %d events on the hub", c.Size))
		}
		return nil
	}, nil
}

// known hands out what stands for the events that are not read again.
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

// read reads the next rows, and the bytes of all of them.
func (s *CopySource) read(ctx context.Context) (list []row, text []byte, err error) {
	if s.rows == nil {
		if s.rows, err = s.conn.Query(ctx, `
			SELECT seq, leaf, header, payload
			FROM perlica.events
			WHERE worker = $1 AND seq > $2
			ORDER BY seq`, s.Worker, s.from.Size); err != nil {
			return nil, nil, err
		}
		*s.open = s.rows
	}
	for len(list) < stretchRows && len(text) < stretchBytes {
		if !s.rows.Next() {
			s.over, *s.open = true, nil
			return list, text, s.rows.Err()
		}
		v := s.rows.RawValues() // in binary, as pgx asks for these types
		if len(v[0]) != 8 {
			return nil, nil, errors.New("hub: a number that is none")
		}
		r := row{seq: int64(binary.BigEndian.Uint64(v[0])), gone: v[3] == nil}
		text = append(text, v[1]...)
		r.leaf = len(text)
		text = append(text, v[2]...)
		r.header = len(text)
		text = append(text, v[3]...)
		r.payload = len(text)
		list = append(list, r)
		s.last = r.seq
		var leaf event.Event
		copy(leaf.LeafHash[:], v[1])
		s.tree.Add(leaf.LeafHash)
		s.tree.Nodes = nil
	}
	return list, text, nil
}

// add adds the row's event to a block; text is the row's, which begins at from.
func (r *row) add(b *verify.Block, text []byte, from int) {
	e, err := r.event(text, from)
	if err != nil {
		b.Unreadable(fmt.Errorf("row %d: %w", r.seq, err))
		return
	}
	b.Event(&e)
}

// event is the row's event. The number that counts is the row's: another one in the header leads to another leaf.
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
