package provider_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/perlica/perlica/provider"
)

// TestFramesAreByteExact checks that the record keeps every line byte for byte and in wire order.
func TestFramesAreByteExact(t *testing.T) {
	lines := []string{
		"", " ", "\r", `{"jsonrpc":"2.0","method":"_vendor/note","params":{"n":9007199254740993}}` + "\r",
		"garbage caf\xe9 \xff\x00",
		`{"jsonrpc" : "2.0","future":[1.0e+1],"method":"session/update","params":{"sessionId":"s","x":1,"update":{"sessionUpdate":"notice"}}}`,
		`{"jsonrpc":"2.0","id":2,"result":{"stopReason":"end_turn","\u0061":"\/"}}`,
		`{"jsonrpc":"2.0","method":"_last"`,
	}
	script := []string{}
	for _, l := range lines[:len(lines)-1] {
		script = append(script, ">"+strings.ReplaceAll(l, "\x00", ""))
	}
	script = append(script, "="+lines[len(lines)-1], "exit 0")
	lines[4] = strings.ReplaceAll(lines[4], "\x00", "") // an argument cannot contain a NUL

	w := &watcher{}
	c, got := run(t, lies(script...), w, "caf\xc3\xa9 <&> \u2028")
	if got.err != nil || got.StopReason != "end_turn" {
		t.Fatalf(`got %+v; want got.err == nil && got.StopReason == "end_turn"`, got)
	}
	<-c.Gone()
	end(t, c)
	if got := w.lines(false)[2:]; !slices.Equal(got, lines) {
		t.Errorf("received\n%q, want\n%q", got, lines)
	}
	kinds := map[provider.FrameKind]int{}
	for _, f := range w.wire {
		kinds[f.Kind]++
		if f.Length != int64(len(f.Line)) {
			t.Errorf("length %d of %q", f.Length, f.Line)
		}
	}
	if want := (map[provider.FrameKind]int{provider.Request: 3, provider.Response: 3, provider.Notification: 2,
		provider.Malformed: 5}); !reflect.DeepEqual(kinds, want) {
		t.Errorf("%v, want %v", kinds, want)
	}
	if got, want := w.warned(), []string{"malformed_line", "malformed_line"}; !slices.Equal(got, want) {
		t.Errorf("warnings %q, want %q", got, want)
	}
}

// TestSentOrder checks that the agent reads the recorded lines in the recorded order, whichever goroutine sent them.
func TestSentOrder(t *testing.T) {
	const n = 200
	w := &watcher{}
	c := start(t, lies(lieEnd, fmt.Sprint("echo ", n)), w)
	s := open(t, c)
	if _, err := s.Prompt(provider.NewCall("r"), text("x")).Answer(); err != nil {
		t.Fatal(err)
	}
	before := len(w.lines(true))
	for i := range n {
		go func() {
			if i%2 == 0 {
				s.Cancel()
			} else {
				c.SendLine(fmt.Sprintf(`{"jsonrpc":"2.0","method":"_n","params":%d}`, i))
			}
		}()
	}
	echoes := func() (lines []string) {
		for _, f := range w.wire {
			if f.Method == "_echo" {
				lines = append(lines, strings.TrimSuffix(strings.TrimPrefix(string(f.Line),
					`{"jsonrpc":"2.0","method":"_echo","params":`), "}"))
			}
		}
		return lines
	}
	w.waitFor(t, "all echoes", func() bool { return len(echoes()) == n })
	if got, want := echoes(), w.lines(true)[before:]; !slices.Equal(got, want) {
		t.Errorf("the agent read\n%q, recorded were\n%q", got, want)
	}
}

