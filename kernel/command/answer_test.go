package command

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/interaction"
	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/kernel/record"
	"github.com/perlica/perlica/policy"
)

// turn starts a prompt that asks n questions. It returns the questions, and a function that waits for the result.
func (h *Host) turn(t *testing.T, prompt string, n int) ([]interaction.Question, func() record.Result) {
	t.Helper()
	asked := make(chan interaction.Question, n)
	type ended struct {
		res record.Result
		err error
	}
	done := make(chan ended, 1)
	go func() {
		res, err := h.Conversation.Run(t.Context(), kernel.Turn{
			Input: kernel.Input{Text: prompt, Source: "test"}, Permissions: policy.ModeAsk, AnswerIn: time.Hour,
			Show: func(n record.Notice) {
				if q, ok := n.(record.Asked); ok {
					asked <- q.Question
				}
			},
		})
		done <- ended{res, err}
	}()
	questions := make([]interaction.Question, n)
	for i := range questions {
		select {
		case questions[i] = <-asked:
		case e := <-done:
			t.Fatalf("%+v, %v", e.res, e.err)
		}
	}
	return questions, func() record.Result {
		t.Helper()
		e := <-done
		if e.err != nil {
			t.Fatalf("got %v; want e.err == nil", e.err)
		}
		return e.res
	}
}

// TestAnswers checks that each command answers its question with exactly the chosen option.
func TestAnswers(t *testing.T) {
	h := newHost(t)
	for command, want := range map[string]string{
		"/allow":            "permission: allow-once",
		"/deny":             "permission: reject-once",
		"/choose 1":         "permission: allow-once",
		"/allow ID":         "permission: allow-once",
		"/deny ID":          "permission: reject-once",
		"/choose ID 1":      "permission: allow-once",
		"/choose ID Reject": "permission: reject-once",
	} {
		q, end := h.turn(t,
			`@ask edit "Write a.txt" path=a.txt options=allow-once:allow_once:Allow,reject-once:reject_once:Reject`, 1)
		h.says(t, map[string]string{"/pending": "**Write a.txt** — test, question `" + short(string(q[0].ID)) + "`"})
		out := h.does(t, strings.ReplaceAll(command, "ID", short(string(q[0].ID))))
		if res := end(); !strings.Contains(res.Text, want) || !strings.Contains(out.Text, short(string(q[0].ID))) {
			t.Errorf("%s: got %q, %q; want strings.Contains(res.Text, %v) && strings.Contains(out.Text, short(string(q[0].ID)))",
				command, out.Text, res.Text, want)
		}
	}
	h.says(t, map[string]string{"/pending": "No questions are waiting."})
	if err := h.refuses(t, "/allow"); err.Error() != "no question waits" {
		t.Errorf(`got %v; want err.Error() == "no question waits"`, err)
	}
}

// TestAnswersThatAreNone checks that ambiguous commands answer no question. The same holds for a command that does not
// name its question and comes before anyone could read the question.
func TestAnswersThatAreNone(t *testing.T) {
	h := newHost(t)
	q, end := h.turn(t,
		"@ask edit \"One\" path=a.txt options=y:allow_once:Yes,a:allow_always:Always wait=no\n@ask edit \"Two\" path=b.txt",
		2)
	one := short(string(q[slices.IndexFunc(q, func(q interaction.Question) bool { return q.Title == "One" })].ID))
	for line, want := range map[string]string{
		"/allow":                    "2 questions wait",
		"/choose 1":                 "2 questions wait",
		"/deny":                     "2 questions wait",
		"/deny " + one + " now":     "/deny [ID]",
		"/allow " + one + " root":   "/allow [ID] [WORD]",
		"/choose " + one + " a":     "Nothing was answered",
		"/choose " + one + " yes":   "",
		"/choose " + one + " 9":     "",
		"/choose":                   "/choose [ID] N|TEXT",
		"/allow nosuchid":           "",
		"/cancel":                   "no turn is under way here",
		"/cancel nosuchrun":         "",
		"/log show nosuchrun":       "",
		"/policy revoke nosuchid":   "",
		"/session use nosuch":       "",
		"/session delete nosuch":    "",
		"/session show nosuch":      "",
		"/session nosuch":           "/session [list",
		"/session list everything":  "/session [list",
		"/session export":           "/session [list",
		"/session current and more": "/session [list",
	} {
		if err := h.refuses(t, line); !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v; want strings.Contains(err.Error(), %v)", line, err, want)
		}
	}
	h.Named = true
	h.does(t, "/choose "+one+" a always")
	if err := h.refuses(t, "/allow"); !errors.Is(err, errUnnamed) { // although only one question waits
		t.Errorf("got %v; want errors.Is(err, errUnnamed)", err)
	}
	h.Named = false
	open, err := h.openQuestions(t.Context())
	if err != nil || len(open) != 1 {
		t.Fatalf("%d questions are open, %v", len(open), err)
	}
	asked := open[0].Asked
	h.Now = func() time.Time { return asked.Add(interaction.ReadTime - 1) } // nobody could have read the question yet
	for _, line := range []string{"/allow", "/choose 1"} {
		if err := h.refuses(t, line); !errors.Is(err, errTooSoon) {
			t.Errorf("%s: got %v; want errors.Is(err, errTooSoon)", line, err)
		}
	}
	h.Now = func() time.Time { return asked.Add(interaction.ReadTime) }
	h.does(t, "/allow")
	if res := end(); !strings.Contains(res.Text, "permission: a") ||
		!strings.Contains(res.Text, "permission: allow-once") {
		t.Errorf("%q", res.Text)
	}
}

