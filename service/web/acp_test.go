package web

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/interaction"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/service/access"
	"github.com/perlica/perlica/service/web/device/devicetest"
)

// client is an ACP client at /acp.
type client struct {
	w    *world
	ctx  context.Context
	conn *websocket.Conn
	ids  int
}

// acpMessage holds the tested members of an ACP message.
type acpMessage struct {
	ID     json.RawMessage
	Method string
	Params struct {
		SessionID string
		Update    struct {
			SessionUpdate string
			// Content is an object for a block and an array for a tool call.
			Content json.RawMessage
		}
	}
	Result struct {
		SessionID, StopReason string
		ProtocolVersion       int
		AgentCapabilities     object
	}
	Error *struct {
		Code    int
		Message string
	}
}

// dial opens a WebSocket to the server.
func (w *world) dial(token, query string, change ...func(http.Header)) (*client, *http.Response, error) {
	w.t.Helper()
	return w.dialAt(w.http.URL, token, query, change...)
}

// dialAt opens a WebSocket to the server or to a proxy before it.
func (w *world) dialAt(at, token, query string, change ...func(http.Header)) (*client, *http.Response, error) {
	w.t.Helper()
	header := http.Header{"Authorization": {"Bearer " + token}}
	for _, f := range change {
		f(header)
	}
	ctx, cancel := context.WithTimeout(w.t.Context(), longest)
	w.t.Cleanup(cancel)
	conn, res, err := websocket.Dial(ctx, at+acpPath+query, &websocket.DialOptions{HTTPHeader: header,
		Host: header.Get("Host"), HTTPClient: w.http.Client()})
	if err != nil {
		return nil, res, err
	}
	w.t.Cleanup(func() { _ = conn.CloseNow() })
	conn.SetReadLimit(1 << 20)
	return &client{w: w, ctx: ctx, conn: conn}, res, nil
}

// connect opens and initializes a connection. It fails the test on an error.
func (w *world) connect(token string, query ...string) *client {
	w.t.Helper()
	c, _, err := w.dial(token, strings.Join(query, ""))
	check(w.t, err)
	return c.initialize()
}

// initialize sends the client's name and capabilities.
func (c *client) initialize() *client {
	c.w.t.Helper()
	m, _ := c.call("initialize",
		`{"protocolVersion":1,"clientInfo":{"name":"other","version":"1"},"clientCapabilities":{"fs":{"readTextFile":true},"terminal":true}}`)
	if m.Result.ProtocolVersion != 1 {
		c.w.t.Fatalf("%+v", m)
	}
	return c
}

// said returns the text of a message, or "".
func (m acpMessage) said() string {
	var block struct{ Text string }
	// Only a block has a text.
	_ = json.Unmarshal(m.Params.Update.Content, &block)
	return block.Text
}

func (c *client) send(text string) {
	c.w.t.Helper()
	check(c.w.t, c.conn.Write(c.ctx, websocket.MessageText, []byte(text)))
}

func (c *client) next() (m acpMessage) {
	c.w.t.Helper()
	kind, b, err := c.conn.Read(c.ctx)
	check(c.w.t, err)
	if kind != websocket.MessageText || strings.Contains(string(b), "\n") {
		c.w.t.Errorf("a message of kind %v: %q", kind, b)
	}
	check(c.w.t, json.Unmarshal(b, &m))
	return m
}

// begin sends a request.
func (c *client) begin(method, params string) (id string) {
	c.w.t.Helper()
	c.ids++
	id = fmt.Sprint(c.ids)
	c.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":%q,"params":%s}`, id, method, params))
	return id
}

// until returns the answer to a request and the text of the updates before it.
func (c *client) until(id string) (m acpMessage, text string) {
	c.w.t.Helper()
	for {
		m = c.next()
		if m.Method == "" && string(m.ID) == id {
			return m, text
		}
		text += m.said()
	}
}

func (c *client) call(method, params string) (m acpMessage, text string) {
	c.w.t.Helper()
	return c.until(c.begin(method, params))
}

// session opens a session in a directory.
func (c *client) session(dir string) string {
	c.w.t.Helper()
	m, _ := c.call("session/new", fmt.Sprintf(`{"cwd":%q,"mcpServers":[]}`, dir))
	if m.Result.SessionID == "" {
		c.w.t.Fatalf("%+v", m)
	}
	return m.Result.SessionID
}

func inSession(id, text string) string {
	return fmt.Sprintf(`{"sessionId":%q,"prompt":[{"type":"text","text":%q}]}`, id, text)
}

