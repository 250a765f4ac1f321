package acp

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/interaction"
)

// meet returns the next request with which the agent's script waits for the test.
func (w *world) meet() (m message, before []message) {
	w.t.Helper()
	for m = w.next(); m.Method != "_x/go"; m = w.next() {
		before = append(before, m)
	}
	return m, before
}

// let answers a request that meet has returned, so that the script continues.
func (w *world) let(m message) {
	w.t.Helper()
	w.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{}}`, m.ID))
}

// answers returns the lines that answered a request of the agent.
func (w *world) answers(id string) (lines []string) {
	w.t.Helper()
	for _, line := range w.agentRead() {
		if strings.Contains(line, `"id":`+id+`,`) && !strings.Contains(line, `"method"`) {
			lines = append(lines, line)
		}
	}
	return lines
}

// TestWithdrawn checks that a question cancelled by the agent ends everywhere. A later answer is
// recorded and does not pass.
func TestWithdrawn(t *testing.T) {
	const back = "\n@request _x/go\n@notify $/cancel_request {\"requestId\":\"\\u0071\"}\n@request _x/go"
	local := `@request fs/write_text_file {"sessionId":"$session","path":"/etc/passwd","content":"x"} wait=no rpcid="q"`
	for name, c := range map[string]struct {
		script string
		has    bool // the client has the question
	}{
		"with the client":               {`@ask execute Build command=make wait=no rpcid="q"`, true},
		"with another front end":        {`@ask execute Clean command="sudo rm -rf /" wait=no rpcid="q"`, false},
		"files, with another front end": {local, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil, func(o *Options) { o.Local = true })
			id := w.prompt(w.session("one"), c.script+back)
			asked := func(m message) bool { return m.Method == "session/request_permission" || m.Params.Update.Meta != nil }
			first, before := w.meet()
			for !slices.ContainsFunc(before, asked) {
				before = append(before, w.next())
			}
			w.let(first)
			second, between := w.meet()
			cancels := slices.ContainsFunc(between, func(m message) bool { return m.Method == cancelRequest })
			if cancels != c.has {
				t.Errorf("the client got %v", between)
			}
			w.send(`{"jsonrpc":"2.0","id":"q","result":{"outcome":{"outcome":"selected","optionId":"allow-once"}}}`)
			w.let(second)
			w.until(id)
			if got := w.answers(`"q"`); len(got) != 1 || !strings.Contains(got[0], "-32800") {
				t.Errorf("the agent got %q", got)
			}
			lapsed := w.events("one", event.InteractionLapsed)
			if len(lapsed) != 1 || !strings.Contains(string(lapsed[0].Payload), string(interaction.Withdrawn)) {
				t.Error(lapsed)
			}
			if open, err := w.places[w.path("one")].Runner.PendingQuestions(context.Background()); len(open) != 0 || err != nil {
				t.Error(open, err)
			}
			if late := len(w.events("one", event.ClientReceived)) + len(w.events("home", event.ClientReceived)); late != 1 {
				t.Errorf("%d lines of the client's did not go on", late)
			}
		})
	}
}

// TestTwins checks two open questions with one id. Both get a no, and the client learns the end of
// the first one.
func TestTwins(t *testing.T) {
	const ask = "@ask execute Build command=make wait=no rpcid=\"q\"\n"
	w := newWorld(t, nil, nil)
	id := w.prompt(w.session("one"), ask+"@request _x/go\n"+ask+"@request _x/go")
	first, before := w.meet()
	for len(before) == 0 || before[len(before)-1].Method != "session/request_permission" {
		before = append(before, w.next())
	}
	w.let(first)
	second, between := w.meet()
	for len(between) == 0 || between[len(between)-1].Method != cancelRequest {
		between = append(between, w.next())
	}
	if got := between[len(between)-1]; string(got.Params.RequestID) != `"q"` {
		t.Error(got.line)
	}
	w.let(second)
	w.until(id)
	if got := w.answers(`"q"`); len(got) != 2 || strings.Contains(strings.Join(got, ""), "allow") {
		t.Errorf("the agent got %q", got)
	}
}

// TestDismissedLate checks a client that dismisses a question while another front end answers it.
// The client's line is either with the agent or on record as dropped.
func TestDismissedLate(t *testing.T) {
	w := newWorld(t, nil, nil)
	s := w.session("one")
	for i := range 20 {
		id := w.prompt(s, "@ask execute Build command=make")
		q := w.next()
		for q.Method != "session/request_permission" {
			q = w.next()
		}
		line := fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"outcome":{"outcome":"cancelled"},"_meta":{"turn":%d}}}`,
			q.ID, i)
		r := w.places[w.path("one")].Runner
		open, err := r.PendingQuestions(t.Context())
		if err != nil || len(open) != 1 {
			t.Fatal(open, err)
		}
		answered := make(chan struct{})
		go func() {
			defer close(answered)
			// An error is ignored, because the editor may answer first, and this answer then comes too late.
			_ = r.AnswerQuestion(context.Background(), open[0], interaction.Answer{Option: "reject-once", By: "ana",
				Where: "pending"})
		}()
		w.send(line)
		<-answered
		w.until(id)
		n := 0
		for _, read := range w.agentRead() {
			if read == line {
				n++
			}
		}
		w.until(w.prompt(s, "@say again")) // after this, the earlier lines are on record
		for _, e := range w.events("one", event.ClientReceived) {
			if string(e.Payload) == line {
				n++
			}
		}
		if n != 1 {
			t.Errorf("turn %d: the client's line is %d times with the agent or on record", i, n)
		}
	}
}

// TestRemembered checks that the memory of answered questions is limited and keeps the latest ones.
func TestRemembered(t *testing.T) {
	r := &relay{agentRequests: map[string]*agentRequest{}}
	const n = 3 * remembered
	for i := range n {
		q := &agentRequest{judged: true, method: "session/request_permission", line: []byte("x")}
		r.agentRequests[fmt.Sprint(i)] = q
		r.replied(fmt.Sprint(i), q)
		r.replied(fmt.Sprint(i), q) // the second call must change nothing; it happens if two questions have one id
	}
	if len(r.agentRequests) != remembered || len(r.answered) != remembered || r.agentRequests[fmt.Sprint(n-1)] == nil {
		t.Errorf("%d questions, %d ids", len(r.agentRequests), len(r.answered))
	}
}
