package provider

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/coder/acp-go-sdk"
)

func params(update string) []byte { return []byte(`{"sessionId":"s","update":` + update + `}`) }

func TestParseUpdate(t *testing.T) {
	for name, tt := range map[string]struct {
		update string
		want   Update // without Raw
	}{
		"message": {`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":" a\n\t\u00e9\ud83d\ude00 "}}`,
			Update{Kind: AgentMessageChunk, Text: " a\n\té😀 "}},
		"thought": {`{"content":{"text":"hm","type":"text"},"sessionUpdate":"agent_thought_chunk"}`,
			Update{Kind: AgentThoughtChunk, Text: "hm"}},
		"half an emoji": {`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"a\ud83d"}}`,
			Update{Kind: AgentMessageChunk, Text: "a\uFFFD", first: 0xd83d}},
		"image": {`{"sessionUpdate":"agent_message_chunk","content":{"type":"image","mimeType":"image/png","data":"eA==","text":"no"}}`, Update{Kind: AgentMessageChunk, Block: &Block{Kind: "image", MIME: "image/png", Size: 1, Data: []byte("x")}}},
		"no base64": {`{"sessionUpdate":"agent_message_chunk","content":{"type":"audio","data":"?"}}`,
			Update{Kind: AgentMessageChunk, Block: &Block{Kind: "audio"}}},
		"resource": {`{"sessionUpdate":"agent_message_chunk","content":{"type":"resource","resource":{"uri":"file:///a","mimeType":"text/plain","text":"abc"}}}`, Update{Kind: AgentMessageChunk, Block: &Block{Kind: "resource", MIME: "text/plain", URI: "file:///a", Size: 3, Data: []byte("abc")}}},
		"binary resource": {`{"sessionUpdate":"agent_message_chunk","content":{"type":"resource","resource":{"uri":7,"blob":"AAE"}}}`,
			Update{Kind: AgentMessageChunk, Block: &Block{Kind: "resource", Size: 2, Data: []byte{0, 1}}}},
		"link": {`{"sessionUpdate":"agent_message_chunk","content":{"type":"resource_link","uri":"file:///etc/passwd","name":"n","size":9,"data":"eA=="}}`, Update{Kind: AgentMessageChunk, Block: &Block{Kind: "resource_link", URI: "file:///etc/passwd", Name: "n", Size: 9}}},
		"message id": {`{"sessionUpdate":"agent_message_chunk","messageId":"m1","content":{"type":"text","text":"a"}}`,
			Update{Kind: AgentMessageChunk, Text: "a", Message: "m1"}},
		"odd message id": {`{"sessionUpdate":"agent_message_chunk","messageId":7,"content":{"type":"text","text":"a"}}`,
			Update{Kind: AgentMessageChunk, Text: "a"}},
		"title": {`{"sessionUpdate":"session_info_update","title":"T"}`,
			Update{Kind: "session_info_update", Title: "T"}},
		"unknown content": {`{"sessionUpdate":"agent_message_chunk","content":{"type":"hologram"}}`,
			Update{Kind: AgentMessageChunk, Block: &Block{Kind: "hologram"}}},
		"unknown kind": {`{"sessionUpdate":"notice","level":"info"}`, Update{Kind: "notice", unknown: true}},
		"tool": {`{"sessionUpdate":"tool_call","toolCallId":"t","title":"T","kind":"edit","status":"pending","name":"x",` +
			`"rawInput":{"n":9007199254740993},"locations":[{"path":"/a","line":3}],"content":[{"type":"diff","path":"/a","oldText":null,"newText":"b"},` +
			`{"type":"content","content":{"type":"text","text":"out"}},{"type":"terminal","terminalId":"x"}]}`,
			Update{Kind: ToolCallStarted, Tool: &ToolCall{
				ID: "t", Title: "T", Kind: acp.ToolKindEdit, Status: acp.ToolCallStatusPending,
				RawInput:  json.RawMessage(`{"n":9007199254740993}`),
				Locations: []acp.ToolCallLocation{{Path: "/a", Line: acp.Ptr(3)}},
				Content: []ToolContent{
					{Type: "diff", Path: "/a", NewText: "b"},
					{Type: "content", Text: "out"},
					{Type: "terminal", Raw: json.RawMessage(`{"type":"terminal","terminalId":"x"}`)},
				},
			}}},
		"tool of a strange form": {`{"sessionUpdate":"tool_call","toolCallId":"t","kind":"execute","content":"strange","locations":7}`,
			Update{Kind: ToolCallStarted,
				Tool: &ToolCall{ID: "t", Kind: "execute", Content: []ToolContent{{Type: "undecodable", Text: `"strange"`,
					Raw: json.RawMessage(`"strange"`)}}, partial: true}}},
		"sparse tool update": {`{"sessionUpdate":"tool_call_update","toolCallId":"t","status":null,"content":null}`,
			Update{Kind: ToolCallUpdated, Tool: &ToolCall{ID: "t"}}},
		"plan": {`{"sessionUpdate":"plan","entries":[{"content":"a","priority":"high","status":"pending"}]}`,
			Update{Kind: PlanChanged, Plan: []acp.PlanEntry{{Content: "a", Priority: "high", Status: "pending"}}}},
		"usage": {`{"sessionUpdate":"usage_update","used":120,"size":1000}`,
			Update{Kind: usageChanged, Usage: &acp.UsageUpdate{Used: 120, Size: 1000}}},
	} {
		session, u, ok := parseUpdate(params(tt.update))
		if !ok || session != "s" || string(u.Raw) != tt.update {
			t.Errorf("%s: session %q, %v, raw %s", name, session, ok, u.Raw)
		}
		u.Raw = nil
		if !reflect.DeepEqual(u, tt.want) {
			t.Errorf("%s:\n got %+v\nwant %+v", name, u, tt.want)
		}
	}
}