func TestResponses(t *testing.T) {
	const ok = `{"jsonrpc":"2.0","id":2,"result":{"stopReason":"end_turn","usage":{"n":9007199254740993}}}`
	for name, tt := range map[string]struct {
		says  []string
		stop  string
		err   *provider.Error // Type, Subtype and Code are compared
		warns []string
	}{
		"plain":         {says: []string{ok}, stop: "end_turn"},
		"unknown stop":  {says: []string{`{"id":2,"result":{"stopReason":"bored"}}`}, stop: "bored"},
		"null result":   {says: []string{`{"id":2,"result":null}`}},
		"empty result":  {says: []string{`{"id":2,"result":{}}`}},
		"neither":       {says: []string{`{"jsonrpc":"2.0","id":2}`}},
		"error is null": {says: []string{`{"id":2,"error": null ,"result":{"stopReason":"end_turn"}}`}, stop: "end_turn"},
		"both": {says: []string{`{"id":2,"error":{"code":1,"message":"m"},"result":{}}`},
			err: &provider.Error{Type: provider.TypeAgent, Code: "1"}},
		"a string": {says: []string{`{"id":2,"result":"done"}`},
			err: &provider.Error{Type: provider.TypeProtocol, Subtype: "undecodable_result"}},
		"an array": {says: []string{`{"id":2,"result":[]}`},
			err: &provider.Error{Type: provider.TypeProtocol, Subtype: "undecodable_result"}},
		"odd stop reason": {says: []string{`{"id":2,"result":{"stopReason":5}}`},
			err: &provider.Error{Type: provider.TypeProtocol, Subtype: "undecodable_result"}},
		"error": {says: []string{`{"id":2,"error":{"code":77,"message":"m","data":{"errorKind":"odd"}}}`},
			err: &provider.Error{Type: provider.TypeAgent, Subtype: "odd", Code: "77"}},
		"undecodable": {says: []string{`{"id":2,"error":{"code":"str","message":"m"}}`},
			err: &provider.Error{Type: provider.TypeProtocol, Subtype: "undecodable_error"}},
		"error a string": {says: []string{`{"id":2,"error":"no"}`},
			err: &provider.Error{Type: provider.TypeProtocol, Subtype: "undecodable_error"}},
		"auth": {says: []string{`{"id":2,"error":{"code":-32000,"message":"m"}}`},
			err: &provider.Error{Type: provider.TypeAuth, Code: "-32000"}},
		"null id error": {says: []string{`{"id":null,"error":{"code":-32700,"message":"m"}}`},
			err: &provider.Error{Type: provider.TypeAgent, Code: "-32700"}},
		"null id result": {says: []string{`{"id":null,"result":{}}`, ok}, stop: "end_turn",
			warns: []string{"malformed_line"}},
		"id a string": {says: []string{`{"id":"2","result":{"stopReason":"end_turn"}}`}, stop: "end_turn"},
		"id other digits": {says: []string{`{"id":"02","result":{"stopReason":"lie"}}`,
			`{"id":"2.0","result":{"stopReason":"lie"}}`, ok}, stop: "end_turn",
			warns: []string{"unknown_response", "unknown_response"}},
		"id never used": {says: []string{`{"id":99,"result":{"stopReason":"lie"}}`, ok}, stop: "end_turn",
			warns: []string{"unknown_response"}},
		"id used before": {says: []string{`{"id":1,"result":{"stopReason":"lie","sessionId":"t"}}`, ok}, stop: "end_turn",
			warns: []string{"unknown_response"}},
		"twice": {says: []string{ok, `{"id":2,"result":{"stopReason":"lie"}}`}, stop: "end_turn",
			warns: []string{"unknown_response"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := &watcher{}
			script := []string{}
			for _, s := range tt.says {
				script = append(script, ">"+s)
			}
			c, got := run(t, lies(append(script, "exit 0")...), w, "x")
			if tt.err == nil {
				if got.err != nil || got.StopReason != tt.stop {
					t.Errorf("%q, %v; want %q", got.StopReason, got.err, tt.stop)
				}
			} else {
				var e *provider.Error
				if !errors.As(got.err, &e) || e.Type != tt.err.Type || e.Subtype != tt.err.Subtype || e.Code != tt.err.Code {
					t.Fatalf("%#v, want %#v", got.err, tt.err)
				}
				if e.Provider != "liar" || e.Message == "" || e.Method != "session/prompt" || e.RequestID != "2" ||
					e.RawShape == "" {
					t.Errorf("fields are missing: %#v", e)
				}
			}
			if strings.Contains(tt.says[0], "usage") && string(got.Usage) != `{"n":9007199254740993}` {
				t.Errorf("usage %s", got.Usage)
			}
			<-c.Gone()
			if warns := w.warned(); !slices.Equal(warns, tt.warns) {
				t.Errorf("warnings %q, want %q", warns, tt.warns)
			}
		})
	}
}

