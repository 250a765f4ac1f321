package report

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/perlica/perlica/eventlog/event"
)

func TestSummarizeHasWordsForEveryFact(t *testing.T) {
	for _, typ := range event.Known().Types() {
		if _, ok := summaries[typ]; ok != (typ.Class() == event.Fact) {
			t.Errorf("%s: words: %v", typ, ok)
		}
	}
}

// TestEveryTextIsSearched checks that the index reads exactly the event types with texts, and the deletion of sessions.
func TestEveryTextIsSearched(t *testing.T) {
	for _, typ := range event.Known().Types() {
		indexed := slices.Contains(event.Known().For(event.Search), typ)
		if want := texts[typ] != nil || typ == event.SessionDeleted; indexed != want {
			t.Errorf("%s: indexed: %v", typ, indexed)
		}
	}
}

func TestSummarize(t *testing.T) {
	frame := func(line string) event.Event {
		return event.Event{Type: event.NotificationReceived, Class: event.Frame, Payload: []byte(line)}
	}
	fact := func(typ event.Type, payload string) event.Event {
		return event.Event{Type: typ, Class: event.Fact, Payload: []byte(payload)}
	}
	foreign := frame(
		`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"x"}}}}`)
	ours := foreign
	foreign.Conversation, ours.Conversation = "other", "s"
	for _, c := range []struct {
		e    event.Event
		want string
	}{
		{fact(event.Responded, `{"text":"a\n b","stop_reason":"end_turn","duration_ms":1500}`), "end_turn after 1.5s: a b"},
		{fact(event.InteractionLapsed, `{"reason":"time_is_up"}`), "time is up"},
		{fact(event.InteractionAnswered, `{"option":"ok","by":"alice","where":"terminal"}`), "alice: ok (terminal)"},
		{fact(event.OutcomeUnknown, `{"known":"the prompt was sent","noticed_by":"recovery"}`),
			"nothing else is known; the prompt was sent; noticed by a later start"},
		{fact(event.Responded, `not json`), "not json"},
		{fact(event.LoginStarted, `{"provider":"claude","command":["claude","/login"]}`), "in the terminal: claude /login"},
		{fact(event.LoginStarted, `{"provider":"mine","command":["mine"],"method":"authenticate","login":"key"}`),
			"asked mine to authenticate: key"},
		{fact(event.LoginEnded, `{"provider":"claude","exit_code":7}`), "claude: exit code 7"},
		{fact(event.LoginEnded, `{"provider":"mine","method":"logout","exit_code":0}`), "mine: it says that it is done"},
		{fact(event.LoginEnded, `{"provider":"mine","method":"authenticate","exit_code":0,"error":"no key"}`),
			"mine: it failed: no key"},
		{fact("from.a.newer.version", `{"a":1}`), `{"a":1}`},
		{event.Event{Type: event.Responded, Class: event.Fact, PayloadLen: 7}, "payload withheld (7 bytes)"},
		{frame(`{"jsonrpc":"2.0","id":3,"method":"session/prompt"}`), "session/prompt #3"},
		{frame(`{"jsonrpc":"2.0","method":"_vendor/x"}`), "_vendor/x"},
		{frame(`{"jsonrpc":"2.0","id":0,"result":{"a": 1}}`), `answer to #0: {"a": 1}`},
		{frame(`{"jsonrpc":"2.0","id":"x","error":{"code":-1}}`), `error to #"x": {"code":-1}`},
		{frame(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"notice"}}}`),
			"notice"},
		{foreign, "agent_message_chunk of another session"},
		{ours, "agent_message_chunk: x"},
		{frame("loading\tplugins…"), "loading plugins…"},
		{frame("[1]"), "[1]"},
	} {
		if got := Summarize(c.e, nil); got != c.want {
			t.Errorf("%s %s: %q, want %q", c.e.Type, c.e.Payload, got, c.want)
		}
	}
}

func TestSummarizeIsShortAndOneLine(t *testing.T) {
	for _, text := range []string{strings.Repeat("ä", 10_000), strings.Repeat("word\n", 10_000),
		"\xff\xfe" + strings.Repeat("\xff", 5000)} {
		got := beginning(text)
		if n := utf8.RuneCountInString(got); n > summaryRunes || strings.ContainsAny(got, "\n\r") {
			t.Errorf("%d runes: %q", n, got)
		}
	}
}
