package verify

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"time"

	"golang.org/x/mod/sumdb/tlog"
	"zombiezen.com/go/sqlite"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/fault"
	"github.com/perlica/perlica/eventlog/store"
	"github.com/perlica/perlica/eventlog/tree"
)

// blockEvents is how many events one worker of Verify takes at a time: whole groups of the
// tree's first stored level, and few enough to stay in a processor's cache.
const blockEvents = 4 << tree.NodeHeight

// A flaw is what is wrong with one row, as far as the row itself tells.
type flaw byte

const (
	sound         flaw = iota
	payloadEdited      // it has not the length and hash that the header gives
	payloadGone        // and nothing says that it may be
	headerEdited       // the leaf is not that of the header
	badColumn          // a value that no event has
)

// row is an event as it was read.
type row struct {
	event.Event
	idAt int // where its id is in the block's ids
	flaw flaw
}

// block is a stretch of the log on its way from a worker to the one who puts all together.
type block struct {
	first, last int64 // the seqs that belong here
	hole        bool  // there are no rows
	rows        []row
	ids         []byte      // of all rows, one after the other
	nodes       []tree.Node // as stored
	seals       []seal      // the checkpoints of these sizes
	unread      []int64
	why         error // why they could not be read

	pruned, withheld int64
	err              error // ends it all
	done             chan struct{}
}

func (b *block) reset(first, last int64, hole bool) {
	*b = block{
		first: first, last: last, hole: hole, done: b.done,
		rows: b.rows[:0], ids: b.ids[:0], nodes: b.nodes[:0], seals: b.seals[:0], unread: b.unread[:0],
	}
}

// scanner reads blocks. It belongs to one goroutine.
type scanner struct {
	v    *verification
	conn *sqlite.Conn

	rows, nodes, notes, withheld *sqlite.Stmt

	header  []byte
	payload []byte
	last    [14]string        // the texts of the row before, by column: most stay the same
	texts   map[string]string // all that were seen
}

func newScanner(v *verification) (s *scanner, err error) {
	s = &scanner{v: v, header: make([]byte, 0, 4096), texts: map[string]string{}}
	if s.conn, err = connect(v.reader); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = s.conn.Close() // it was read from only
		}
	}()
	prepare := func(to **sqlite.Stmt, table, query string) {
		if err == nil && !v.lacks[table] {
			*to, _, err = s.conn.PrepareTransient(query)
			err = fault.Explain(err)
		}
	}
	prepare(&s.rows, "events", `SELECT `+store.Columns+` FROM events WHERE seq >= ? AND seq <= ? ORDER BY seq`)
	if v.reader.Version >= 2 {
		prepare(&s.nodes, "nodes", `SELECT n, hash FROM nodes WHERE level = ? AND n >= ? AND n < ? ORDER BY n`)
		prepare(&s.notes, "checkpoints", `SELECT id, size, note FROM checkpoints WHERE size >= ? AND size <= ? ORDER BY size, id`)
		prepare(&s.withheld, "withheld", `SELECT 1 FROM withheld WHERE seq = ?`)
	}
	return s, err
}

func (s *scanner) close() error {
	for _, stmt := range []*sqlite.Stmt{s.rows, s.nodes, s.notes, s.withheld} {
		if stmt != nil {
			_ = stmt.Finalize() // what went wrong was returned when it did
		}
	}
	return s.conn.Close()
}

// connect opens a connection that is faster than one through database/sql. It is given
// nothing that writes. It maps no file: that is no faster here, looks like memory, and a file
// that somebody cuts would end the process.
func connect(r *store.Reader) (*sqlite.Conn, error) {
	conn, err := sqlite.OpenConn(store.ReaderDSN(r.Path(), r.Immutable), sqlite.OpenReadOnly|sqlite.OpenURI)
	if err != nil {
		return nil, fault.Explain(err)
	}
	conn.SetBusyTimeout(store.BusyTimeout)
	for _, pragma := range []string{
		`PRAGMA query_only = 1`,
		`PRAGMA cell_size_check = 1`,
	} {
		if err := query(conn, pragma, nil); err != nil {
			_ = conn.Close()
			return nil, err
		}
	}
	return conn, nil
}

