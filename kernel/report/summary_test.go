package report

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/message"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/kernel/language"
	"github.com/perlica/perlica/kernel/record"
	"github.com/perlica/perlica/provider"
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
			"nothing else is known; the prompt was sent; noticed when Perlica started again"},
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

// TestSummarizeInChinese checks that the codes on the record decide the words, and words without a code stay English.
func TestSummarizeInChinese(t *testing.T) {
	said := message.New("provider.exited", "the agent exited with code %d").With(3)
	gone := (&provider.Error{Provider: "p", Type: provider.TypeGone}).Saying(said)
	of := func(typ event.Type, payload any) event.Event {
		return event.NewFact(typ, "perlica", event.Refs{}, payload)
	}
	damaged := event.Event{Seq: 7, Withheld: event.Damaged}
	for _, c := range []struct {
		e    event.Event
		want string
	}{
		{of(event.BridgeFinished, fact.NewBridgeFinished("failed", gone)), "失败: p: 智能体以代码 3 退出"},
		{of(event.BridgeFinished, fact.NewBridgeFinished("refused", errors.New("odd"))), "已拒绝: odd"},
		{of(event.ProviderError, fact.Failed{Error: gone}), "p: 智能体以代码 3 退出"},
		{of(event.Responded, fact.Responded{Text: "x", DurationMS: 2}), "没有说明结束原因，用时 2 毫秒：x"},
		{of(event.Responded, fact.Responded{Text: "x", StopReason: "refusal"}), "智能体拒绝继续，用时 0 毫秒：x"},
		{of(event.RunResolved, fact.Resolved{By: "a", Sent: true, Note: "n"}), "a 认定输入已经发出：n"},
		{of(event.RunResolved, fact.Resolved{By: "a", Note: "n"}), "a 认定输入没有发出：n"},
		{of(event.ScheduleMissed, fact.ScheduleMissed{Schedule: "s", Why: fact.MissedRefused, Error: said.Text,
			Coded: said.Coded}), "s at " + moment(time.Time{}) + ": not accepted, nothing was sent: 智能体以代码 3 退出"},
		{damaged, "已损坏：事件 7 的头部与所记录的哈希不符；请运行“perlica log verify”"},
	} {
		if got := Summarize(c.e, language.Chinese.Sentences()); got != c.want {
			t.Errorf("%s %s: %q, want %q", c.e.Type, c.e.Payload, got, c.want)
		}
	}
}

// TestEnding checks the ends of turns in both languages.
func TestEnding(t *testing.T) {
	gone := (&provider.Error{Provider: "p"}).Saying(message.New("provider.exited",
		"the agent exited with code %d").With(3))
	for _, c := range []struct {
		turn             TurnSummary
		english, chinese string
	}{
		{TurnSummary{}, "no outcome on record yet", "还没有结果记录"},
		{TurnSummary{Outcome: record.OutcomeProviderError, err: gone}, "failed: p: the agent exited with code 3",
			"失败：p: 智能体以代码 3 退出"},
		{TurnSummary{Outcome: record.OutcomeUnknown, err: gone}, "outcome unknown: p: the agent exited with code 3",
			"结果不明：p: 智能体以代码 3 退出"},
		{TurnSummary{Outcome: record.OutcomeUnknown, Pruned: true}, "outcome unknown: nothing else is known",
			"结果不明：其余不知道"},
		{TurnSummary{Outcome: record.OutcomeResponded, StopReason: "max_tokens"}, "max_tokens", "达到 token 上限"},
		{TurnSummary{Outcome: record.OutcomeResponded, StopReason: "end_turn"}, "", ""},
		{TurnSummary{Outcome: record.OutcomeResponded, Pruned: true}, "", ""},
	} {
		if got := c.turn.Ending(language.English.Sentences()); got != c.english {
			t.Errorf("%q, want %q", got, c.english)
		}
		if got := c.turn.Ending(language.Chinese.Sentences()); got != c.chinese {
			t.Errorf("%q, want %q", got, c.chinese)
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