// TestErrorWithoutIDAmongTwo checks that an error without an id belongs to no request while two requests wait.
func TestErrorWithoutIDAmongTwo(t *testing.T) {
	w := &watcher{}
	c := start(t, lies("<", `>{"id":null,"error":{"code":-32700,"message":"m"}}`, lieEnd, `>{"id":3,"result":{}}`), w)
	s := open(t, c)
	done := promptAsync(s, provider.NewCall("r"), "x")
	w.waitFor(t, "the prompt", func() bool { return len(w.wire) == 5 })
	if err := s.SetMode(t.Context(), "m"); err != nil {
		t.Error(err)
	}
	if got := <-done; got.err != nil {
		t.Errorf("got %v; want got.err == nil", got.err)
	}
	if got := w.warned(); !slices.Equal(got, []string{"unknown_response"}) {
		t.Errorf("warnings %q", got)
	}
}

func TestUpdates(t *testing.T) {
	for name, tt := range map[string]struct {
		scenario, prompt string
		text             string
		kinds            []string
		warns            []string
	}{
		"in order": {"", "@say a\n@thought b\n@say c", "ac",
			[]string{"agent_message_chunk", "agent_thought_chunk", "agent_message_chunk"}, nil},
		"early": {"[session/new]\n@say one\n@say two", "@say three", "onetwothree",
			[]string{"agent_message_chunk", "agent_message_chunk", "agent_message_chunk"}, nil},
		"early, foreign": {"[session/new]\n@update {\"sessionUpdate\":\"notice\"} session=other", "@say x", "x",
			[]string{"agent_message_chunk"}, []string{"foreign_session"}},
		"foreign": {"", "@update {\"sessionUpdate\":\"agent_message_chunk\",\"content\":{\"type\":\"text\",\"text\":\"no\"}} " +
			"session=other\n@say x", "x", []string{"agent_message_chunk"}, []string{"foreign_session"}},
		"after": {"", "@answer\n@say late", "late", []string{"agent_message_chunk"}, nil},
		"unknown": {"", "@update {\"sessionUpdate\":\"notice\",\"level\":\"info\"}\n@update " +
			"{\"sessionUpdate\":\"agent_message_chunk\",\"content\":{\"type\":\"hologram\"}}", "",
			[]string{"notice", "agent_message_chunk"}, nil},
		"undecodable": {"", "@update {\"sessionUpdate\":\"tool_call\",\"toolCallId\":7}\n@say x", "x",
			[]string{"agent_message_chunk"}, []string{"undecodable_update"}},
		"never announced": {"", "@tool read T announce=no", "", []string{"tool_call_update", "tool_call_update",
			"tool_call_update"}, nil},
		"invalid UTF-8": {"", `@say caf\xe9!`, "caf\xe9!", []string{"agent_message_chunk"}, nil},
		"vendor": {"", "@notify _vendor/x {\"a\":1}\n@notify $/progress {}\n@notify session/other\n@say x", "x",
			[]string{"agent_message_chunk"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := &watcher{}
			c, got := run(t, child("ok", tt.scenario), w, tt.prompt)
			if got.err != nil {
				t.Fatalf("got %v; want got.err == nil", got.err)
			}
			leaves(t, c)
			var kinds []string
			for _, u := range w.updates {
				kinds = append(kinds, u.Kind)
			}
			if w.said() != tt.text || !slices.Equal(kinds, tt.kinds) || !slices.Equal(w.warned(), tt.warns) {
				t.Errorf("%q %q, warnings %q; want %q %q, %q", w.said(), kinds, w.warned(), tt.text, tt.kinds, tt.warns)
			}
		})
	}
}

