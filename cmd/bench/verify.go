package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"runtime"
	"sync"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/store"
	"github.com/perlica/perlica/eventlog/verify"
)

// verified compares the verification of a log with the SHA-256 sums of the same bytes on all processor cores: a
// payload, a header and a node of the tree for each event.
func verified(dir string, _ options) {
	const n = 200_000
	l := openLog(dir, "verified.db")
	stream(l, n)
	closeAll(l)
	r := must(store.OpenReader(context.Background(), l.Path()))
	ours := &side{ops: n, round: func() {
		if rep := must(verify.Log(context.Background(), r, verify.Options{})); rep.Events != n || !rep.OK() {
			check(fmt.Errorf("%d events: %v", rep.Events, rep.Findings))
		}
	}}
	bare := &side{ops: n, round: func() { sums(n) }}
	compare(5, ours, bare)
	rates("log verify, events of 1 KiB, against bare SHA-256 sums", ours, bare, "")
	cpus(ours, bare, "at most 3")
	closeAll(r)
}

// sums computes the sums for n events.
func sums(n int) {
	e := sample(event.Frame)
	e.ID, e.Writer, e.Context = string(e.Run), string(e.Run), "default"
	header := e.AppendHeader(nil)
	var wg sync.WaitGroup
	cores := runtime.GOMAXPROCS(0)
	for range cores {
		wg.Go(func() {
			var node [1 + 2*sha256.Size]byte
			for range n / cores {
				sum, leaf := sha256.Sum256(payload), sha256.Sum256(header)
				copy(node[copy(node[1:], leaf[:])+1:], sum[:])
				_ = sha256.Sum256(node[:])
			}
		})
	}
	wg.Wait()
}
