// Package tree is the arithmetic of an RFC 6962 Merkle tree that grows leaf by leaf; it knows no file.
//
// It promises that the root of a Range is that of RFC 6962, section 2.1, however its leaves and complete
// subtrees came together.
package tree

import (
	"math/bits"
	"slices"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/perlica/perlica/eventlog/event"
)

// NodeHeight is the distance of the levels whose hashes are stored: the leaves with their
// events, then every 256 of them, every 65,536, and so on. Any other hash of the tree
// follows from at most 128 stored ones.
const NodeHeight = 8

// Node is the root of the 2^level leaves from n·2^level on, counted from 0.
type Node struct {
	Level int
	N     int64
	Hash  tlog.Hash
}

// Range is the compact range of an RFC 6962 tree: the roots of its complete
// subtrees, widest first. There is one for each bit that is set in Size.
type Range struct {
	Size  int64
	Roots []tlog.Hash
	Nodes []Node // of the stored levels, completed by Add
}

// Add appends one leaf.
func (f *Range) Add(leaf tlog.Hash) { f.AddSubtree(0, leaf) }

// AddSubtree appends a complete subtree of 2^level leaves; size must be a multiple of that.
// Every further one bit of the old size is a subtree that the new one completes.
func (f *Range) AddSubtree(level int, hash tlog.Hash) {
	at := level
	for n := f.Size >> level; n&1 == 1; n >>= 1 {
		last := len(f.Roots) - 1
		hash = tlog.NodeHash(f.Roots[last], hash)
		f.Roots = f.Roots[:last]
		if at++; at%NodeHeight == 0 {
			f.Nodes = append(f.Nodes, Node{at, n >> 1, hash})
		}
	}
	f.Roots = append(f.Roots, hash)
	f.Size += 1 << level
}

// Root returns the tree's hash (RFC 6962, section 2.1).
func (f *Range) Root() tlog.Hash {
	if f.Size == 0 {
		h, _ := tlog.TreeHash(0, nil)
		return h
	}
	h := f.Roots[len(f.Roots)-1]
	for i := len(f.Roots) - 2; i >= 0; i-- {
		h = tlog.NodeHash(f.Roots[i], h)
	}
	return h
}

// Clone returns a copy that can grow on its own.
func (f *Range) Clone() Range {
	return Range{Size: f.Size, Roots: slices.Clone(f.Roots)}
}

// Fold returns the root of a complete subtree whose leaves, a power of two of them, are list.
// It overwrites list.
func Fold(list []tlog.Hash) tlog.Hash {
	for ; len(list) > 1; list = list[:len(list)/2] {
		for i := range len(list) / 2 {
			list[i] = tlog.NodeHash(list[2*i], list[2*i+1])
		}
	}
	return list[0]
}

// MaxLevel is more than the level of any subtree: no log has 2^60 events.
const MaxLevel = 60

// MaxSeq is more than the number of any event, and small enough to be counted on from.
const MaxSeq = 1 << MaxLevel

// Subtree is a complete subtree whose events are not there.
type Subtree struct {
	Seq   event.Seq // of its first event
	Level int
	Hash  tlog.Hash
}

// Span returns the leaves that the subtree stands for, counted from 0.
func (a Subtree) Span() (from, to int64) {
	from = int64(a.Seq) - 1
	return from, from + 1<<a.Level
}

// Last returns the number of its last event.
func (a Subtree) Last() int64 {
	_, to := a.Span()
	return to
}

// Widest returns the level of the widest complete subtree that begins with leaf from and
// ends before or at leaf to; they are not equal.
func Widest(from, to int64) int {
	level := bits.Len64(uint64(to-from)) - 1
	if from > 0 {
		level = min(level, bits.TrailingZeros64(uint64(from)))
	}
	return level
}
