package provider

import (
	"encoding/json"
	"errors"
	"reflect"
	"testing"
	"unicode/utf8"

	"github.com/perlica/perlica/eventlog/message"
)

func TestAgentError(t *testing.T) {
	for raw, want := range map[string]Error{
		`{"code":-32603,"message":"Internal error","data":{"details":"no model","errorKind":"unknown"}}`: {
			Message: "Internal error: no model", Code: "-32603", Subtype: "unknown",
			RawShape: `{"code":number,"message":string,"data":{"details":string,"errorKind":string}}`},
		`{"code":77,"message":"oops","data":"because"}`: {Message: "oops: because", Code: "77",
			RawShape: `{"code":number,"message":string,"data":string}`},
		`{"code":99999999999999999999,"message":"m"}`: {Message: "m", Code: "99999999999999999999",
			RawShape: `{"code":number,"message":string}`},
		`{"code":1.5,"message":"m","data":[1]}`: {Message: "m", Code: "1.5",
			RawShape: `{"code":number,"message":string,"data":array}`},
		`{}`: {Message: "an error without a message",
			Said: errWordless.Coded, RawShape: `{}`},
		`{"code":null,"message":"m","data":{"message":"m"}}`: {Message: "m",
			RawShape: `{"code":null,"message":string,"data":{"message":string}}`},
		`{"code":-32000,"message":"Authentication required"}`: {Message: "Authentication required", Code: "-32000",
			Type: TypeAuth, cause: ErrAuthRequired, RawShape: `{"code":number,"message":string}`},
		`{"code":"str","message":"m"}`: {
			Message: `an error in a form that JSON-RPC does not allow: {"code":"str","message":"m"}`, Type: TypeProtocol,
			Subtype: "undecodable_error", cause: ErrProtocol,
			Said: errNotRPC.With(`{"code":"str","message":"m"}`).Coded, RawShape: `{"code":string,"message":string}`},
		`"oops"`: {Message: `an error in a form that JSON-RPC does not allow: "oops"`, Type: TypeProtocol,
			Subtype: "undecodable_error", cause: ErrProtocol,
			Said: errNotRPC.With(`"oops"`).Coded, RawShape: "string"},
		`[1]`: {Message: `an error in a form that JSON-RPC does not allow: [1]`, Type: TypeProtocol,
			Subtype: "undecodable_error", cause: ErrProtocol,
			Said: errNotRPC.With(`[1]`).Coded, RawShape: "array"},
	} {
		if want.Type == "" {
			want.Type = TypeAgent
		}
		want.Method, want.RequestID = "m", "4"
		if got := agentError("m", "4", []byte(raw)); !reflect.DeepEqual(*got, want) {
			t.Errorf("%s:\n got %+v\nwant %+v", raw, *got, want)
		}
	}
}

func TestErrorJSON(t *testing.T) {
	e := &Error{Provider: "p", Message: "m", Type: TypeAgent, Method: "session/prompt", Code: "-1", Subtype: "s",
		RequestID: "2", RawShape: "{}"}
	b, err := json.Marshal(e)
	if want := `{"provider_id":"p","error":"m","error_type":"agent","method":"session/prompt","code":-1,"subtype":"s","request_id":"2","raw_shape":"{}"}`; err != nil || string(b) != want {
		t.Errorf("got %s, %v; want err == nil && string(b) == %v", b, err, want)
	}
	if got, want := e.Error(), "p: session/prompt: m (code -1)"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if e := (&Error{Provider: "p", cause: ErrGone}).Saying(errExited.With(3)); message.Of(e).Text != e.Error() ||
		message.CodeOf(e) != "provider.exited" || !errors.Is(e, ErrGone) {
		t.Errorf("the sentence of %q is %+v", e.Error(), message.Of(e))
	}
	if e := (&Error{Message: "m", cause: ErrGone}); e.Error() != "m" || !errors.Is(e, ErrGone) {
		t.Errorf(`got %v; want e.Error() == "m" && errors.Is(e, ErrGone)`, e)
	}
}

func TestShape(t *testing.T) {
	for raw, want := range map[string]string{
		`{"a":{"b":{"c":{"d":{"e":{"f":1}}}}}}`: `{"a":{"b":{"c":{"d":{"e":…}}}}}`,
		`{"token":"sk-secret","n":1,"b":true}`:  `{"token":string,"n":number,"b":bool}`,
		`null`:                                  "null",
		`{"a":`:                                 `{}…`,
		``:                                      "invalid…",
	} {
		if got := shape([]byte(raw)); got != want {
			t.Errorf("%s: %s, want %s", raw, got, want)
		}
	}
}

func TestClip(t *testing.T) {
	for _, tt := range []struct {
		s    string
		n    int
		want string
	}{{"abc", 3, "abc"}, {"abcd", 3, "abc…"}, {"aéb", 2, "a…"}, {"", 0, ""}} {
		if got := clip(tt.s, tt.n); got != tt.want {
			t.Errorf("%q: %q, want %q", tt.s, got, tt.want)
		}
	}
}

// FuzzAgentError checks that an error object of any form becomes an Error that can be recorded.
func FuzzAgentError(f *testing.F) {
	f.Add([]byte(`{"code":-32603,"message":"m","data":{"details":"d","secret":["x"]}}`))
	f.Add([]byte(`{"code":"str"}`))
	f.Add([]byte(`{"code":"5","data":{"a":{"b":{"c":{"d":{}}}}}}`))
	f.Add([]byte(`"x`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		e := agentError("m", "1", raw)
		if e.Message == "" || e.Type == "" || len(e.RawShape) > shapeLimit+len("…") || !utf8.ValidString(e.RawShape) &&
			utf8.Valid(raw) {
			t.Fatalf("%+v", e)
		}
		if _, err := json.Marshal(e); err != nil {
			t.Fatal(err)
		}
		if e.Type != TypeProtocol && !json.Valid(raw) {
			t.Fatalf("no JSON, yet %s", e.Type)
		}
	})
}
