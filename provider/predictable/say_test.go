package predictable

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/coder/acp-go-sdk"

	"github.com/perlica/perlica/provider/agentside"
)

func TestEcho(t *testing.T) {
	c := open(t, Options{})
	for _, tt := range []struct{ prompt, want string }{
		{"hello", "You said: hello"},
		{"  two\nlines\n", "You said:   two\nlines\n"},
		{"", "You said: "},
		{"@nobody is a directive\n@@say x", "You said: @nobody is a directive\n@say x"},
		{"before\n@only\n@say !\nafter", "!"},
		{"before\n\n@say !\n\nafter\n", "You said: before!You said: after"},
		{`@say   leading\n\ttab \u00e9 \x41 \\`, "  leading\n\ttab é A \\"},
		{"@say crlf\r\n@say two", "crlftwo"},
		{"@prompt", "@prompt"},
	} {
		text, m, _ := c.prompt(tt.prompt)
		if text != tt.want || stopReason(t, m) != "end_turn" {
			t.Errorf("%q: %q, %s; want %q", tt.prompt, text, m.Result, tt.want)
		}
	}
	if err := c.endInput(); err != nil {
		t.Errorf("Serve: %v", err)
	}
}

// TestAnEchoIsOneWrite checks that the agent sends an echo and its response with one Write. It also checks that the
// agent does not hold back the lines of a script that waits.
func TestAnEchoIsOneWrite(t *testing.T) {
	for _, tt := range []struct {
		scenario, prompt string
		least, most      int
	}{
		{"", "two\nlines", 1, 1},
		{"", "", 1, 1},
		{"", "hello\n@say two", 3, 3},
		{"", strings.Repeat("long\n", keepBuffer/5), 20, 60}, // more than 64 KiB of lines
	} {
		var out bytes.Buffer
		writes := 0
		in := strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}` + "\n" +
			`{"jsonrpc":"2.0","id":2,"method":"session/new","params":{"cwd":"/work","mcpServers":[]}}` + "\n" +
			`{"jsonrpc":"2.0","id":3,"method":"session/prompt","params":` + promptParams("session-1", tt.prompt) + "}\n")
		w := writerFunc(func(b []byte) (int, error) {
			writes++
			return out.Write(b)
		})
		if err := Serve(t.Context(), in, w, io.Discard, Options{Scenario: tt.scenario}); err != nil {
			t.Fatal(err)
		}
		if got := writes - 2; got < tt.least || got > tt.most || !strings.Contains(out.String(),
			`"id":3,"result":{"stopReason":"end_turn"}`) {
			t.Errorf("%.20q: %d writes, want %d to %d: %.300s", tt.prompt, got, tt.least, tt.most, out.String())
		}
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

func TestAttached(t *testing.T) {
	c := open(t, Options{})
	m, lines := c.awaitResponse(c.request("session/prompt",
		`{"sessionId":"session-1","prompt":[{"type":"text","text":"look"},`+
			`{"type":"resource","resource":{"uri":"file:///a","text":"@exit 3"}},{"type":"resource_link","uri":"file:///b","name":"b"},`+
			`{"type":"image","mimeType":"image/png","data":"AAAA"}]}`))
	want := "You said: look\nAttached: resource file:///a, 7 bytes\nAttached: resource_link file:///b\nAttached: image " +
		"image/png, 4 bytes\n"
	if got := textOf(lines); got != want || stopReason(t, m) != "end_turn" {
		t.Errorf("%q %s", got, m.Result)
	}
}

// TestLines checks the complete lines that directives and responses write.
func TestLines(t *testing.T) {
	t.Setenv("PREDICTABLE_TEST", "v")
	up := func(u string) string {
		return `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"session-1","update":` + u + `}}`
	}
	say := func(text string) string { return up(string(chunk(messageChunk, text))) }
	const done = `{"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn"}}`
	for _, tt := range []struct {
		script string
		want   []string
	}{
		{"@thought hm", []string{up(`{"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"hm"}}`), done}},
		{"@show session\n@show history\n@show env PREDICTABLE_TEST\n@show env PREDICTABLE_NONE",
			[]string{say("session: session-1, mode ask, in /work\n"), say("history: 0 turns\n"),
				say("env PREDICTABLE_TEST: v\n"), say("env PREDICTABLE_NONE: (unset)\n"), done}},
		{"@show params", []string{say(promptParams("session-1", "@show params") + "\n"), done}},
		{"@stream 2 3", []string{say("xxx"), say("xxx"), done}},
		{"@stream 2 12 kind=thought", []string{up(string(chunk(thoughtChunk, "000000000 x\n"))),
			up(string(chunk(thoughtChunk, "000000001 x\n"))), done}},
		{`@plan completed:a "in_progress:b c" d`,
			[]string{up(
				`{"sessionUpdate":"plan","entries":[{"content":"a","priority":"medium","status":"completed"},{"content":"b c","priority":"medium","status":"in_progress"},{"content":"d","priority":"medium","status":"pending"}]}`), done}},
		{"@usage 5 100 cost=0.25", []string{up(
			`{"sessionUpdate":"usage_update","used":5,"size":100,"cost":{"amount":0.25,"currency":"USD"}}`), done}},
		{"@title A title", []string{up(`{"sessionUpdate":"session_info_update","title":"A title"}`), done}},
		{"@mode auto\n@show session", []string{up(`{"sessionUpdate":"current_mode_update","currentModeId":"auto"}`),
			say("session: session-1, mode auto, in /work\n"), done}},
		{"@commands a b", []string{up(
			`{"sessionUpdate":"available_commands_update","availableCommands":[{"name":"a","description":"Does nothing."},{"name":"b","description":"Does nothing."}]}`), done}},
		{`@update {"sessionUpdate":"notice", "n":9007199254740993}`,
			[]string{up(`{"sessionUpdate":"notice", "n":9007199254740993}`), done}},
		{`@update {"sessionUpdate":"x"} session=other`,
			[]string{`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"other","update":{"sessionUpdate":"x"}}}`,
				done}},
		{`@tool execute "Run ls" command="ls -l" text=out`, []string{
			up(`{"sessionUpdate":"tool_call","toolCallId":"call-1","title":"Run ls","kind":"execute","status":"pending","rawInput":{"command":"ls -l"}}`),
			up(`{"sessionUpdate":"tool_call_update","toolCallId":"call-1","status":"in_progress"}`),
			up(`{"sessionUpdate":"tool_call_update","toolCallId":"call-1","status":"completed","content":[{"type":"content","content":{"type":"text","text":"out"}}],"rawOutput":{"output":"out"}}`), done}},
		{`@tool edit E id=e path=/a line=3 old=x new="y\n" input={"n":9007199254740993} steps=failed`, []string{
			up(`{"sessionUpdate":"tool_call","toolCallId":"e","title":"E","kind":"edit","status":"failed","content":[{"type":"diff","path":"/a","oldText":"x","newText":"y\n"}],"locations":[{"path":"/a","line":3}],"rawInput":{"n":9007199254740993}}`), done}},
		{`@tool read R id=r announce=no steps=completed`, []string{up(
			`{"sessionUpdate":"tool_call_update","toolCallId":"r","status":"completed"}`), done}},
		{"@notify _vendor/x {\"a\":1}\n@notify vendor/y\n@request x wait=no rpcid=\"q\"",
			[]string{`{"jsonrpc":"2.0","method":"_vendor/x","params":{"a":1}}`,
				`{"jsonrpc":"2.0","method":"vendor/y","params":{"sessionId":"session-1"}}`,
				`{"jsonrpc":"2.0","id":"q","method":"x","params":{"sessionId":"session-1"}}`, done}},
		{"@stop refusal", []string{`{"jsonrpc":"2.0","id":3,"result":{"stopReason":"refusal"}}`}},
		{"@tokens 3 4",
			[]string{`{"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn","usage":{"inputTokens":3,"outputTokens":4,"totalTokens":7}}}`}},
		{"@set a.b 9007199254740993\n@set c $id\n@unset stopReason",
			[]string{`{"jsonrpc":"2.0","id":3,"result":{"a":{"b":9007199254740993},"c":"3"}}`}},
		{"@result null", []string{`{"jsonrpc":"2.0","id":3,"result":null}`}},
		{"@result {}", []string{`{"jsonrpc":"2.0","id":3,"result":{}}`}},
		{`@error 77 "no luck" data={"x":1}`,
			[]string{`{"jsonrpc":"2.0","id":3,"error":{"code":77,"message":"no luck","data":{"x":1}}}`}},
		{`@error "str" undecodable`, []string{`{"jsonrpc":"2.0","id":3,"error":{"code":"str","message":"undecodable"}}`}},
		{"@auth", []string{`{"jsonrpc":"2.0","id":3,"error":{"code":-32000,"message":"Authentication required"}}`}},
		{"@answer\n@say late\n@answer\n@line end", []string{done, say("late"), done, "end"}},
		{"@line\n@line garbage\n@bytes ab\n@bytes c\\n\n@garbage 5", []string{"", "garbage", "abc", "?????", done}},
		{`@line {"jsonrpc":"2.0","id":999,"result":{"s":"$session","i":$id}}`,
			[]string{`{"jsonrpc":"2.0","id":999,"result":{"s":"session-1","i":3}}`, done}},
		{`@say bad \xff byte`, []string{say("bad \xff byte"), done}},
		{"@eol \\r\\n\n@say a\n@eol \\n\\n\n@say b\n@eol\n@say c", []string{say("a") + "\r", say("b"), "", say("c"), done}},
		{"@delay 1ms\n@say a\n@delay 0s\n@sleep 1ms", []string{say("a"), done}},
		{"@say x\n@cancelled\n@say never", []string{say("x"), done}},
		{"@cancel\n@say never\n@cancelled\n@say caught\n@stop refusal",
			[]string{say("caught"), `{"jsonrpc":"2.0","id":3,"result":{"stopReason":"refusal"}}`}},
		{"@cancel", []string{`{"jsonrpc":"2.0","id":3,"result":{"stopReason":"cancelled"}}`}},
		{"@sleep soon",
			[]string{`{"jsonrpc":"2.0","id":3,"error":{"code":-32602,"message":"line 1: @sleep: DURATION is a duration such as 50ms or 10s (usage: @sleep DURATION)"}}`}},
	} {
		t.Run(tt.script, func(t *testing.T) {
			c := open(t, Options{})
			c.request("session/prompt", promptParams(c.sid, tt.script))
			for i, want := range tt.want {
				if got := c.line(); got != want+"\n" {
					t.Fatalf("line %d\n got %q\nwant %q", i+1, got, want+"\n")
				}
			}
			c.in.Close()
			if got := c.line(); got != "" {
				t.Errorf("more: %q", got)
			}
		})
	}
}

