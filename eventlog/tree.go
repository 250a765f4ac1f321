package eventlog

import (
	"errors"
	"math/bits"

	"golang.org/x/mod/sumdb/tlog"
)

// frontier is the compact range of an RFC 6962 tree: the roots of its complete
// subtrees, widest first. There is one for each bit that is set in size.
type frontier struct {
	size  int64
	roots []tlog.Hash
}

var errFrontier = errors.New("the tree's frontier does not fit its size")

func parseFrontier(size int64, b []byte) (frontier, error) {
	if size < 0 || len(b) != bits.OnesCount64(uint64(size))*tlog.HashSize {
		return frontier{}, errFrontier
	}
	f := frontier{size: size}
	for ; len(b) > 0; b = b[tlog.HashSize:] {
		f.roots = append(f.roots, tlog.Hash(b[:tlog.HashSize]))
	}
	return f, nil
}

// add appends one leaf. Every trailing one bit of the old size is a subtree that the
// new leaf completes.
func (f *frontier) add(leaf tlog.Hash) {
	for n := f.size; n&1 == 1; n >>= 1 {
		last := len(f.roots) - 1
		leaf = tlog.NodeHash(f.roots[last], leaf)
		f.roots = f.roots[:last]
	}
	f.roots = append(f.roots, leaf)
	f.size++
}

// root returns the tree's hash (RFC 6962, section 2.1).
func (f *frontier) root() tlog.Hash {
	if f.size == 0 {
		h, _ := tlog.TreeHash(0, nil)
		return h
	}
	h := f.roots[len(f.roots)-1]
	for i := len(f.roots) - 2; i >= 0; i-- {
		h = tlog.NodeHash(f.roots[i], h)
	}
	return h
}

func (f *frontier) bytes() []byte {
	b := make([]byte, 0, len(f.roots)*tlog.HashSize)
	for _, r := range f.roots {
		b = append(b, r[:]...)
	}
	return b
}
