package predictable

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestScenarioFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "scenario")
	text := "# a comment\n\n[session/prompt]\n@say always \n@prompt\n[session/prompt 2]\n@error 1 \"second time\"\n"
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c := open(t, Options{Scenario: name})
	for i, want := range []string{"always @exit 1", "", "always @exit 1"} {
		if got, m, _ := c.prompt("@exit 1"); got != want || (m.Error != nil) != (i == 1) {
			t.Errorf("%d: %q %s", i, got, m.Error)
		}
	}
}

func TestScenarioErrors(t *testing.T) {
	for s, want := range map[string]string{
		"/nonexistent/file":               "no such file",
		"[start]\nhello":                  "line 2: no directive",
		"[start]\n\n@slep 1s":             "line 3: no directive",
		"@sleep x":                        "line 1: @sleep",
		"# x\n\n@sleep x":                 "line 3: @sleep",
		"[sesion]\n@say x":                "no section: [sesion]",
		"[session/new x]":                 "no section",
		"[start]\n@say a\n[start]\n@hang": "stands twice",
	} {
		err := Serve(t.Context(), strings.NewReader(""), &buffer{}, &buffer{}, Options{Scenario: s})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", s, err, want)
		}
	}
}

// TestScenarios checks scenarios with scripts for methods other than session/prompt.
func TestScenarios(t *testing.T) {
	const initialize, newSession = `initialize {"protocolVersion":1}`, `session/new {"cwd":"/","mcpServers":[]}`
	for _, tt := range []struct {
		name, scenario string
		requests       []string
		want           []string // substrings of the lines
	}{
		{"garbage first", "[start]\n@line hello\n@stderr oops\n@flood 100", []string{initialize},
			[]string{"hello", `"protocolVersion":1`}},
		{"version", "[initialize]\n@set protocolVersion 2", []string{initialize}, []string{`"protocolVersion":2`}},
		{"no close", "[initialize]\n@unset agentCapabilities.sessionCapabilities.close",
			[]string{initialize, newSession, `session/close {"sessionId":"session-1"}`},
			[]string{"result", "result", "Method not found: session/close"}},
		{"close", "", []string{initialize, newSession, `session/close {"sessionId":"session-1"}`,
			`session/close {"sessionId":"session-1"}`}, []string{"result", "result", `"result":{}`, "-32002"}},
		{"close fails", "[session/close]\n@error -32603 broken", []string{initialize, newSession,
			`session/close {"sessionId":"session-1"}`}, []string{"result", "result", "broken"}},
		{"update before the id", "[session/new]\n@say early", []string{initialize, newSession},
			[]string{"result", `"sessionId":"session-1","update"`, `"result":{"sessionId":"session-1"`}},
		{"no modes", "[session/new]\n@unset modes", []string{initialize, newSession,
			`session/set_mode {"sessionId":"session-1","modeId":"ask"}`},
			[]string{"result", `"result":{"sessionId":"session-1"}`, "no such mode"}},
		{"modes", "", []string{newSession, `session/set_mode {"sessionId":"session-1","modeId":"auto"}`,
			`session/prompt {"sessionId":"session-1","prompt":[{"type":"text","text":"@show session"}]}`},
			[]string{"result", `"result":{}`, "mode auto", "end_turn"}},
		{"own modes",
			"[session/new]\n@set modes {\"currentModeId\":\"x\",\"availableModes\":[{\"id\":\"x\",\"name\":\"X\"}]}",
			[]string{newSession, `session/prompt {"sessionId":"session-1","prompt":[{"type":"text","text":"@show session"}]}`},
			[]string{"result", "mode x", "end_turn"}},
		{"options",
			"[session/new]\n@set configOptions [{\"id\":\"mode\",\"name\":\"Mode\",\"type\":\"select\",\"currentValue\":\"a\",\"options\":[]}]", []string{newSession, `session/set_config_option {"sessionId":"session-1","configId":"mode","value":"auto"}`, `session/set_config_option {"sessionId":"session-1","configId":"nope","value":"b"}`, `session/prompt {"sessionId":"session-1","prompt":[{"type":"text","text":"@show session"}]}`}, []string{"result", `"currentValue":"auto"`, "no such option", "mode auto", "end_turn"}},
		{"own id", "[session/new]\n@set sessionId \"a/../b\"", []string{newSession,
			`session/prompt {"sessionId":"a/../b","prompt":[]}`, `session/prompt {"sessionId":"session-1","prompt":[]}`},
			[]string{`"a/../b"`, `"a/../b","update"`, "end_turn", "no such session"}},
		{"login", "[initialize]\n@set authMethods [{\"id\":\"key\",\"name\":\"Key\"}]\n[session/new]\n@auth",
			[]string{initialize, newSession, `authenticate {"methodId":"nope"}`, `authenticate {"methodId":"key"}`, newSession},
			[]string{"Key", "-32000", "-32602", `"result":{}`, "session-2"}},
		{"vendor", "[_v/x]\n@result 5", []string{`_v/x {}`, `_v/y {}`, `session/load {"sessionId":"session-1"}`,
			`session/list {}`}, []string{`"result":5`, "-32601", "-32601", "-32601"}},
		{"empty", "[session/prompt]",
			[]string{newSession, `session/prompt {"sessionId":"session-1","prompt":[{"type":"text","text":"hi"}]}`},
			[]string{"result", "end_turn"}},
		{"eof", "[eof]\n@line bye", []string{initialize}, []string{"result", "bye"}},
		{"params", "", []string{`session/new {}`, `session/new 5`, `session/prompt {"sessionId":"session-1","prompt":"text"}`,
			`session/set_mode {"sessionId":"x"}`, `session/set_config_option {"sessionId":"x"}`},
			[]string{"-32602", "-32602", "-32602", "-32002", "-32002"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := connect(t, Options{Scenario: tt.scenario})
			var lines []string
			for _, r := range tt.requests {
				method, params, _ := strings.Cut(r, " ")
				id := c.request(method, params)
				m, before := c.awaitResponse(id)
				lines = append(append(lines, before...), string(m.Line()))
			}
			c.in.Close()
			for l := c.line(); l != ""; l = c.line() {
				lines = append(lines, l)
			}
			if len(lines) != len(tt.want) {
				t.Fatalf("%d lines: %q", len(lines), lines)
			}
			for i, want := range tt.want {
				if !strings.Contains(lines[i], want) {
					t.Errorf("line %d: %s; want %s", i+1, lines[i], want)
				}
			}
			if tt.name == "garbage first" && (!strings.HasPrefix(c.stderr.String(), "oops\nstderr") ||
				len(c.stderr.String()) != 105) {
				t.Errorf("stderr: %q", c.stderr.String())
			}
		})
	}
}

