package web

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/store"
	"github.com/perlica/perlica/interaction"
	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/kernel/project"
	"github.com/perlica/perlica/service/access"
)

// withKey puts the id of an input into the header.
func withKey(key string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set("Idempotency-Key", key) }
}

// count counts the events of a type on a project's log.
func (w *world) count(dir string, types ...event.Type) int {
	w.t.Helper()
	log := w.reader(dir)
	defer log.Close()
	n, err := log.Count(w.t.Context(), event.Query{Types: types})
	check(w.t, err)
	return n
}

// reader opens a project's log.
func (w *world) reader(dir string) *store.Reader {
	w.t.Helper()
	p, err := project.Find(dir, w.environ, nil)
	check(w.t, err)
	log, _, err := p.OpenReader(w.t.Context())
	check(w.t, err)
	return log
}

// TestOneInput checks that five simultaneous requests with one input make one call and all get its result. A later
// request gets the result, too. Another text with the same id is refused before and after the result.
func TestOneInput(t *testing.T) {
	w := newWorld(t, 2)
	in := object{"project": w.dirs[1], "text": "@say once", "wait": true}
	var all sync.WaitGroup
	runs := make([]string, 5)
	for i := range runs {
		all.Go(func() {
			got := w.do("POST", "/v1/inputs", in, withKey("job-1"))
			if got.status == http.StatusOK {
				runs[i] = got.object()["run_id"].(string)
			} else {
				t.Errorf("%d: %s", got.status, got.body)
			}
		})
	}
	all.Wait()
	for _, run := range runs {
		if run != runs[0] || run == "" {
			t.Errorf("the runs are %q", runs)
		}
	}
	again := w.do("POST", "/v1/inputs", in, withKey("job-1")).want(200).object()
	if again["run_id"] != runs[0] || again["result"].(object)["replayed"] != true || again["input_id"] != "job-1" {
		t.Errorf("sent again: %v", again)
	}
	in["text"] = "@say another"
	w.do("POST", "/v1/inputs", in, withKey("job-1")).problem(inputDiffers)
	in["text"], in["session"] = "@say once", "another"
	w.do("POST", "/v1/inputs", in, withKey("job-1")).problem(inputDiffers)
	if n := w.count(w.dirs[1], event.Requested); n != 1 {
		t.Errorf("%d calls", n)
	}
	if n := w.count(w.dirs[1], event.SessionCreated); n != 1 {
		t.Errorf("%d sessions", n)
	}
}

// TestConversation checks that an input with a session continues this session. An input that
// arrives during a turn waits and is answered after it.
func TestConversation(t *testing.T) {
	w := newWorld(t, 1)
	asked := w.do("POST", "/v1/inputs", object{"project": w.dirs[0],
		"text": "@ask execute Build command=make"}).want(202).object()
	if asked["state"] != "running" || asked["run_id"] == nil {
		t.Errorf("%v", asked)
	}
	session := asked["session_id"]
	next := w.do("POST", "/v1/inputs", object{"project": w.dirs[0], "session": session, "text": "@say next"},
		withKey("next")).want(202).object()
	if next["state"] != "queued" || next["session_id"] != session {
		t.Errorf("%v", next)
	}
	w.do("POST", "/v1/inputs", object{"project": w.dirs[0], "session": session, "text": "@say other"}, withKey("next")).
		problem(inputDiffers)
	waiting := func() any { return w.do("GET", "/v1/sessions/"+session.(string), nil).want(200).object()["inputs"] }
	if got := waiting().([]any); len(got) != 2 || !slices.Contains(got, asked["input_id"]) ||
		!slices.Contains(got, next["input_id"]) {
		t.Errorf("%v have no result yet", got)
	}
	q := w.question()
	w.answer(q, "reject_once").want(200)
	done := w.do("POST", "/v1/inputs", object{"project": w.dirs[0], "session": session, "text": "@say next", "wait": true},
		withKey("next")).want(200).object()
	if got := waiting().([]any); len(got) != 0 {
		t.Errorf("%v have no result yet", got)
	}
	if done["result"].(object)["text"] != "next" || done["session_id"] != session {
		t.Errorf("%v", done)
	}
	shown := w.do("GET", "/v1/sessions/"+session.(string)+"?limit=1", nil).want(200).object()
	turns := items(shown, "turn_list")
	if len(turns) != 1 || turns[0]["text"] != "@say next" || shown["turns"] != 2.0 {
		t.Fatalf("%v", shown)
	}
	older := w.do("GET", "/v1/sessions/"+session.(string)+"?limit=1&page="+shown["next"].(string), nil).want(200).object()
	if turns := items(older, "turn_list"); len(turns) != 1 || turns[0]["run_id"] != asked["run_id"] {
		t.Errorf("%v", older)
	}
	w.do("POST", "/v1/inputs", object{"project": w.dirs[0], "session": session, "provider": "claude",
		"text": "x"}).problem(unfit)
	w.do("POST", "/v1/inputs", object{"project": w.dirs[0], "session": "none", "text": "x"}).problem(notFound)
}

