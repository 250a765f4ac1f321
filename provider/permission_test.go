package provider_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/coder/acp-go-sdk"

	"github.com/perlica/perlica/provider"
)

const options = `[{"optionId":"aa","name":"Always","kind":"allow_always"},{"optionId":"a1","name":"Yes","kind":"allow_once"},` +
	`{"optionId":"a2","name":"Sure","kind":"allow_once"},{"optionId":"r","name":"No","kind":"reject_once"}]`

// asks returns a permission request with the given id.
func asks(id, tool string) string {
	return fmt.Sprintf(
		`>{"jsonrpc":"2.0","id":%s,"method":"session/request_permission","params":{"sessionId":"s","toolCall":{"toolCallId":"%s","title":"T","kind":"execute","rawInput":{"command":"ls","n":9007199254740993}},"options":%s}}`, id, tool, options)
}

func outcome(id, rest string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"outcome":{%s}}}`, id, rest)
}

// TestPermission checks that the agent gets the chosen option for the right question, exactly once.
func TestPermission(t *testing.T) {
	w := &watcher{}
	s := open(t, start(t, lies(asks("0", "never-announced"), asks(`"0"`, "t2"), asks(`"a<b"`, "t3"), "<3", lieEnd), w))
	done := promptAsync(s, provider.NewCall("r"), "x")
	w.waitFor(t, "three questions", func() bool { return len(w.permissions) == 3 })
	p := w.permissions[0]
	if p.ID != "0" || p.Tool.ID != "never-announced" || p.Tool.Kind != acp.ToolKindExecute ||
		string(p.Tool.RawInput) != `{"command":"ls","n":9007199254740993}` {
		t.Errorf("%+v", p)
	}
	var kinds []acp.PermissionOptionKind
	var ids []acp.PermissionOptionId
	for _, o := range p.Options {
		ids, kinds = append(ids, o.OptionId), append(kinds, o.Kind)
	}
	if !slices.Equal(ids, []acp.PermissionOptionId{"aa", "a1", "a2", "r"}) ||
		!slices.Equal(kinds, []acp.PermissionOptionKind{"allow_always", "allow_once", "allow_once", "reject_once"}) {
		t.Errorf("%q %q", ids, kinds)
	}
	for _, no := range []acp.PermissionOptionId{"", "a3", "A1", "allow_once"} {
		if err := p.Select(no); err == nil || errors.Is(err, provider.ErrReplied) {
			t.Errorf("option %q: %v", no, err)
		}
	}
	for i, reply := range []func() error{
		func() error { return w.permissions[2].Select("r") },
		func() error { return w.permissions[0].Select("a2") },
		func() error { return w.permissions[1].Cancel() },
	} {
		if err := reply(); err != nil {
			t.Errorf("reply %d: %v", i, err)
		}
	}
	for _, p := range w.permissions {
		if err := p.Select("aa"); !errors.Is(err, provider.ErrReplied) {
			t.Errorf("got %v; want errors.Is(err, provider.ErrReplied)", err)
		}
		if err := p.Cancel(); !errors.Is(err, provider.ErrReplied) {
			t.Errorf("got %v; want errors.Is(err, provider.ErrReplied)", err)
		}
	}
	if got := <-done; got.err != nil {
		t.Fatalf("got %v; want got.err == nil", got.err)
	}
	want := []string{
		outcome(`"a\u003cb"`, `"optionId":"r","outcome":"selected"`),
		outcome("0", `"optionId":"a2","outcome":"selected"`),
		outcome(`"0"`, `"outcome":"cancelled"`),
	}
	if got := w.lines(true)[3:]; !slices.Equal(got, want) {
		t.Errorf("sent\n%q, want\n%q", got, want)
	}
}

// TestDuplicateRequestID checks that two open requests with one id are both refused, because their answers could be
// confused.
func TestDuplicateRequestID(t *testing.T) {
	w := &watcher{}
	s := open(t, start(t, lies(asks("7", "t1"), asks("7", "t2"), "<2", asks("7", "t3"), "<", lieEnd), w))
	done := promptAsync(s, provider.NewCall("r"), "x")
	w.waitFor(t, "the questions", func() bool { return len(w.permissions) == 2 })
	<-w.permissions[0].Done()
	if err := w.permissions[0].Select("a1"); !errors.Is(err, provider.ErrReplied) {
		t.Errorf("got %v; want errors.Is(err, provider.ErrReplied)", err)
	}
	if err := w.permissions[1].Select("a1"); err != nil { // the id is free again
		t.Error(err)
	}
	if got := <-done; got.err != nil {
		t.Fatalf("got %v; want got.err == nil", got.err)
	}
	want := []string{
		outcome("7", `"outcome":"cancelled"`),
		`{"jsonrpc":"2.0","id":7,"error":{"code":-32600,"message":"duplicate request id"}}`,
		outcome("7", `"optionId":"a1","outcome":"selected"`),
	}
	if got := w.lines(true)[3:]; !slices.Equal(got, want) || w.permissions[1].Tool.ID != "t3" ||
		!slices.Equal(w.refused, []string{"t2"}) || !slices.Equal(w.warned(), []string{"duplicate_request"}) {
		t.Errorf("sent\n%q, want\n%q; asked %s, warnings %q", got, want, w.permissions[1].Tool.ID, w.warned())
	}
}

// TestClaim checks that only the goroutine that claimed a request answers it. A closed request cannot be claimed.
func TestClaim(t *testing.T) {
	w := &watcher{}
	s := open(t, start(t, lies(asks("1", "t1"), "<", asks("2", "t2"), asks("2", "t3"), "<2", lieEnd), w))
	done := promptAsync(s, provider.NewCall("r"), "x")
	w.waitFor(t, "the question", func() bool { return len(w.permissions) == 1 })
	p := w.permissions[0]
	for range 2 {
		if !p.Claim() {
			t.Error("an open request could not be claimed")
		}
	}
	p.Withdraw() // does nothing
	if err := p.Select("a1"); err != nil {
		t.Error(err)
	}
	if p.Claim() || !errors.Is(p.Cancel(), provider.ErrReplied) {
		t.Error("an answered request was claimed")
	}
	w.waitFor(t, "the other question", func() bool { return len(w.permissions) == 2 })
	<-w.permissions[1].Done()
	if w.permissions[1].Claim() || !errors.Is(w.permissions[1].Select("a1"), provider.ErrReplied) {
		t.Error("a withdrawn request was claimed")
	}
	if got := <-done; got.err != nil {
		t.Fatalf("got %v; want got.err == nil", got.err)
	}
}

// TestRequestIDAgain checks that an agent may use an id again after the request was answered.
func TestRequestIDAgain(t *testing.T) {
	w := &watcher{}
	s := open(t, start(t, lies(asks("0", "t1"), "<", asks("0", "t2"), "<", lieEnd), w))
	done := promptAsync(s, provider.NewCall("r"), "x")
	for i, option := range []acp.PermissionOptionId{"r", "a1"} {
		w.waitFor(t, "the question", func() bool { return len(w.permissions) == i+1 || len(w.warnings) > 0 })
		if len(w.permissions) <= i {
			t.Fatalf("warnings %q", w.warned())
		}
		if err := w.permissions[i].Select(option); err != nil {
			t.Error(err)
		}
	}
	if got := <-done; got.err != nil {
		t.Fatalf("got %v; want got.err == nil", got.err)
	}
	want := []string{outcome("0", `"optionId":"r","outcome":"selected"`),
		outcome("0", `"optionId":"a1","outcome":"selected"`)}
	if got := w.lines(true)[3:]; !slices.Equal(got, want) {
		t.Errorf("sent\n%q, want\n%q", got, want)
	}
}

func TestWithdrawnRequest(t *testing.T) {
	w := &watcher{}
	withdraw := `>{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":%s}}`
	s := open(t, start(t, lies(asks("0", "t1"), asks("1", "t2"), fmt.Sprintf(withdraw, "5"), fmt.Sprintf(withdraw, `"0"`),
		`>{"method":"$/cancel_request"}`,
		fmt.Sprintf(withdraw, "0"), "<", fmt.Sprintf(withdraw, "0"), "<", lieEnd), w))
	done := promptAsync(s, provider.NewCall("r"), "x")
	w.waitFor(t, "the questions", func() bool { return len(w.permissions) == 2 })
	<-w.permissions[0].Done()
	if err := w.permissions[0].Cancel(); !errors.Is(err, provider.ErrReplied) {
		t.Errorf("got %v; want errors.Is(err, provider.ErrReplied)", err)
	}
	if err := w.permissions[1].Select("r"); err != nil {
		t.Error(err)
	}
	if got := <-done; got.err != nil {
		t.Fatalf("got %v; want got.err == nil", got.err)
	}
	select {
	case <-w.permissions[1].Done():
		t.Error("the other request was withdrawn, too")
	default:
	}
	want := []string{outcome("0", `"outcome":"cancelled"`), outcome("1", `"optionId":"r","outcome":"selected"`)}
	if got := w.lines(true)[3:]; !slices.Equal(got, want) {
		t.Errorf("sent\n%q, want\n%q", got, want)
	}
}

