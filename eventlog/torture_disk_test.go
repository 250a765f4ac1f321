package eventlog

import (
	"fmt"
	"math"
	"math/rand/v2"
)

// sector is what a disk writes whole or not at all.
const sector = 512

// An op is one thing that a recorded writer did to the folder of its log.
type op struct {
	kind   opKind
	inode  int    // of every kind but opSyncDir and opAck
	name   string // opLink, opUnlink: the entry; otherwise the file's name, for people
	off    int64
	data   []byte
	size   int64 // opTruncate
	failed bool  // opSync, opSyncDir: it reported an error
	acked  int   // opAck: as many events were acknowledged, or seen by a new writer
	writer int   // opAck: the number of the writer that acknowledged; 0 if it only saw them
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

// posixDisk models the disk under a log's folder. It promises no more than POSIX promises: a
// file's bytes are safe when the file was synced, its name when the folder was. Of the
// rest any part may be there after a power failure:
//
//   - of each sector that was written, any version since the last sync, as the page cache
//     may have written it back at any time or not;
//   - of the folder's entries, the changes up to any one, as journals keep their order;
//   - a truncation or not; a file's new length with zeros where data is missing.
//
// What a failed sync was to make safe is not sure any more even if a later sync succeeds: Linux
// marks the pages clean. Only a page that is written to again is synced again.
//
// One thing is believed although it is not promised: a folder's sync that failed. SQLite
// does not look at its result, and Linux's file systems make a new file's name safe with
// the file.
type posixDisk struct {
	now   int // number of the next op
	acked int
	wrote int            // the writer that acknowledged last
	files []*inode       // by number
	names map[string]int // entries that are safe
	links []pending      // entries' changes that are not
}

// An inode's bytes are base with changes on top, of which the safe ones are sure.
type inode struct {
	base    []byte
	changes []pending
}

type pending struct {
	op
	at   int // when it was made
	safe bool
	lost map[int64]bool // its pages of which a sync failed; nil if none did
}

func newDisk() *posixDisk { return &posixDisk{names: map[string]int{}} }

// do applies the next operation.
func (d *posixDisk) do(o op) {
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
		d.files[o.inode].sync(o.failed)
	case opSyncDir:
		for _, l := range d.links {
			l.apply(d.names)
		}
		d.links = nil
	case opAck:
		d.acked, d.wrote = max(d.acked, o.acked), max(d.wrote, o.writer)
	}
}

func (p pending) apply(names map[string]int) {
	if p.kind == opLink {
		names[p.name] = p.inode
	} else {
		delete(names, p.name)
	}
}

func (f *inode) sync(failed bool) {
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
		f.base = f.changes[sure].onto(f.base, func(int64) bool { return true })
		sure++
	}
	f.changes = f.changes[sure:]
}

// pageOf returns the page of the page cache in which a sector lies; -1 stays -1.
func pageOf(sector int64) int64 { return sector >> 3 }

// pages returns the pages that the change touches.
func (p pending) pages() map[int64]bool {
	pages := map[int64]bool{}
	for at := p.off; at < p.off+int64(len(p.data)); at += sector {
		pages[pageOf(at/sector)] = true
	}
	if len(p.data) > 0 {
		pages[pageOf((p.off+int64(len(p.data))-1)/sector)] = true
	}
	if p.kind == opTruncate {
		pages[-1] = true // its length is no page
	}
	return pages
}

// onto returns b with the change; keep says for which sectors it happened. A truncation
// is asked for as sector -1.
func (p pending) onto(b []byte, keep func(sector int64) bool) []byte {
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

// A cut says up to when changes made it to the disk: those before it did. It may differ
// from sector to sector; it is the same whenever it is asked for the same one.
type cut func(inode int, sector int64) int

// state returns the folder's files after a power failure. stretch has files as long as they
// were to become, whatever of their data is missing.
func (d *posixDisk) state(c cut, links int, stretch bool) map[string][]byte {
	names := map[string]int{}
	for name, inode := range d.names {
		names[name] = inode
	}
	for _, l := range d.links {
		if l.at < links {
			l.apply(names)
		}
	}
	files := map[string][]byte{}
	for name, i := range names {
		f := d.files[i]
		b := append([]byte(nil), f.base...)
		size := int64(len(b))
		for _, p := range f.changes {
			b = p.onto(b, func(s int64) bool {
				if p.lost[pageOf(s)] { // kept or dropped on its own, whatever came of later ones
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

// A fate is one way in which a power failure can go.
type fate struct {
	name    string
	cut     cut
	links   int
	stretch bool
}

var fates = []string{"nothing", "everything", "up to", "pages", "sectors", "files", "all but one page"}

// fate rolls the dice for one way in which a power failure at this moment can go.
func (d *posixDisk) fate(dice *rand.Rand) fate {
	oldest, seed := d.oldest(), dice.Uint64()
	// moment returns when something was written back for the last time: never, just now, or
	// at one op since the oldest that is not safe.
	moment := func(dice *rand.Rand) int {
		switch dice.IntN(4) {
		case 0:
			return 0
		case 1:
			return math.MaxInt
		}
		return oldest + dice.IntN(d.now-oldest+1)
	}
	// of returns dice that fall the same way for the same thing.
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
		f.cut = func(inode int, s int64) int { return f.links - of(inode, s).IntN(2) } // the last is torn
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

// somewhere returns a page that a change touches which is not safe.
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
