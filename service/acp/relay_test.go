package acp

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/kernel/fact"
)

// TestTurn checks that a prompt is an input with an intent and an outcome. The lines of both sides
// arrive and are recorded unchanged.
func TestTurn(t *testing.T) {
	w := newWorld(t, nil, nil)
	s := w.session("one")
	prompt := fmt.Sprintf(
		`{"method":"session/prompt", "id" : "p-\u0031","params":{"prompt":[{"text":"@say Hi","type":"text","future":9007199254740993}],"sessionId":%q,"_meta":{"a":1,"a":2}},"jsonrpc":"2.0","later":[]}`, s)
	w.send(prompt)
	m, before := w.until(`"p-\u0031"`)
	if m.Result.StopReason != "end_turn" || text(before) != "Hi" {
		t.Errorf("%s after %v", m.line, before)
	}
	if !slices.Contains(w.agentRead(), prompt) {
		t.Errorf("the agent got %q", w.agentRead())
	}
	var got []string
	for _, e := range w.events("one") {
		if e.Run != "" {
			got = append(got, string(e.Type))
		}
		if e.Type == event.RequestSent && e.Run != "" && string(e.Payload) != prompt {
			t.Errorf("on record: %s", e.Payload)
		}
		if e.Type == event.ResponseReceived && e.Run != "" && string(e.Payload) != m.line {
			t.Errorf("on record: %s", e.Payload)
		}
	}
	want := "inbound.message.received llm.requested acp.request.sent acp.notification.received acp.response.received " +
		"llm.responded llm.single_call.enforced"
	if strings.Join(got, " ") != want {
		t.Errorf("%q", got)
	}
	if err := w.hangUp(); err != nil {
		t.Error(err)
	}
}

// TestCancel checks that the running turn is cancelled by the client's own line. A waiting prompt
// is never sent.
func TestCancel(t *testing.T) {
	w := newWorld(t, nil, nil)
	s := w.session("one")
	first, second := w.prompt(s, "@say a\n@hang"), w.prompt(s, "@say never")
	w.next() // the agent has the first prompt
	cancel := fmt.Sprintf(`{"params":{"sessionId":%q,"_meta":{"why":"x"}},"method":"session/cancel","jsonrpc":"2.0"}`, s)
	w.send(cancel)
	answers := map[string]message{}
	for len(answers) < 2 {
		if m := w.next(); m.Method == "" {
			answers[string(m.ID)] = m
		}
	}
	if answers[first].Result.StopReason != "cancelled" || answers[second].Result.StopReason != "cancelled" {
		t.Error(answers)
	}
	if w.prompts() != 1 || !slices.Contains(w.agentRead(), cancel) {
		t.Errorf("the agent got %q", w.agentRead())
	}
	stops := w.events("one", event.CancelRequested)
	if len(stops) != 1 || stops[0].Actor != "client" {
		t.Error(stops)
	}
	w.send(cancel) // a cancel after the answer is passed on
	if m, _ := w.until(w.prompt(s, "@say b")); m.Result.StopReason != "end_turn" {
		t.Error(m.line)
	}
}

// TestInputID checks that an input is not called again, in this connection or another.
func TestInputID(t *testing.T) {
	w := newWorld(t, nil, nil)
	for i := range 3 {
		s := w.session("one")
		params := promptOf(s, "@say done")
		params["_meta"] = map[string]any{"perlica.dev/inputId": "job-1"}
		m, before := w.until(w.request("session/prompt", params))
		if m.Result.StopReason != "end_turn" || text(before) != "done" ||
			(m.Result.Meta["perlica.dev/replayed"] == true) != (i > 0) {
			t.Errorf("%d: %s after %v", i, m.line, before)
		}
		params["prompt"] = []any{map[string]string{"type": "text", "text": "other"}}
		if m, _ := w.until(w.request("session/prompt", params)); m.Error == nil ||
			!strings.Contains(m.Error.Message, "job-1") {
			t.Errorf("another text under the same id: %s", m.line)
		}
		w.stop()
		w.start(nil, nil)
	}
	if n := w.prompts(); n != 1 {
		t.Errorf("the agent got %d prompts", n)
	}
}