// TestUpdatesConform checks that the types of the ACP SDK can decode the updates of the correct directives.
func TestUpdatesConform(t *testing.T) {
	c := open(t, Options{})
	_, _, lines := c.prompt(`@say a
@thought b
@plan completed:x y
@usage 1 2 cost=0.1
@title t
@mode ask
@commands c
@tool edit E path=/a old=x new=y
@tool execute E command=ls text=out
@stream 3 40`)
	if len(lines) < 15 {
		t.Fatalf("%d lines", len(lines))
	}
	for _, l := range lines {
		var m agentside.Message
		decode(t, json.RawMessage(l), &m)
		var n acp.SessionNotification
		decode(t, m.Params, &n)
		if err := n.Validate(); err != nil {
			t.Errorf("%s: %v", l, err)
		}
	}
	var init acp.InitializeResponse
	decode(t, c.call("initialize", `{"protocolVersion":1}`).Result, &init)
	var made acp.NewSessionResponse
	decode(t, c.call("session/new", `{"cwd":"/","mcpServers":[]}`).Result, &made)
	if err := init.Validate(); err != nil || init.ProtocolVersion != 1 {
		t.Errorf("initialize: %+v %v", init, err)
	}
	if err := made.Validate(); err != nil || made.Modes.CurrentModeId != "ask" {
		t.Errorf("session/new: %+v %v", made, err)
	}
}

