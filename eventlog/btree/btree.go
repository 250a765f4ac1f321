// Package btree reads the B-trees of a SQLite file and checks their structure.
//
// The package promises that SQLite finds the same entries in a tree without faults, by a search and by a walk. It
// writes nothing, and it does not open the file: the caller gives it the pages. It does not know the columns' types.
// SQLite's documentation describes the format: https://www.sqlite.org/fileformat2.html.
package btree

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/perlica/perlica/eventlog/disk"
)

// File has the geometry of a file and the pages that were already used. Several goroutines may call its methods at the
// same time.
type File struct {
	pageSize int
	usable   int // bytes of a page without the reserved bytes at its end
	pages    int64
	// free is the first page with a list of free pages. freePages is their number. Both are in the header of the file.
	free, freePages uint32

	mu   sync.Mutex
	used []bool // by the number of the page; guarded by mu
}

// A ReadPage reads the page with the number n into buf. Pages are counted from 1.
type ReadPage func(n uint32, buf []byte) error

// fault returns an error that says that the file is damaged.
func fault(format string, args ...any) error {
	return fmt.Errorf("%w: %s", disk.ErrCorrupt, fmt.Sprintf(format, args...))
}

// NewFile returns the File of a database with this number of pages. It reads the header of the file.
func NewFile(pageSize int, pages int64, read ReadPage) (*File, error) {
	f := &File{pageSize: pageSize, pages: pages, used: make([]bool, pages+1)}
	head := make([]byte, pageSize)
	if err := read(1, head); err != nil {
		return nil, err
	}
	f.usable = pageSize - int(head[20])
	if f.usable < 480 {
		return nil, fault("the header of the file has settings that no log has")
	}
	if binary.BigEndian.Uint32(head[52:]) != 0 {
		f.useMaps()
	}
	f.free, f.freePages = binary.BigEndian.Uint32(head[32:]), binary.BigEndian.Uint32(head[36:])
	return f, nil
}

// useMaps marks the pointer map pages as used. A file with PRAGMA auto_vacuum has these pages. They have no data of a
// tree.
func (f *File) useMaps() {
	lock, mapped := int64(lockByte/f.pageSize+1), int64(f.usable/5)
	for n := int64(2); n <= f.pages; n += mapped + 1 {
		if n == lock {
			f.used[min(n+1, f.pages)] = true
			continue
		}
		f.used[n] = true
	}
}

// FreePages reads the list of free pages.
func (r *Reader) FreePages() error {
	f, count, buf := r.file, uint32(0), make([]byte, r.file.pageSize)
	for list := f.free; list != 0; count++ {
		if err := f.use(list); err != nil {
			return err
		}
		if err := r.read(list, buf); err != nil {
			return err
		}
		n := int64(binary.BigEndian.Uint32(buf[4:]))
		if n > int64(f.usable/4-2) {
			return fault("page %d lists too many free pages", list)
		}
		for i := range n {
			if err := f.use(binary.BigEndian.Uint32(buf[8+4*i:])); err != nil {
				return err
			}
			count++
		}
		list = binary.BigEndian.Uint32(buf)
	}
	if count != f.freePages {
		return fault("the header counts %d free pages, and there are %d", f.freePages, count)
	}
	return nil
}

// use marks a page as used. A page must have only one use.
func (f *File) use(n uint32) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if n == 0 || int64(n) > f.pages {
		return fault("the file has no page %d", n)
	}
	if f.used[n] {
		return fault("page %d is used twice", n)
	}
	f.used[n] = true
	return nil
}

// lockByte is the offset of the bytes that SQLite locks. Their page is never used.
const lockByte = 1 << 30

// Unused returns an error if a page has no use. The caller calls it after all trees and the free pages were read
// without a fault.
func (f *File) Unused() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for n := int64(1); n <= f.pages; n++ {
		if !f.used[n] && n != int64(lockByte/f.pageSize+1) {
			return fault("page %d has no use", n)
		}
	}
	return nil
}

// Leaf is a leaf page of a table. Its rows have numbers above After, up to Last.
type Leaf struct {
	Page        uint32
	After, Last int64

	// Err is the reason why the pages with these rows cannot be found. If it is set, Page is not.
	Err error
}

// Reader reads pages of a File. Only one goroutine at a time may use it.
type Reader struct {
	file     *File
	read     ReadPage
	pages    []*page // one for each depth
	overflow []byte  // reused for payloads on several pages
}

// NewReader returns a Reader that gets its pages from "read".
func (f *File) NewReader(read ReadPage) *Reader { return &Reader{file: f, read: read} }

// maxDepth is SQLite's limit of the depth of a tree.
const maxDepth = 20

// page reads the page with the number n. The result is valid until the next call with the same depth.
func (r *Reader) page(n uint32, depth int) (*page, error) {
	if depth >= maxDepth {
		return nil, fault("the tree with page %d is too deep", n)
	}
	if err := r.file.use(n); err != nil {
		return nil, err
	}
	for len(r.pages) <= depth {
		r.pages = append(r.pages, &page{data: make([]byte, r.file.pageSize)})
	}
	p := r.pages[depth]
	if err := r.read(n, p.data); err != nil {
		return nil, err
	}
	return p, p.parse(n, r.file.usable)
}

// Leaves returns the leaf pages of the table with this root, in the order of their rows. It reads only the pages above
// them. If such a page is damaged, one Leaf stands for everything below it.
func (r *Reader) Leaves(root uint32) (list []Leaf, err error) {
	reads := 0
	depth, _ := r.height(root, &reads) // Rows then explains a root without a height.
	err = r.addLeaves(&list, Leaf{root, math.MinInt64, math.MaxInt64, nil}, 0, depth)
	return list, err
}

