package verify

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"slices"
	"time"

	"golang.org/x/mod/sumdb/tlog"
	"zombiezen.com/go/sqlite"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/fault"
	"github.com/perlica/perlica/eventlog/store"
	"github.com/perlica/perlica/eventlog/tree"
)

// scanner reads stretches of a log's file. It belongs to one goroutine at a time.
type scanner struct {
	f    *file
	conn *sqlite.Conn

	rows, nodes, notes, withheld *sqlite.Stmt

	absent  []tree.Subtree // those that lie ahead
	marked  []int64        // the events of the stretch whose payload is said not to have come
	event   event.Event
	flaw    flaw
	field   []byte
	payload []byte
	last    [14]string        // the texts of the row before, by column: most stay the same
	texts   map[string]string // all that were seen
}

func newScanner(f *file) (s *scanner, err error) {
	s = &scanner{f: f, field: make([]byte, 4096), texts: map[string]string{}}
	if s.conn, err = connect(f.reader); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = s.conn.Close() // it was read from only
		}
	}()
	prepare := func(to **sqlite.Stmt, table, query string) {
		if err == nil && !f.lacks[table] {
			*to, _, err = s.conn.PrepareTransient(query)
			err = fault.Explain(err)
		}
	}
	prepare(&s.rows, "events", `SELECT `+store.Columns+` FROM events WHERE seq >= ? AND seq <= ? ORDER BY seq`)
	if f.reader.Version >= 2 {
		prepare(&s.nodes, "nodes", `SELECT n, hash FROM nodes WHERE level = ? AND n >= ? AND n < ? ORDER BY n`)
		prepare(&s.notes, "checkpoints", `SELECT id, size, note FROM checkpoints WHERE size >= ? AND size <= ? ORDER BY size, id`)
	}
	if f.withholds {
		prepare(&s.withheld, "withheld", `SELECT seq FROM withheld WHERE seq >= ? AND seq <= ? ORDER BY seq`)
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

// fill reads the stretch of the block, which begins with event first.
func (s *scanner) fill(b *Block, first int64) error {
	at, _ := slices.BinarySearchFunc(s.f.absent, first, func(a tree.Subtree, seq int64) int { return cmp.Compare(int64(a.Seq), seq) })
	s.absent = s.f.absent[at:]
	if !b.hole {
		if err := s.scan(b, first); err != nil {
			return err
		}
	}
	s.without(b, b.last+1)
	if err := s.stored(b, first); err != nil || s.notes == nil {
		return err
	}
	err := eachRow(s.notes, b.checkpoint, first, b.last)
	if fault.IsBroken(err) {
		return nil // it was found already, and so is what does not follow
	}
	return err
}

// checkpoint adds a stored checkpoint.
func (b *Block) checkpoint(stmt *sqlite.Stmt) error {
	b.Checkpoint(stmt.ColumnInt64(1), stmt.ColumnText(2), fmt.Sprintf("checkpoint %d of the file", stmt.ColumnInt64(0)))
	return nil
}

// without adds what is absent before event seq.
func (s *scanner) without(b *Block, seq int64) {
	for len(s.absent) > 0 && int64(s.absent[0].Seq) < seq {
		b.Absent(s.absent[0])
		s.absent = s.absent[1:]
	}
}

// scan reads the rows. Where the file is broken it goes on row by row.
func (s *scanner) scan(b *Block, first int64) error {
	s.marked = s.marked[:0]
	if s.withheld != nil {
		err := eachRow(s.withheld, func(stmt *sqlite.Stmt) error { s.marked = append(s.marked, stmt.ColumnInt64(0)); return nil }, first, b.last)
		if err != nil {
			return err
		}
	}
	next := first
	each := func(stmt *sqlite.Stmt) error {
		next = s.row(b, stmt) + 1
		if len(b.rows) > 2*blockEvents {
			return errEndless
		}
		return nil
	}
	why := eachRow(s.rows, each, first, b.last)
	if why == nil || !fault.IsBroken(why) {
		return why
	}
	for next = max(next, first); next <= b.last; {
		at := next
		if err := eachRow(s.rows, each, at, at); err != nil {
			if !fault.IsBroken(err) {
				return err
			}
			s.without(b, at)
			b.Unreadable(why)
		}
		next = at + 1
	}
	return nil
}

// row adds the row that stmt stands at and returns its seq.
func (s *scanner) row(b *Block, stmt *sqlite.Stmt) int64 {
	seq, e := stmt.ColumnInt64(0), &s.event
	s.without(b, seq)
	s.flaw = sound
	e.Seq, e.ID, e.Time = event.Seq(seq), string(s.text(stmt, 1)), time.Unix(0, stmt.ColumnInt64(2))
	e.Type, e.Class = event.Type(s.intern(stmt, 3)), event.Class(s.intern(stmt, 4))
	e.Actor, e.Writer, e.Context = s.intern(stmt, 5), s.intern(stmt, 6), s.intern(stmt, 7)
	e.Session, e.Conversation = event.SessionID(s.intern(stmt, 8)), event.ConversationID(s.intern(stmt, 9))
	e.Run, e.Trace = event.RunID(s.intern(stmt, 10)), event.TraceID(s.intern(stmt, 11))
	e.Interaction, e.Input = event.InteractionID(s.intern(stmt, 12)), event.InputID(s.intern(stmt, 13))
	e.PayloadLen = stmt.ColumnInt64(14)
	var sum, leaf [sha256.Size + 1]byte // a longer one is told by the last byte
	if stmt.ColumnBytes(15, sum[:]) != sha256.Size || stmt.ColumnBytes(16, leaf[:]) != tlog.HashSize {
		s.flaw = badColumn
	}
	e.PayloadSHA256, e.LeafHash = [sha256.Size]byte(sum[:]), tlog.Hash(leaf[:])
	n := stmt.ColumnLen(17)
	s.payload = slices.Grow(s.payload[:0], n)[:n]
	stmt.ColumnBytes(17, s.payload)
	e.Payload, e.Withheld = s.payload, ""
	if n == 0 && e.PayloadLen > 0 && stmt.ColumnType(17) == sqlite.TypeNull {
		e.Payload = nil
		if _, ok := slices.BinarySearch(s.marked, seq); ok {
			e.Withheld = event.Masked
		}
	}
	b.event(e, s.flaw)
	return seq
}

// text returns a column's bytes, which are good until the next is read.
func (s *scanner) text(stmt *sqlite.Stmt, col int) []byte {
	n := stmt.ColumnBytes(col, s.field)
	switch {
	case n == 0:
		if stmt.ColumnType(col) != sqlite.TypeText {
			s.flaw = badColumn // or NULL would be taken for ""
		}
	case n == len(s.field):
		s.field = make([]byte, stmt.ColumnLen(col)+1)
		n = stmt.ColumnBytes(col, s.field)
	}
	return s.field[:n]
}

// intern returns a column's text without making a string for every row.
func (s *scanner) intern(stmt *sqlite.Stmt, col int) string {
	b := s.text(stmt, col)
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

// stored reads the hashes of the tree that are stored for the block. Those of a stretch without
// events may be many; what is missing there is found without them.
func (s *scanner) stored(b *Block, seq int64) error {
	if b.hole || s.nodes == nil {
		return nil
	}
	first, end := (seq-1)>>tree.NodeHeight, (b.last+1<<tree.NodeHeight-1)>>tree.NodeHeight
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