// closed waits for the end of the connection and returns its status.
func (c *client) closed() websocket.StatusCode {
	c.w.t.Helper()
	for {
		if _, _, err := c.conn.Read(c.ctx); err != nil {
			return websocket.CloseStatus(err)
		}
	}
}

// refused fails unless the server refuses a request with this code and these words.
func (c *client) refused(method, params string, code int, words string) {
	c.w.t.Helper()
	if m, _ := c.call(method, params); m.Error == nil || m.Error.Code != code ||
		!strings.Contains(m.Error.Message, words) {
		c.w.t.Errorf("%s %s: %+v", method, params, m.Error)
	}
}

// facts returns the payloads of the events of a type.
func facts[T any](w *world, dir string, kind event.Type) (list []T) {
	w.t.Helper()
	log := w.reader(dir)
	defer log.Close()
	for e, err := range log.Events(w.t.Context(), event.Query{Types: []event.Type{kind}}) {
		check(w.t, err)
		f, err := fact.Decode[T](e)
		check(w.t, err)
		list = append(list, f)
	}
	return list
}

// TestACP checks that a client can run a turn, reads the agent's updates, and answers the agent's
// question. The record names the client's program.
func TestACP(t *testing.T) {
	w := newWorld(t, 2, namedProvider(t, "keeps", t.TempDir()))
	c := w.connect(w.token, "?provider=keeps")
	id := c.session(w.dirs[1])
	if m, text := c.call("session/prompt", inSession(id, "@say Hello")); m.Result.StopReason != "end_turn" ||
		!strings.Contains(text, "Hello") {
		t.Errorf("%+v %q", m, text)
	}
	turn := c.begin("session/prompt", inSession(id, "@ask execute Build command=make"))
	q := c.next()
	for ; q.Method != "session/request_permission"; q = c.next() {
	}
	c.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"outcome":{"outcome":"selected","optionId":"allow-once"}}}`,
		q.ID))
	if m, text := c.until(turn); m.Result.StopReason != "end_turn" || !strings.Contains(text, "permission: allow-once") {
		t.Errorf("%+v %q", m, text)
	}
	answers := facts[interaction.Answer](w, w.dirs[1], event.InteractionAnswered)
	if len(answers) != 1 || !strings.HasPrefix(answers[0].By, "program ") || answers[0].Where != "web" {
		t.Errorf("%+v", answers)
	}
	if n := w.count(w.dirs[1], event.Requested); n != 2 {
		t.Errorf("%d calls", n)
	}
	check(t, c.conn.Close(websocket.StatusNormalClosure, ""))

	again := w.connect(w.token, "?provider=keeps")
	var m acpMessage
	var text string
	// The earlier connection must first end its agent and free the session.
	for m.Result.StopReason == "" {
		if m, _ := again.call("session/load", fmt.Sprintf(`{"sessionId":%q,"cwd":%q,"mcpServers":[]}`, id,
			w.dirs[1])); m.Error != nil {
			t.Fatalf("%+v", *m.Error)
		}
		m, text = again.call("session/prompt", inSession(id, "@say again"))
		if m.Error != nil && !strings.Contains(m.Error.Message, "load or resume the session again") {
			t.Fatalf("%+v", *m.Error)
		}
	}
	if m.Result.StopReason != "end_turn" || !strings.Contains(text, "again") {
		t.Errorf("%+v %q", m, text)
	}
	if n := w.count(w.dirs[1], event.SessionCreated); n != 1 {
		t.Errorf("%d sessions", n)
	}
}

// TestACPWithoutApprove checks that a client without the right approve receives no question.
func TestACPWithoutApprove(t *testing.T) {
	w := newWorld(t, 1)
	c := w.connect(w.newToken("asks", access.Ask))
	turn := c.begin("session/prompt", inSession(c.session(w.dirs[0]), "@ask execute Build command=make"))
	q := w.question()
	c.send(`{"jsonrpc":"2.0","id":1,"result":{"outcome":{"outcome":"selected","optionId":"allow-once"}}}`)
	w.answer(q, "reject_once").want(200)
	for m := c.next(); string(m.ID) != turn || m.Method != ""; m = c.next() {
		if m.Method == "session/request_permission" {
			t.Error("it is asked")
		}
	}
}

// TestACPTightensOnly checks that the server refuses every loosening request of a client and
// forwards no part of it.
func TestACPTightensOnly(t *testing.T) {
	w := newWorld(t, 1)
	// This creates a project for the sessions.
	w.ask(w.dirs[0], "@say Hello")
	c := w.connect(w.token)
	id := c.session(w.dirs[0])
	sent := w.count(w.dirs[0], event.Requested)
	at := func(more string) string { return fmt.Sprintf(`{"cwd":%q%s}`, w.dirs[0], more) }
	in := func(block string) string { return fmt.Sprintf(`{"sessionId":%q,"prompt":[%s]}`, id, block) }
	for _, r := range []struct {
		method, params string
		code           int
		words          string
	}{
		{"session/new", at(`,"mcpServers":[{"name":"x","command":"/bin/sh","args":[],"env":[]}]`), -32602, "mcpServers"},
		{"session/new", at(`,"mcpServers":[],"mcpServers":[{"name":"x","command":"/bin/sh","args":[],"env":[]}]`), -32602,
			"twice"},
		{"session/new", at(`,"mcpservers":[{"name":"x"}]`), -32602, "spelling"},
		{"session/new", at(`,"mcpServers":{"name":"x"}`), -32602, "mcpServers"},
		{"session/new", at(`,"mcpServers":[],"additionalDirectories":["/"]`), -32602, "additionalDirectories"},
		{"session/new", at(`,"mcpServers":[],"CWD":"/"`), -32602, "spelling"},
		{"session/new", at(`,"mcpServers":[],"\u0063wd":"/"`), -32602, "twice"},
		{"session/new", `{"cwd":"/","mcpServers":[]}`, -32602, "no project that"},
		{"session/new", fmt.Sprintf(`{"cwd":%q,"mcpServers":[]}`, w.dirs[0]+"/../.."), -32602, "no project that"},
		{"session/new", `{"cwd":".","mcpServers":[]}`, -32602, "absolute"},
		{"session/new", `{"mcpServers":[]}`, -32602, "absolute"},
		{"session/load", at(`,"mcpServers":[],"sessionId":"not-on-record"`), -32602, "no such session"},
		{"session/resume", at(`,"mcpServers":[],"sessionId":"not-on-record"`), -32602, "no such session"},
		{"session/set_mode", fmt.Sprintf(`{"sessionId":%q,"modeId":"yolo"}`, id), -32601, "from outside"},
		{"session/set_model", fmt.Sprintf(`{"sessionId":%q,"modelId":"x"}`, id), -32601, "from outside"},
		{"session/set_config_option", fmt.Sprintf(`{"sessionId":%q,"configId":"mode","value":"yolo"}`, id), -32601,
			"from outside"},
		{"session/list", `{}`, -32601, "from outside"},
		{"session/delete", fmt.Sprintf(`{"sessionId":%q}`, id), -32601, "from outside"},
		{"authenticate", `{"methodId":"x"}`, -32601, "from outside"},
		{"logout", `{}`, -32601, "from outside"},
		{"_vendor/do", `{"prompt":[{"type":"text","text":"@say x"}]}`, -32601, "from outside"},
		{"session/prompt", in(`{"type":"resource_link","name":"x","uri":"file:///etc/passwd"}`), -32602, "a path"},
		{"session/prompt", in(`{"type":"resource_link","name":"x","uri":"/etc/passwd"}`), -32602, "a path"},
		{"session/prompt", in(`{"type":"text","text":"a","type":"resource_link","uri":"file:///etc/passwd"}`), -32602,
			"twice"},
		{"session/prompt", in(`{"type":"text","text":"a","Type":"resource_link","uri":"file:///etc/passwd"}`), -32602,
			"spelling"},
		{"session/prompt", in(`{"type":"other","text":"a"}`), -32602, "this kind"},
		{"session/prompt", in(`{"type":"image","data":"AA==","mimeType":"image/png","URI":"file:///etc/passwd"}`), -32602,
			"spelling"},
		{"session/prompt", in(`7`), -32602, "cannot be read"},
		{"session/prompt", fmt.Sprintf(`{"sessionId":%q,"prompt":{}}`, id), -32602, "cannot be read"},
	} {
		c.refused(r.method, r.params, r.code, r.words)
	}
	if n := w.count(w.dirs[0], event.Requested); n != sent {
		t.Errorf("%d calls more", n-sent)
	}
	if m, text := c.call("session/prompt", inSession(id, "@say still")); m.Result.StopReason != "end_turn" ||
		!strings.Contains(text, "still") {
		t.Errorf("%+v %q", m, text)
	}
}

// TestACPRefused checks that a request of another kind gets no WebSocket.
func TestACPRefused(t *testing.T) {
	w := newWorld(t, 1)
	for name, c := range map[string]struct {
		token  string
		change func(http.Header)
		kind   kind
	}{
		"a page from elsewhere": {w.token, func(h http.Header) { h.Set("Origin", "https://elsewhere.example") },
			foreignOrigin},
		"a page of this server":     {w.token, func(h http.Header) { h.Set("Origin", w.http.URL) }, foreignOrigin},
		"a page without an address": {w.token, func(h http.Header) { h.Set("Origin", "null") }, foreignOrigin},
		"an empty origin":           {w.token, func(h http.Header) { h["Origin"] = []string{""} }, foreignOrigin},
		"no token":                  {"", func(h http.Header) { h.Del("Authorization") }, unauthorized},
		"a wrong token":             {"perlica_tok_" + strings.Repeat("a", 36), nil, unauthorized},
		"another name":              {w.token, func(h http.Header) { h.Set("Host", "elsewhere.example") }, misdirected},
		"a token without the right": {w.newToken("reads", access.Read, access.Approve, access.Admin), nil, forbidden},
	} {
		_, res, err := w.dial(c.token, "", func(h http.Header) {
			if c.change != nil {
				c.change(h)
			}
		})
		if err == nil || res == nil || res.StatusCode != c.kind.status {
			t.Errorf("%s: %v, %v", name, res, err)
		}
	}
	w.do("GET", acpPath, nil).problem(upgrade)
	w.do("GET", acpPath+"?provider=none-such", nil, func(r *http.Request) {
		r.Header.Set("Upgrade",
			"websocket")
	}).problem(unfit)
	w.do("GET", acpPath+"?other=1", nil).problem(badRequest)
	key := devicetest.NewKey()
	id := w.pair(key, "phone", access.Read, access.Ask, access.Approve)
	w.signed(key, id, "GET", acpPath, nil).problem(forbidden)
}

// TestACPMessages checks that an invalid or overlong message ends its own connection and nothing
// else.
func TestACPMessages(t *testing.T) {
	w := newWorld(t, 1)
	c := w.connect(w.token)
	check(t, c.conn.Write(c.ctx, websocket.MessageBinary, []byte(`{"jsonrpc":"2.0","id":9,"method":"session/list"}`)))
	if got := c.closed(); got != websocket.StatusUnsupportedData {
		t.Errorf("a binary message: %v", got)
	}
	c = w.connect(w.token)
	_ = c.conn.Write(c.ctx, websocket.MessageText, []byte(`"`+strings.Repeat("x", inputBody)+`"`))
	if got := c.closed(); got != websocket.StatusMessageTooBig {
		t.Errorf("a message that is too long: %v", got)
	}
	c = w.connect(w.token)
	c.send("{\"jsonrpc\":\"2.0\",\n\"id\":40,\"method\":\n\"session/new\",\r\n\"params\":{\"cwd\":" +
		fmt.Sprintf("%q", w.dirs[0]) + ",\"mcpServers\":[]}}")
	if m, _ := c.until("40"); m.Result.SessionID == "" {
		t.Errorf("a message in several rows: %+v", m)
	}
	c.send("garbage")
	if m := c.next(); m.Error == nil || m.Error.Code != -32700 {
		t.Errorf("%+v", m)
	}
}

// TestACPEnds checks that a revoked program loses its connection and its turn. A stopping server
// ends all connections. A turn is cancelled when its client is gone.
func TestACPEnds(t *testing.T) {
	for name, end := range map[string]struct {
		by     func(w *world, c *client)
		status websocket.StatusCode // the status that closes the connection
	}{
		"revoked": {func(w *world, _ *client) {
			_, err := w.devices.Revoke(w.t.Context(), "acp", "test")
			check(w.t, err)
		}, websocket.StatusPolicyViolation},
		"stopped": {func(w *world, _ *client) { w.server.Stop() }, websocket.StatusGoingAway},
		"closed": {func(_ *world, c *client) { go c.conn.Close(websocket.StatusNormalClosure, "") },
			websocket.StatusNormalClosure},
		"gone": {func(_ *world, c *client) { _ = c.conn.CloseNow() }, -1},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 1)
			c := w.connect(w.newToken("acp", access.Ask))
			c.begin("session/prompt", inSession(c.session(w.dirs[0]), "@say begun\n@hang"))
			for m := c.next(); m.said() != "begun"; m = c.next() {
			}
			other := w.follow("/v1/events?after=0&type=run.finished", "")
			defer other.close()
			end.by(w, c)
			if got := c.closed(); got != end.status {
				t.Errorf("the connection ends with %v", got)
			}
			// The stream ends, too.
			if name == "stopped" {
				check(t, w.server.Close(t.Context()))
			} else if e := other.event(); e["outcome"] == "completed" {
				t.Errorf("%v", e)
			}
			if list := facts[fact.Responded](w, w.dirs[0], event.Responded); len(list) != 1 ||
				list[0].StopReason != "cancelled" {
				t.Errorf("%+v", list)
			}
		})
	}
}