// TestProjects checks that each session is on the log of its directory's project. Other lines are
// on the user's own log.
func TestProjects(t *testing.T) {
	w := newWorld(t, nil, nil)
	one, two := w.session("one"), ""
	two = w.another("two")
	a, b := w.prompt(one, "@sleep 50ms\n@say one"), w.prompt(two, "@say two")
	w.until(b)
	w.until(a)
	for name, want := range map[string]string{"one": "one", "two": "two", "home": ""} {
		got := ""
		for _, e := range w.events(name, event.Responded) {
			f, err := fact.Decode[fact.Responded](e)
			if err != nil {
				t.Error(err)
			}
			got += f.Text
		}
		if got != want {
			t.Errorf("%s: %q", name, got)
		}
	}
	if n := len(w.events("home", event.RequestSent)); n != 1 {
		t.Errorf("the user's own log has %d requests", n)
	}
}

// TestAgentDies checks that each open request of the client gets an error, and the run gets its
// outcome.
func TestAgentDies(t *testing.T) {
	w := newWorld(t, nil, nil)
	s := w.session("one")
	id := w.prompt(s, "@say a\n@stderr last words\n@exit 3")
	m, _ := w.until(id)
	if m.Error == nil || !strings.Contains(m.Error.Message, "last words") {
		t.Error(m.line)
	}
	if err := w.wait(); err == nil || !strings.Contains(err.Error(), "last words") {
		t.Error(err)
	}
	if n := len(w.events("one", event.OutcomeUnknown)); n != 1 {
		t.Errorf("%d outcomes", n)
	}
}

// TestLogFails checks a log that cannot be written. No line passes in either direction, the
// client's requests get errors, and the agent is ended.
func TestLogFails(t *testing.T) {
	w := newWorld(t, nil, nil)
	id, q := w.ask("@ask execute Build command=make\n@say after")
	for _, name := range []string{"eventlog.db", "eventlog.db-wal"} {
		if err := os.Rename(w.path("one/.perlica_config/contexts/default/"+name), w.path(name)); err != nil {
			t.Fatal(err)
		}
	}
	w.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"outcome":{"outcome":"selected","optionId":"allow-once"}}}`,
		q.ID))
	m, before := w.until(id)
	if m.Error == nil || strings.Contains(text(before), "allow") {
		t.Error(m.line, before)
	}
	if err := w.wait(); err == nil {
		t.Error("the relay ended well")
	}
	if read := strings.Join(w.agentRead(), "\n"); strings.Contains(read, "allow-once") {
		t.Errorf("the answer went on: %s", read)
	}
	w.done = func() error { return nil } // closing the failed log would report its error
}

// TestSlowClient checks that a client that does not read slows the agent down and gets all output
// later.
func TestSlowClient(t *testing.T) {
	w := newWorld(t, nil, nil)
	s := w.session("one")
	const n = 20000
	id := w.prompt(s, fmt.Sprintf("@stream %d 200", n))
	if m, before := w.until(id); m.Result.StopReason != "end_turn" || len(before) != n {
		t.Errorf("%s behind %d lines", m.line, len(before))
	}
}

// TestIDs checks two open requests with one id, a repeated answer, and an answer to an unknown
// request.
func TestIDs(t *testing.T) {
	w := newWorld(t, nil, nil)
	s := w.session("one")
	first := fmt.Sprintf(`{"jsonrpc":"2.0","id":"x","method":"session/prompt","params":%s}`,
		js(promptOf(s, "@ask execute Build command=make")))
	w.send(first)
	var q message
	for q = w.next(); q.Method != "session/request_permission"; q = w.next() {
	}
	w.send(first)
	if m, _ := w.until(`"x"`); m.Error == nil || m.Error.Code != codeInvalid {
		t.Error(m.line)
	}
	answer := fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"outcome":{"outcome":"selected","optionId":"allow-once"}}}`,
		q.ID)
	w.send(answer)
	w.send(answer)
	w.send(`{"jsonrpc":"2.0","id":"nobody's","result":{}}`)
	if m, _ := w.until(`"x"`); m.Result.StopReason != "end_turn" {
		t.Error(m.line)
	}
	w.until(w.prompt(s, "@say a"))
	got := 0
	for _, line := range w.agentRead() {
		if line == answer {
			got++
		}
	}
	if got != 1 || w.prompts() != 2 {
		t.Errorf("the agent got the answer %d times, and %d prompts", got, w.prompts())
	}
}