// maxReads limits the reads of height in a damaged file.
const maxReads = 10_000

// height returns the height of a subtree, as its first undamaged path shows it. ok is false if there is no such path.
func (r *Reader) height(n uint32, reads *int) (height int, ok bool) {
	if *reads++; *reads > maxReads || n == 0 || int64(n) > r.file.pages {
		return 0, false
	}
	p := page{data: make([]byte, r.file.pageSize)}
	if r.read(n, p.data) != nil || p.parse(n, r.file.usable) != nil {
		return 0, false // addLeaves or Rows reads the page again and returns the error
	}
	if p.leaf {
		return 0, true
	}
	for i := range len(p.cells) + 1 {
		if height, ok = r.height(p.child(i), reads); ok {
			return height + 1, height < maxDepth
		}
	}
	return 0, false
}

// addLeaves adds the leaves of the subtree "top" to the list. The leaves have this depth.
func (r *Reader) addLeaves(list *[]Leaf, top Leaf, at, depth int) error {
	if at == depth {
		*list = append(*list, top)
		return nil
	}
	p, err := r.page(top.Page, at)
	if err == nil && (p.leaf || !p.table) {
		err = fault("page %d is not an inner page of a table", top.Page)
	}
	if err != nil {
		*list = append(*list, Leaf{After: top.After, Last: top.Last, Err: err})
		if !disk.IsBroken(err) {
			return err
		}
		return nil
	}
	after := top.After
	for i := range len(p.cells) + 1 {
		sub := Leaf{Page: p.child(i), After: after, Last: top.Last}
		if i < len(p.cells) {
			sub.Last = p.rowid(i)
		}
		if sub.Last < after || sub.Last > top.Last {
			err := fault("the rows of page %d have no order", top.Page)
			*list = append(*list, Leaf{After: after, Last: top.Last, Err: err})
			return nil
		}
		if err := r.addLeaves(list, sub, at+1, depth); err != nil {
			return err
		}
		after = sub.Last
	}
	return nil
}

// Rows calls the function "each" with the number and the record of each row of a leaf, or with an error that describes
// a fault of the row or of the whole page. Rows ends if the function returns an error. A record is valid until the
// function returns.
func (r *Reader) Rows(leaf Leaf, each func(row int64, record []byte, err error) error) error {
	if leaf.Err != nil {
		return each(0, nil, leaf.Err)
	}
	p, err := r.page(leaf.Page, 0)
	if err == nil && !(p.leaf && p.table) {
		err = fault("page %d is not a leaf of a table", leaf.Page)
	}
	if err != nil {
		return each(0, nil, err)
	}
	after := leaf.After
	for i := range p.cells {
		row := p.rowid(i)
		record, err := r.payload(p, i)
		if err == nil && (row <= after || row > leaf.Last) {
			err = fault("the rows of page %d have no order", leaf.Page)
		}
		after = max(after, row)
		if err := each(row, record, err); err != nil {
			return err
		}
	}
	return nil
}

// Walk checks the whole tree with this root. It calls the function "each" with the record of each entry of an index, in
// the order of the index. If the tree is a table, Walk calls the function with the records of its rows.
func (r *Reader) Walk(root uint32, each func(record []byte) error) error {
	_, err := r.walk(root, 0, &span{math.MinInt64, math.MaxInt64}, each)
	return err
}

// span is the range of the numbers of rows that may follow.
type span struct{ after, last int64 }

// walk checks a subtree and returns its height.
func (r *Reader) walk(n uint32, depth int, rows *span, each func([]byte) error) (height int, err error) {
	p, err := r.page(n, depth)
	if err != nil {
		return 0, err
	}
	last := rows.last
	for i := range len(p.cells) + 1 {
		if !p.leaf {
			rows.last = last
			if p.table && i < len(p.cells) {
				rows.last = p.rowid(i)
			}
			h, err := r.walk(p.child(i), depth+1, rows, each)
			if err != nil {
				return 0, err
			}
			if below := r.pages[depth+1]; i > 0 && h+1 != height || below.table != p.table {
				return 0, fault("the pages below page %d are of different kinds", n)
			}
			height = h + 1
		}
		if i == len(p.cells) {
			break
		}
		if p.table {
			row := p.rowid(i)
			if row > last || row < rows.after || p.leaf && row == rows.after {
				return 0, fault("the rows of page %d have no order", n)
			}
			rows.after = row
		}
		if p.leaf || !p.table {
			record, err := r.payload(p, i)
			if err != nil {
				return 0, err
			}
			if err := each(record); err != nil {
				return 0, err
			}
		}
	}
	rows.last = last
	return height, nil
}

// payload returns the record of the cell i.
func (r *Reader) payload(p *page, i int) ([]byte, error) {
	c := p.cells[i]
	body := p.data[c.body : c.body+c.local]
	if c.size == c.local {
		return body, nil
	}
	next := binary.BigEndian.Uint32(p.data[c.body+c.local:])
	if int64(c.size) > r.file.pages*int64(r.file.usable) {
		return nil, fault("an entry of page %d is larger than the file", p.number)
	}
	r.overflow = slices.Grow(append(r.overflow[:0], body...), c.size+r.file.pageSize)
	buf := make([]byte, r.file.pageSize)
	for len(r.overflow) < c.size {
		n := next
		if err := r.file.use(n); err != nil {
			return nil, err
		}
		if err := r.read(n, buf); err != nil {
			return nil, err
		}
		next = binary.BigEndian.Uint32(buf)
		r.overflow = append(r.overflow, buf[4:min(r.file.usable, 4+c.size-len(r.overflow))]...)
	}
	if next != 0 {
		return nil, fault("an entry of page %d has too many pages", p.number)
	}
	return r.overflow, nil
}