// TestHangs checks that a script that hangs sends no response, and ends when standard input ends.
func TestHangs(t *testing.T) {
	for _, scenario := range []string{"[initialize]\n@hang", "[session/new]\n@hang",
		"[session/prompt]\n@ignore cancel\n@hang", "[session/prompt]\n@ask execute ls", "[session/prompt]\n@read /x"} {
		c := connect(t, Options{Scenario: scenario})
		c.request("initialize", `{"protocolVersion":1}`)
		c.request("session/new", `{"cwd":"/","mcpServers":[]}`)
		if strings.Contains(scenario, "prompt]") {
			c.line()
			c.line()
			c.request("session/prompt", promptParams("session-1", "hi"))
		}
		c.in.Close()
		for l := c.line(); l != ""; l = c.line() {
			if strings.Contains(l, `"stopReason"`) || strings.Contains(l, scenario[1:11]) {
				t.Errorf("%s: %s", scenario, l)
			}
		}
		if err := <-c.served; err != nil {
			t.Errorf("%s: %v", scenario, err)
		}
	}
}

// TestBadLines checks that a line that is no JSON-RPC message gets an error response of JSON-RPC.
func TestBadLines(t *testing.T) {
	c := connect(t, Options{})
	for _, tt := range []struct{ line, want string }{
		{"garbage", `"id":null,"error":{"code":-32700`},
		{"[]", `"id":null,"error":{"code":-32600`},
		{`{"jsonrpc":"2.0"}`, `"id":null,"error":{"code":-32600`},
		{`{"id":1,"method":"initialize"}`, `"id":1,"error":{"code":-32600`},
		{`{"jsonrpc":"2.0","id":"x","method":"nope"}`, `"id":"x","error":{"code":-32601`},
	} {
		c.writeLine(tt.line)
		if got := c.line(); !strings.Contains(got, tt.want) {
			t.Errorf("%s: %s", tt.line, got)
		}
	}
	// The agent ignores blank lines, responses to no request and unknown notifications. It accepts CRLF.
	c.writeLine("\n\r\n" + `{"jsonrpc":"2.0","id":99,"result":{}}` + "\n" + `{"jsonrpc":"2.0","method":"x"}` + "\r")
	if m := c.call("initialize", `{"pad":"`+strings.Repeat("x", 3<<20)+`"}`); m.Result == nil {
		t.Errorf("%s", m.Error)
	}
}

// TestState checks that a later process can load, resume and list a session.
func TestState(t *testing.T) {
	opt := Options{State: filepath.Join(t.TempDir(), "state")}
	c := open(t, opt)
	if c.sid != "session-1" {
		t.Fatal(c.sid)
	}
	c.prompt("first")
	c.prompt("@say second\n@error 1 x")
	if err := c.endInput(); err != nil {
		t.Fatal(err)
	}

	c = open(t, opt)
	if c.sid != "session-2" {
		t.Errorf("a new session takes an old id: %s", c.sid)
	}
	m, lines := c.awaitResponse(c.request("session/load", `{"sessionId":"session-1","cwd":"/work","mcpServers":[]}`))
	if m.Error != nil || len(lines) != 4 || textOf(lines) != "You said: firstsecond" {
		t.Errorf("load: %s %q", m.Error, lines)
	}
	c.sid = "session-1"
	if text, _, _ := c.prompt("@show history"); text != "history: 2 turns\n1: first\n2: @say second @error 1 x\n" {
		t.Errorf("%q", text)
	}
	if m := c.call("session/list",
		`{}`); string(
		m.Result) != `{"sessions":[{"sessionId":"session-1","cwd":"/work"},{"sessionId":"session-2","cwd":"/work"}]}` {
		t.Errorf("list: %s", m.Result)
	}
	if err := c.endInput(); err != nil {
		t.Fatal(err)
	}

	c = connect(t, opt)
	m, lines = c.awaitResponse(c.request("session/resume", `{"sessionId":"session-1","cwd":"/work"}`))
	if m.Error != nil || len(lines) != 0 {
		t.Errorf("resume: %s %q", m.Error, lines)
	}
	for _, id := range []string{"session-9", "../state/session-1", "session-1.jsonl", ""} {
		if m := c.call("session/load", `{"sessionId":`+quote(id)+`}`); !strings.Contains(string(m.Error), "-32002") {
			t.Errorf("load %q: %s %s", id, m.Result, m.Error)
		}
	}
	var init struct {
		AgentCapabilities struct {
			LoadSession bool `json:"loadSession"`
		} `json:"agentCapabilities"`
	}
	decode(t, json.RawMessage(c.call("initialize", `{}`).Result), &init)
	if !init.AgentCapabilities.LoadSession {
		t.Error("load is not offered")
	}
}
