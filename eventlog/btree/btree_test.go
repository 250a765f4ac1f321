package btree_test

import (
	"bytes"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	_ "modernc.org/sqlite"

	"github.com/perlica/perlica/eventlog/btree"
	"github.com/perlica/perlica/eventlog/disk"
)

// makeFile makes a database with a table t, an index i of its texts, and free pages. It returns the bytes of the file.
func makeFile(t *testing.T, pageSize, rows int) (file []byte, db *sql.DB) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "t.db")
	db, err := sql.Open("sqlite", fmt.Sprintf("file:%s?_pragma=page_size(%d)", path, pageSize))
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	t.Cleanup(func() { _ = db.Close() }) // only read afterwards
	rnd := rand.New(rand.NewPCG(1, uint64(pageSize)))
	exec := func(query string, args ...any) {
		t.Helper()
		if _, err := db.Exec(query, args...); err != nil {
			t.Fatal(err)
		}
	}
	exec(`BEGIN; CREATE TABLE t (id INTEGER PRIMARY KEY, a INTEGER, b TEXT, c BLOB); CREATE INDEX i ON t (b)`)
	for range rows {
		n := rnd.IntN(300)
		if rnd.IntN(20) == 0 {
			n = rnd.IntN(4 * pageSize)
		}
		exec(`INSERT INTO t (a, b, c) VALUES (?, ?, ?)`, rnd.Int64()>>rnd.IntN(64), fmt.Sprint(rnd.IntN(1000)),
			make([]byte, n))
	}
	exec(`DELETE FROM t WHERE id % 5 = 0 OR id BETWEEN 100 AND 150; COMMIT`)
	if file, err = os.ReadFile(path); err != nil {
		t.Fatal(err)
	}
	return file, db
}

// reader returns the geometry of a file and a function that reads its pages.
func reader(file []byte) (*btree.File, *btree.Reader, error) {
	size := int(binary.BigEndian.Uint16(file[16:]))
	if size == 1 {
		size = 1 << 16
	}
	read := func(n uint32, buf []byte) error { copy(buf, file[int(n-1)*size:]); return nil }
	f, err := btree.NewFile(size, int64(len(file)/size), read)
	if err != nil {
		return nil, nil, err
	}
	return f, f.NewReader(read), nil
}

// TestSameAsSQLite compares the rows and the entries of trees with SQLite's own.
func TestSameAsSQLite(t *testing.T) {
	for _, pageSize := range []int{512, 8192, 65536} {
		file, db := makeFile(t, pageSize, 700)
		f, r, err := reader(file)
		if err != nil {
			t.Fatal(err)
		}
		leaves, err := r.Leaves(2)
		if err != nil {
			t.Fatal(err)
		}
		want, err := db.Query(`SELECT id, a, b, c FROM t ORDER BY id`)
		if err != nil {
			t.Fatal(err)
		}
		defer want.Close()
		n := 0
		for _, leaf := range leaves {
			err := r.Rows(leaf, func(row int64, record []byte, err error) error {
				if err != nil {
					return err
				}
				n++
				v, err := btree.Columns(record, nil)
				if err != nil {
					return err
				}
				var id, a int64
				var b string
				var c []byte
				if !want.Next() {
					return fmt.Errorf("row %d is too many", row)
				}
				if err := want.Scan(&id, &a, &b, &c); err != nil {
					return err
				}
				if id != row || v[0].Kind != btree.Null || v[1].Int != a || v[2].Kind != btree.Text || string(v[2].Data) != b ||
					v[3].Kind != btree.Blob || !bytes.Equal(v[3].Data, c) {
					return fmt.Errorf("row %d: %+v, want %d, %d, %q and %d bytes", row, v[:3], id, a, b, len(c))
				}
				return nil
			})
			if err != nil {
				t.Fatal(pageSize, err)
			}
		}
		if want.Next() || n < 500 {
			t.Errorf("page size %d: only %d rows", pageSize, n)
		}
		before := ""
		err = r.Walk(3, func(record []byte) error {
			n--
			v, err := btree.Columns(record, nil)
			if err == nil && string(v[0].Data) < before {
				err = fmt.Errorf("%q comes after %q", v[0].Data, before)
			}
			before = string(v[0].Data)
			return err
		})
		if err != nil || n != 0 {
			t.Errorf("page size %d: the index lacks %d entries: %v", pageSize, n, err)
		}
		if err := f.Unused(); !disk.IsBroken(err) {
			t.Error("the tree of the schema was not read yet, but all pages have a use")
		}
		if err := errors.Join(r.Walk(1, func([]byte) error { return nil }), r.FreePages()); err != nil {
			t.Error(err)
		}
		if err := f.Unused(); err != nil {
			t.Error(pageSize, err)
		}
	}
}

// check reads everything of a file and returns the first fault.
func check(file []byte) error {
	f, r, err := reader(file)
	if err != nil {
		return err
	}
	leaves, err := r.Leaves(2)
	if err != nil {
		return err
	}
	for _, leaf := range leaves {
		if err := r.Rows(leaf, func(_ int64, record []byte, err error) error {
			if err == nil {
				_, err = btree.Columns(record, nil)
			}
			return err
		}); err != nil {
			return err
		}
	}
	if err := r.FreePages(); err != nil {
		return err
	}
	for _, root := range []uint32{1, 3} {
		if err := r.Walk(root, func(record []byte) error { _, err := btree.Columns(record, nil); return err }); err != nil {
			return err
		}
	}
	return f.Unused()
}

// TestDamage changes single bytes of a file. Each change of a page's structure is found, and none makes the reader
// panic or read without end.
func TestDamage(t *testing.T) {
	const pageSize = 512
	file, _ := makeFile(t, pageSize, 300)
	if err := check(file); err != nil {
		t.Fatal(err)
	}
	rnd := rand.New(rand.NewPCG(2, 3))
	for range 3000 {
		at, was := rnd.IntN(len(file)), byte(0)
		if at < 100 {
			continue
		}
		was, file[at] = file[at], byte(rnd.IntN(256))
		if err := check(file); err != nil && !disk.IsBroken(err) {
			t.Fatalf("byte %d: %v", at, err)
		}
		file[at] = was
	}
	for _, n := range []int{2, 3, 4} {
		for i, name := range []string{"kind", "free block", "", "number of cells", "", "start of the content", "",
			"number of lost bytes"} {
			at := (n-1)*pageSize + i
			file[at] ^= 0x81
			if err := check(file); name != "" && !disk.IsBroken(err) {
				t.Errorf("the %s of page %d was changed: %v", name, n, err)
			}
			file[at] ^= 0x81
		}
	}
	list := int(binary.BigEndian.Uint32(file[32:])-1) * pageSize // of free pages
	copy(file[list+8:], []byte{0, 0, 0, 2})
	if err := check(file); !disk.IsBroken(err) || !strings.Contains(err.Error(), "is used twice") {
		t.Errorf("a free page is the root of a tree: %v", err)
	}
}
