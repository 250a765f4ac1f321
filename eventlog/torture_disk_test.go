package eventlog

import (
	"fmt"
	"math"
	"math/rand/v2"
)

// sector is the number of bytes that a disk writes as a unit.
const sector = 512

// An op is one operation of a recorded writer on the folder of its log.
type op struct {
	kind  opKind
	inode int // unused by opSyncDir and opAck
	// name is the folder's entry for opLink and opUnlink. For other kinds it is the name of the file in reports.
	name string
	off  int64
	data []byte
	size int64 // the size that opTruncate sets
	// failed means that an opSync or opSyncDir returned an error.
	failed bool
	// acked is the number of events that an opAck acknowledged, or that a new writer found.
	acked int
	// writer is the number of the writer of an opAck. It is 0 if the writer only found the events.
	writer int
}

type opKind string

const (
	opLink     opKind = "create"
	opUnlink   opKind = "unlink"
	opWrite    opKind = "write"
	opTruncate opKind = "truncate"
	opSync     opKind = "sync"
	opSyncDir  opKind = "sync folder"
	opAck      opKind = "ack"
)

func (o op) String() string {
	switch o.kind {
	case opWrite:
		return fmt.Sprintf("write %s %d+%d", o.name, o.off, len(o.data))
	case opTruncate:
		return fmt.Sprintf("truncate %s %d", o.name, o.size)
	case opAck:
		return fmt.Sprintf("ack %d", o.acked)
	}
	if o.failed {
		return fmt.Sprintf("%s %s failed", o.kind, o.name)
	}
	return fmt.Sprintf("%s %s", o.kind, o.name)
}

// posixDisk models the disk of a log's folder. It promises no more than POSIX. A file's bytes are safe after a sync
// of the file. A file's name is safe after a sync of the folder. After a power failure, the rest may be there in
// part:
//
//   - of each written sector, any version since the last sync, because the page cache writes back at any time;
//   - of the changes to the folder's entries, a prefix, because journals keep their order;
//   - a truncation or not; a file's new length with zeros for missing data.
//
// After a failed sync, a later successful sync does not make the same data safe, because Linux marks the pages as
// clean. Such a page is synced only if it is written again.
//
// The model assumes one thing that POSIX does not promise, for a failed sync of a folder. SQLite ignores its result,
// and Linux file systems make the name of a new file safe together with the file.
type posixDisk struct {
	now   int // number of the next op
	acked int
	// wrote is the number of the writer that acknowledged events last.
	wrote int
	files []*inode // by number
	// names are the folder's entries that are safe.
	names map[string]int
	// links are the changes of the folder's entries that are not safe.
	links []pending
}

// An inode has the bytes of a file: the bytes in base, and the later changes in their order.
type inode struct {
	base    []byte
	changes []pending
}

type pending struct {
	op
	at   int // number of the op that made the change
	safe bool
	// lost are the pages with a failed sync. It is nil if no sync failed.
	lost map[int64]bool
}

func newDisk() *posixDisk { return &posixDisk{names: map[string]int{}} }

// applyOp applies the next operation.
func (d *posixDisk) applyOp(o op) {
	p := pending{op: o, at: d.now}
	d.now++
	switch o.kind {
	case opLink:
		if o.inode == len(d.files) {
			d.files = append(d.files, &inode{})
		}
		d.links = append(d.links, p)
	case opUnlink:
		d.links = append(d.links, p)
	case opWrite, opTruncate:
		d.files[o.inode].changes = append(d.files[o.inode].changes, p)
	case opSync:
		d.files[o.inode].syncFile(o.failed)
	case opSyncDir:
		for _, l := range d.links {
			l.applyLink(d.names)
		}
		d.links = nil
	case opAck:
		d.acked, d.wrote = max(d.acked, o.acked), max(d.wrote, o.writer)
	}
}

func (p pending) applyLink(names map[string]int) {
	if p.kind == opLink {
		names[p.name] = p.inode
	} else {
		delete(names, p.name)
	}
}

func (f *inode) syncFile(failed bool) {
	for i := range f.changes {
		c := &f.changes[i]
		if failed && !c.safe && c.lost == nil {
			c.lost = c.pages()
		}
		if failed || c.safe {
			continue
		}
		for _, later := range f.changes[i+1:] {
			for page := range later.pages() {
				delete(c.lost, page)
			}
		}
		c.safe = len(c.lost) == 0
	}
	sure := 0
	for sure < len(f.changes) && f.changes[sure].safe {
		f.base = f.changes[sure].applyTo(f.base, func(int64) bool { return true })
		sure++
	}
	f.changes = f.changes[sure:]
}

// pageOf returns the page of the page cache that contains a sector. The sector -1 and the page -1 stand for the length
// of the file.
func pageOf(sector int64) int64 { return sector >> 3 }

// pages returns the pages that the change writes to.
func (p pending) pages() map[int64]bool {
	pages := map[int64]bool{}
	for at := p.off; at < p.off+int64(len(p.data)); at += sector {
		pages[pageOf(at/sector)] = true
	}
	if len(p.data) > 0 {
		pages[pageOf((p.off+int64(len(p.data))-1)/sector)] = true
	}
	if p.kind == opTruncate {
		pages[-1] = true // the length is not part of a page
	}
	return pages
}

