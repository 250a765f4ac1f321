package kernel

import (
	"context"
	"iter"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/store"
	"github.com/perlica/perlica/provider"
)

// withBlock adds an update's block to a list, without what it holds: that is on record once.
func withBlock(list []provider.Block, u provider.Update) []provider.Block {
	if u.Block == nil {
		return list
	}
	b := *u.Block
	b.Data = nil
	return append(list, b)
}

// ReadContent yields what of a run's messages is no text, with what it holds, from the record, in the order
// of Result.Content. What was pruned is left out.
func ReadContent(ctx context.Context, log *store.Reader, run event.RunID) iter.Seq2[provider.Block, error] {
	return func(yield func(provider.Block, error) bool) {
		r := Record{Result: Result{Run: run}}
		for e, err := range log.Events(ctx, event.Query{Run: run, Class: event.Frame}) {
			if err != nil {
				yield(provider.Block{}, err)
				return
			}
			known := len(r.Blocks)
			_ = r.Apply(e) // a frame has no payload of Perlica's
			if len(r.Blocks) > known && !yield(*r.Update.Block, nil) {
				return
			}
		}
	}
}