// TestRefusedRequests checks that each request that cannot be asked or carried out is refused, and the turn continues.
func TestRefusedRequests(t *testing.T) {
	for name, tt := range map[string]struct {
		requestLine string
		code        int
		blocked     bool
		warns       []string
	}{
		"foreign session": {`{"id":0,"method":"session/request_permission","params":{"sessionId":"other","toolCall":{"toolCallId":"t"},"options":[]}}`, -32602, false, []string{"foreign_session"}},
		"no session": {`{"id":0,"method":"session/request_permission","params":{"toolCall":{"toolCallId":"t"},"options":[]}}`,
			-32602,
			false, []string{"foreign_session"}},
		"no params": {`{"id":0,"method":"session/request_permission"}`, -32602, false,
			[]string{"undecodable_request"}},
		"undecodable": {`{"id":0,"method":"session/request_permission","params":{"sessionId":"s","options":"all"}}`,
			-32602, false, []string{"undecodable_request"}},
		"strange paths": {`{"id":0,"method":"session/request_permission","params":{"sessionId":"s","toolCall":{"toolCallId":"t","kind":"edit","locations":"x"},"options":[]}}`, -32602, false, []string{"undecodable_request"}},
		"odd tool":      {`{"id":0,"method":"session/request_permission","params":{"sessionId":"s","toolCall":{"toolCallId":5},"options":[]}}`, -32602, false, []string{"undecodable_request"}},
		"fs":            {`{"id":0,"method":"fs/write_text_file","params":{}}`, -32601, true, nil},
		"terminal":      {`{"id":0,"method":"terminal/create"}`, -32601, true, nil},
		"elicitation": {`{"id":0,"method":"elicitation/create","params":{}}`, -32601, false,
			[]string{"unknown_method"}},
		"vendor":             {`{"id":0,"method":"_vendor/x","params":{}}`, -32601, false, []string{"unknown_method"}},
		"update as request":  {`{"id":0,"method":"session/update","params":{}}`, -32601, false, []string{"unknown_method"}},
		"no method":          {`{"id":0,"method":""}`, -32601, false, []string{"unknown_method"}},
		"prompt to a client": {`{"id":0,"method":"session/prompt","params":{}}`, -32601, false, []string{"unknown_method"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := &watcher{}
			_, got := run(t, lies(">"+tt.requestLine, "<", lieSay("on"), lieEnd), w, "x")
			if got.err != nil || w.said() != "on" || len(w.permissions) != 0 {
				t.Fatalf(`got %v, %q; want got.err == nil && w.said() == "on" && len(w.permissions) == 0`, got.err, w.said())
			}
			want := fmt.Sprintf(`{"jsonrpc":"2.0","id":0,"error":{"code":%d,`, tt.code)
			if got := w.lines(true); len(got) != 4 || !strings.HasPrefix(got[3], want) {
				t.Errorf("sent %q, want %s", got, want)
			}
			if (len(w.blocked) == 1) != tt.blocked || !slices.Equal(w.warned(), tt.warns) {
				t.Errorf("blocked %v, warnings %q", w.blocked, w.warned())
			}
		})
	}
}

