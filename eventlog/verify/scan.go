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

	rows, notes, names *sqlite.Stmt

	absent  []tree.Subtree // the absent subtrees that were not added yet
	flaw    flaw
	payload []byte
	texts   map[int64]string // the names that were read, by their ids
	// last has the columns with the ids of names in the previous row. Most ids are the same in the next row.
	last [11]lastName
}

type lastName struct {
	id   int64
	name string
}

func newScanner(f *file) (s *scanner, err error) {
	s = &scanner{f: f}
	if s.conn, err = connect(f.reader); err != nil {
		return nil, err
	}
	s.rows, _, err = s.conn.PrepareTransient(`SELECT ` + store.Columns +
		` FROM entries WHERE seq >= ? AND seq <= ? ORDER BY seq`)
	if err == nil {
		err = s.prepareNames()
	}
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
	for _, stmt := range []*sqlite.Stmt{s.rows, s.notes, s.names} {
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
		seq, err := s.addRow(b, stmt)
		if err != nil {
			return err
		}
		if next = seq + 1; len(b.rows) > 2*blockEvents {
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
func (s *scanner) addRow(b *Block, stmt *sqlite.Stmt) (seq int64, err error) {
	seq = stmt.ColumnInt64(0)
	s.addAbsent(b, seq)
	e := b.newEvent()
	if err := s.header(e, stmt); err != nil {
		return seq, err
	}
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
	return seq, nil
}

// header reads the header and the leaf of the current row of stmt into e.
func (s *scanner) header(e *event.Event, stmt *sqlite.Stmt) error {
	s.flaw = sound
	e.Seq, e.Time = event.Seq(stmt.ColumnInt64(0)), time.Unix(0, stmt.ColumnInt64(2))
	var id [17]byte // one byte more than a UUID, to detect a value that is too long
	var ok bool
	if e.ID, ok = store.IDText(id[:stmt.ColumnBytes(1, id[:])]); !ok {
		s.flaw = badColumn
	}
	var texts [len(s.last)]string
	for i := range texts {
		if err := s.readName(stmt, i); err != nil {
			return err
		}
		texts[i] = s.last[i].name
	}
	e.SetTexts(texts)
	e.PayloadLen = stmt.ColumnInt64(14)
	var sum, leaf [sha256.Size + 1]byte
	if stmt.ColumnBytes(15, sum[:]) != sha256.Size || stmt.ColumnBytes(16, leaf[:]) != tlog.HashSize {
		s.flaw = badColumn
	}
	e.PayloadSHA256, e.LeafHash = [sha256.Size]byte(sum[:]), tlog.Hash(leaf[:])
	return nil
}

func (s *scanner) prepareNames() (err error) {
	s.names, _, err = s.conn.PrepareTransient(store.ReadNames)
	return disk.Explain(err)
}

// readName reads the name of the i-th column with a name into s.last.
func (s *scanner) readName(stmt *sqlite.Stmt, i int) error {
	const first = 3 // the column of the type
	id, last := stmt.ColumnInt64(first+i), &s.last[i]
	if id == 0 && stmt.ColumnType(first+i) != sqlite.TypeInteger {
		s.flaw = badColumn // without this, NULL would count as the id of ""
	}
	if id == last.id {
		return nil
	}
	name, ok := s.texts[id]
	if !ok {
		if len(s.texts) > maxNames || s.texts == nil {
			s.texts = map[int64]string{}
		}
		from, to := store.NameBlock(id)
		err := eachRow(s.names, func(stmt *sqlite.Stmt) error {
			s.texts[stmt.ColumnInt64(0)] = stmt.ColumnText(1)
			return nil
		}, from, to)
		if err != nil && !disk.IsBroken(err) {
			return err
		}
		if name, ok = s.texts[id]; !ok {
			s.flaw = badColumn
			return nil
		}
	}
	*last = lastName{id, name}
	return nil
}

// maxNames limits the memory of a scanner.
const maxNames = 1 << 15
