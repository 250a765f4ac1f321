package btree

import (
	"encoding/binary"
	"slices"
)

// page is one page of a tree.
type page struct {
	number uint32
	data   []byte
	table  bool // otherwise the page belongs to an index
	leaf   bool
	right  uint32 // the last child of an inner page
	cells  []cell
	used   []uint64 // parts of the page in use: the start and the end in one number
}

// cell is one entry of a page. Offsets are counted from the start of the page.
type cell struct {
	child uint32 // of an inner page
	row   int64  // of a table
	body  int    // where the payload begins
	local int    // bytes of the payload on this page
	size  int    // bytes of the whole payload
}

func (p *page) rowid(i int) int64 { return p.cells[i].row }

// child returns the i-th child of an inner page. There is one more child than cells.
func (p *page) child(i int) uint32 {
	if i < len(p.cells) {
		return p.cells[i].child
	}
	return p.right
}

// These are the kinds of pages.
const (
	innerIndex = 2
	innerTable = 5
	leafIndex  = 10
	leafTable  = 13
)

// parse reads the cells of the page. It checks that no two parts of the page overlap.
func (p *page) parse(number uint32, usable int) error {
	p.number, p.cells, p.used = number, p.cells[:0], p.used[:0]
	at := 0
	if number == 1 {
		at = 100 // after the header of the file
	}
	head := p.data[at:usable]
	switch head[0] {
	case innerIndex, innerTable, leafIndex, leafTable:
	default:
		return fault("page %d is not a page of a tree", number)
	}
	p.table, p.leaf = head[0] == innerTable || head[0] == leafTable, head[0] >= leafIndex
	free, n, content := int(binary.BigEndian.Uint16(head[1:])), int(binary.BigEndian.Uint16(head[3:])),
		int(binary.BigEndian.Uint16(head[5:]))
	if content == 0 {
		content = 1 << 16
	}
	pointers := at + 8
	if !p.leaf {
		p.right = binary.BigEndian.Uint32(head[8:])
		pointers += 4
	}
	if content < pointers+2*n || content > usable {
		return fault("page %d has no room for its entries", number)
	}
	for i := range n {
		start := int(binary.BigEndian.Uint16(p.data[pointers+2*i:]))
		if start < content || start > usable-4 {
			return fault("entry %d of page %d is at a wrong place", i+1, number)
		}
		c, end, ok := p.cell(start, usable)
		if !ok {
			return fault("entry %d of page %d does not end on the page", i+1, number)
		}
		p.cells = append(p.cells, c)
		p.used = append(p.used, uint64(start)<<32|uint64(max(end, start+4)))
	}
	return p.checkRoom(content, free, usable, int(head[7]))
}

// checkRoom checks that the cells and the free blocks fill the page, except for the given number of bytes. The
// parameter "free" is the first free block.
func (p *page) checkRoom(content, free, usable, fragments int) error {
	for free != 0 {
		if free < content || free > usable-4 {
			return fault("a free block of page %d is at a wrong place", p.number)
		}
		next, size := int(binary.BigEndian.Uint16(p.data[free:])), int(binary.BigEndian.Uint16(p.data[free+2:]))
		if next != 0 && next <= free || size < 4 {
			return fault("the free blocks of page %d have no order", p.number)
		}
		p.used = append(p.used, uint64(free)<<32|uint64(free+size))
		free = next
	}
	slices.Sort(p.used)
	end, lost := content, 0
	for _, u := range p.used {
		from, to := int(u>>32), int(u&(1<<32-1))
		if from < end || to > usable {
			return fault("two entries of page %d overlap", p.number)
		}
		lost += from - end
		end = to
	}
	if lost += usable - end; lost != fragments {
		return fault("page %d has %d lost bytes and counts %d", p.number, lost, fragments)
	}
	return nil
}

// cell parses the cell at an offset. It returns the offset after the cell.
func (p *page) cell(at, usable int) (c cell, end int, ok bool) {
	b := p.data[:usable]
	if !p.leaf {
		c.child = binary.BigEndian.Uint32(b[at:])
		at += 4
	}
	inner := p.table && !p.leaf
	if !inner {
		size, n := varint(b[at:])
		if at += n; n == 0 || size < 0 || size > 1<<31 {
			return c, 0, false
		}
		c.size, c.local = int(size), localSize(int(size), usable, p.table)
	}
	if p.table {
		row, n := varint(b[at:])
		if at += n; n == 0 {
			return c, 0, false
		}
		c.row = row
	}
	c.body, end = at, at+c.local
	if c.local < c.size {
		end += 4 // the number of the next page of the payload
	}
	return c, end, end <= usable
}

// localSize returns the number of bytes of a payload that are on the page of its cell.
func localSize(size, usable int, table bool) int {
	most := usable - 35
	if !table {
		most = (usable-12)*64/255 - 23
	}
	if size <= most {
		return size
	}
	least := (usable-12)*32/255 - 23
	if n := least + (size-least)%(usable-4); n <= most {
		return n
	}
	return least
}

// varint returns the integer at the start of b and its length. The length is 0 if b is too short.
func varint(b []byte) (v int64, n int) {
	if len(b) > 0 && b[0] < 0x80 {
		return int64(b[0]), 1
	}
	var u uint64
	for i := range min(len(b), 9) {
		if i == 8 {
			return int64(u<<8 | uint64(b[i])), 9
		}
		u = u<<7 | uint64(b[i]&0x7f)
		if b[i] < 0x80 {
			return int64(u), i + 1
		}
	}
	return 0, 0
}
