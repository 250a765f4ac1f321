// Package tree computes an RFC 6962 Merkle tree that grows by leaves and complete subtrees. It
// knows no file.
//
// The package promises that the root of a Range is the root of RFC 6962, section 2.1, in whichever
// order leaves and subtrees were combined.
package tree

import (
	"math/bits"
	"slices"

	"golang.org/x/mod/sumdb/tlog"
)

// NodeHeight is the distance between the levels whose hashes are stored. The leaves are stored with
// their events, then one hash for every 256 leaves, one for every 65,536, and so on. Any other hash
// of the tree follows from at most 128 stored ones.
const NodeHeight = 8

// Node is the root of the 2^Level leaves from N·2^Level on, counted from 0.
type Node struct {
	Level int
	N     int64
	Hash  tlog.Hash
}

// Range is the compact range of an RFC 6962 tree: the roots of its complete subtrees, widest first.
// Size has one set bit for each root.
type Range struct {
	Size  int64
	Roots []tlog.Hash
	// Nodes are the nodes of the stored levels that Add completed.
	Nodes []Node
}

// Add appends one leaf.
func (f *Range) Add(leaf tlog.Hash) { f.AddSubtree(0, leaf) }

// AddSubtree appends a complete subtree of 2^level leaves. Size must be a multiple of that number.
// Each consecutive one bit of Size, from level upwards, is a subtree that the new one completes.
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

// Fold returns the root of a complete subtree whose leaves are list. The length of list must be a
// power of two. Fold overwrites list.
func Fold(list []tlog.Hash) tlog.Hash {
	for ; len(list) > 1; list = list[:len(list)/2] {
		for i := range len(list) / 2 {
			list[i] = tlog.NodeHash(list[2*i], list[2*i+1])
		}
	}
	return list[0]
}

// MaxLevel is higher than the level of any subtree: no log has 2^60 events.
const MaxLevel = 60

// MaxSeq is larger than the Seq of any event. Sums of two such numbers do not overflow.
const MaxSeq = 1 << MaxLevel

// Subtree is a complete subtree whose events are absent.
type Subtree struct {
	Seq   int64 // Seq of the first event
	Level int
	Hash  tlog.Hash
}

// Span returns the leaves of the subtree, counted from 0. The leaf to is the first one after it.
func (a Subtree) Span() (from, to int64) {
	from = a.Seq - 1
	return from, from + 1<<a.Level
}

// Last returns the Seq of the last event of the subtree.
func (a Subtree) Last() int64 {
	_, to := a.Span()
	return to
}

// Widest returns the level of the widest complete subtree that begins with leaf from and ends at
// leaf to or before. from must be less than to.
func Widest(from, to int64) int {
	level := bits.Len64(uint64(to-from)) - 1
	if from > 0 {
		level = min(level, bits.TrailingZeros64(uint64(from)))
	}
	return level
}
