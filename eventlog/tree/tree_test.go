package tree

import (
	"slices"
	"testing"

	"golang.org/x/mod/sumdb/tlog"
)

// TestRangeIsTheTreeOfRFC6962 adds single leaves and complete subtrees, and compares the roots and nodes with the
// results of package tlog.
func TestRangeIsTheTreeOfRFC6962(t *testing.T) {
	var leaves []tlog.Hash
	var stored []tlog.Hash
	reader := tlog.HashReaderFunc(func(indexes []int64) (list []tlog.Hash, err error) {
		for _, i := range indexes {
			list = append(list, stored[i])
		}
		return list, nil
	})
	var r Range
	for n := range int64(600) {
		leaf := tlog.RecordHash([]byte{byte(n), byte(n >> 8)})
		hashes, err := tlog.StoredHashesForRecordHash(n, leaf, reader)
		if err != nil {
			t.Fatal(err)
		}
		stored, leaves = append(stored, hashes...), append(leaves, leaf)
		r.Add(leaf)
		want, err := tlog.TreeHash(n+1, reader)
		if err != nil || r.Root() != want {
			t.Fatalf("%d leaves: root %s, want %s, %v", n+1, r.Root(), want, err)
		}
		var wide Range
		for wide.Size < n+1 {
			level := Widest(wide.Size, n+1)
			wide.AddSubtree(level, Fold(slices.Clone(leaves[wide.Size:wide.Size+1<<level])))
		}
		if wide.Root() != want {
			t.Fatalf("%d leaves in the widest subtrees: another root", n+1)
		}
	}
	for _, n := range r.Nodes {
		if want := Fold(slices.Clone(leaves[n.N<<n.Level : (n.N+1)<<n.Level])); n.Level%NodeHeight != 0 || n.Hash != want {
			t.Errorf("node %d, %d is wrong", n.Level, n.N)
		}
	}
	if len(r.Nodes) != 600>>NodeHeight {
		t.Errorf("%d nodes", len(r.Nodes))
	}
}