// TestAnotherSession checks a user with access to one session. The user gets no questions and runs of other sessions.
func TestAnotherSession(t *testing.T) {
	h := newHost(t)
	q, end := h.turn(t, `@ask edit "Write a.txt" path=a.txt`, 1)
	h.Only = []event.SessionID{"0199aaaa-bbbb-7ccc-8ddd-eeeeeeeeeeee"}
	h.says(t, map[string]string{"/pending": "No questions are waiting.", "/session list": "There are no kept sessions"})
	for _, line := range []string{"/allow " + short(string(q[0].ID)), "/deny " + string(q[0].ID),
		"/choose " + string(q[0].ID) + " 1"} {
		if err := h.refuses(t, line); !errors.Is(err, errRight) {
			t.Errorf("%s: got %v; want errors.Is(err, ErrRight)", line, err)
		}
	}
	h.Only = nil
	h.does(t, "/deny")
	run := end().Run
	h.Only = []event.SessionID{"0199aaaa-bbbb-7ccc-8ddd-eeeeeeeeeeee"}
	for _, line := range []string{"/log show " + string(run), "/cancel " + string(run)} {
		if err := h.refuses(t, line); !errors.Is(err, errRight) {
			t.Errorf("%s: got %v; want errors.Is(err, ErrRight)", line, err)
		}
	}
}

// TestRights checks that a user with the right to read alone can change, send and answer nothing.
func TestRights(t *testing.T) {
	h := newHost(t)
	q, end := h.turn(t, `@ask edit "Write a.txt" path=a.txt`, 1)
	h.May = func(n Need) bool { return n == Read }
	for _, line := range []string{"/allow", "/deny", "/choose 1", "/cancel", "/clear", "/attach x", "/send", "/mode auto",
		"/model x", "/config a b",
		"/session new", "/session delete x", "/policy revoke x", "/save", "/save x", "/discard", "/provider x", "/exit"} {
		if err := h.refuses(t, line); !errors.Is(err, errRight) {
			t.Errorf("%s: got %v; want errors.Is(err, ErrRight)", line, err)
		}
	}
	h.says(t, map[string]string{"/pending": short(string(q[0].ID)), "/session": "", "/policy": "",
		"/provider": "predictable", "/mode": "auto"})
	h.May = nil
	h.does(t, "/deny")
	end()
}

// TestCancel checks that /cancel stops the current turn, and that the recorded stop names the user and the front end.
func TestCancel(t *testing.T) {
	h := newHost(t)
	q, end := h.turn(t, `@ask edit "Write a.txt" path=a.txt`, 1)
	var got fact.Stop
	h.Cancel = func(s fact.Stop) bool { got = s; return true }
	h.does(t, "/cancel")
	if got.By != "user" || got.Why != "me sent /cancel from the test" || got.Person != "me" ||
		got.Code != "command.cancelled-by" {
		t.Errorf("got %+v", got)
	}
	h.says(t, map[string]string{"/cancel " + string(q[0].Refs.Run): "asked to stop"})
	if res := end(); res.Stopped == nil || res.Stopped.Why != got.Why {
		t.Errorf("got %+v; want res.Stopped != nil && res.Stopped.Why == %v", res.Stopped, got.Why)
	}
	for e, err := range h.Runner.Log().Events(t.Context(), event.Query{Run: q[0].Refs.Run,
		Types: []event.Type{event.InteractionAnswered}}) {
		t.Errorf("%+v, %v", e, err)
	}
}
