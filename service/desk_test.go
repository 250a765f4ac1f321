package service

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/kernel/language"
)

// TestATurnBeginsWhileOthersLook: the beginning of a turn, and those who look at all desks, which a turn of another
// contact does before it starts an agent, take the bridge's mutex and a desk's in the same order.
func TestATurnBeginsWhileOthersLook(t *testing.T) {
	b := &Bridge{
		opt: Options{Now: time.Now}, hard: t.Context(), settings: Settings{Agents: 1},
		desk: map[fact.Peer]*desk{}, spoken: map[fact.Peer]language.Language{},
	}
	var desks []*desk
	for i := range 4 {
		d := &desk{b: b, key: fact.Peer{Channel: "local", Contact: fmt.Sprint(i)}}
		b.desk[d.key], b.spoken[d.key] = d, language.English
		desks = append(desks, d)
	}
	done := make(chan struct{}, len(desks)+1)
	ctx, enough := context.WithCancel(t.Context())
	defer enough()
	for _, d := range desks {
		go func() {
			for range 5000 {
				d.begin(received{}, make(chan kernel.Stop, 1))()
			}
			done <- struct{}{}
		}()
	}
	go func() {
		for ctx.Err() == nil {
			b.makeRoom(&desk{})
		}
		done <- struct{}{}
	}()
	late := time.After(30 * time.Second)
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
