package command

import (
	"strings"
	"testing"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/kernel/record"
	"github.com/perlica/perlica/policy"
)

func (h *Host) runs(t *testing.T, prompt string) record.Result {
	t.Helper()
	res, err := h.Conversation.Run(t.Context(), kernel.Turn{Input: kernel.Input{Text: prompt, Source: "test"},
		Permissions: policy.ModeDeny})
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// TestSessions checks the commands that create, name, find, show and remove sessions. The current session cannot be
// removed.
func TestSessions(t *testing.T) {
	h := newHost(t)
	if err := h.refuses(t, "/save"); !strings.Contains(err.Error(), "this session has no text yet") {
		t.Errorf(`got %v; want strings.Contains(err.Error(), "this session has no text yet")`, err)
	}
	h.says(t, map[string]string{"/session show": "It has no turns yet.", "/session list": "There are no kept sessions",
		"/session current": "test"})
	h.runs(t, "hello\n> there")
	here := string(h.Conversation.Session())
	for _, step := range [][2]string{
		{"/session show", "> hello\n> > there\n\nYou said: hello"},
		{"/save", `kept as "hello`},
		{"/session rename my se", `kept as "my se"`},
	} {
		h.says(t, map[string]string{step[0]: step[1]})
	}
	if out := h.does(t, "/exit last name"); out.Effect != Exit {
		t.Errorf("got %+v; want out.Effect == Exit", out)
	}
	h.says(t, map[string]string{"/session list": "- `last name` (now) — test, 1 turn, hello",
		"/session current": "last name: `" + here + "`"})
	for line, want := range map[string]Output{
		"/session use last name":      {Effect: Switch, Session: event.SessionID(here), Provider: "test"},
		"/resume " + here:             {Effect: Switch, Session: event.SessionID(here), Provider: "test"},
		"/resume":                     {Effect: Resume},
		"/search two words":           {Effect: Resume, Path: "two words"},
		"/session new":                {Effect: Switch},
		`/session export "a b.jsonl"`: {Effect: Export, Path: "a b.jsonl"},
		`/attach "a b.txt"`:           {Effect: Attach, Path: "a b.txt"},
		"/attach a  b.txt":            {Effect: Attach, Path: "a  b.txt"},
		"/unqueue":                    {Effect: Queue, Path: "last"},
		"/withdraw 2":                 {Effect: Queue, Path: "2"},
		"/send":                       {Effect: Queue, Path: "send"},
		"/show":                       {Effect: Unfold, Path: "last"},
		"/show 3":                     {Effect: Unfold, Path: "3"},
		"/quit":                       {Effect: Exit},
	} {
		if got := h.does(t, line); got != want {
			t.Errorf("%s: %+v, want %+v", line, got, want)
		}
	}
	other := h.does(t, "/session new other")
	if other.Effect != Switch || other.Session == "" || other.Provider != "test" {
		t.Errorf(`got %+v; want other.Effect == Switch && other.Session != "" && other.Provider == "test"`, other)
	}
	if err := h.refuses(t, "/session delete last name"); !strings.Contains(err.Error(), "/discard") {
		t.Errorf(`got %v; want strings.Contains(err.Error(), "/discard")`, err)
	}
	h.says(t, map[string]string{"/session delete other": "removed from the lists"})
	if list := h.does(t, "/session list --all").Text; strings.Contains(list, "other") || strings.Count(list, "\n") != 1 {
		t.Errorf(`got %q; want !strings.Contains(list, "other") && strings.Count(list, "\n") == 1`, list)
	}
	h.says(t, map[string]string{"/status": "- `" + here + "` — the session, test, 1 turn", "/doctor": "checks passed"})
	if err := h.refuses(t, "/compact"); !strings.Contains(err.Error(), "this agent has no /compact") {
		t.Errorf(`got %v; want strings.Contains(err.Error(), "this agent has no /compact")`, err)
	}
}

// TestWaits checks that commands that change the session, the agent or the next line are delayed until the turn ends.
// Commands that only look are not delayed.
func TestWaits(t *testing.T) {
	for line, want := range map[string]bool{
		"/again": true, "/attach x": true, "/clear": true, "/exit": true, "/resume": true, "/show": true, "/provider x": true,
		"/mode auto":  true,
		"/config a b": true, "/session new": true, "/session use x": true, "/session export f": true,
		"/session delete x": true,
		"/provider":         false, "/mode": false, "/config": false, "/session": false, "/session list": false,
		"/session rename x": false,
		"/allow":            false, "/cancel": false, "/pending": false, "/log": false, "/queue": false, "/help": false,
	} {
		if l, err := Parse(line); err != nil || l.Waits() != want {
			t.Errorf("%s: got %v, %v; want err == nil && l.Waits() == %v", line, l.Waits(), err, want)
		}
	}
}