// send sends an input as a program and returns its session and run.
func (w *world) send(text, session string) (sessionID, run string) {
	w.t.Helper()
	body := object{"project": w.dirs[0], "text": text}
	if session != "" {
		body["session"] = session
	}
	o := w.do("POST", "/v1/inputs", body).want(202).object()
	run, _ = o["run_id"].(string)
	return o["session_id"].(string), run
}

// question waits for the only open question.
func (w *world) question() object {
	w.t.Helper()
	s := w.follow("/v1/events?after=0&type=question", "")
	defer s.close()
	id := s.event()["id"].(string)
	return w.do("GET", "/v1/questions/"+id, nil).want(200).object()
}

// answer answers a question with the first option of a kind.
func (w *world) answer(q object, kind string, change ...func(*http.Request)) *response {
	w.t.Helper()
	return w.do("POST", "/v1/questions/"+q["id"].(string)+"/answer",
		object{"option": optionOf(w.t, q, kind), "digest": q["digest"]}, change...)
}

func optionOf(t *testing.T, q object, kind string) string {
	t.Helper()
	for _, o := range items(q, "options") {
		if o["kind"] == kind && o["offer"] != true {
			return o["id"].(string)
		}
	}
	t.Fatalf("no option %s: %v", kind, q)
	return ""
}

// TestForm checks that the fields of a form are questions. The server refuses an unfit text with a
// reason, and an option chooses a value.
func TestForm(t *testing.T) {
	w := newWorld(t, 1)
	input := object{
		"project": w.dirs[0], "text": `@elicit Release schema={"properties":{"n":{"type":"integer","title":"How many","maximum":9},"b":{"type":"boolean","title":"Sure"}}}`,
	}
	w.do("POST", "/v1/inputs", input, withKey("form")).want(202)
	q := w.question()
	text := items(q, "options")[0]
	if q["title"] != "How many" || q["input"].(object)["type"] != "integer" || text["text"] != true ||
		text["always"] != false {
		t.Errorf("%v", q)
	}
	answer := func(q object, option any, word string) *response {
		return w.do("POST", "/v1/questions/"+q["id"].(string)+"/answer",
			object{"option": option, "digest": q["digest"], "word": word})
	}
	if p := answer(q, text["id"], "10").problem(unfit); !strings.Contains(fmt.Sprint(p), "at most 9") {
		t.Errorf("%v", p)
	}
	answer(q, text["id"], "7").want(200)
	for _, option := range []int{1, 0} { // the value "no" for the field b, and then the option that sends the form
		next := w.do("GET", "/v1/questions?project="+url.QueryEscape(w.dirs[0]), nil)
		for len(items(next.want(200).object(), "questions")) == 0 {
			next = w.do("GET", "/v1/questions?project="+url.QueryEscape(w.dirs[0]), nil)
		}
		q = items(next.object(), "questions")[0]
		answer(q, items(q, "options")[option]["id"], "").want(200)
	}
	input["wait"] = true
	done := w.do("POST", "/v1/inputs", input, withKey("form")).want(200).object()
	if said := fmt.Sprint(done["result"].(object)["text"]); !strings.Contains(said,
		`{"action":"accept","content":{"b":false,"n":7}}`) {
		t.Errorf("the agent was given %s", said)
	}
}

