package fact

import (
	"encoding/json"
	"testing"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/message"
	"github.com/perlica/perlica/provider"
)

// TestNamesStay checks that facts keep their JSON names and encode to the same bytes. Lines and fields may be added to
// the test. No line may change.
func TestNamesStay(t *testing.T) {
	tool := ToolSeen{ID: "1", Title: "T", Kind: "edit", Status: "completed"}
	const seen = `{"id":"1","title":"T","kind":"edit","status":"completed"}`
	for _, c := range []struct {
		fact any
		want string
	}{
		{MessageReceived{Text: "t", Attachments: []string{"/a"}, Source: "run", Sender: "s", Dir: "/d", Provider: "p",
			Rules: []string{"--deny x"}},
			`{"text":"t","attachments":["/a"],"source":"run","sender":"s","dir":"/d","provider":"p","rules":["--deny x"]}`},
		{Truncated{Kept: 1, Dropped: 2, Budget: 3, Estimate: 4},
			`{"kept_turns":1,"dropped_turns":2,"budget_tokens":3,"estimated_tokens":4}`},
		{Requested{"p", []string{"a"}, "d", 5, 1, "keep", "i"},
			`{"provider":"p","agent":["a"],"prompt_sha256":"d","prompt_bytes":5,"llm_call_index":1,"strategy":"keep","input_sha256":"i"}`},
		{Requested{},
			`{"provider":"","agent":null,"prompt_sha256":"","prompt_bytes":0,"llm_call_index":0,"strategy":"","input_sha256":""}`},
		{Responded{"p", "t", "end_turn", json.RawMessage(`{}`), true, &Cost{Amount: 1, Currency: "EUR"}, 2, 3,
			[]ToolSeen{tool}, []provider.Block{{Kind: "image", Size: 2}}},
			`{"provider":"p","text":"t","stop_reason":"end_turn","usage":{},"usage_of_session":true,"cost":{"amount":1,"currency":"EUR"},"duration_ms":2,"first_update_ms":3,"tool_calls":[` + seen + `],"content":[{"type":"image","size":2}]}`},
		{Responded{}, `{"provider":"","text":"","stop_reason":"","duration_ms":0,"first_update_ms":0,"tool_calls":null}`},
		{Failed{nil, 1, "t", []ToolSeen{tool}, "run", "k", message.Coded{Code: "a.b"}, nil},
			`{"duration_ms":1,"text":"t","tool_calls":[` + seen +
				`],"noticed_by":"run","known":"k","known_message":{"code":"a.b"}}`},
		{Failed{}, `{"duration_ms":0}`},
		{Enforced{1, 2, 3, Permissions{4, 5, 6, 7}, 8, 9},
			`{"calls":1,"blocked_tool_calls":2,"debug_lines_lost":3,"permissions":{"asked":4,"allowed":5,"denied":6,"unanswered":7},"unasked_tools":8,"freed_tools":9}`},
		{UnaskedTool{tool, "w", "q", message.Coded{Code: "a.b", Args: message.Args{1}}},
			`{"id":"1","title":"T","kind":"edit","status":"completed","why":"w","freed_by":"q","code":"a.b","args":[1]}`},
		{UnaskedTool{tool, "w", "", message.Coded{}}, `{"id":"1","title":"T","kind":"edit","status":"completed","why":"w"}`},
		{ToolBlocked{"fs/x", "7", "single_call_mode_local_tool_dispatch_disabled", json.RawMessage(`[1]`)},
			`{"method":"fs/x","request_id":"7","reason":"single_call_mode_local_tool_dispatch_disabled","params":[1]}`},
		{ToolResult{false, "fs/x", "7", "r"}, `{"ok":false,"method":"fs/x","request_id":"7","reason":"r"}`},
		{SessionCreated{"n", "p", true, false}, `{"name":"n","provider":"p","ephemeral":true}`},
		{SessionCreated{"", "p", true, true}, `{"provider":"p","ephemeral":true,"conversation":true}`},
		{SessionRenamed{"n"}, `{"name":"n"}`},
		{SessionClosed{true, "e"}, `{"requested":true,"error":"e"}`},
		{OversizedLine{9, "s", []byte("h")}, `{"length":9,"sha256":"s","head":"aA=="}`},
		{RequestTimeout{"m", "1s"}, `{"method":"m","after":"1s"}`},
		{PolicyDecided{Title: "t", Effect: "allow", By: "rule", Rule: 1, Approval: "a", Why: "w", Option: "o"},
			`{"title":"t","effect":"allow","by":"rule","rule":1,"approval":"a","why":"w","option":"o"}`},
		{PolicyDecided{Request: "7", Title: "t", Commands: []string{"ls"}, Dir: "/d", Paths: []string{"/p"},
			LeadsTo: map[string]string{"/p": "/q"}, Tier: "refused", Effect: "deny", By: "tier", Why: "w"},
			`{"request":"7","title":"t","commands":["ls"],"dir":"/d","paths":["/p"],"leads_to":{"/p":"/q"},` +
				`"tier":"refused","effect":"deny","by":"tier","why":"w"}`},
		{FlowStarted{"n", "d", "f", map[string]string{"i": "v"}, "me", "deny", "t", true},
			`{"name":"n","digest":"d","file":"f","inputs":{"i":"v"},"by":"me","permissions":"deny","team":"t","limited":true}`},
		{FlowDecided{Step: "s", Decision: FlowDone}, `{"step":"s","decision":"done"}`},
		{FlowFinished{Outcome: "done"}, `{"outcome":"done"}`},
		{ReplySent{"7", "selected", "o", "k", "b", "e"},
			`{"request_id":"7","outcome":"selected","option":"o","kind":"k","by":"b","error":"e"}`},
	} {
		if e := event.NewFact("x", "user", event.Refs{}, c.fact); string(e.Payload) != c.want {
			t.Errorf("%T:\n %s, want\n %s", c.fact, e.Payload, c.want)
		}
	}
}

