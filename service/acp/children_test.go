package acp

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/kernel/fact"
)

// holding returns the runs of the events with a text in their payload.
func (w *world) holding(name, text string) (runs []event.RunID) {
	w.t.Helper()
	for _, e := range w.events(name, event.NotificationReceived) {
		if strings.Contains(string(e.Payload), text) {
			runs = append(runs, e.Run)
		}
	}
	return runs
}

// TestChildren checks the agent's own sessions during several turns. Such a session belongs to the
// session that named it and is judged in its directory. An unnamed session belongs to no other
// session.
func TestChildren(t *testing.T) {
	for _, announcement := range []string{
		`{"sessionUpdate":"subagent_update","sessionId":"kid","title":"x"}`,
		`{"sessionUpdate":"subagent_spawned","subagentSessionId":"kid","name":"x"}`,
		`{"sessionUpdate":"tool_call","toolCallId":"spawn","title":"spawnAgent","kind":"other","rawInput":{"receiverThreadIds":["kid"]}}`,
	} {
		w := newWorld(t, nil, nil)
		one := w.session("one")
		two := w.another("two")
		other := w.prompt(two, "@request _x/go")
		free, _ := w.meet()
		chunk := `{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"from %s"}}`
		id := w.prompt(one, "@update "+announcement+"\n@update "+fmt.Sprintf(chunk, "kid")+" session=kid\n@update "+
			fmt.Sprintf(chunk, "a stranger")+" session=stranger\n"+
			`@request session/request_permission {"sessionId":"kid","toolCall":{"toolCallId":"k1","title":"make","kind":"execute","rawInput":{"command":"make"}},"options":[{"optionId":"a","name":"Yes","kind":"allow_once"},{"optionId":"r","name":"No","kind":"reject_once"}]}`)
		q := w.next()
		for ; q.Method != "session/request_permission"; q = w.next() {
			if string(q.ID) == id {
				t.Fatalf("%s: no question: %s", announcement, q.line)
			}
		}
		open, err := w.places[w.path("one")].Runner.PendingQuestions(t.Context())
		if err != nil || len(open) != 1 || open[0].Subject.Dir != w.path("one") {
			t.Errorf("%s: %v %v", announcement, open, err)
		}
		w.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"outcome":{"outcome":"selected","optionId":"r"}}}`, q.ID))
		w.until(id)
		w.let(free)
		w.until(other)
		if runs := w.holding("one", "from kid"); len(runs) != 1 || runs[0] == "" {
			t.Errorf("%s: %q", announcement, runs)
		}
		if runs := w.holding("home", "from a stranger"); !slices.Equal(runs, []event.RunID{""}) {
			t.Errorf("%s: what belongs to none: %q", announcement, runs)
		}
	}
}

// TestEarlierTurn checks that an update about a tool call or a message of an earlier turn belongs
// to that turn.
func TestEarlierTurn(t *testing.T) {
	w := newWorld(t, nil, nil)
	s := w.session("one")
	chunk := `@update {"sessionUpdate":"agent_message_chunk","messageId":"m1","content":{"type":"text","text":"said"}}`
	w.until(w.prompt(s, "@tool execute make id=t1 steps=pending\n"+chunk))
	w.until(w.prompt(s, `@update {"sessionUpdate":"tool_call_update","toolCallId":"t1","status":"completed"}`+"\n"+chunk+
		"\n@say now"))
	var texts []string
	var runs []event.RunID
	for _, e := range w.events("one", event.Responded) {
		f, err := fact.Decode[fact.Responded](e)
		if err != nil {
			t.Fatal(err)
		}
		texts, runs = append(texts, f.Text), append(runs, e.Run)
		if len(texts) == 2 && len(f.Tools) != 0 {
			t.Errorf("the second turn has %v", f.Tools)
		}
	}
	if !slices.Equal(texts, []string{"said", "now"}) {
		t.Errorf("%q", texts)
	}
	for _, text := range []string{`"m1"`, `"t1"`} {
		for _, run := range w.holding("one", text) {
			if run != runs[0] {
				t.Errorf("%s belongs to run %s", text, run)
			}
		}
	}
}

// TestAlone checks that a turn begun by the agent is reported as such. Tools that run in it count
// as unasked.
func TestAlone(t *testing.T) {
	w := newWorld(t, nil, nil)
	s := w.session("one")
	id := w.prompt(s, "@answer\n@request _x/go\n@tool execute Build id=own command=make\n@request _x/go")
	var held message
	for answered := false; !answered || held.Method == ""; {
		m := w.next()
		answered = answered || m.Method == "" && string(m.ID) == id
		if m.Method == "_x/go" {
			held = m
		}
	}
	w.let(held)
	m, _ := w.meet()
	w.let(m)
	w.until(w.prompt(s, "@tool read Look id=other path=x"))
	unasked := w.events("one", event.PolicyUnasked)
	if len(unasked) != 1 || unasked[0].Run != "" || !strings.Contains(string(unasked[0].Payload), "by itself") {
		t.Error(unasked)
	}
	if said := w.log(); len(said) != 1 || !strings.Contains(said[0], "without a prompt") {
		t.Errorf("%q", said)
	}
}