// TestClientLeaves checks that the turns of a leaving client are cancelled and have their outcomes.
// The agent has ended.
func TestClientLeaves(t *testing.T) {
	for name, script := range map[string]string{"in a turn": "@say a\n@hang",
		"at a question": "@ask execute Build command=make", "a stubborn agent": "@ignore eof\n@say a\n@hang"} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil, nil)
			w.prompt(w.session("one"), script)
			t.Log(w.next().line)
			if _, err := w.in.Write([]byte(`{"half":`)); err != nil {
				t.Error(err)
			}
			if err := w.hangUp(); err != nil {
				t.Error(err)
			}
			if n := len(w.events("one", event.OutcomeUnknown, event.Responded)); n != 1 {
				t.Errorf("%d outcomes", n)
			}
			if n := len(w.events("one", event.CancelRequested)); n != 1 {
				t.Errorf("%d stops", n)
			}
		})
	}
}

// TestContinued checks that another process continues a session as the same session of Perlica.
func TestContinued(t *testing.T) {
	state := t.TempDir()
	w := newWorld(t, []string{"PERLICA_PREDICTABLE_STATE=" + state}, nil)
	s := w.session("one")
	w.until(w.prompt(s, "@say first"))
	w.stop()
	w.start([]string{"PERLICA_PREDICTABLE_STATE=" + state}, nil)
	w.until(w.request("initialize", map[string]any{"protocolVersion": 1}))
	m, before := w.until(w.request("session/load", map[string]any{"sessionId": s, "cwd": w.path("one"),
		"mcpServers": []any{}}))
	if m.Error != nil || text(before) != "first" {
		t.Fatal(m.line, before)
	}
	if m, _ := w.until(w.prompt(s, "@say second")); m.Result.StopReason != "end_turn" {
		t.Error(m.line)
	}
	ids := map[event.SessionID]bool{}
	for _, e := range w.events("one", event.Requested) {
		ids[e.Session] = true
	}
	if len(ids) != 1 {
		t.Errorf("%d sessions", len(ids))
	}
}

// TestLocal checks that an editor's work for an agent is judged like a tool call.
func TestLocal(t *testing.T) {
	t.Run("refused", func(t *testing.T) {
		w := newWorld(t, nil, nil)
		m, before := w.until(w.prompt(w.session("one"), "@read /etc/passwd"))
		t.Log(m.line)
		if !strings.Contains(text(before), "-32601") || slices.ContainsFunc(before,
			func(m message) bool { return m.Method == "fs/read_text_file" }) {
			t.Error(before)
		}
	})
	judge := func(o *Options) { o.Local = true }
	t.Run("allowed", func(t *testing.T) {
		w := newWorld(t, nil, func(o *Options) {
			judge(o)
			open := o.Open
			o.Open = func(ctx context.Context, dir string) (*Place, error) {
				p, err := open(ctx, dir)
				p.Turn.Permissions = "allow"
				return p, err
			}
		})
		id := w.prompt(w.session("one"), "@terminal echo hi")
		m := w.next()
		if m.Method != "terminal/create" || !strings.Contains(m.line, "PERLICA_AGENT_ID") {
			t.Fatal(m.line)
		}
		w.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"terminalId":"t1"}}`, m.ID))
		for _, method := range []string{"terminal/wait_for_exit", "terminal/output", "terminal/release"} {
			if m = w.next(); m.Method == "session/update" {
				m = w.next()
			}
			if m.Method != method {
				t.Fatal(m.line)
			}
			w.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"exitCode":0,"output":"hi","truncated":false}}`, m.ID))
		}
		w.until(id)
	})
	t.Run("asked", func(t *testing.T) {
		w := newWorld(t, nil, judge)
		id := w.prompt(w.session("one"), "@write /etc/passwd x")
		for m := w.next(); m.Params.Update.Meta == nil; m = w.next() {
			t.Log(m.line)
		}
		w.answer("reject-once", "ana")
		if _, before := w.until(id); !strings.Contains(text(before), "-32000") {
			t.Error(before)
		}
	})
}

