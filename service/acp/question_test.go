package acp

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/interaction"
	"github.com/perlica/perlica/kernel/fact"
)

// TestQuestions checks that the first answer counts and that all front ends learn of it.
func TestQuestions(t *testing.T) {
	t.Run("the client", func(t *testing.T) {
		w := newWorld(t, nil, nil)
		id, q := w.ask("@ask execute Build command=make")
		answer := fmt.Sprintf(
			`{ "jsonrpc":"2.0","id":%s,"result":{"outcome":{"outcome":"selected","optionId":"allow-once"},"_meta":{"x":1}}}`,
			q.ID)
		w.send(answer)
		if _, before := w.until(id); !strings.Contains(text(before), "permission: allow-once") {
			t.Error(before)
		}
		if !slices.Contains(w.agentRead(), answer) {
			t.Errorf("the agent got %q", w.agentRead())
		}
		a, err := fact.Decode[interaction.Answer](w.events("one", event.InteractionAnswered)[0])
		if err != nil || a.By != "tester 7" || a.Where != "editor" {
			t.Error(a, err)
		}
	})
	t.Run("another front end", func(t *testing.T) {
		w := newWorld(t, nil, nil)
		id, q := w.ask("@ask execute Build command=make")
		w.answer("reject-once", "ana")
		// The lines about the end of the question and the end of the turn come in any order.
		var got []message
		for canceled, answered, late := false, false, false; !canceled || !answered; {
			m := w.next()
			got = append(got, m)
			canceled = canceled || m.Method == "$/cancel_request"
			answered = answered || m.Method == "" && string(m.ID) == id
			if canceled && !late {
				late = true
				w.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"outcome":{"outcome":"selected","optionId":"allow-once"}}}`,
					q.ID))
			}
		}
		if !strings.Contains(text(got), "permission: reject-once") {
			t.Error(got)
		}
		if read := strings.Join(w.agentRead(), "\n"); strings.Contains(read, "allow-once") {
			t.Errorf("the late answer went on: %s", read)
		}
		w.prompt2(q)
		if n := len(w.events("one", event.ClientReceived)); n != 1 {
			t.Errorf("the late answer is %d times on record", n)
		}
	})
	t.Run("the refused tier", func(t *testing.T) {
		w := newWorld(t, nil, nil)
		s := w.session("one")
		id := w.prompt(s, "@ask execute Clean command=\"sudo rm -rf /\"")
		m := w.next()
		for m.Params.Update.Meta == nil {
			if m.Method == "session/request_permission" {
				t.Fatal("the client may answer")
			}
			m = w.next()
		}
		if !strings.Contains(m.Params.Update.Content.Text, "perlica pending show") {
			t.Error(m.line)
		}
		w.answer("reject-once", "ana")
		if _, before := w.until(id); !strings.Contains(text(before), "permission: reject-once") {
			t.Error(before)
		}
	})
}

// prompt2 runs another turn after a question, so that all earlier lines are on record.
func (w *world) prompt2(q message) {
	w.t.Helper()
	w.until(w.prompt(q.Params.SessionID, "@say again"))
}

// ask opens a session, sends a script and returns the question that the client gets.
func (w *world) ask(script string) (id string, q message) {
	w.t.Helper()
	id = w.prompt(w.session("one"), script)
	for q = w.next(); q.Method != "session/request_permission"; q = w.next() {
	}
	return id, q
}

// answer answers the open question as another front end does.
func (w *world) answer(option, by string) {
	w.t.Helper()
	w.mu.Lock()
	r := w.places[w.path("one")].Runner
	w.mu.Unlock()
	questions, err := r.PendingQuestions(context.Background())
	if err != nil || len(questions) != 1 {
		w.t.Fatal(questions, err)
	}
	if err := r.AnswerQuestion(context.Background(), questions[0],
		interaction.Answer{Option: option, By: by, Where: "pending"}); err != nil {
		w.t.Fatal(err)
	}
}
