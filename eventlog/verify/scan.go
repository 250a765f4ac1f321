package verify

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"slices"
	"time"

	"golang.org/x/mod/sumdb/tlog"
	"zombiezen.com/go/sqlite"

	"github.com/perlica/perlica/eventlog/disk"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/store"
	"github.com/perlica/perlica/eventlog/tree"
)

// scanner reads stretches of a log's file. Only one goroutine at a time may use it.
type scanner struct {
	f    *file
	conn *sqlite.Conn

	rows, notes *sqlite.Stmt

	absent  []tree.Subtree // the absent subtrees that were not added yet
	flaw    flaw
	field   []byte
	payload []byte
	// last has the texts of the previous row, by column. Most texts are the same in the next row.
	last [14]string
}

func newScanner(f *file) (s *scanner, err error) {
	s = &scanner{f: f, field: make([]byte, 4096)}
	if s.conn, err = connect(f.reader); err != nil {
		return nil, err
	}
	s.rows, _, err = s.conn.PrepareTransient(`SELECT ` + store.Columns +
		` FROM events WHERE seq >= ? AND seq <= ? ORDER BY seq`)
	if err == nil && f.covered > 0 {
		s.notes, _, err = s.conn.PrepareTransient(
			`SELECT id, size, note FROM checkpoints WHERE size >= ? AND size <= ? ORDER BY size, id`)
	}
	if err != nil {
		return nil, errors.Join(disk.Explain(err), s.closeConn())
	}
	return s, nil
}

func (s *scanner) closeConn() error {
	for _, stmt := range []*sqlite.Stmt{s.rows, s.notes} {
		if stmt != nil {
			_ = stmt.Finalize() // earlier calls returned its error
		}
	}
	return s.conn.Close()
}

