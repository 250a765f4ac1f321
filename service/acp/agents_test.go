package acp

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/kernel"
)

// scripted starts a relay with an agent that follows a scenario.
func scripted(t *testing.T, scenario string, set func(*Options)) *world {
	t.Helper()
	path := t.TempDir() + "/scenario"
	if err := os.WriteFile(path, []byte(scenario), 0o600); err != nil {
		t.Fatal(err)
	}
	return newWorld(t, []string{"PERLICA_PREDICTABLE=" + path}, set)
}

// TestOtherVersion checks that an agent with another version of the protocol gets no request. The
// client gets an error.
func TestOtherVersion(t *testing.T) {
	for version, refused := range map[string]bool{"2": true, `"2"`: true, "0": true, "1.5": true, "1": false, "1.0": false,
		`"1"`: false, "null": false} {
		w := scripted(t, "[initialize]\n@set protocolVersion "+version+"\n", nil)
		m, _ := w.until(w.request("initialize", map[string]any{"protocolVersion": 2}))
		if (m.Error != nil) != refused {
			t.Errorf("version %s: %s", version, m.line)
		}
		m, _ = w.until(w.request("session/new", map[string]any{"cwd": w.path("one"), "mcpServers": []any{}}))
		if (m.Error != nil) != refused || refused && !strings.Contains(m.Error.Message, "Perlica speaks version 1") {
			t.Errorf("version %s, session/new: %s", version, m.line)
		}
		if got := len(w.agentRead()); refused && got != 1 {
			t.Errorf("version %s: the agent read %q", version, w.agentRead())
		}
	}
}

// TestKnownByItsName checks that an agent with a known name is put into its asking mode, regardless
// of its command and its provider's id.
func TestKnownByItsName(t *testing.T) {
	for name, want := range map[string]bool{"@agentclientprotocol/claude-agent-acp": true, "QWEN-Code": true,
		"somebody": false} {
		w := scripted(t, "[initialize]\n@set agentInfo {\"name\":\""+name+"\",\"version\":\"1\"}\n[session/new]\n"+
			`@set modes {"currentModeId":"auto","availableModes":[{"id":"default","name":"Default"},{"id":"auto","name":"Auto"}]}`+"\n", func(o *Options) {
			o.Agent.ID = "wrapper"
			open := o.Open
			o.Open = func(ctx context.Context, dir string) (*Place, error) {
				p, err := open(ctx, dir)
				setup := p.Setup
				q := *p
				q.Setup = func(dir string) kernel.Setup {
					s := setup(dir)
					s.Agent.ID, s.Agent.Asking.Mode = "wrapper", ""
					return s
				}
				return &q, err
			}
		})
		id := w.session("one")
		w.until(w.prompt(id, "hello"))
		if got := strings.Contains(strings.Join(w.agentRead(), "\n"), `"modeId":"default"`); got != want {
			t.Errorf("%s: put into its mode: %v", name, got)
		}
	}
}

