package report_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/kernel/report"
)

const promptLine = `{"jsonrpc":"2.0","id":3,"method":"session/prompt","params":{}}`

// step describes an event of a test's run. change may make it faulty.
type step struct {
	t       event.Type
	run     event.RunID
	q       event.InteractionID
	payload string
	change  func(*event.Event)
}

func events(steps []step) []*event.Event {
	var list []*event.Event
	for i, s := range steps {
		e := &event.Event{Seq: event.Seq(i + 1), Type: s.t, Class: event.Fact, Refs: event.Refs{
			Session: "s", Run: s.run, Trace: event.TraceID("t-" + s.run), Interaction: s.q,
		}}
		if s.t == event.Requested || s.t == event.MessageReceived {
			e.Input = event.InputID("i-" + s.run)
		}
		if s.t == event.RequestSent {
			e.Class = event.Frame
		}
		if s.payload != "" {
			e.Payload = []byte(s.payload)
		}
		if s.change != nil {
			s.change(e)
		}
		list = append(list, e)
	}
	return list
}

// sound returns the events of a run without faults.
func sound() []step {
	return []step{
		{t: event.MessageReceived, run: "1"},
		{t: event.RequestSent, run: "1", payload: `{"method":"initialize","params":"session/prompt"}`},
		{t: event.Requested, run: "1"},
		{t: event.RequestSent, run: "1", payload: promptLine},
		{t: event.InteractionRequested, run: "1", q: "q"},
		{t: event.InteractionAnswered, run: "1", q: "q", payload: `{"option":"o","by":"alice"}`},
		{t: event.ReplySent, run: "1", q: "q"},
		{t: event.PolicyDecided, run: "1"},
		{t: event.ReplySent, run: "1"},
		{t: event.InteractionRequested, run: "1", q: "p"},
		{t: event.InteractionLapsed, run: "1", q: "p"},
		{t: event.ReplyFailed, run: "1", q: "p"},
		{t: "future.type", run: "1"},
		{t: event.Responded, run: "1"},
		{t: event.CallEnforced, run: "1"},
	}
}

func auditOf(list []*event.Event, gapBefore int) (broken []string, open []event.RunID) {
	var a report.Audit
	for i, e := range list {
		if i == gapBefore {
			a.Gap()
		}
		for _, b := range a.Event(e) {
			broken = append(broken, fmt.Sprintf("%d: %s", e.Seq, b))
		}
	}
	return broken, a.Open()
}