// query calls each with every row of the result.
func query(conn *sqlite.Conn, text string, each func(*sqlite.Stmt) error, args ...int64) error {
	stmt, _, err := conn.PrepareTransient(text)
	if err != nil {
		return fault.Explain(err)
	}
	defer func() { _ = stmt.Finalize() }() // eachRow returned what went wrong
	return eachRow(stmt, each, args...)
}

func eachRow(stmt *sqlite.Stmt, each func(*sqlite.Stmt) error, args ...int64) error {
	for i, a := range args {
		stmt.BindInt64(i+1, a)
	}
	for {
		more, err := stmt.Step()
		if err != nil {
			return fault.Explain(err)
		}
		if !more {
			return fault.Explain(stmt.Reset())
		}
		if each == nil {
			continue
		}
		if err := each(stmt); err != nil {
			_ = stmt.Reset() // it only ends what each has ended
			return err
		}
	}
}

// fill reads the block.
func (s *scanner) fill(b *block) {
	if !b.hole {
		if err := s.scan(b); b.err == nil {
			b.err = err
		}
		b.identify()
	}
	if b.err == nil && s.v.reader.Version >= 2 {
		b.err = s.stored(b)
	}
	if b.err == nil {
		b.err = s.v.sealed(s, b)
	}
}

// scan reads the rows. Where the file is broken it goes on row by row.
func (s *scanner) scan(b *block) error {
	next := b.first
	each := func(stmt *sqlite.Stmt) error {
		next = s.row(b, stmt) + 1
		if len(b.rows) > 2*blockEvents {
			return errEndless
		}
		return nil
	}
	err := eachRow(s.rows, each, b.first, b.last)
	if err == nil || !fault.IsBroken(err) {
		return err
	}
	b.why = err
	for next = max(next, b.first); next <= b.last; {
		at := next
		if err := eachRow(s.rows, each, at, at); err != nil {
			if !fault.IsBroken(err) {
				return err
			}
			b.unread = append(b.unread, at)
		}
		next = at + 1
	}
	return nil
}

// identify gives the rows their ids, which are parts of one string.
func (b *block) identify() {
	ids := string(b.ids)
	for i := len(b.rows) - 1; i >= 0; i-- {
		at := b.rows[i].idAt
		b.rows[i].ID, ids = ids[at:], ids[:at]
	}
}

// row takes in the row that stmt stands at and returns its seq.
func (s *scanner) row(b *block, stmt *sqlite.Stmt) int64 {
	b.rows = append(b.rows, row{})
	r := &b.rows[len(b.rows)-1]
	seq := stmt.ColumnInt64(0)
	h := append(s.header[:0], 0) // RFC 6962: a leaf
	h = event.AppendField(h, event.LeafFormat)
	h = event.AppendInt(h, seq)
	h, id := s.text(h, stmt, r, 1)
	r.idAt = len(b.ids)
	b.ids = append(b.ids, id...)
	ts := stmt.ColumnInt64(2)
	h = event.AppendInt(h, ts)
	r.Seq, r.Time = event.Seq(seq), time.Unix(0, ts)
	h, t := s.text(h, stmt, r, 3)
	r.Type = event.Type(s.intern(3, t))
	h, t = s.text(h, stmt, r, 4)
	r.Class = event.Class(s.intern(4, t))
	h, t = s.text(h, stmt, r, 5)
	r.Actor = s.intern(5, t)
	h, t = s.text(h, stmt, r, 6)
	r.Writer = s.intern(6, t)
	h, t = s.text(h, stmt, r, 7)
	r.Context = s.intern(7, t)
	h, t = s.text(h, stmt, r, 8)
	r.Session = event.SessionID(s.intern(8, t))
	h, t = s.text(h, stmt, r, 9)
	r.Conversation = event.ConversationID(s.intern(9, t))
	h, t = s.text(h, stmt, r, 10)
	r.Run = event.RunID(s.intern(10, t))
	h, t = s.text(h, stmt, r, 11)
	r.Trace = event.TraceID(s.intern(11, t))
	h, t = s.text(h, stmt, r, 12)
	r.Interaction = event.InteractionID(s.intern(12, t))
	h, t = s.text(h, stmt, r, 13)
	r.Input = event.InputID(s.intern(13, t))
	r.PayloadLen = stmt.ColumnInt64(14)
	h = event.AppendInt(h, r.PayloadLen)
	if stmt.ColumnBytes(15, r.PayloadSHA256[:]) != sha256.Size || stmt.ColumnLen(15) != sha256.Size ||
		stmt.ColumnBytes(16, r.LeafHash[:]) != tlog.HashSize || stmt.ColumnLen(16) != tlog.HashSize {
		r.flaw = badColumn
	}
	h = binary.BigEndian.AppendUint32(h, sha256.Size)
	h = append(h, r.PayloadSHA256[:]...)
	s.header = h
	if r.flaw == sound && sha256.Sum256(h) != r.LeafHash {
		r.flaw = headerEdited
	}
	s.readPayload(b, stmt, r)
	return seq
}