// TestReload checks an agent's report of earlier turns when a client loads an open session again.
// The report is not counted as new work, neither before nor after the answer to session/load. A
// tool call that begins then is counted.
func TestReload(t *testing.T) {
	const history = `@update {"sessionUpdate":"user_message_chunk","content":{"type":"text","text":"hi"}}
@update {"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"yo"}}
@update {"sessionUpdate":"tool_call","toolCallId":"ID","title":"ls","kind":"execute","status":"completed","rawInput":{"command":"ls"}}
`
	const work = `@update {"sessionUpdate":"tool_call","toolCallId":"w","title":"make","kind":"execute","status":"in_progress","rawInput":{"command":"make"}}
@update {"sessionUpdate":"tool_call_update","toolCallId":"w","status":"completed"}
`
	for _, c := range []struct {
		name, load string
		unasked    int
	}{
		{"before the answer", history, 0},
		{"after the answer", "@answer\n" + history, 0},
		{"before and after", history + "@answer\n" + strings.ReplaceAll(history, "ID", "other"), 0},
		{"and works then", history + "@answer\n" + work, 1},
	} {
		w := scripted(t, "[initialize]\n@set agentCapabilities.loadSession true\n[session/load]\n"+c.load+
			"[session/prompt]\n@say yo\n", nil)
		id := w.session("one")
		w.until(w.prompt(id, "hi"))
		load := w.request("session/load", map[string]any{"sessionId": id, "cwd": w.path("one"), "mcpServers": []any{}})
		// The client sends this prompt before the agent has answered session/load. The prompt waits for that answer.
		m, before := w.until(w.prompt(id, "again"))
		if m.Result.StopReason != "end_turn" {
			t.Fatalf("%s: %s", c.name, m.line)
		}
		answered := false
		for _, b := range before {
			answered = answered || string(b.ID) == load
		}
		if !answered {
			t.Errorf("%s: the prompt did not wait for the load", c.name)
		}
		if n := len(w.events("one", event.PolicyUnasked)); n != c.unasked {
			t.Errorf("%s: %d unasked, want %d", c.name, n, c.unasked)
		}
		if said := w.log(); len(said) != c.unasked {
			t.Errorf("%s: the operator got %q", c.name, said)
		}
		for _, e := range w.events("one", event.Responded) {
			if !strings.Contains(string(e.Payload), `"text":"yo"`) {
				t.Errorf("%s: %s", c.name, e.Payload)
			}
		}
	}
}

// TestRefusedAlone checks a tool call that Perlica refused between two turns. If the tool then failed, it counts as not
// run.
func TestRefusedAlone(t *testing.T) {
	for _, c := range []struct {
		then    string
		unasked string
	}{
		// Without a further update, the predictable agent itself reports the failure of the refused call.
		{"", ""},
		{`@update {"sessionUpdate":"tool_call_update","toolCallId":"call-1","status":"completed"}` + "\n",
			"although it was refused"},
	} {
		w := scripted(t, "[session/prompt]\n@say done\n@answer\n@request _x/go\n@ask execute Build command=make\n"+c.then+
			`@update {"sessionUpdate":"session_info_update","title":"end"}`+"\n", nil)
		id := w.session("one")
		answer := w.prompt(id, "hi")
		var held message
		for answered := false; !answered || held.Method == ""; {
			m := w.next()
			answered = answered || m.Method == "" && string(m.ID) == answer
			if m.Method == "_x/go" {
				held = m
			}
		}
		w.let(held)
		for m := w.next(); m.Params.Update.SessionUpdate != "session_info_update"; m = w.next() {
		}
		list := w.events("one", event.PolicyUnasked)
		if (len(list) == 1) != (c.unasked != "") || len(list) == 1 && !strings.Contains(string(list[0].Payload), c.unasked) {
			t.Errorf("%q: %+v", c.then, list)
		}
	}
}

// TestMetaOfAnyNumber checks that a foreign member of _meta may hold a number that Go cannot read.
func TestMetaOfAnyNumber(t *testing.T) {
	w := newWorld(t, nil, nil)
	id := w.session("one")
	for i, meta := range []string{`{"n":1e400}`, `{"n":-1e999,"perlica.dev/inputId":"x"}`, `[1e400]`, `1e400`, `null`} {
		w.nextID++
		w.send(`{"jsonrpc":"2.0","id":` + js(w.nextID) + `,"method":"session/prompt","params":{"_meta":` + meta +
			`,"sessionId":"` + id + `","prompt":[{"type":"text","text":"hi"}]}}`)
		if m, _ := w.until(js(w.nextID)); m.Result.StopReason != "end_turn" {
			t.Errorf("%s: %s", meta, m.line)
		}
		if got := w.agentRead(); !strings.Contains(got[len(got)-1], meta) {
			t.Errorf("%d: the agent read %q", i, got[len(got)-1])
		}
	}
}
