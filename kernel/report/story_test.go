package report

import (
	"strings"
	"testing"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/kernel/language"
)

// TestSandboxOfARun checks that a run's story and its HTML name the sandbox that an earlier run of the session entered.
// A sandbox that was entered after the run must not be named.
func TestSandboxOfARun(t *testing.T) {
	log := storyLog(t)
	session, later := event.Refs{Session: storyRefs.Session}, storyRefs
	later.Run, later.Input = "run-4", "in-4"
	for _, e := range []event.Event{
		event.NewFact(event.SandboxEntered, "perlica", session, fact.SandboxEntered{Mode: "protect",
			Mechanism: "bubblewrap"}),
		event.NewFact(event.MessageReceived, "user", later, fact.MessageReceived{Text: "again", Provider: "claude"}),
		event.NewFact(event.Requested, "perlica", later, fact.Requested{Provider: "claude", Bytes: 40, CallIndex: 1}),
	} {
		if _, err := log.Append(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	for run, want := range map[event.RunID]string{storyRefs.Run: "", "run-4": "protect"} {
		for step, err := range Story(t.Context(), log, run, event.Query{}) {
			if err != nil {
				t.Fatal(err)
			}
			note, ok := step.What.(StepNote)
			if !ok || note.Type != event.Requested {
				continue
			}
			_, chinese := note.In(language.Chinese.Sentences())
			if note.Sandbox != want || strings.HasSuffix(note.Text, ", in the sandbox "+want) != (want != "") ||
				strings.HasSuffix(chinese, "，沙箱为 "+want) != (want != "") {
				t.Errorf("%s: got the sandbox %q in %q and %q, want %q", run, note.Sandbox, note.Text, chinese, want)
			}
		}
	}
	var page strings.Builder
	if err := WriteHTML(t.Context(), &page, &log.Reader, event.Query{Run: "run-4"}, FormatOptions{}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(page.String(), "<dt>sandbox</dt><dd>protect</dd>") {
		t.Error("the page does not name the sandbox")
	}
}