// TestWhat checks that the text adds the judged command to the agent's title, unless the title is that command or ends
// with it.
func TestWhat(t *testing.T) {
	for want, p := range map[string]PolicyDecided{
		"a tool":                            {},
		"ls":                                {Title: "ls", Commands: []string{"ls"}},
		"`ls`":                              {Title: "`ls`", Commands: []string{"ls"}},
		"Only ls: ls -R":                    {Title: "Only ls", Commands: []string{"ls -R", "ls -R"}},
		"ls (harmless): rm x":               {Title: "ls (harmless)", Commands: []string{"rm x"}},
		"Echo rm x now: rm x":               {Title: "Echo rm x now", Commands: []string{"rm x"}},
		"run_commands: ls":                  {Title: "run_commands: ls", Commands: []string{"ls"}},
		"Write /w/a":                        {Title: "Write /w/a", Paths: []string{"/w/a"}},
		"Write a: /w/a; /w/b":               {Title: "Write a", Paths: []string{"/w/a", "/w/b", "/w/a"}},
		"Create file: /p/yes.txt":           {Title: "Create file", Paths: []string{"/p/yes.txt"}},
		"a tool: go test ./...; /w; /w/sub": {Commands: []string{"go test ./..."}, Paths: []string{"/w", "/w/sub"}},
	} {
		if got := p.What(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestFactsOfOthers checks that the fields of a provider's error and the other fields of the fact are members of the
// same JSON object.
func TestFactsOfOthers(t *testing.T) {
	e := event.NewFact(event.ProviderError, "perlica", event.Refs{},
		Failed{Error: &provider.Error{Provider: "p", Message: "m"}, Known: "k"})
	f, err := Decode[Failed](e)
	if err != nil || f.Error == nil || f.Provider != "p" || f.Message != "m" || f.Known != "k" {
		t.Errorf("%+v, %v", f, err)
	}
}
