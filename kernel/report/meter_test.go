package report

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/perlica/perlica/eventlog"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/kernel/fact"
)

// TestTokensOfARun checks the tokens of runs. If an agent reports the tokens of its session, a run has the difference
// to the previous report. If it reports the tokens of the turn, a run has the reported number.
func TestTokensOfARun(t *testing.T) {
	start := time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)
	now := start
	log, err := eventlog.Open(t.Context(), filepath.Join(t.TempDir(), "log.db"),
		eventlog.Options{Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := log.Close(); err != nil {
			t.Error(err)
		}
	}()
	turns := []struct {
		provider    string
		agent       event.ConversationID
		in, out     int
		own, ownOut int64
	}{
		{"copilot", "a", 100, 10, 100, 10},
		{"copilot", "a", 0, 0, 0, 0}, // a report without numbers
		{"copilot", "a", 250, 40, 150, 30},
		{"copilot", "a", 60, 5, 60, 5}, // the agent began at zero again
		{"copilot", "b", 90, 9, 90, 9},
		{"claude", "c", 100, 10, 100, 10},
		{"claude", "c", 250, 40, 250, 40},
		{"mine", "d", 100, 10, 100, 10}, // a configured agent that introduces itself as copilot
		{"mine", "d", 250, 40, 150, 30},
	}
	for i, turn := range turns {
		id := fmt.Sprint(i)
		refs := event.Refs{Session: "s", Conversation: turn.agent, Run: event.RunID(id), Input: event.InputID(id)}
		answer := fact.Responded{Provider: turn.provider, OfSession: turn.provider != "claude"}
		if turn.in > 0 {
			answer.Usage = fmt.Appendf(nil, `{"inputTokens":%d,"outputTokens":%d}`, turn.in, turn.out)
		}
		if _, err := log.Append(t.Context(),
			event.NewFact(event.MessageReceived, "user", refs, fact.MessageReceived{Provider: turn.provider}),
			event.NewFact(event.Requested, "perlica", refs, fact.Requested{Provider: turn.provider}),
			event.NewFact(event.Responded, "agent", refs, answer)); err != nil {
			t.Fatal(err)
		}
		now = now.Add(time.Hour)
	}
	for i := range turns {
		q := StatsQuery{Since: start.Add(time.Duration(i) * time.Hour), Zone: time.UTC}
		if i == 0 {
			q.Since = time.Time{}
		}
		var in, out int64
		for _, turn := range turns[i:] {
			in, out = in+turn.own, out+turn.ownOut
		}
		if s, err := ReadStats(t.Context(), &log.Reader, q); err != nil || s.Total.TokensIn != in ||
			s.Total.TokensOut != out {
			t.Errorf("from run %d on: %d in, %d out, %v; want %d, %d", i, s.Total.TokensIn, s.Total.TokensOut, err, in, out)
		}
	}
	for i, turn := range turns {
		for step, err := range Story(t.Context(), &log.Reader, event.RunID(fmt.Sprint(i)), event.Query{}) {
			o, is := step.What.(StepOutcome)
			if in, out, _ := o.Tokens(); err != nil || is && (in != turn.own || out != turn.ownOut) {
				t.Errorf("run %d: %d in, %d out, %v; want %d, %d", i, in, out, err, turn.own, turn.ownOut)
			}
		}
	}
}
