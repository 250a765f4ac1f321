package command

import (
	"strings"
	"testing"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/message"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/kernel/flow"
	"github.com/perlica/perlica/kernel/language"
)

// recordFlow puts a flow run with a done and a failed step on the log.
func (h *Host) recordFlow(t *testing.T, id string) {
	t.Helper()
	const file = "name = \"review\"\n[[step]]\nid = \"first\"\ntext = \"x\"\n" +
		"[[step]]\nid = \"second\"\nneeds = [\"first\"]\ntext = \"y\"\n"
	of := event.Refs{Run: flow.RunID(id), Interaction: event.Flows}
	decided := func(step string, d fact.FlowDecided) event.Event {
		d.Step = step
		refs := event.Refs{Run: of.Run, Interaction: event.InteractionID(string(of.Run) + "/" + step)}
		return event.NewFact(event.FlowStepDecided, "perlica", refs, d)
	}
	for _, e := range []event.Event{
		event.NewFact(event.FlowStarted, "user", of, fact.FlowStarted{Name: "review", File: file, By: "me"}),
		decided("first", fact.FlowDecided{Decision: fact.FlowDone}),
		decided("second", fact.FlowDecided{Decision: fact.FlowFailed, Error: "the agent stopped: no ``` answer",
			Coded: message.Coded{Code: "flow.agent-stopped", Args: message.Args{"no ``` answer"}}}),
		event.NewFact(event.FlowFinished, "perlica", of, fact.FlowFinished{Outcome: fact.FlowFailed}),
	} {
		if _, err := h.Runner.Log().Append(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
}

// TestFlow checks the list of flow runs and the steps of one, in two languages. A person with one session only
// sees no flow runs.
func TestFlow(t *testing.T) {
	h := newHost(t)
	h.says(t, map[string]string{"/flow": "the log has no flow runs"})
	h.recordFlow(t, "one")
	h.recordFlow(t, "two")
	if list := h.does(t, "/flow").Text; !strings.HasPrefix(list, "- `two` — `review`, failed, ") ||
		!strings.Contains(list, "\n- `one` — ") {
		t.Errorf("got the list %q", list)
	}
	want := "```\none: review failed\nfirst done\n· second failed: the agent stopped: no ''' answer\n```\n"
	if got := h.does(t, "/flow one").Text; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	h.Say = language.Chinese.Sentences()
	if got := h.does(t, "/flow one").Text; !strings.Contains(got, "· second 失败: 智能体停下了：no ''' answer") {
		t.Errorf("in Chinese: %q", got)
	}
	for _, line := range []string{"/flow three", "/flow one two"} {
		l, err := Parse(line)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := h.Do(t.Context(), l); err == nil {
			t.Errorf("%s: got no error", line)
		}
	}
	h.Only = []event.SessionID{h.Conversation.Session()}
	if _, err := h.Do(t.Context(), Line{Name: "flow"}); err == nil {
		t.Error("a person of one session sees the flow runs")
	}
}