// connect opens a connection that is faster than one of database/sql. It executes only statements that read. It does
// not map the file into memory. Mapping is not faster here and counts as used memory, and if the file were cut, the
// process would crash.
func connect(r *store.Reader) (*sqlite.Conn, error) {
	conn, err := sqlite.OpenConn(store.ReaderDSN(r.Path(), r.Immutable), sqlite.OpenReadOnly|sqlite.OpenURI)
	if err != nil {
		return nil, disk.Explain(err)
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

// query executes a statement and calls the function "each" with every row of the result.
func query(conn *sqlite.Conn, text string, each func(*sqlite.Stmt) error, args ...int64) error {
	stmt, _, err := conn.PrepareTransient(text)
	if err != nil {
		return disk.Explain(err)
	}
	defer func() { _ = stmt.Finalize() }() // eachRow returned its error
	return eachRow(stmt, each, args...)
}

func eachRow(stmt *sqlite.Stmt, each func(*sqlite.Stmt) error, args ...int64) error {
	for i, a := range args {
		stmt.BindInt64(i+1, a)
	}
	for {
		more, err := stmt.Step()
		if err != nil {
			return disk.Explain(err)
		}
		if !more {
			return disk.Explain(stmt.Reset())
		}
		if each == nil {
			continue
		}
		if err := each(stmt); err != nil {
			_ = stmt.Reset() // The error of the function "each" matters.
			return err
		}
	}
}

// fillBlock reads the stretch of the block b. The parameter "first" is the first Seq of the stretch.
func (s *scanner) fillBlock(b *Block, first int64) error {
	at, _ := slices.BinarySearchFunc(s.f.absent, first, func(a tree.Subtree,
		seq int64) int {
		return cmp.Compare(a.Seq, seq)
	})
	s.absent = s.f.absent[at:]
	if !b.hole {
		if err := s.scanRows(b, first); err != nil {
			return err
		}
	}
	s.addAbsent(b, b.last+1)
	if s.notes == nil {
		return nil
	}
	last := b.last
	if last == s.f.size { // include checkpoints of more events than the log has
		last = max(last, s.f.covered)
	}
	err := eachRow(s.notes, func(stmt *sqlite.Stmt) error {
		b.Checkpoint(stmt.ColumnInt64(1), stmt.ColumnText(2), checkpointOfFile.With(stmt.ColumnInt64(0)))
		return nil
	}, first, last)
	if disk.IsBroken(err) {
		return nil // other findings report the damage
	}
	return err
}

// addAbsent adds the absent subtrees before event seq.
func (s *scanner) addAbsent(b *Block, seq int64) {
	for len(s.absent) > 0 && s.absent[0].Seq < seq {
		b.Absent(s.absent[0])
		s.absent = s.absent[1:]
	}
}

// scanRows reads the rows of the stretch. If a part of the file is broken, scanRows reads that part row by row.
func (s *scanner) scanRows(b *Block, first int64) error {
	next := first
	each := func(stmt *sqlite.Stmt) error {
		next = s.addRow(b, stmt) + 1
		if len(b.rows) > 2*blockEvents {
			return errEndless
		}
		return nil
	}
	why := eachRow(s.rows, each, first, b.last)
	if why == nil || !disk.IsBroken(why) {
		return why
	}
	for next = max(next, first); next <= b.last; {
		at := next
		if err := eachRow(s.rows, each, at, at); err != nil {
			if !disk.IsBroken(err) {
				return err
			}
			s.addAbsent(b, at)
			b.Unreadable(why)
		}
		next = at + 1
	}
	return nil
}

// addRow adds the current row of stmt to the block and returns the row's Seq.
func (s *scanner) addRow(b *Block, stmt *sqlite.Stmt) int64 {
	seq := stmt.ColumnInt64(0)
	s.addAbsent(b, seq)
	e := b.newEvent()
	s.header(e, stmt)
	n := stmt.ColumnLen(17)
	s.payload = slices.Grow(s.payload[:0], n)[:n]
	stmt.ColumnBytes(17, s.payload)
	payload := s.payload
	if n == 0 && e.PayloadLen > 0 && stmt.ColumnType(17) == sqlite.TypeNull {
		payload = nil
		if _, ok := slices.BinarySearch(s.f.withheld, seq); ok {
			e.Withheld = event.Masked
		}
	}
	b.checkLast(payload, s.flaw)
	return seq
}

// header reads the header and the leaf of the current row of stmt into e.
func (s *scanner) header(e *event.Event, stmt *sqlite.Stmt) {
	s.flaw = sound
	seq := stmt.ColumnInt64(0)
	e.Seq, e.ID, e.Time = event.Seq(seq), string(s.columnBytes(stmt, 1)), time.Unix(0, stmt.ColumnInt64(2))
	e.Type, e.Class = event.Type(s.intern(stmt, 3)), event.Class(s.intern(stmt, 4))
	e.Actor, e.Writer, e.Context = s.intern(stmt, 5), s.intern(stmt, 6), s.intern(stmt, 7)
	e.Session, e.Conversation = event.SessionID(s.intern(stmt, 8)), event.ConversationID(s.intern(stmt, 9))
	e.Run, e.Trace = event.RunID(s.intern(stmt, 10)), event.TraceID(s.intern(stmt, 11))
	e.Interaction, e.Input = event.InteractionID(s.intern(stmt, 12)), event.InputID(s.intern(stmt, 13))
	e.PayloadLen = stmt.ColumnInt64(14)
	var sum, leaf [sha256.Size + 1]byte // one byte more than a hash, to detect a value that is too long
	if stmt.ColumnBytes(15, sum[:]) != sha256.Size || stmt.ColumnBytes(16, leaf[:]) != tlog.HashSize {
		s.flaw = badColumn
	}
	e.PayloadSHA256, e.LeafHash = [sha256.Size]byte(sum[:]), tlog.Hash(leaf[:])
}

// columnBytes returns a column's bytes. The next call overwrites them.
func (s *scanner) columnBytes(stmt *sqlite.Stmt, col int) []byte {
	n := stmt.ColumnBytes(col, s.field)
	switch {
	case n == 0:
		if stmt.ColumnType(col) != sqlite.TypeText {
			s.flaw = badColumn // without this, NULL would count as ""
		}
	case n == len(s.field):
		s.field = make([]byte, stmt.ColumnLen(col)+1)
		n = stmt.ColumnBytes(col, s.field)
	}
	return s.field[:n]
}

// intern returns a column's text. It allocates no string if the text is the same as in the previous row.
func (s *scanner) intern(stmt *sqlite.Stmt, col int) string {
	b := s.columnBytes(stmt, col)
	if string(b) == s.last[col] {
		return s.last[col]
	}
	s.last[col] = string(b)
	return s.last[col]
}