// TestTooManyEarlyUpdates checks that updates that arrive before the session id are held, up to a limit.
func TestTooManyEarlyUpdates(t *testing.T) {
	w := &watcher{}
	c := start(t, child("liar", "<", `>{"id":0,"result":{"protocolVersion":1}}`, "<",
		fmt.Sprintf("*%d ", provider.MaxEarly+2)+fmt.Sprintf(lieText, "#,"), `>{"id":1,"result":{"sessionId":"s"}}`), w)
	open(t, c)
	var want strings.Builder
	for i := range provider.MaxEarly {
		fmt.Fprint(&want, i, ",")
	}
	if w.said() != want.String() {
		t.Errorf("%d bytes, want %d", len(w.said()), want.Len())
	}
	if got := w.warned(); !slices.Equal(got, []string{"early_update", "early_update"}) {
		t.Errorf("warnings %q", got)
	}
}

func TestLineLimit(t *testing.T) {
	t.Run("20 MB pass", func(t *testing.T) {
		w := &watcher{}
		_, got := run(t, child("ok"), w, "@stream 1 20000000")
		if got.err != nil || len(w.said()) != 20e6 {
			t.Errorf("%d bytes, %v", len(w.said()), got.err)
		}
	})
	t.Run("too long", func(t *testing.T) {
		w := &watcher{}
		c, got := run(t, child("ok"), w, "@say before\n@stream 1 300000\n@say after",
			func(o *provider.Options) { o.MaxLine = 200_000 })
		var e *provider.Error
		if !errors.As(got.err, &e) || !errors.Is(got.err, provider.ErrProtocol) || e.Subtype != "oversized_line" {
			t.Errorf("%#v", got.err)
		}
		end(t, c)
		i := slices.IndexFunc(w.wire, func(f crossed) bool { return f.Kind == provider.Oversized })
		if i < 0 {
			t.Fatal("the line was not recorded")
		}
		if f := w.wire[i]; f.Length < 300_000 || len(f.Line) != provider.KeptOfOversized || len(f.SHA256) != 32 {
			t.Errorf("length %d, kept %d", f.Length, len(f.Line))
		}
		// Perlica closes the agent's input before it sends a signal. The agent may see the closed input first
		// and exit with code 0. The scheduler decides which comes first.
		if e, ok := c.Exit(); !ok || e.Forced == "" && e.Code != 0 {
			t.Errorf("the agent was not ended: %v", e)
		}
	})
}

func TestInitializeAndSession(t *testing.T) {
	for name, tt := range map[string]struct {
		scenario string
		typ      provider.ErrorType
		is       error
		method   string
		subtype  string
	}{
		"version": {"[initialize]\n@set protocolVersion 2", provider.TypeProtocol, provider.ErrProtocol, "initialize",
			"protocol_version"},
		"in quotes": {"[initialize]\n@set protocolVersion \"2\"", provider.TypeProtocol, provider.ErrProtocol,
			"initialize", "protocol_version"},
		"half a version": {"[initialize]\n@set protocolVersion 1.5", provider.TypeProtocol, provider.ErrProtocol,
			"initialize", "protocol_version"},
		"login": {"[session/new]\n@auth", provider.TypeAuth, provider.ErrAuthRequired, "session/new", ""},
		"no id": {"[session/new]\n@result {}", provider.TypeProtocol, provider.ErrProtocol,
			"session/new", "no_session_id"},
		"odd id": {"[session/new]\n@result {\"sessionId\":5}", provider.TypeProtocol, provider.ErrProtocol,
			"session/new", "undecodable_result"},
		"exits":         {"[initialize]\n@exit 3", provider.TypeGone, provider.ErrGone, "initialize", "exited"},
		"exits at once": {"[start]\n@exit 3", provider.TypeGone, provider.ErrGone, "initialize", "exited"},
	} {
		t.Run(name, func(t *testing.T) {
			c := start(t, child("ok", tt.scenario), &watcher{})
			_, err := c.Initialize(t.Context(), "test")
			if err == nil {
				_, err = c.NewSession(t.Context(), "/", nil)
			}
			var e *provider.Error
			if !errors.As(err, &e) || !errors.Is(err, tt.is) || e.Type != tt.typ || e.Method != tt.method ||
				e.Subtype != tt.subtype || e.RequestID == "" || e.Provider != "ok" {
				t.Errorf("%#v", err)
			}
			if e.Type == provider.TypeGone && !strings.Contains(e.Message, "code 3") {
				t.Errorf("message %q", e.Message)
			}
		})
	}
}