// TestBlocked checks that no method other than session/prompt brings an input to the agent.
func TestBlocked(t *testing.T) {
	w := newWorld(t, nil, nil)
	s := w.session("one")
	goal := map[string]string{"sessionId": s, "text": "do it"}
	for method, params := range map[string]any{
		"_session/steering": goal, "_session/goal": goal, "_codex/session/goal_control": goal,
		"_perlica.dev/model/list": goal, "_vendor/ask": promptOf(s, "do it"),
	} {
		m, _ := w.until(w.request(method, params))
		if m.Error == nil || m.Error.Code != codeMethod {
			t.Errorf("%s: %s", method, m.line)
		}
	}
	w.until(w.prompt(s, "@say a"))
	for _, line := range w.agentRead() {
		if strings.Contains(line, "do it") {
			t.Errorf("the agent got %s", line)
		}
	}
}

// TestInitialize checks that the client's capabilities pass except files and terminals, and that
// the version is 1.
func TestInitialize(t *testing.T) {
	w := newWorld(t, nil, nil)
	w.send(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"x":9007199254740993,"protocolVersion":2,"clientCapabilities":{"a":{"b":1},"fs":{"readTextFile":true},"terminal":true,"_meta":{}},"clientInfo":{"name":"n","version":"v"}},"z":0}`)
	w.until("1")
	want := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"x":9007199254740993,"protocolVersion":1,"clientCapabilities":{"a":{"b":1},"_meta":{}},"clientInfo":{"name":"n","version":"v"}},"z":0}`
	if got := w.agentRead()[0]; got != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
	if n := len(w.events("home", event.ClientReceived)); n != 1 {
		t.Errorf("as it came: %d", n)
	}
}

// TestAnnouncements checks that methods that steer a turn are not announced to the client.
func TestAnnouncements(t *testing.T) {
	for meta, want := range map[string]string{
		`{"steering":{"supported":true},"a":{"goal":{"controlMethod":"_session/goal"},"b":[1]}}`: `"_meta":{"a":{"b":[1]}}`,
		`{"a":1}`: `"_meta":{"a":1}`,
	} {
		w := newWorld(t, []string{"PERLICA_PREDICTABLE=[initialize]\n@set _meta " + meta + "\n"}, nil)
		m, _ := w.until(w.request("initialize", map[string]any{"protocolVersion": 1}))
		if !strings.Contains(m.line, want) {
			t.Errorf("%s\nwant %s", m.line, want)
		}
	}
}

// TestMode checks that the agent is put into its asking mode and that the client is told.
func TestMode(t *testing.T) {
	w := newWorld(t, []string{"PERLICA_PREDICTABLE=[session/new]\n@set modes.currentModeId \"auto\"\n"}, nil)
	s := w.session("one")
	m := w.next()
	if m.Params.Update.SessionUpdate != "current_mode_update" || m.Params.Update.CurrentModeID != "ask" {
		t.Error(m.line)
	}
	w.until(w.request("session/set_mode", map[string]string{"sessionId": s, "modeId": "auto"}))
	id := w.prompt(s, "@ask execute Build command=make")
	m, before := w.until(id)
	if m.Result.StopReason != "end_turn" || slices.ContainsFunc(before,
		func(m message) bool { return m.Method == "session/request_permission" }) {
		t.Errorf("the client's choice does not count: %v", before)
	}
}

// TestMalformed checks that a malformed line of the client gets an error. A malformed line of the
// agent is passed on.
func TestMalformed(t *testing.T) {
	w := newWorld(t, nil, nil)
	s := w.session("one")
	w.send("")
	w.send("{not json")
	if m := w.next(); m.Error == nil || m.Error.Code != codeParse {
		t.Error(m.line)
	}
	odd := []string{`{"not":"a message"}`, "no JSON at all \x01",
		`{"jsonrpc":"2.0","method":"x/y","params":{"sessionId":"other","n":1e400}}`}
	script := ""
	for _, line := range odd {
		script += "@line " + line + "\n"
	}
	_, before := w.until(w.prompt(s, script))
	var got []string
	for _, m := range before {
		got = append(got, m.line)
	}
	if !slices.Equal(got, odd) {
		t.Errorf("%q", got)
	}
}