// TestPermissionBeforeTheSession checks that Perlica asks nobody before the session exists. This also holds for a
// question without a session id.
func TestPermissionBeforeTheSession(t *testing.T) {
	w := &watcher{}
	c := start(t, child("liar", "<", `>{"id":0,"result":{"protocolVersion":1}}`,
		`>{"id":0,"method":"session/request_permission","params":{"toolCall":{"toolCallId":"t"},"options":[]}}`, "<2",
		`>{"id":1,"result":{"sessionId":"s"}}`), w)
	open(t, c)
	if len(w.permissions) != 0 || !slices.Equal(w.warned(), []string{"foreign_session"}) {
		t.Errorf("asked %v, warnings %q", w.permissions, w.warned())
	}
}

// TestReplyToTheGone checks that a reply after the agent has gone returns an error.
func TestReplyToTheGone(t *testing.T) {
	w := &watcher{}
	c := start(t, lies(asks("0", "t"), "exit 1"), w)
	s := open(t, c)
	done := promptAsync(s, provider.NewCall("r"), "x")
	<-c.Gone()
	if err := w.permissions[0].Select("a1"); !errors.Is(err, provider.ErrGone) {
		t.Errorf("got %v; want errors.Is(err, provider.ErrGone)", err)
	}
	if got := <-done; !errors.Is(got.err, provider.ErrGone) {
		t.Errorf("got %v; want errors.Is(got.err, provider.ErrGone)", got.err)
	}
}
