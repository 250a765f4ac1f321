package verify

import (
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
	"sync"

	"zombiezen.com/go/sqlite"

	"github.com/perlica/perlica/eventlog/btree"
	"github.com/perlica/perlica/eventlog/disk"
	"github.com/perlica/perlica/eventlog/message"
)

// structure is the structure of the file: its trees, and the use of each page. The rows of the table entries are the
// log. The indexes of this table must have an entry for each of its rows, otherwise a search would miss events.
type structure struct {
	pages *btree.File

	mu    sync.Mutex
	fault error // the first fault; guarded by mu
	// found are the entries of the indexes; guarded by mu.
	found [len(indexes)]digest
}

// digest is the number of the entries of an index and the sum of their hashes. It does not depend on their order.
type digest struct {
	n    int
	hash uint64
}

// seed makes the hashes of a digest different in each process, so nobody can prepare entries with an equal sum.
var seed = maphash.MakeSeed()

func (d *digest) add(key, seq int64) {
	var b [16]byte
	binary.LittleEndian.PutUint64(b[:], uint64(key))
	binary.LittleEndian.PutUint64(b[8:], uint64(seq))
	d.n++
	d.hash += maphash.Bytes(seed, b[:])
}

// index is an index of the table entries, as schema.sql defines it. Each of its entries ends with a Seq.
type index struct {
	name   string
	unique bool // by the key alone
	column int  // the key; the column 0 is the Seq
	// first and last are the types of the events with an entry, as ids of names. If last is 0, the index has all facts,
	// or all events with a key if the key is an interaction.
	first, last int64
}

// These are columns of the table entries.
const (
	typeColumn        = 3
	classColumn       = 4
	sessionColumn     = 8
	runColumn         = 10
	interactionColumn = 12
	inputColumn       = 13
)

var indexes = [...]index{
	{name: "events_one_intent_per_input", unique: true, column: inputColumn, first: 3, last: 3},
	{name: "events_one_outcome_per_run", unique: true, column: runColumn, first: 4, last: 6},
	{name: "events_one_answer", unique: true, column: interactionColumn, first: 7, last: 8},
	{name: "events_one_resolution", unique: true, column: interactionColumn, first: 9, last: 9},
	{name: "events_fact"},
	{name: "events_run", column: runColumn},
	{name: "events_session", column: sessionColumn},
	{name: "events_interaction", column: interactionColumn},
}

// has reports whether the index has an entry for a row.
func (x *index) has(row []btree.Value) bool {
	switch {
	case x.last > 0:
		return row[typeColumn].Int >= x.first && row[typeColumn].Int <= x.last
	case x.column == interactionColumn:
		return row[x.column].Int != 0
	default:
		return row[classColumn].Int == 1
	}
}

func (x *index) key(row []btree.Value, seq int64) int64 {
	if x.column == 0 {
		return seq
	}
	return row[x.column].Int
}