// applyTo returns b with the change. The function "keep" says for each sector whether the change reached the disk. The
// sector of a truncation is -1.
func (p pending) applyTo(b []byte, keep func(sector int64) bool) []byte {
	if p.kind == opTruncate {
		if keep(-1) {
			b = resize(b, p.size)
		}
		return b
	}
	for off, data := p.off, p.data; len(data) > 0; {
		n := min(int64(len(data)), sector-off%sector)
		if keep(off / sector) {
			if int64(len(b)) < off+n {
				b = resize(b, off+n)
			}
			copy(b[off:], data[:n])
		}
		off, data = off+n, data[n:]
	}
	return b
}

func resize(b []byte, size int64) []byte {
	if size <= int64(len(b)) {
		return b[:size:size]
	}
	return append(b, make([]byte, size-int64(len(b)))...)
}

// A cut says for each sector which changes reached the disk. It returns the number of the first op that did not reach
// the disk. Repeated calls return the same number.
type cut func(inode int, sector int64) int

// stateAfter returns the files of the folder after a power failure. If stretch is true, a file has its new length
// even if data is missing.
func (d *posixDisk) stateAfter(c cut, links int, stretch bool) map[string][]byte {
	names := map[string]int{}
	for name, inode := range d.names {
		names[name] = inode
	}
	for _, l := range d.links {
		if l.at < links {
			l.applyLink(names)
		}
	}
	files := map[string][]byte{}
	for name, i := range names {
		f := d.files[i]
		b := append([]byte(nil), f.base...)
		size := int64(len(b))
		for _, p := range f.changes {
			b = p.applyTo(b, func(s int64) bool {
				if p.lost[pageOf(s)] { // Each page with a failed sync is kept or lost. Later syncs do not change this.
					return p.at < c(-1-p.at, s)
				}
				return p.safe || p.lost != nil || p.at < c(i, s)
			})
			if p.kind == opTruncate {
				size = p.size
			} else {
				size = max(size, p.off+int64(len(p.data)))
			}
		}
		if stretch && int64(len(b)) < size {
			b = resize(b, size)
		}
		files[name] = b
	}
	return files
}

// A fate is one possible result of a power failure.
type fate struct {
	name    string
	cut     cut
	links   int
	stretch bool
}

var fates = []string{"nothing", "everything", "up to", "pages", "sectors", "files", "all but one page"}

// chooseFate chooses a random result of a power failure at this moment.
func (d *posixDisk) chooseFate(dice *rand.Rand) fate {
	oldest, seed := d.oldest(), dice.Uint64()
	// moment chooses the time at which the system last wrote to the disk: never, now, or at some op since the oldest
	// unsafe op.
	moment := func(dice *rand.Rand) int {
		switch dice.IntN(4) {
		case 0:
			return 0
		case 1:
			return math.MaxInt
		}
		return oldest + dice.IntN(d.now-oldest+1)
	}
	// of returns a random source. It depends only on the seed and the arguments.
	of := func(inode int, unit int64) *rand.Rand {
		return rand.New(rand.NewPCG(seed^uint64(inode)<<32, uint64(unit)))
	}
	f := fate{name: fates[dice.IntN(len(fates))], links: moment(dice), stretch: dice.IntN(2) == 0}
	switch f.name {
	case "nothing":
		f.cut, f.links, f.stretch = func(int, int64) int { return 0 }, 0, false
	case "everything":
		f.cut, f.links = func(int, int64) int { return math.MaxInt }, math.MaxInt
	case "up to":
		f.links = moment(dice)
		f.cut = func(inode int, s int64) int { return f.links - of(inode, s).IntN(2) } // the last op is torn
	case "pages":
		f.cut = func(inode int, s int64) int { return moment(of(inode, pageOf(s))) }
	case "sectors":
		f.cut = func(inode int, s int64) int { return moment(of(inode, s)) }
	case "files":
		f.cut = func(inode int, _ int64) int { return math.MaxInt * of(inode, 0).IntN(2) }
	case "all but one page":
		in, at := d.somewhere(dice)
		f.links = math.MaxInt
		f.cut = func(inode int, s int64) int {
			if inode == in && pageOf(s) == at {
				return 0
			}
			return math.MaxInt
		}
	}
	return f
}

// oldest returns the number of the oldest op that is not safe.
func (d *posixDisk) oldest() int {
	oldest := d.now
	for _, f := range d.files {
		if len(f.changes) > 0 {
			oldest = min(oldest, f.changes[0].at)
		}
	}
	if len(d.links) > 0 {
		oldest = min(oldest, d.links[0].at)
	}
	return oldest
}

// somewhere returns a random page that an unsafe change writes to.
func (d *posixDisk) somewhere(dice *rand.Rand) (in int, at int64) {
	n := 0
	for i, f := range d.files {
		for _, p := range f.changes {
			if n++; dice.IntN(n) == 0 {
				in, at = i, pageOf((p.off+dice.Int64N(int64(len(p.data))+1))/sector)
			}
		}
	}
	return in, at
}
