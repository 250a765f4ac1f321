package predictable

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/coder/acp-go-sdk"

	"github.com/perlica/perlica/provider/agentside"
)

func selected(option string) func(string, agentside.Message) string {
	return func(string, agentside.Message) string {
		return `"result":{"outcome":{"outcome":"selected","optionId":` + quote(option) + `}}`
	}
}

func respond(rest string) func(string, agentside.Message) string {
	return func(string, agentside.Message) string { return rest }
}

func TestAsk(t *testing.T) {
	for _, tt := range []struct {
		name, script string
		reply        func(string, agentside.Message) string
		want         string
		statuses     string
	}{
		{"yes", `@ask execute "Run ls" command=ls`, selected("allow-once"), "permission: allow-once\n",
			"pending in_progress completed"},
		{"no", `@ask execute "Run ls" command=ls`, selected("reject-once"), "permission: reject-once\n", "pending failed"},
		{"cancelled", `@ask execute ls`, respond(`"result":{"outcome":{"outcome":"cancelled"}}`), "permission: cancelled\n",
			"pending failed"},
		{"made up", `@ask execute ls`, selected("yes"), "permission: no such option: yes\n", "pending failed"},
		{"error", `@ask execute ls`, respond(`"error":{"code":-32601,"message":"No"}`), "permission: error -32601 No\n",
			"pending failed"},
		{"odd error", `@ask execute ls`, respond(`"error":"bad"`), "permission: error not understood: \"bad\"\n",
			"pending failed"},
		{"odd result", `@ask execute ls`, respond(`"result":{}`), "permission: not understood: {}\n", "pending failed"},
		{"unannounced", `@ask execute ls announce=no`, selected("allow-once"), "permission: allow-once\n", ""},
		{"always first", `@ask edit E path=/a new=x options=aa:allow_always,ao:allow_once:Yes,ao2:allow_once`,
			selected("ao2"), "permission: ao2\n", "pending in_progress completed"},
		{"auto", "@mode auto\n@ask execute ls", nil, "permission: not asked\n", "pending in_progress completed"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := open(t, Options{})
			var asked acp.RequestPermissionRequest
			c.reply = func(method string, m agentside.Message) string {
				decode(t, m.Params, &asked)
				if err := asked.Validate(); err != nil {
					t.Error(err)
				}
				return tt.reply(method, m)
			}
			text, m, lines := c.prompt(tt.script)
			var statuses []string
			for _, l := range lines {
				if u := updateOf(l); u.Status != "" {
					statuses = append(statuses, u.Status)
				}
			}
			if got := strings.Join(statuses, " "); text != tt.want || got != tt.statuses || stopReason(t, m) != "end_turn" {
				t.Errorf("%q %q %s", text, got, m.Result)
			}
			if tt.name == "always first" && (len(asked.Options) != 3 || asked.Options[0].Kind != "allow_always" ||
				asked.Options[1].Name != "Yes") {
				t.Errorf("options: %+v", asked.Options)
			}
		})
	}
}

// TestAskAtOnce answers three open questions in reverse order and checks that each question gets its own answer.
func TestAskAtOnce(t *testing.T) {
	c := open(t, Options{})
	var ids []string
	c.reply = func(_ string, m agentside.Message) string {
		if ids = append(ids, string(m.ID)); len(ids) == 3 {
			for i, option := range []string{"reject-once", "allow-always", "allow-once"} {
				c.writeLine(`{"jsonrpc":"2.0","id":` + ids[2-i] + `,` + selected(option)("", m) + `}`)
			}
		}
		return ""
	}
	text, _, _ := c.prompt("@ask execute ls count=3")
	if want := "permission call-3: reject-once\npermission call-2: allow-always\npermission call-1: " +
		"allow-once\n"; text != want {
		t.Errorf("%q", text)
	}
}

// TestAskSameID checks two questions with the same JSON-RPC id. The first response belongs to the first question.
func TestAskSameID(t *testing.T) {
	c := open(t, Options{})
	n := 0
	c.reply = func(_ string, m agentside.Message) string {
		if string(m.ID) != `"same"` {
			t.Errorf("id %s", m.ID)
		}
		n++
		return selected([]string{"", "allow-once", "reject-once"}[n])("", m)
	}
	text, _, _ := c.prompt(`@ask execute ls id=x count=2 rpcid="same"`)
	if want := "permission x: allow-once\npermission x-2: reject-once\n"; text != want {
		t.Errorf("%q", text)
	}
}

func TestAskWithoutWaiting(t *testing.T) {
	c := open(t, Options{})
	c.reply = respond("")
	text, m, _ := c.prompt("@ask execute ls wait=no\n@say on")
	if text != "on" || stopReason(t, m) != "end_turn" {
		t.Errorf("%q %s", text, m.Result)
	}
	// This late answer has no effect on the next turn.
	c.writeLine(`{"jsonrpc":"2.0","id":0,"result":{"outcome":{"outcome":"selected","optionId":"allow-once"}}}`)
	if text, _, _ := c.prompt("hello"); text != "You said: hello" {
		t.Errorf("%q", text)
	}
}

func TestClientRequests(t *testing.T) {
	c := open(t, Options{})
	var params []string
	c.reply = func(method string, m agentside.Message) string {
		params = append(params, method+" "+string(m.Params))
		if method == "terminal/create" {
			return `"result":{"terminalId":"t1"}`
		}
		return `"error":{"code":-32601,"message":"no"}`
	}
	text, _, _ :=
		c.prompt("@read /etc/passwd\n@write /x \"a b\"\n@terminal ls -l\n@elicit \"How many?\"\n@request nope " +
			"{\"s\":\"$session\"}\n@request _v/x rpcid=\"7\"")
	const e = ": error -32601 no\n"
	want := "fs/read_text_file" + e + "fs/write_text_file" + e + "terminal/create: result {\"terminalId\":\"t1\"}\n" +
		"terminal/wait_for_exit" + e + "terminal/output" + e + "terminal/release" + e + "elicitation/create" + e + "nope" +
		e + "_v/x" + e
	if text != want {
		t.Errorf("%q", text)
	}
	wantParams := []string{
		`fs/read_text_file {"sessionId":"session-1","path":"/etc/passwd"}`,
		`fs/write_text_file {"sessionId":"session-1","path":"/x","content":"a b"}`,
		`terminal/create {"sessionId":"session-1","command":"ls","args":["-l"]}`,
		`terminal/wait_for_exit {"sessionId":"session-1","terminalId":"t1"}`,
		`terminal/output {"sessionId":"session-1","terminalId":"t1"}`,
		`terminal/release {"sessionId":"session-1","terminalId":"t1"}`,
		`elicitation/create {"sessionId":"session-1","mode":"form","message":"How many?","requestedSchema":{"type":"object","properties":{"answer":{"type":"string","title":"Answer"}},"required":["answer"]}}`,
		`nope {"s":"session-1"}`,
		`_v/x {"sessionId":"session-1"}`,
	}
	if got := strings.Join(params, "\n"); got != strings.Join(wantParams, "\n") {
		t.Errorf("params:\n%s", got)
	}
	var e1 acp.UnstableCreateElicitationRequest
	decode(t, json.RawMessage(strings.TrimPrefix(params[6], "elicitation/create ")), &e1)
	if e1.Form == nil {
		t.Error("the elicitation is no form")
	}
}