// TestTimeouts checks that every method except session/prompt has a timeout, and a late answer is ignored.
func TestTimeouts(t *testing.T) {
	short := func(o *provider.Options) {
		o.ConnectTimeout, o.RequestTimeout = 30*time.Millisecond, 20*time.Millisecond
	}
	isTimeout := func(t *testing.T, err error, method string) {
		t.Helper()
		var e *provider.Error
		if !errors.As(err, &e) || !errors.Is(err, provider.ErrTimeout) || e.Type != provider.TypeTimeout ||
			e.Method != method || e.RequestID == "" {
			t.Errorf("%s: %#v", method, err)
		}
	}
	t.Run("initialize", func(t *testing.T) {
		c := start(t, child("liar", "hang"), &watcher{}, short)
		_, err := c.Initialize(t.Context(), "test")
		isTimeout(t, err, "initialize")
		_, err = c.NewSession(t.Context(), "/", nil)
		isTimeout(t, err, "session/new")
	})
	t.Run("in a session", func(t *testing.T) {
		w := &watcher{}
		c := start(t, child("ok", "[session/set_mode]\n@hang\n[session/set_config_option]\n@hang\n[session/close]\n@hang"), w)
		s := open(t, c)
		c.Options().ConnectTimeout, c.Options().RequestTimeout = time.Hour, 20*time.Millisecond
		done := promptAsync(s, provider.NewCall("r"), "@hang")
		isTimeout(t, s.SetMode(t.Context(), "auto"), "session/set_mode")
		isTimeout(t, s.SetOption(t.Context(), "o", "v"), "session/set_config_option")
		select {
		case got := <-done:
			t.Fatalf("session/prompt ended: %+v", got)
		default: // two timeouts have passed
		}
		if err := s.Cancel(); err != nil {
			t.Error(err)
		}
		if got := <-done; got.err != nil || got.StopReason != "cancelled" {
			t.Errorf(`got %+v; want got.err == nil && got.StopReason == "cancelled"`, got)
		}
		isTimeout(t, s.Close(t.Context()), "session/close")
	})
	t.Run("late", func(t *testing.T) {
		w := &watcher{}
		c := start(t, lies("<", lieEnd), w)
		s := open(t, c)
		c.Options().RequestTimeout = time.Nanosecond
		isTimeout(t, s.SetMode(t.Context(), "m"), "session/set_mode")
		if err := s.Cancel(); err != nil { // the agent answers only after this
			t.Error(err)
		}
		w.waitFor(t, "the warning", func() bool {
			return len(w.warnings) == 1 &&
				w.warnings[0].Subtype == "unknown_response"
		})
	})
	t.Run("context", func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		enough := errors.New("enough")
		w := &watcher{sent: func(provider.Frame) error { cancel(enough); return nil }}
		c := start(t, child("liar", "hang"), w)
		_, err := c.Initialize(ctx, "test")
		var e *provider.Error
		if !errors.As(err, &e) || !errors.Is(err, enough) || e.Type != provider.TypeStopped {
			t.Errorf("got %#v; want errors.As(err, &e) && errors.Is(err, enough) && e.Type == provider.TypeStopped", err)
		}
	})
}

func TestStartErrors(t *testing.T) {
	plain := t.TempDir() + "/plain"
	if err := os.WriteFile(plain, []byte("no program"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, a := range map[string]provider.Agent{
		"missing":          {ID: "x", Command: []string{"perlica-no-such-agent"}},
		"no such file":     {ID: "x", Command: []string{plain + "-not"}},
		"not executable":   {ID: "x", Command: []string{plain}},
		"no command":       {ID: "x"},
		"no such variable": {ID: "x", Command: []string{os.Args[0]}, Env: []string{"A=B"}},
	} {
		opt := provider.Options{Recorder: &watcher{}, Client: &watcher{}, Dir: t.TempDir(), Environ: os.Environ()}
		_, err := provider.Start(a, opt)
		var e *provider.Error
		if !errors.As(err, &e) || e.Type != provider.TypeStart || e.Provider != "x" || e.Message == "" {
			t.Errorf("%s: %#v", name, err)
		}
	}
}
