package verify

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"slices"
	"time"

	"golang.org/x/mod/sumdb/tlog"
	"zombiezen.com/go/sqlite"

	"github.com/perlica/perlica/eventlog/btree"
	"github.com/perlica/perlica/eventlog/disk"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/store"
	"github.com/perlica/perlica/eventlog/tree"
)

// scanner reads parts of a log's file. All scanners of a file read the same commit. Only one goroutine at a time may
// use a scanner.
type scanner struct {
	f    *file
	conn *sqlite.Conn

	pages, notes, names *sqlite.Stmt
	trees               *btree.Reader
	// indexed are the entries that the indexes must have for the rows of this scanner.
	indexed [len(indexes)]digest

	absent  []tree.Subtree // the absent subtrees that were not added yet
	flaw    flaw
	columns []btree.Value
	texts   map[int64]string // the names that were read, by their ids
	// last has the columns with the ids of names in the previous row. Most ids are the same in the next row.
	last [11]lastName
}

type lastName struct {
	id   int64
	name string
}

// prepare makes the statements of the scanner.
func (s *scanner) prepare() (err error) {
	if err = s.prepareNames(); err == nil && s.f.covered > 0 {
		s.notes, _, err = s.conn.PrepareTransient(
			`SELECT id, size, note FROM checkpoints WHERE size >= ? AND size <= ? ORDER BY size, id`)
	}
	return disk.Explain(err)
}

func (s *scanner) prepareNames() (err error) {
	s.names, _, err = s.conn.PrepareTransient(store.ReadNames)
	return disk.Explain(err)
}

func (s *scanner) closeConn() error {
	for _, stmt := range []*sqlite.Stmt{s.pages, s.notes, s.names} {
		if stmt != nil {
			_ = stmt.Finalize() // earlier calls returned its error
		}
	}
	return s.conn.Close()
}

// readPage reads a page of the file into buf. SQLite finds its newest version, which may be in the write-ahead log.
func (s *scanner) readPage(n uint32, buf []byte) error {
	if s.pages == nil {
		var err error
		if s.pages, _, err = s.conn.PrepareTransient(`SELECT data FROM sqlite_dbpage WHERE pgno = ?`); err != nil {
			return disk.Explain(err)
		}
	}
	size := 0
	err := eachRow(s.pages, func(stmt *sqlite.Stmt) error { size = stmt.ColumnBytes(0, buf); return nil }, int64(n))
	if err == nil && size != len(buf) {
		return fmt.Errorf("%w: page %d is missing", disk.ErrCorrupt, n)
	}
	return err
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

// stretch is a part of the table entries: some of its leaf pages, and the numbers of their events.
type stretch struct {
	leaves      []btree.Leaf
	first, last int64
}

// fillBlock reads a stretch into the block b.
func (s *scanner) fillBlock(b *Block, st stretch) error {
	at, _ := slices.BinarySearchFunc(s.f.absent, st.first, func(a tree.Subtree,
		seq int64) int {
		return cmp.Compare(a.Seq, seq)
	})
	s.absent = s.f.absent[at:]
	for _, leaf := range st.leaves {
		err := s.trees.Rows(leaf, func(seq int64, record []byte, err error) error {
			if err == nil {
				err = s.addRow(b, seq, record)
			}
			if disk.IsBroken(err) {
				b.Unreadable(err)
			}
			return s.f.keepFault(err)
		})
		if err != nil {
			return err
		}
	}
	s.addAbsent(b, st.last+1)
	if s.notes == nil {
		return nil
	}
	last := st.last
	if last == s.f.size { // include checkpoints of more events than the log has
		last = max(last, s.f.covered)
	}
	err := eachRow(s.notes, func(stmt *sqlite.Stmt) error {
		b.Checkpoint(stmt.ColumnInt64(1), stmt.ColumnText(2), checkpointOfFile.With(stmt.ColumnInt64(0)))
		return nil
	}, st.first, last)
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

// addRow adds the row with the number seq to the block.
func (s *scanner) addRow(b *Block, seq int64, record []byte) (err error) {
	if s.columns, err = btree.Columns(record, s.columns); err != nil {
		return err
	}
	if len(s.columns) < payloadColumn+1 {
		return fmt.Errorf("%w: row %d has too few columns", disk.ErrCorrupt, seq)
	}
	for i, x := range indexes {
		if x.has(s.columns) {
			s.indexed[i].add(x.key(s.columns, seq), seq)
		}
	}
	if seq < 1 || seq > tree.MaxSeq {
		return nil // measure has reported the row
	}
	s.addAbsent(b, seq)
	e := b.newEvent()
	e.Seq = event.Seq(seq)
	if err := s.header(e); err != nil {
		return err
	}
	payload := s.columns[payloadColumn]
	switch payload.Kind {
	case btree.Blob:
	case btree.Null:
		if _, ok := slices.BinarySearch(s.f.withheld, seq); ok && e.PayloadLen > 0 {
			e.Withheld = event.Masked
		}
	default:
		s.flaw = badColumn
	}
	b.checkLast(payload.Data, s.flaw)
	return nil
}

// payloadColumn is the last column of the table entries.
const payloadColumn = 17

// header reads the header and the leaf of the current row into e.
func (s *scanner) header(e *event.Event) error {
	s.flaw = sound
	for _, i := range []int{2, 14} {
		if s.columns[i].Kind != btree.Integer {
			s.flaw = badColumn
		}
	}
	for _, i := range []int{1, 15, 16} {
		if s.columns[i].Kind != btree.Blob {
			s.flaw = badColumn
		}
	}
	e.Time = time.Unix(0, s.columns[2].Int)
	var ok bool
	if e.ID, ok = store.IDText(s.columns[1].Data); !ok {
		s.flaw = badColumn
	}
	var texts [len(s.last)]string
	for i := range texts {
		if err := s.readName(i); err != nil {
			return err
		}
		texts[i] = s.last[i].name
	}
	e.SetTexts(texts)
	e.PayloadLen = s.columns[14].Int
	if len(s.columns[15].Data) != sha256.Size || len(s.columns[16].Data) != tlog.HashSize {
		s.flaw = badColumn
	}
	copy(e.PayloadSHA256[:], s.columns[15].Data)
	copy(e.LeafHash[:], s.columns[16].Data)
	return nil
}

// readName reads the name of the i-th column with a name into s.last.
func (s *scanner) readName(i int) error {
	const first = 3 // the column of the type
	v, last := s.columns[first+i], &s.last[i]
	if v.Kind != btree.Integer {
		s.flaw = badColumn
	}
	id := v.Int
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