// TestOneAnswer sends answers from two devices and another process at the same time. One answer counts, and the other
// senders learn the name of its sender.
func TestOneAnswer(t *testing.T) {
	w := newWorld(t, 1)
	second := w.newToken("second", access.Approve, access.Read)
	w.do("POST", "/v1/inputs", object{"project": w.dirs[0], "text": "@ask execute Build command=make"},
		withKey("job")).want(202)
	q := w.question()
	if q["open"] != true || q["subject"].(object)["commands"].([]any)[0] != "make" ||
		len(items(q["card"].(object), "rows")) == 0 {
		t.Errorf("%v", q)
	}
	differs := object{"option": optionOf(t, q, "allow_once"), "digest": strings.Repeat("0", 64)}
	w.do("POST", "/v1/questions/"+q["id"].(string)+"/answer", differs).problem(questionOther)
	w.do("POST", "/v1/questions/"+q["id"].(string)+"/answer", object{"option": "none",
		"digest": q["digest"]}).problem(unfit)
	w.do("POST", "/v1/questions/"+q["id"].(string)+"/answer", object{"option": optionOf(t, q, "allow_always"),
		"digest": q["digest"]}).problem(alwaysNeeded)
	signed := object{"option": optionOf(t, q, "allow_once"), "digest": q["digest"], "signature": "AAAA"}
	// A token cannot sign.
	w.do("POST", "/v1/questions/"+q["id"].(string)+"/answer", signed).problem(forbidden)

	p, err := project.Find(w.dirs[0], w.environ, nil)
	check(t, err)
	r, done, err := p.Open(t.Context(), "test")
	check(t, err)
	defer func() { check(t, done()) }()
	var all sync.WaitGroup
	begin := make(chan struct{})
	answers := make([]*response, 2)
	for i, token := range []string{w.token, second} {
		all.Go(func() {
			<-begin
			answers[i] = w.answer(q, "allow_once", bearer(token))
		})
	}
	var terminal error
	all.Go(func() {
		<-begin
		terminal = w.answerElsewhere(r, q)
	})
	close(begin)
	all.Wait()
	winners := 0
	if terminal == nil {
		winners++
	}
	for _, a := range answers {
		if a.status == 200 {
			winners++
		} else if p := a.problem(questionClosed); p.Answer == nil || p.Answer.By == "" || p.At == nil {
			t.Errorf("%+v", p)
		}
	}
	if winners != 1 || w.count(w.dirs[0], event.InteractionAnswered) != 1 {
		t.Errorf("%d answers counted: %v, %s, %s", winners, terminal, answers[0].body, answers[1].body)
	}
	if late := w.answer(q, "reject_once").problem(questionClosed); late.Answer == nil {
		t.Errorf("%+v", late)
	}
	if q := w.do("GET", "/v1/questions/"+q["id"].(string), nil).want(200).object(); q["open"] != false ||
		q["answer"] == nil {
		t.Errorf("%v", q)
	}
	in := object{"project": w.dirs[0], "text": "@ask execute Build command=make", "wait": true}
	if res := w.do("POST", "/v1/inputs", in, withKey("job")).want(200).
		object(); res["result"].(object)["permissions"].(object)["allowed"] != 1.0 {
		t.Errorf("%v", res)
	}
}

// answerElsewhere answers as another process does.
func (w *world) answerElsewhere(r *kernel.Runner, q object) error {
	found, err := interaction.Find(w.t.Context(), &r.Log().Reader, event.InteractionID(q["id"].(string)))
	if err != nil {
		return err
	}
	o, _ := found.First("allow_once")
	return r.AnswerQuestion(context.WithoutCancel(w.t.Context()), found,
		interaction.Answer{Option: o.ID, By: "me", Where: "terminal"})
}

// TestTheWordIsTyped checks that a command that no rule may allow needs the typed word, also over
// HTTP.
func TestTheWordIsTyped(t *testing.T) {
	w := newWorld(t, 1)
	w.do("POST", "/v1/inputs", object{"project": w.dirs[0], "text": "@ask execute Clean command=\"rm -rf /\""}).want(202)
	q := w.question()
	if q["word"] == nil {
		t.Fatalf("no word is asked for: %v", q)
	}
	if p := w.answer(q, "allow_once").problem(wordNeeded); p.Word != q["word"] {
		t.Errorf("%+v", p)
	}
	body := object{"option": optionOf(t, q, "allow_once"), "digest": q["digest"], "word": q["word"]}
	w.do("POST", "/v1/questions/"+q["id"].(string)+"/answer", body).want(200)
}

// TestCancel checks that a request stops a turn and that the record names its sender.
func TestCancel(t *testing.T) {
	w := newWorld(t, 1)
	in := object{"project": w.dirs[0], "text": "@ask execute Build command=make"}
	run := w.do("POST", "/v1/inputs", in, withKey("job")).want(202).object()["run_id"].(string)
	w.question()
	if open := items(w.do("GET", "/v1/runs?state=open", nil).want(200).object(), "runs"); len(open) != 1 ||
		open[0]["state"] != "running" {
		t.Errorf("%v", open)
	}
	w.do("POST", "/v1/runs/"+run+"/cancel", object{"why": "enough"}).want(202)
	in["wait"] = true
	res := w.do("POST", "/v1/inputs", in, withKey("job")).want(200).object()["result"].(object)
	if why, _ := res["stopped"].(object)["why"].(string); !strings.Contains(why, "program (web:") ||
		!strings.HasSuffix(why, "enough") {
		t.Errorf("%v", res)
	}
	if p := w.do("POST", "/v1/runs/"+run+"/cancel", object{}).problem(runOver); p.Detail != "run "+run+
		" is not under way" {
		t.Errorf("%q", p.Detail)
	}
}