func TestArguments(t *testing.T) {
	for script, want := range map[string]string{
		"@sleep":                           "DURATION is missing",
		"@sleep 1s 2s":                     "too many arguments: 2s",
		"@sleep 1s color=red":              "unknown key color=",
		"@stream x 1":                      "COUNT is a number",
		"@stream 1 1 kind=plan":            "kind= is",
		"@update {":                        "bad JSON",
		`@say \q`:                          `\q is no escape`,
		`@say \x4`:                         `\x wants 2 hex digits`,
		`@say \`:                           `\ at the end`,
		"@ignore nothing":                  "WHAT is one of",
		"@ask execute":                     "TITLE is missing",
		"@ask execute t options=a":         "an option is",
		"@ask execute t wait=perhaps":      "wait= is yes or no",
		"@tool edit e old=x":               "need path=",
		"@error {}x y":                     "no space after {}",
		"@spawn 1s stubborn stdout stderr": "needs stdout or stderr",
	} {
		_, err := parse(script, false, 1)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", script, err, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, d := range directives {
		f.Add(d.Usage())
	}
	f.Fuzz(func(t *testing.T, s string) {
		if steps, err := parse(s, false, 1); err == nil && len(steps) == 0 {
			t.Errorf("%q does nothing", s)
		}
		_, _ = readScenario("[start]\n" + s)
	})
}
