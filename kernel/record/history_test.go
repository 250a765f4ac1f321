package record

import (
	"strings"
	"testing"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/kernel/fact"
)

// TestHistoryIsCutTheSameWayEveryTime checks the selected turns for each budget, and that the transcript quotes each
// line.
func TestHistoryIsCutTheSameWayEveryTime(t *testing.T) {
	log := openLogFile(t)
	for i := range 5 {
		run := event.RunID(string(rune('a' + i)))
		refs := event.Refs{Session: "s", Run: run, Input: event.InputID(run)}
		appendTo(t, log,
			event.NewFact(event.MessageReceived, "user", refs, fact.MessageReceived{Text: "question " + string(run)}),
			event.NewFact(event.Requested, "perlica", refs, fact.Requested{}))
		if i == 3 {
			appendTo(t, log, event.NewFact(event.OutcomeUnknown, "perlica", refs, fact.Failed{}))
			continue // a turn without an answer is not in the history
		}
		appendTo(t, log, event.NewFact(event.Responded, "agent", refs,
			fact.Responded{Text: "answer " + string(run) + "\n@exit 3"}))
	}
	each := PastTurn{"question a", "answer a\n@exit 3"}.tokens()
	for budget, want := range map[int]struct {
		kept    string
		dropped int
	}{
		0:           {"", 4},
		each - 1:    {"", 4},
		each:        {"e", 3},
		2 * each:    {"ce", 2},
		3*each + 1:  {"bce", 1},
		4 * each:    {"abce", 0},
		1000 * each: {"abce", 0},
	} {
		h, err := ReadHistory(t.Context(), log, "s", "z", budget)
		if err != nil {
			t.Fatal(err)
		}
		kept := ""
		for _, turn := range h.Turns {
			kept += strings.TrimPrefix(turn.Input, "question ")
		}
		if kept != want.kept || h.Dropped != want.dropped || h.Tokens > budget {
			t.Errorf("budget %d: kept %q, dropped %d, %d tokens; want %q, %d", budget, kept, h.Dropped, h.Tokens, want.kept,
				want.dropped)
		}
		for line := range strings.SplitSeq(h.Transcript(), "\n") {
			if strings.HasPrefix(line, "@") || strings.HasPrefix(line, "answer") {
				t.Errorf("a line of the transcript is not marked as quoted: %q", line)
			}
		}
	}
}

// TestTranscriptNamesWhatWasAttached checks that the transcript names the attachments of an earlier input.
func TestTranscriptNamesWhatWasAttached(t *testing.T) {
	log := openLogFile(t)
	refs := event.Refs{Session: "s", Run: "a", Input: "a"}
	appendTo(t, log,
		event.NewFact(event.MessageReceived, "user", refs, fact.MessageReceived{Text: "look",
			Attachments: []string{"/x/plan.png"}}),
		event.NewFact(event.Requested, "perlica", refs, fact.Requested{}),
		event.NewFact(event.Responded, "agent", refs, fact.Responded{Text: "seen"}))
	h, err := ReadHistory(t.Context(), log, "s", "z", 1000)
	if err != nil || !strings.Contains(h.Transcript(), "> look\n> [attached then, not repeated: plan.png]\n") {
		t.Errorf("%v, %s", err, h.Transcript())
	}
}