// TestOnlyTightens checks that a request can make the permissions only stricter. The working
// directory stays in the project, attachments are bytes, and a request changes no other
// configuration of a project.
func TestOnlyTightens(t *testing.T) {
	w := newWorld(t, 1)
	dir := w.dirs[0]
	check(t, os.MkdirAll(filepath.Join(dir, "sub"), 0o700))
	check(t, os.Symlink("/", filepath.Join(dir, "link")))
	in := func(more object) object {
		o := object{"project": dir, "text": "@ask execute Build command=make", "wait": true}
		for k, v := range more {
			o[k] = v
		}
		return o
	}
	for _, mode := range []string{"allow", "reads"} {
		w.do("POST", "/v1/inputs", in(object{"permissions": mode})).problem(forbidden)
	}
	res := w.do("POST", "/v1/inputs", in(object{"permissions": "deny"})).want(200).object()["result"].(object)
	if p := res["permissions"].(object); p["allowed"] != 0.0 || p["denied"] != 1.0 || p["unanswered"] != 0.0 {
		t.Errorf("%v", p)
	}
	for dir, want := range map[string]kind{"..": forbidden, "/etc": forbidden, "link": forbidden, "sub/../..": forbidden,
		"none": unfit} {
		w.do("POST", "/v1/inputs", in(object{"dir": dir})).problem(want)
	}
	for member, value := range map[string]any{"mcp_servers": []any{}, "command": "sh", "env": []string{"X"},
		"append_system": "x"} {
		w.do("POST", "/v1/inputs", in(object{member: value})).problem(badRequest)
	}
	p := w.do("POST", "/v1/inputs", in(object{"attachments": []string{"/etc/passwd"}})).problem(badRequest)
	if p.Detail != `the body is not valid: "attachments" cannot be a string` {
		t.Errorf("%q is no word of JSON's", p.Detail)
	}
	w.do("POST", "/v1/inputs", in(object{"project": filepath.Dir(dir)})).problem(notFound)
	file := object{"name": "../../notes.txt", "data": base64.StdEncoding.EncodeToString([]byte("some notes"))}
	sent := w.do("POST", "/v1/inputs", object{"project": dir, "text": "@say thanks", "dir": "sub",
		"attachments": []any{file}, "wait": true}, withKey("files")).want(200).object()
	run := w.do("GET", "/v1/runs/"+sent["run_id"].(string), nil).want(200).object()
	path := run["attachments"].([]any)[0].(string)
	if b, err := os.ReadFile(path); err != nil || string(b) != "some notes" ||
		!strings.HasPrefix(path, filepath.Join(dir, ".perlica_config")) || run["dir"] != filepath.Join(dir, "sub") {
		t.Errorf("%v: %q, %v", run, b, err)
	}
	file["data"] = base64.StdEncoding.EncodeToString([]byte("others"))
	w.do("POST", "/v1/inputs", object{"project": dir, "text": "@say thanks", "dir": "sub", "attachments": []any{file}},
		withKey("files")).problem(inputDiffers)
	if b, err := os.ReadFile(path); err != nil || string(b) != "some notes" {
		t.Errorf("the recorded attachment was changed: %q, %v", b, err)
	}
}

// TestBudgetUsedUp checks the problem of an input over a budget. The input is not used up.
func TestBudgetUsedUp(t *testing.T) {
	w := newWorld(t, 1, func(o *Options) {
		check(t, os.MkdirAll(o.Dirs.Config, 0o700))
		text := "[[budget]]\nper = \"month\"\ncalls = 1\ntimezone = \"UTC\"\n"
		check(t, os.WriteFile(filepath.Join(o.Dirs.Config, "config.toml"), []byte(text), 0o600))
	})
	in := object{"project": w.dirs[0], "text": "@say once", "wait": true}
	w.do("POST", "/v1/inputs", in, withKey("one")).want(200)
	got := w.do("POST", "/v1/inputs", in, withKey("two"))
	got.problem(budgetUsedUp)
	if p := got.object(); p["code"] != "budget.used-calls" || p["reason"] != "calls" || p["at"] == nil ||
		got.header.Get("Retry-After") == "" {
		t.Errorf("%v, %v", p, got.header)
	}
	if n := w.count(w.dirs[0], event.Requested); n != 1 {
		t.Errorf("%d calls, want 1", n)
	}
	if n := w.count(w.dirs[0], event.BudgetRefused); n != 1 {
		t.Errorf("%d refusals on record, want 1", n)
	}
}
