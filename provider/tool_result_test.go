package provider_test

import (
	"encoding/json"
	"testing"

	"github.com/perlica/perlica/provider"
)

// TestToolResult reads the results of tool calls in all forms that agents use.
func TestToolResult(t *testing.T) {
	text := func(s string) string {
		b, _ := json.Marshal(s)
		return `{"type":"content","content":{"type":"text","text":` + string(b) + `}}`
	}
	for _, c := range []struct {
		name    string
		updates []string
		output  string
		exit    int // -1 for no exit code
	}{
		{"claude puts a fence around it", []string{
			`{"title":"echo","content":[` + text("a description") + `]}`,
			`{"status":"completed","rawOutput":"hello","content":[` + text("```console\nhello\n```") + `]}`}, "hello", -1},
		{"a fence within it stays", []string{`{"content":[` + text("```\na\n```\nb\n```\nc\n```") + `]}`},
			"```\na\n```\nb\n```\nc\n```", -1},
		{"a longer fence", []string{`{"content":[` + text("````\n```\na\n```\n````\n") + `]}`}, "```\na\n```", -1},
		{"an empty fence", []string{`{"content":[` + text("```\n```") + `]}`}, "", -1},
		{"opencode says the exit code in its metadata", []string{
			`{"content":[` + text("hello\n") + `],"rawOutput":{"output":"hello\n","metadata":{"exit":3}}}`}, "hello\n", 3},
		{"codex prints piece by piece", []string{
			`{"content":[{"type":"terminal","terminalId":"t"}]}`,
			`{"_meta":{"terminal_output_delta":{"data":"a\n","terminal_id":"t"}}}`,
			`{"status":"completed","_meta":{"terminal_output_delta":{"data":"b\n"},"terminal_exit":{"exit_code":0,"signal":null}}}`}, "a\nb\n", 0},
		{"a command that never ran", []string{`{"status":"failed","_meta":{"terminal_exit":{"exit_code":null}}}`}, "", -1},
		{"raw output alone", []string{`{"rawOutput":"plain"}`}, "plain", -1},
		{"its members", []string{`{"rawOutput":{"exit_code":1,"formatted_output":"f","stdout":"s"}}`}, "f", 1},
		{"of no known form", []string{`{"rawOutput":[{"result":""}]}`}, `[{"result":""}]`, -1},
		{"nothing", []string{`{"rawOutput":{}}`, `{"rawOutput":null}`}, "", -1},
		{"a diff says all", []string{`{"content":[{"type":"diff","path":"a","newText":"x"}],"rawOutput":"written"}`}, "", -1},
		{"a picture", []string{`{"content":[` + text("a\n") +
			`,{"type":"content","content":{"type":"image","mimeType":"image/png","data":"iVBORw0KGgo="}},{"type":"content","content":7}]}`},
			"a\n\n[image image/png, 8 B]", -1},
		{"_meta of another form", []string{`{"_meta":{"terminal_exit":7},"rawOutput":{"exit_code":"one","output":"o"}}`}, "o",
			-1},
	} {
		t.Run(c.name, func(t *testing.T) {
			var call provider.ToolCall
			for _, u := range c.updates {
				var update provider.ToolCall
				if err := json.Unmarshal([]byte(u), &update); err != nil {
					t.Fatal(err)
				}
				call.Merge(update)
			}
			if got := call.Output(); got != c.output {
				t.Errorf("its output is %q, want %q", got, c.output)
			}
			code, ok := call.ExitCode()
			if !ok {
				code = -1
			}
			if code != c.exit {
				t.Errorf("its exit code is %d, want %d", code, c.exit)
			}
		})
	}
}

// TestMergeToolCall checks that fields that an update leaves empty stay unchanged.
func TestMergeToolCall(t *testing.T) {
	call := provider.ToolCall{ID: "1", Title: "t", Kind: "edit", Status: "pending", RawInput: []byte(`{"a":1}`),
		Content: []provider.ToolContent{{Text: "x"}}}
	call.Merge(provider.ToolCall{ID: "1", Status: "completed"})
	if call.Title != "t" || call.Kind != "edit" || string(call.RawInput) != `{"a":1}` || len(call.Content) != 1 ||
		!call.Over() {
		t.Errorf("it became %+v", call)
	}
	call.Merge(provider.ToolCall{ID: "1", Title: "u", Content: []provider.ToolContent{{Text: "y"}, {Text: "z"}}})
	if call.Title != "u" || call.Output() != "y\nz" {
		t.Errorf("it became %+v", call)
	}
}
