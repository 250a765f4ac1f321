//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/perlica/perlica/eventlog/event"
)

// TestThreeDoorsAtOnce answers one question at the same time over HTTP, at a terminal and on a phone. The agent
// gets the first answer. The other two front ends show the name of the person of that answer.
func TestThreeDoorsAtOnce(t *testing.T) {
	w := newWorld(t)
	b := w.bot()
	w.config(fmt.Sprintf(
		"service.channels = { local = false, telegram = true }\nservice.telegram = { base_url = %q }\nservice.web = { "+
			"listen = '127.0.0.1:0' }\n", b.url))
	w.secretly("telegram.token", botToken)
	made := w.run("web", "token", "program", "--rights", "read,ask,approve")
	made.exits(0)
	token := strings.TrimSpace(made.stdout.String())
	j := w.start("service")
	j.expect("the page is at http://127.0.0.1:")
	at := pageAt.FindStringSubmatch(j.stderr.String())[1]
	b.say(j.code())
	b.sent(0, "You are paired")

	first := map[string]int{} // number of answers that counted, by front end
	for round := range 6 {
		n := len(b.Messages())
		b.say(fmt.Sprintf(`@ask execute "Look %d" command="ls -la %[1]d"`, round))
		card := b.sent(n, fmt.Sprintf("ls -la %d", round))
		button := ""
		for _, x := range card.Buttons {
			if strings.HasSuffix(x.Text, "“Allow once”") {
				button = x.Data
			}
		}
		res := w.asks(t.Context(), token, "GET", at+"/v1/questions", nil, "")
		var open struct {
			Questions []struct{ ID, Digest string }
		}
		if err := json.NewDecoder(res.Body).Decode(&open); err != nil || len(open.Questions) != 1 {
			t.Fatal(open, err)
		}
		q := open.Questions[0]
		var all sync.WaitGroup
		var status int
		var body []byte
		var terminal *job
		all.Go(func() {
			res := w.asks(t.Context(), token, "POST", at+"/v1/questions/"+q.ID+"/answer",
				map[string]any{"option": "allow-once", "digest": q.Digest}, "")
			status = res.StatusCode
			body, _ = io.ReadAll(res.Body) // If a part of the body is missing, the checks below fail.
		})
		all.Go(func() { terminal = w.run("pending", "deny", q.ID) })
		all.Go(func() { b.Press(7, "Ada", card.ID, button) })
		all.Wait()
		ended := b.sent(n, fmt.Sprintf("(?s)answered at .*ls -la %d", round))

		events, err := readLog(logFile(w.project))
		if err != nil {
			t.Fatal(err)
		}
		var answers []string
		for _, e := range events {
			if e.Type == event.InteractionAnswered && string(e.Interaction) == q.ID {
				answers = append(answers, string(e.Payload))
			}
		}
		if len(answers) != 1 {
			t.Fatalf("round %d: %q", round, answers)
		}
		var a struct{ Option, By, Where string }
		if err := json.Unmarshal([]byte(answers[0]), &a); err != nil {
			t.Fatal(err)
		}
		first[a.Where]++
		b.sent(n, "permission: "+a.Option) // the answer that the agent got
		if won := a.Where == "web"; won != (status == http.StatusOK) || !won &&
			(status != http.StatusConflict || !strings.Contains(string(body), a.By)) {
			t.Errorf("round %d: %s was first, and HTTP says %d %s", round, answers[0], status, body)
		}
		if won := a.Where == "pending"; won != (terminal.wait() == 0) || !won &&
			!strings.Contains(terminal.stderr.String(), a.By) {
			t.Errorf("round %d: %s was first, and the terminal says %d %q", round, answers[0], terminal.wait(),
				terminal.stderr.String())
		}
		if !strings.Contains(ended.Text, a.By) {
			t.Errorf("round %d: %s was first, and the phone says %q", round, answers[0], ended.Text)
		}
	}
	t.Logf("first: %v", first)
	j.signal(syscall.SIGTERM)
	j.exits(0)
	w.audit()
}