// text appends a column to h as a field of the header and returns its bytes there.
func (s *scanner) text(h []byte, stmt *sqlite.Stmt, r *row, col int) (header, field []byte) {
	at := len(h) + 4
	h = slices.Grow(h, 1024)
	n := stmt.ColumnBytes(col, h[at:cap(h)])
	switch {
	case n == 0:
		if stmt.ColumnType(col) != sqlite.TypeText {
			r.flaw = badColumn // or NULL would be taken for ""
		}
	case at+n == cap(h):
		n = stmt.ColumnLen(col)
		h = slices.Grow(h[:at], n+1024)
		n = stmt.ColumnBytes(col, h[at:at+n])
	}
	h = h[:at+n]
	binary.BigEndian.PutUint32(h[at-4:], uint32(n))
	return h, h[at:]
}

// intern returns the text without making a string for every row.
func (s *scanner) intern(col int, b []byte) string {
	if string(b) == s.last[col] {
		return s.last[col]
	}
	t, ok := s.texts[string(b)]
	if !ok {
		if len(s.texts) > 1<<14 {
			clear(s.texts)
		}
		t = string(b)
		s.texts[t] = t
	}
	s.last[col] = t
	return t
}

// readPayload compares the payload with what the header says of it.
func (s *scanner) readPayload(b *block, stmt *sqlite.Stmt, r *row) {
	n := stmt.ColumnLen(17)
	if n == 0 && r.PayloadLen > 0 && stmt.ColumnType(17) == sqlite.TypeNull {
		if r.flaw == sound {
			s.gone(b, r)
		}
		return
	}
	s.payload = slices.Grow(s.payload[:0], n)[:n]
	stmt.ColumnBytes(17, s.payload)
	if r.flaw != sound {
		return
	}
	if int64(n) != r.PayloadLen || sha256.Sum256(s.payload) != r.PayloadSHA256 {
		r.flaw = payloadEdited
		return
	}
	if s.v.opt.Audit != nil && s.v.opt.Audit.Wants(r.Type) {
		r.Payload = append([]byte{}, s.payload...)
	}
}

// gone looks for what lets the payload of r be missing.
func (s *scanner) gone(b *block, r *row) {
	pruned, err := s.v.pruned.covers(s.conn, &r.Event)
	if err != nil {
		b.err = err
		return
	}
	if pruned {
		b.pruned++
		return
	}
	if s.withheld != nil && !s.v.opt.NoImport {
		listed := false
		err := eachRow(s.withheld, func(*sqlite.Stmt) error { listed = true; return nil }, int64(r.Seq))
		if err != nil {
			b.err = err
			return
		}
		if listed {
			b.withheld++
			return
		}
	}
	r.flaw = payloadGone
}

// stored reads the hashes of the tree that are stored for the block.
func (s *scanner) stored(b *block) error {
	first, end := (b.first-1)>>tree.NodeHeight, (b.last+1<<tree.NodeHeight-1)>>tree.NodeHeight
	if b.hole || s.nodes == nil {
		return nil // it may be long; what is missing there is found without them
	}
	err := eachRow(s.nodes, func(stmt *sqlite.Stmt) error {
		n := tree.Node{Level: tree.NodeHeight, N: stmt.ColumnInt64(0)}
		if stmt.ColumnBytes(1, n.Hash[:]) == tlog.HashSize {
			b.nodes = append(b.nodes, n)
		}
		return nil
	}, tree.NodeHeight, first, end)
	if fault.IsBroken(err) {
		return nil // they are found missing
	}
	return err
}
