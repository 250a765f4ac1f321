package policy

import (
	"encoding/json"
	"testing"
)

// TestDiffers checks that a reported call may write the approved command, path or field in another way, or omit it. Any
// other command, path or field is a difference.
func TestDiffers(t *testing.T) {
	const ls = `{"command":"ls -la"}`
	for _, test := range []struct {
		kind, asked string
		reported    ToolCall
		same        bool
	}{
		{"execute", ls, ToolCall{Kind: "execute", RawInput: json.RawMessage(ls)}, true},
		{"execute", ls, ToolCall{Kind: "execute"}, true},
		{"execute", ls, ToolCall{Title: "ls -la"}, true},
		{"execute", ls, ToolCall{Title: "Listed 3 files"}, true},
		{"execute", ls, ToolCall{RawInput: json.RawMessage(`{"command":"ls   '-la'","cwd":"/w/proj"}`)}, true},
		{"execute", ls, ToolCall{RawInput: json.RawMessage(`{"command":["/bin/zsh","-lc","ls -la"]}`)}, true},
		{"execute", ls, ToolCall{RawInput: json.RawMessage(`{"command":"/bin/bash -lc 'ls -la'"}`)}, true},
		{"execute", ls, ToolCall{RawInput: json.RawMessage(`{"command":"ls","args":["-la"]}`)}, true},
		{"execute", ls, ToolCall{RawInput: json.RawMessage(`{"command":"ls -la","timeout":9,"description":"List"}`)},
			true},
		{"execute", ls, ToolCall{Kind: "execute", Locations: []string{"/w/proj"}}, true},
		{"execute", ls, ToolCall{RawInput: json.RawMessage(`{"command":"rm -rf /important"}`)}, false},
		{"execute", ls, ToolCall{RawInput: json.RawMessage(`{"command":"ls -la; rm x"}`)}, false},
		{"execute", ls, ToolCall{RawInput: json.RawMessage(`{"command":"bash -c 'ls -la' > /etc/x"}`)}, false},
		{"execute", ls, ToolCall{RawInput: json.RawMessage(`{"command":"ls -la","args":["/root"]}`)}, false},
		{"execute", ls, ToolCall{RawInput: json.RawMessage(`{"command":"ls -la","cwd":"/etc"}`)}, false},
		{"execute", ls, ToolCall{RawInput: json.RawMessage(`{"command":"ls -la","env":{"PATH":"/x"}}`)}, false},
		{"execute", ls, ToolCall{RawInput: json.RawMessage(`{"command":"ls -la","then":"remove it all"}`)}, false},
		{"execute", ls, ToolCall{Title: "rm -rf /important"}, false},
		{"execute", ls, ToolCall{Title: "rm -rf /important", RawInput: json.RawMessage(ls)}, false},
		{"execute", ls, ToolCall{Diffs: []Diff{{Path: "/etc/passwd"}}}, false},
		{"edit", `{"path":"a"}`, ToolCall{Kind: "edit", Locations: []string{"/w/proj/a"}}, true},
		{"edit", `{"path":"a"}`, ToolCall{Title: "a"}, true},
		{"edit", `{"path":"a"}`, ToolCall{RawInput: json.RawMessage(`{"filePath":"/w/proj/./a"}`)}, true},
		{"edit", `{"path":"a"}`, ToolCall{Locations: []string{"/w/proj/b"}}, false},
		{"edit", `{"path":"a"}`, ToolCall{Diffs: []Diff{{Path: "/etc/passwd"}}}, false},
		{"edit", `{"path":"a"}`, ToolCall{Kind: "delete", Locations: []string{"/w/proj/a"}}, false},
		{"read", `{"path":"a"}`, ToolCall{Kind: "execute"}, false},
		{"search", `{"pattern":"x","path":"."}`, ToolCall{Kind: "search", Locations: []string{"/w/proj/b"}}, true},
		{"other", `{"tool":"x"}`, ToolCall{RawInput: json.RawMessage(`{"tool":"y"}`)}, false},
		{"other", `{"tool":"x"}`, ToolCall{RawInput: json.RawMessage(`{"command":"ls"}`)}, false},
		{"other", `{"tool":"x"}`, ToolCall{Kind: "other", Title: "Deleted it",
			RawInput: json.RawMessage(`{"tool":"x"}`)}, true},
		{"execute", ls, ToolCall{RawInput: json.RawMessage(`{"command":"ls -la","sudo":true}`)}, false},
	} {
		asked := ReadToolCall(ToolCall{Kind: test.kind, Title: "ls -la", RawInput: json.RawMessage(test.asked)},
			place).Request
		why := Differs([]Request{asked}, test.reported, place)
		if (why == nil) != test.same {
			t.Errorf("%s, then %s %q %v: %q", test.asked, test.reported.RawInput, test.reported.Title,
				test.reported.Locations, why)
		}
	}
}
