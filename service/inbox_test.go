package service

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/kernel/language"
)

// TestATurnBeginsWhileOthersLook checks the lock order. The beginning of a turn, and makeRoom of
// another contact's turn, must take Bridge.mu and inbox.mu in the same order.
func TestATurnBeginsWhileOthersLook(t *testing.T) {
	b := &Bridge{
		opt: Options{Now: time.Now}, hard: t.Context(), current: Settings{Agents: 1},
		inboxByPeer: map[fact.Peer]*inbox{}, spoken: map[fact.Peer]language.Language{},
	}
	var desks []*inbox
	for i := range 4 {
		ib := &inbox{b: b, key: fact.Peer{Channel: "local", Contact: fmt.Sprint(i)}}
		b.inboxByPeer[ib.key], b.spoken[ib.key] = ib, language.English
		desks = append(desks, ib)
	}
	done := make(chan struct{}, len(desks)+1)
	ctx, enough := context.WithCancel(t.Context())
	defer enough()
	for _, ib := range desks {
		go func() {
			for range 5000 {
				ib.beginTurn(received{}, make(chan fact.Stop, 1))()
			}
			done <- struct{}{}
		}()
	}
	go func() {
		for ctx.Err() == nil {
			b.makeRoom(nil)
		}
		done <- struct{}{}
	}()
	late := time.After(2 * time.Minute)
	for i := range cap(done) {
		select {
		case <-done:
			if i == len(desks)-1 {
				enough()
			}
		case <-late:
			t.Fatal("a turn that begins and one that makes room for its agent wait for each other")
		}
	}
}
