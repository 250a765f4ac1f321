package toolcall

import (
	"encoding/json"
	"testing"

	"github.com/perlica/perlica/policy"
)

// TestDiffers kills the mutants that compare texts instead of targets, and those that take
// something left out for something else.
func TestDiffers(t *testing.T) {
	const ls = `{"command":"ls -la"}`
	for _, test := range []struct {
		kind, asked string
		reported    Call
		same        bool
	}{
		{"execute", ls, Call{Kind: "execute", RawInput: json.RawMessage(ls)}, true},
		{"execute", ls, Call{Kind: "execute"}, true},
		{"execute", ls, Call{Title: "ls -la"}, true},
		{"execute", ls, Call{Title: "Listed 3 files"}, true},
		{"execute", ls, Call{RawInput: json.RawMessage(`{"command":"ls   '-la'","cwd":"/w/proj"}`)}, true},
		{"execute", ls, Call{RawInput: json.RawMessage(`{"command":["/bin/zsh","-lc","ls -la"]}`)}, true},
		{"execute", ls, Call{RawInput: json.RawMessage(`{"command":"/bin/bash -lc 'ls -la'"}`)}, true},
		{"execute", ls, Call{RawInput: json.RawMessage(`{"command":"ls","args":["-la"]}`)}, true},
		{"execute", ls, Call{RawInput: json.RawMessage(`{"command":"ls -la","timeout":9,"description":"List"}`)}, true},
		{"execute", ls, Call{Kind: "execute", Locations: []string{"/w/proj"}}, true},
		{"execute", ls, Call{RawInput: json.RawMessage(`{"command":"rm -rf /important"}`)}, false},
		{"execute", ls, Call{RawInput: json.RawMessage(`{"command":"ls -la; rm x"}`)}, false},
		{"execute", ls, Call{RawInput: json.RawMessage(`{"command":"bash -c 'ls -la' > /etc/x"}`)}, false},
		{"execute", ls, Call{RawInput: json.RawMessage(`{"command":"ls -la","args":["/root"]}`)}, false},
		{"execute", ls, Call{RawInput: json.RawMessage(`{"command":"ls -la","cwd":"/etc"}`)}, false},
		{"execute", ls, Call{RawInput: json.RawMessage(`{"command":"ls -la","env":{"PATH":"/x"}}`)}, false},
		{"execute", ls, Call{RawInput: json.RawMessage(`{"command":"ls -la","then":"remove it all"}`)}, false},
		{"execute", ls, Call{Title: "rm -rf /important"}, false},
		{"execute", ls, Call{Title: "rm -rf /important", RawInput: json.RawMessage(ls)}, false},
		{"execute", ls, Call{Diffs: []Diff{{Path: "/etc/passwd"}}}, false},
		{"edit", `{"path":"a"}`, Call{Kind: "edit", Locations: []string{"/w/proj/a"}}, true},
		{"edit", `{"path":"a"}`, Call{Title: "a"}, true},
		{"edit", `{"path":"a"}`, Call{RawInput: json.RawMessage(`{"filePath":"/w/proj/./a"}`)}, true},
		{"edit", `{"path":"a"}`, Call{Locations: []string{"/w/proj/b"}}, false},
		{"edit", `{"path":"a"}`, Call{Diffs: []Diff{{Path: "/etc/passwd"}}}, false},
		{"edit", `{"path":"a"}`, Call{Kind: "delete", Locations: []string{"/w/proj/a"}}, false},
		{"read", `{"path":"a"}`, Call{Kind: "execute"}, false},
		{"search", `{"pattern":"x","path":"."}`, Call{Kind: "search", Locations: []string{"/w/proj/b"}}, true},
		{"other", `{"tool":"x"}`, Call{RawInput: json.RawMessage(`{"tool":"y"}`)}, false},
		{"other", `{"tool":"x"}`, Call{RawInput: json.RawMessage(`{"command":"ls"}`)}, false},
		{"other", `{"tool":"x"}`, Call{Kind: "other", Title: "Deleted it", RawInput: json.RawMessage(`{"tool":"x"}`)}, true},
		{"execute", ls, Call{RawInput: json.RawMessage(`{"command":"ls -la","sudo":true}`)}, false},
	} {
		asked := Read(Call{Kind: test.kind, Title: "ls -la", RawInput: json.RawMessage(test.asked)}, at).Request
		why := Differs([]policy.Request{asked}, test.reported, at)
		if (why == "") != test.same {
			t.Errorf("%s, then %s %q %v: %q", test.asked, test.reported.RawInput, test.reported.Title, test.reported.Locations, why)
		}
	}
}
