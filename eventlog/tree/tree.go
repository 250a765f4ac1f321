// Package tree computes an RFC 6962 Merkle tree. The tree grows by leaves and by complete subtrees. The package uses
// no files.
//
// The package promises that the root of a Range is the root of RFC 6962, section 2.1. The order in which leaves and
// subtrees were combined does not matter.
package tree

import (
	"math/bits"
	"slices"

	"golang.org/x/mod/sumdb/tlog"
)

// NodeHeight is the distance between two levels with stored hashes. The leaves are stored with their events. The next
// stored level has one hash for every 256 leaves, the next one for every 65,536, and so on. Any other hash of the tree
// can be computed from at most 128 stored hashes.
const NodeHeight = 8

// Node is the root of the N-th complete subtree with 2^Level leaves, counted from 0.
type Node struct {
	Level int
	N     int64
	Hash  tlog.Hash
}

// Range is the compact range of an RFC 6962 tree: the roots of its complete subtrees, widest first. Size has a set
// bit for each of these roots.
type Range struct {
	Size  int64
	Roots []tlog.Hash
	// Nodes are the nodes of stored levels that Add and AddSubtree completed.
	Nodes []Node
}

// Add appends one leaf.
func (f *Range) Add(leaf tlog.Hash) { f.AddSubtree(0, leaf) }

// AddSubtree appends a complete subtree of 2^level leaves. Size must be a multiple of that number. Each set bit of
// Size, from level upwards without a gap, stands for a subtree that the new one completes. For example, if Size is 3, a
// leaf completes a subtree of two leaves and one of four.
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

// Root returns the root hash of the tree (RFC 6962, section 2.1).
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

// Clone returns an independent copy without Nodes.
func (f *Range) Clone() Range {
	return Range{Size: f.Size, Roots: slices.Clone(f.Roots)}
}

// Fold returns the root of a complete subtree. list has the leaves of the subtree, and its length must be a power of
// two. Fold overwrites list.
func Fold(list []tlog.Hash) tlog.Hash {
	for ; len(list) > 1; list = list[:len(list)/2] {
		for i := range len(list) / 2 {
			list[i] = tlog.NodeHash(list[2*i], list[2*i+1])
		}
	}
	return list[0]
}

// MaxLevel is above the level of any subtree, because no log has 2^60 events.
const MaxLevel = 60

// MaxSeq is larger than the Seq of any event. The sum of two such numbers does not overflow.
const MaxSeq = 1 << MaxLevel

// Subtree is a complete subtree without its events.
type Subtree struct {
	Seq   int64 // Seq of the first event
	Level int
	Hash  tlog.Hash
}

// Span returns the leaves of the subtree, counted from 0. The result "from" is the first leaf, and "to" is the number
// after the last leaf.
func (a Subtree) Span() (from, to int64) {
	from = a.Seq - 1
	return from, from + 1<<a.Level
}

// Last returns the Seq of the last event of the subtree.
func (a Subtree) Last() int64 {
	_, to := a.Span()
	return to
}

// Widest returns the level of the widest complete subtree that begins with the leaf number "from" and ends before the
// leaf number "to". The number "from" must be less than "to".
func Widest(from, to int64) int {
	level := bits.Len64(uint64(to-from)) - 1
	if from > 0 {
		level = min(level, bits.TrailingZeros64(uint64(from)))
	}
	return level
}