func TestParseUpdateRefuses(t *testing.T) {
	for _, s := range []string{
		``, `null`, `[]`, `{}`, `{"sessionId":"s"}`, `{"sessionId":5,"update":{"sessionUpdate":"plan"}}`,
		`{"sessionId":"s","update":null}`, `{"sessionId":"s","update":{}}`, `{"sessionId":"s","update":{"sessionUpdate":7}}`,
		`{"sessionId":"s","update":{"sessionUpdate":"tool_call","toolCallId":7}}`,
		`{"sessionId":"s","update":{"sessionUpdate":"plan","entries":{}}}`,
		`{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk"}}`,
		`{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":"text"}}`,
		`{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":5}}}`,
		`{"sessionId":"s","update":{"sessionUpdate":"agent_thought_chunk","content":{}}}`,
	} {
		if _, _, ok := parseUpdate([]byte(s)); ok {
			t.Errorf("%s was taken", s)
		}
	}
}

func TestParseUpdateOfALine(t *testing.T) {
	line := `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"x"}}}}`
	if u, ok := ParseUpdate([]byte(line), ""); !ok || u.Text != "x" {
		t.Errorf(`got %+v %v; want ok && u.Text == "x"`, u, ok)
	}
	for _, line := range []string{"", `{"id":1,"result":{}}`, strings.Replace(line, "session/update", "session/other", 1),
		line + "x", strings.Replace(line, `"method"`, `"id":1,"method"`, 1)} {
		if u, ok := ParseUpdate([]byte(line), ""); ok {
			t.Errorf("%s: got %+v; want !ok", line, u)
		}
	}
}

// TestParseUpdateOfAnotherSession checks that an update of another session is not returned.
func TestParseUpdateOfAnotherSession(t *testing.T) {
	line := []byte(
		`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"a","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"x"}}}}`)
	if u, ok := ParseUpdate(line, "b"); ok || u.Text != "" || u.Kind != "" {
		t.Errorf("taken: %+v", u)
	}
	if u, ok := ParseUpdate(line, "a"); !ok || u.Text != "x" {
		t.Errorf(`got %+v, %v; want ok && u.Text == "x"`, u, ok)
	}
}

// FuzzParseUpdate checks that kind, session and text equal the results of encoding/json.
func FuzzParseUpdate(f *testing.F) {
	f.Add([]byte(
		`{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"a\ud83db"}}}`))
	f.Add([]byte(
		`{"sessionId":"s","update":{"sessionUpdate":"tool_call","toolCallId":"t","content":[{"type":"diff"}],"rawInput":1e999}}`))
	f.Add([]byte(`{"sessionId":"s","update":{"sessionUpdate":"plan","entries":[]}}`))
	f.Add([]byte(`{"sessionId":"s","update":{"sessionUpdate":"usage_update","used":1,"cost":{}}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		session, u, ok := parseUpdate(b)
		if !ok || !utf8.Valid(b) {
			return
		}
		top, once := members(b)
		update, onceToo := members(u.Raw)
		if !once || !onceToo {
			return
		}
		for got, raw := range map[*string]json.RawMessage{&session: top["sessionId"], &u.Kind: update["sessionUpdate"]} {
			var want string
			if raw != nil && json.Unmarshal(raw, &want) != nil || *got != want {
				t.Fatalf("%q, want %s", *got, raw)
			}
		}
		block, once := members(update["content"])
		if !once || u.Kind != AgentMessageChunk {
			return
		}
		var kind, text string
		if json.Unmarshal(block["type"], &kind) != nil || json.Unmarshal(block["text"], &text) != nil || kind != "text" {
			text = ""
		}
		if u.Text != text {
			t.Fatalf("text %q, want %q", u.Text, text)
		}
	})
}

// members returns the members of a JSON object, or nil for another value. The result "once" is false if a key of the
// envelope appears twice.
func members(line []byte) (m map[string]json.RawMessage, once bool) {
	if json.Unmarshal(line, &m) != nil {
		return nil, false
	}
	d := json.NewDecoder(bytes.NewReader(line))
	d.Token()
	seen := map[any]bool{}
	for d.More() {
		key, _ := d.Token()
		if seen[key] {
			return m, false
		}
		seen[key] = true
		var v json.RawMessage
		d.Decode(&v)
	}
	return m, true
}
