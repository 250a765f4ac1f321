package budget

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/kernel/config"
	"github.com/perlica/perlica/kernel/fact"
)

// BenchmarkFirstCheck measures the first check of a budget on a log with a million events: the check adds up the usage
// of 100,000 calls. The log has ten events for each call.
func BenchmarkFirstCheck(b *testing.B) {
	w := newWorld(b)
	p := w.open("site", config.Budget{Per: "day", Tokens: of(100), Timezone: "UTC"})
	const runs = 100_000
	var events []event.Event
	for i := range runs {
		refs := event.Refs{Run: event.RunID(fmt.Sprint("run-", i)), Input: event.InputID(fmt.Sprint("input-", i)),
			Session:      event.SessionID(fmt.Sprint("session-", i/100)),
			Conversation: event.ConversationID(fmt.Sprint("theirs-", i/100))}
		events = append(events,
			event.NewFact(event.MessageReceived, "user", refs, fact.MessageReceived{Text: "What changed?"}),
			event.NewFact(event.Requested, "perlica", refs, fact.Requested{Provider: "claude"}))
		for range 7 {
			events = append(events, event.Event{Type: event.NotificationReceived, Class: event.Frame, Actor: "agent",
				Refs: refs, Payload: []byte(`{"jsonrpc":"2.0"}`)})
		}
		events = append(events, event.NewFact(event.Responded, "agent", refs, fact.Responded{Provider: "claude",
			Usage: tokens(i%100+1, 0), OfSession: true, Cost: &fact.Cost{Amount: float64(i % 100), Currency: "EUR"}}))
		if len(events) >= 5000 || i == runs-1 {
			if _, err := p.log.Append(b.Context(), events...); err != nil {
				b.Fatal(err)
			}
			events = events[:0]
		}
	}
	w.now = w.now.Add(-24 * time.Hour) // a period without usage, so that no budget refuses the call
	for b.Loop() {
		if err := os.RemoveAll(filepath.Join(w.dir, "budgets")); err != nil {
			b.Fatal(err)
		}
		p.Guard.own = nil
		if _, err := p.Check(b.Context(), &p.log.Reader, Call{Provider: "claude"}); err != nil {
			b.Fatal(err)
		}
		if err := p.own.Close(); err != nil {
			b.Fatal(err)
		}
	}
	p.Guard.own = nil
}