// TestAuditRules breaks each rule once in a run without faults, and checks that the audit reports exactly this rule.
func TestAuditRules(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(s []step) []step
		want   string // the findings, separated by |; "" means no finding
	}{
		"nothing":        {func(s []step) []step { return s }, ""},
		"no outcome yet": {func(s []step) []step { return s[:13] }, ""},
		"failed early":   {func(s []step) []step { return []step{s[0], {t: event.ProviderError, run: "1"}} }, ""},
		"two runs":       {func(s []step) []step { return append(s, step{t: event.Requested, run: "2"}) }, ""},
		"a second intent": {func(s []step) []step {
			return append(s[:13:13], step{t: event.Requested, run: "1", change: input("j")})
		}, "second intent to call; the first is event 3"},
		"an input twice": {func(s []step) []step {
			return append(s,
				step{t: event.Requested, run: "2", change: input("i-1")})
		}, "16: input i-1 has a second intent"},
		"a second prompt": {func(s []step) []step { return append(s[:13:13], s[3], s[13]) },
			"14: run 1 sent a second prompt"},
		"an input's second": {func(s []step) []step {
			return append(s, step{t: event.RequestSent, run: "2", payload: promptLine, change: input("i-1")})
		}, "16: a prompt was sent before the intent|16: a second prompt was sent for input i-1"},
		"a prompt too early": {func(s []step) []step { s[2], s[3] = s[3], s[2]; return s },
			"3: a prompt was sent before|4: the intent comes after its prompt"},
		"a second outcome": {func(s []step) []step { return append(s, step{t: event.OutcomeUnknown, run: "1"}) },
			"16: run 1 has a second outcome; the first is event 14"},
		"an outcome of nought": {func(s []step) []step { return []step{s[0], s[13]} }, "2: run 1 has an outcome without"},
		"an intent too late": {func(s []step) []step { return []step{s[0], {t: event.ProviderError, run: "1"}, s[2]} },
			"3: the intent comes after its outcome"},
		"an unnamed answer": {func(s []step) []step { s[5].payload = `{"option":"o","by":""}`; return s },
			"6: an answer does not name the person who gave it"},
		"no answer at all": {func(s []step) []step { s[5].payload = `7`; return s },
			"6: an answer does not name the person who gave it"},
		"a pruned answer": {func(s []step) []step { s[5].payload = ""; return s }, ""},
		"a pruned prompt": {func(s []step) []step { s[3].payload = ""; return s }, ""},
		"an unasked answer": {func(s []step) []step { return append(s[:4:4], s[5:]...) },
			"5: interaction.answered comes before its question"},
		"answered twice": {func(s []step) []step { return append(s, s[5]) },
			"16: the question had ended already, in event 6"},
		"answered and lapsed": {func(s []step) []step {
			return append(s,
				step{t: event.InteractionLapsed, run: "1", q: "q"})
		}, "16: the question had ended already"},
		"another's answer": {func(s []step) []step { s[5].run = "3"; return s },
			"6: interaction.answered belongs to another run"},
		"asked twice": {func(s []step) []step { return append(s, s[4]) }, "16: the question was asked before"},
		"told too early": {func(s []step) []step { s[5], s[6] = s[6], s[5]; return s },
			"6: the agent got the answer before the question ended"},
		"told by nobody": {func(s []step) []step { return append(s[:7:7], s[8:]...) },
			"8: the agent got an answer although neither"},
		"told once too often": {func(s []step) []step { return append(s, s[8]) },
			"16: the agent got an answer although neither"},
		"another trace": {func(s []step) []step { s[14].change = func(e *event.Event) { e.Trace = "x" }; return s },
			`15: llm.single_call.enforced has other ids than its run: trace "x"`},
		"another session": {func(s []step) []step { s[14].change = func(e *event.Event) { e.Session = "x" }; return s },
			`session "x" instead of "s"`},
		"another input": {func(s []step) []step { s[2].change = input("j"); return s },
			`3: llm.requested has other ids than its run`},
		"no class": {func(s []step) []step { s[12].change = func(e *event.Event) { e.Class = "news" }; return s },
			`13: future.type is of the class "news"`},
		"an intent of no run": {func(s []step) []step { return []step{{t: event.Requested}} },
			"1: an intent to call belongs to no run"},
		"a prompt of no run": {func(s []step) []step { return []step{{t: event.RequestSent, payload: promptLine}} },
			"1: a prompt was sent that belongs to no run"},
		"no input": {func(s []step) []step { s[0].t, s[2].change = event.Truncated, input(""); return s },
			"3: an intent to call has no input"},
	} {
		broken, _ := auditOf(events(tc.change(sound())), -1)
		want := strings.Split(tc.want, "|")
		if tc.want == "" {
			want = nil
		}
		ok := len(broken) == len(want) || name == "a second intent"
		for i, w := range want {
			ok = ok && i < len(broken) && strings.Contains(strings.Join(broken, "|"), w)
		}
		if !ok {
			t.Errorf("%s: %q, want %q", name, broken, want)
		}
	}
}

func input(id event.InputID) func(*event.Event) {
	return func(e *event.Event) { e.Input = id }
}

// TestAuditOpen checks that a run with an intent and no outcome is listed as open, and is not reported as damage.
func TestAuditOpen(t *testing.T) {
	list := events(append(sound()[:13], step{t: event.Requested, run: "2"}))
	broken, open := auditOf(list, -1)
	if fmt.Sprint(open) != "[1 2]" || len(broken) > 0 {
		t.Errorf("open %v, broken %q", open, broken)
	}
	if _, open := auditOf(list, 13); fmt.Sprint(open) != "[]" {
		t.Errorf("behind a gap: %v", open)
	}
}

// TestAuditBehindGaps checks that the audit reports no fault that may come from missing events.
func TestAuditBehindGaps(t *testing.T) {
	all := events(sound())
	for from := range all {
		for to := from + 1; to < len(all); to++ {
			rest := append(append([]*event.Event{}, all[:from]...), all[to:]...)
			if broken, _ := auditOf(rest, from); len(broken) > 0 {
				t.Errorf("without %d to %d: %q", from+1, to, broken)
			}
		}
	}
}

// BenchmarkAudit measures the time of checking one event.
func BenchmarkAudit(b *testing.B) {
	e := events([]step{{t: event.NotificationReceived, run: "1"}})[0]
	var a report.Audit
	for range b.N {
		a.Event(e)
	}
}