// keepFault records a fault of the structure and returns nil. It returns any other error.
func (f *structure) keepFault(err error) error {
	if !disk.IsBroken(err) {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fault == nil {
		f.fault = err
	}
	return nil
}

// plan makes the jobs that read the whole file.
func (f *file) plan() error {
	var size, pages int64
	for pragma, to := range map[string]*int64{`PRAGMA page_size`: &size, `PRAGMA page_count`: &pages} {
		err := query(f.conn, pragma, func(stmt *sqlite.Stmt) error { *to = stmt.ColumnInt64(0); return nil })
		if err != nil {
			return err
		}
	}
	first := f.all[0]
	var err error
	if f.pages, err = btree.NewFile(int(size), pages, first.readPage); err != nil {
		return err
	}
	f.idle = make(chan *scanner, len(f.all))
	for _, s := range f.all {
		if err := s.prepare(); err != nil {
			return err
		}
		s.trees = f.pages.NewReader(s.readPage)
		f.idle <- s
	}
	f.jobs = append(f.jobs, func(s *scanner, _ *Block) error { return f.keepFault(s.trees.FreePages()) })
	root := uint32(0)
	f.addTree("", "sqlite_schema", 1)
	err = query(f.conn, `SELECT type, name, tbl_name, rootpage FROM sqlite_schema WHERE rootpage > 0`,
		func(stmt *sqlite.Stmt) error {
			kind, name, n := stmt.ColumnText(0), stmt.ColumnText(1), stmt.ColumnInt64(3)
			switch {
			case kind == "table" && name == "entries":
				root = uint32(n)
			default:
				f.addTree(kind, name, uint32(n))
			}
			return nil
		})
	if err != nil {
		return err
	}
	leaves, err := first.trees.Leaves(root)
	if err != nil {
		return err
	}
	f.addStretches(leaves)
	return nil
}

// addTree adds the job that checks a tree. The table entries is not such a tree.
func (f *file) addTree(kind, name string, root uint32) {
	f.jobs = append(f.jobs, func(s *scanner, _ *Block) error {
		var err error
		switch i := slices.IndexFunc(indexes[:], func(x index) bool { return x.name == name }); {
		case kind == "index" && i >= 0:
			err = s.readIndex(i, root)
		default:
			err = s.trees.Walk(root, func([]byte) error { return nil })
		}
		if err == nil && kind == "table" {
			err = s.checkTable(name)
		}
		return f.keepFault(err)
	})
}

// checkTable makes SQLite check the values of a table and compare its indexes with it. This is cheap, because only the
// table entries is large.
func (s *scanner) checkTable(name string) error {
	pragma := `PRAGMA integrity_check("` + strings.ReplaceAll(name, `"`, `""`) + `")`
	return query(s.conn, pragma, func(stmt *sqlite.Stmt) error {
		if found := stmt.ColumnText(0); found != "ok" {
			return fmt.Errorf("%w: %s", disk.ErrCorrupt, strings.ReplaceAll(found, "\n", ": "))
		}
		return nil
	})
}

// readIndex checks the order of an index and counts its entries.
func (s *scanner) readIndex(i int, root uint32) error {
	var found digest
	var before [2]int64
	x := &indexes[i]
	err := s.trees.Walk(root, func(record []byte) (err error) {
		if s.columns, err = btree.Columns(record, s.columns); err != nil {
			return err
		}
		n := len(s.columns)
		if n < 2 || s.columns[0].Kind != btree.Integer || s.columns[n-1].Kind != btree.Integer ||
			n == 3 && s.columns[1].Int != s.columns[2].Int {
			return fmt.Errorf("%w: the index %s has another kind of entries", disk.ErrCorrupt, x.name)
		}
		at := [2]int64{s.columns[0].Int, s.columns[n-1].Int}
		if found.n > 0 && (at[0] < before[0] || at[0] == before[0] && (x.unique || at[1] <= before[1])) {
			return fmt.Errorf("%w: the entries of the index %s have no order", disk.ErrCorrupt, x.name)
		}
		before = at
		found.add(at[0], at[1])
		return nil
	})
	s.f.mu.Lock()
	defer s.f.mu.Unlock()
	s.f.found[i] = found
	return err
}

// addStretches adds the jobs that read the events. A job reads whole pages.
func (f *file) addStretches(leaves []btree.Leaf) {
	const maxPages = 256
	st := stretch{first: 1}
	for i, leaf := range leaves {
		st.leaves, st.last = append(st.leaves, leaf), min(max(st.first-1, leaf.Last), f.size)
		end := i == len(leaves)-1
		if !end && st.last-st.first+1 < blockEvents && len(st.leaves) < maxPages {
			continue
		}
		if end {
			st.last = f.size
		}
		read := st
		f.jobs = append(f.jobs, func(s *scanner, b *Block) error {
			if end {
				b.last = f.size
			}
			return s.fillBlock(b, read)
		})
		st = stretch{first: st.last + 1}
	}
}

// finishStructure reports the first fault of the structure.
func (f *file) finishStructure() {
	if f.pages == nil || f.lacks["entries"] {
		return
	}
	for i, x := range indexes {
		var want digest
		for _, s := range f.all {
			want.n += s.indexed[i].n
			want.hash += s.indexed[i].hash
		}
		if want != f.found[i] && len(f.changed) == 0 {
			_ = f.keepFault(fmt.Errorf("%w: the index %s does not have the entries of its table", disk.ErrCorrupt, x.name))
		}
	}
	if f.fault == nil {
		f.fault = f.pages.Unused()
	}
	if f.fault != nil {
		f.v.find(0, Unreadable, message.Of(f.fault))
	}
}
