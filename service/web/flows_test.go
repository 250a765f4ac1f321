package web

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/kernel/flow"
	"github.com/perlica/perlica/kernel/project"
	"github.com/perlica/perlica/service/access"
)

// flowText is a flow with a call, a question and a call after it.
const flowText = `name = "release"
description = "Say a word, ask, and say it again."
[inputs.word]
description = "the word"
[inputs.end]
default = "."
[[step]]
id = "first"
text = "@say {{ inputs.word }}"
[[step]]
id = "gate"
needs = ["first"]
ask = "Go on after {{ steps.first.text }}?"
options = ["go", "drop"]
[[step]]
id = "last"
needs = ["gate"]
when = "steps.gate.answer == 'go'"
text = "@say last{{ inputs.end }}"
`

// flowFile writes a file into the folder flows of a project.
func (w *world) flowFile(dir, name, text string) {
	w.t.Helper()
	check(w.t, os.MkdirAll(filepath.Join(dir, "flows"), 0o700))
	check(w.t, os.WriteFile(filepath.Join(dir, "flows", name), []byte(text), 0o600))
}

// flowStart returns the body that starts the flow release.
func (w *world) flowStart(id string) object {
	return object{"project": w.dirs[0], "id": id, "flow": "release", "inputs": object{"word": "hello"}}
}

// awaitFlow waits until a flow run fulfils a condition, and returns it. An event must follow the change.
func (w *world) awaitFlow(id string, is func(object) bool) object {
	w.t.Helper()
	events := w.follow("/v1/events?after=0&type=flow.started&type=flow.step&type=flow.ended&type=question", "")
	defer events.close()
	for {
		events.event()
		run := w.do("GET", "/v1/flow-runs/"+url.PathEscape(id), nil).want(200).object()
		if is(run) {
			return run
		}
	}
}

// endedFlow reports whether a flow run is done, failed or cancelled.
func endedFlow(run object) bool { return run["ended"] != nil }

// stepOf returns a step of a flow run.
func stepOf(t *testing.T, run object, id string) object {
	t.Helper()
	for _, step := range items(run, "steps") {
		if step["step"] == id {
			return step
		}
	}
	t.Fatalf("no step %s: %v", id, run)
	return nil
}

// TestFlow checks that a client starts a flow by its name, follows it, answers its question and sees its end. The same
// request again, at any time, calls nothing twice. Another file or other inputs with the same id are refused.
func TestFlow(t *testing.T) {
	w := newWorld(t, 1)
	w.flowFile(w.dirs[0], "release.toml", flowText)
	w.flowFile(w.dirs[0], "broken.toml", "name = \"broken\"\nstep = 1\n")
	w.flowFile(w.dirs[0], "notes.txt", "not a flow")
	at := "?project=" + url.QueryEscape(w.dirs[0])
	flows := items(w.do("GET", "/v1/flows"+at, nil).want(200).object(), "flows")
	if len(flows) != 2 || flows[0]["flow"] != "broken" || flows[0]["error"] == nil || flows[1]["error"] != nil {
		t.Fatalf("%v", flows)
	}
	chinese := func(r *http.Request) { r.Header.Set("Accept-Language", "zh") }
	said := items(w.do("GET", "/v1/flows"+at, nil, chinese).want(200).object(), "flows")[0]["error"]
	path := filepath.Join(w.dirs[0], "flows", "broken.toml")
	if want := path + "：第 2 行：step 的值类型不对；见“docs/flows.md”"; said != want {
		t.Errorf("%q, want %q", said, want)
	}
	broken := w.flowStart("")
	broken["flow"] = "broken"
	if p := w.do("POST", "/v1/flow-runs", broken, chinese).problem(unfit); p.Code != "flow.wrong-type" || p.Detail != said {
		t.Errorf("%v", p)
	}
	release := flows[1]
	inputs := items(release, "inputs")
	if release["name"] != "release" || release["steps"] != 3.0 || len(inputs) != 2 || inputs[0]["name"] != "word" ||
		inputs[0]["description"] != "the word" || inputs[0]["default"] != nil || inputs[1]["default"] != "." {
		t.Errorf("%v", release)
	}
	start := w.flowStart("r1")
	start["digest"] = release["digest"]
	if got := w.do("POST", "/v1/flow-runs", start).want(202).object(); got["state"] != "running" || got["id"] != "r1" {
		t.Errorf("%v", got)
	}
	q := w.question()
	if q["title"] != "flow release: gate" {
		t.Errorf("%v", q)
	}
	w.do("POST", "/v1/flow-runs", start).want(202)
	run := w.do("GET", "/v1/flow-runs/r1"+at, nil).want(200).object()
	if run["state"] != "running" || run["by"] == "" || stepOf(t, run, "first")["state"] != "done" ||
		stepOf(t, run, "gate")["state"] != "asked" || stepOf(t, run, "last")["state"] != "waiting" {
		t.Errorf("%v", run)
	}
	w.answer(q, "answer").want(200)
	run = w.awaitFlow("r1", endedFlow)
	last := stepOf(t, run, "last")
	if run["state"] != "done" || last["state"] != "done" || last["run_id"] == nil {
		t.Errorf("%v", run)
	}
	made := w.do("GET", "/v1/runs/"+last["run_id"].(string), nil).want(200).object()
	if made["result"].(object)["text"] != "last." {
		t.Errorf("%v", made)
	}
	if got := w.do("POST", "/v1/flow-runs", start).want(200).object(); got["state"] != "done" {
		t.Errorf("%v", got)
	}
	list := items(w.do("GET", "/v1/flow-runs", nil).want(200).object(), "flow_runs")
	if len(list) != 1 || list[0]["id"] != "r1" || list[0]["state"] != "done" || list[0]["ended"] == nil {
		t.Errorf("%v", list)
	}
	if n := w.count(w.dirs[0], event.Requested); n != 2 {
		t.Errorf("%d calls", n)
	}
	start["inputs"] = object{"word": "other"}
	w.do("POST", "/v1/flow-runs", start).problem(inputDiffers)
	w.flowFile(w.dirs[0], "release.toml", flowText+"# changed\n")
	start["inputs"] = object{"word": "hello"}
	w.do("POST", "/v1/flow-runs", start).problem(inputDiffers) // the digest
	delete(start, "digest")
	w.do("POST", "/v1/flow-runs", start).problem(inputDiffers) // the file of the flow run
	events := w.do("GET", "/v1/events?after=0&type=flow.started&type=flow.step&type=flow.ended", nil, json_).want(200)
	var kinds []string
	for _, e := range items(events.object(), "events") {
		kinds = append(kinds, fmt.Sprintf("%v %v %v", e["type"], e["step"], e["state"]))
		if e["id"] != "r1" || e["run_id"] != "flow:r1" {
			t.Errorf("%v", e)
		}
	}
	const want = "flow.started <nil> <nil>, flow.step first done, flow.step gate done, flow.step last done, " +
		"flow.ended <nil> done"
	if got := strings.Join(kinds, ", "); got != want {
		t.Errorf("%s", got)
	}
}

// TestFlowAtOnce checks that simultaneous requests with one id start one flow run, and that a list has pages.
func TestFlowAtOnce(t *testing.T) {
	w := newWorld(t, 1)
	w.flowFile(w.dirs[0], "release.toml", flowText)
	var all sync.WaitGroup
	for range 5 {
		all.Go(func() { w.do("POST", "/v1/flow-runs", w.flowStart("r1")).want(202) })
	}
	all.Wait()
	w.question()
	w.do("POST", "/v1/flow-runs", w.flowStart("r2")).want(202)
	named := w.flowStart("")
	delete(named, "id")
	made := w.do("POST", "/v1/flow-runs", named).want(202).object()["id"].(string)
	if !strings.HasPrefix(made, "release-") {
		t.Errorf("%q", made)
	}
	if n := w.count(w.dirs[0], event.FlowStarted); n != 3 {
		t.Errorf("%d flow runs", n)
	}
	other := w.flowStart("r1")
	other["inputs"] = object{"word": "other"}
	w.do("POST", "/v1/flow-runs", other).problem(inputDiffers)
	var ids []any
	for page := ""; ; {
		got := w.do("GET", "/v1/flow-runs?limit=1&page="+page, nil).want(200).object()
		for _, run := range items(got, "flow_runs") {
			ids = append(ids, run["id"])
		}
		if got["next"] == nil {
			break
		}
		page = got["next"].(string)
	}
	if len(ids) != 3 || ids[1] != "r2" || ids[2] != "r1" {
		t.Errorf("%v", ids)
	}
}

// TestFlowRefused checks that a request starts only a flow of the project's folder flows, with the inputs of this
// flow. The permissions must not be looser than the project's.
func TestFlowRefused(t *testing.T) {
	w := newWorld(t, 2)
	dir := w.dirs[0]
	w.flowFile(dir, "release.toml", flowText)
	w.flowFile(dir, "broken.toml", "step = 1\n")
	w.flowFile(w.dirs[1], "foreign.toml", flowText)
	check(t, os.WriteFile(filepath.Join(dir, "outer.toml"), []byte(flowText), 0o600))
	check(t, os.MkdirAll(filepath.Join(dir, "flows", "inner"), 0o700))
	check(t, os.WriteFile(filepath.Join(dir, "flows", "inner", "x.toml"), []byte(flowText), 0o600))
	check(t, os.Symlink(filepath.Join(w.dirs[1], "flows", "foreign.toml"), filepath.Join(dir, "flows", "link.toml")))
	foreign := "../../" + filepath.Base(w.dirs[1]) + "/flows/foreign.toml"
	w.flowFile(dir, "outer-inner.toml",
		"name = \"x\"\n[[step]]\nid = \"a\"\nflow = \""+foreign+"\"\ninputs = { word = \"x\" }\n")
	check(t, os.WriteFile(filepath.Join(w.dirs[1], "x.json"), []byte("{}"), 0o600))
	check(t, os.Symlink(filepath.Join(w.dirs[1], "x.json"), filepath.Join(dir, "flows", "link.json")))
	w.flowFile(dir, "outer-schema.toml", "name = \"x\"\n[[step]]\nid = \"a\"\ntext = \"x\"\nschema = \"link.json\"\n")
	for name, c := range map[string]struct {
		change func(object)
		want   kind
		field  string
	}{
		"an inner flow out": {func(b object) { b["flow"], b["inputs"] = "outer-inner", object{} }, forbidden, ""},
		"a schema out":      {func(b object) { b["flow"], b["inputs"] = "outer-schema", object{} }, forbidden, ""},
		"no flow":           {func(b object) { delete(b, "flow") }, notFound, ""},
		"unknown":           {func(b object) { b["flow"] = "none" }, notFound, ""},
		"a folder above":    {func(b object) { b["flow"] = "../outer" }, notFound, ""},
		"a folder below":    {func(b object) { b["flow"] = "inner/x" }, notFound, ""},
		"a path":            {func(b object) { b["flow"] = filepath.Join(dir, "outer") }, notFound, ""},
		"with its end":      {func(b object) { b["flow"] = "release.toml" }, notFound, ""},
		"two dots":          {func(b object) { b["flow"] = ".." }, notFound, ""},
		"a link out":        {func(b object) { b["flow"] = "link" }, forbidden, ""},
		"another project's": {func(b object) { b["flow"] = "foreign" }, notFound, ""},
		"not a flow":        {func(b object) { b["flow"] = "broken" }, unfit, ""},
		"no input":          {func(b object) { delete(b, "inputs") }, unfit, "word"},
		"another input":     {func(b object) { b["inputs"] = object{"word": "x", "more": "y"} }, unfit, "more"},
		"a number":          {func(b object) { b["inputs"] = object{"word": 1} }, badRequest, ""},
		"an unknown member": {func(b object) { b["file"] = "/etc/passwd" }, badRequest, ""},
		"a bad id":          {func(b object) { b["id"] = "a b" }, badRequest, ""},
		"an inner id":       {func(b object) { b["id"] = "r1/first" }, badRequest, ""},
		"a schedule's id":   {func(b object) { b["id"] = "schedule:x@2026-01-01T00:00:00Z" }, badRequest, ""},
		"another digest":    {func(b object) { b["digest"] = strings.Repeat("0", 64) }, inputDiffers, ""},
		"looser":            {func(b object) { b["permissions"] = "allow" }, forbidden, ""},
		"no project":        {func(b object) { delete(b, "project") }, badRequest, ""},
		"unknown project":   {func(b object) { b["project"] = "/" }, notFound, ""},
	} {
		t.Run(name, func(t *testing.T) {
			body := w.flowStart("r1")
			c.change(body)
			p := w.do("POST", "/v1/flow-runs", body).problem(c.want)
			if p.Field != c.field {
				t.Errorf("the field %q", p.Field)
			}
		})
	}
	for _, path := range []string{"/v1/flow-runs/none", "/v1/flow-runs/..%2f..%2fx"} {
		w.do("GET", path, nil).want(404)
	}
	for _, path := range []string{"/v1/flow-runs/none/cancel", "/v1/flow-runs/none/retry"} {
		w.do("GET", path, nil).problem(badMethod)
		w.do("POST", path, object{}).problem(notFound)
		w.do("POST", path, object{"x": 1}).problem(badRequest)
		w.do("POST", path, object{}, without).problem(unauthorized)
	}
	w.do("POST", "/v1/flows", object{}).problem(badMethod)
	if n := w.count(dir, event.FlowStarted); n != 0 {
		t.Errorf("%d flow runs", n)
	}
}

// TestFlowCancelled checks that cancelling ends a flow run and closes its question, and that it is refused after the
// end.
func TestFlowCancelled(t *testing.T) {
	w := newWorld(t, 1)
	w.flowFile(w.dirs[0], "release.toml", flowText)
	w.do("POST", "/v1/flow-runs", w.flowStart("r1")).want(202)
	q := w.question()
	if got := w.do("POST", "/v1/flow-runs/r1/cancel", object{}).want(200).object(); got["state"] != fact.FlowCancelled {
		t.Errorf("%v", got)
	}
	if run := w.awaitFlow("r1", endedFlow); run["state"] != fact.FlowCancelled {
		t.Errorf("%v", run)
	}
	w.answer(q, "answer").problem(questionClosed)
	w.do("POST", "/v1/flow-runs/r1/cancel", object{}).problem(runOver)
	if n := w.count(w.dirs[0], event.Requested); n != 1 {
		t.Errorf("%d calls", n)
	}
}

// TestFlowCancelledAgain cancels a flow run after a cancellation that recorded the end alone, because its process died.
// The second one closes the question that the first one left open.
func TestFlowCancelledAgain(t *testing.T) {
	w := newWorld(t, 1)
	w.flowFile(w.dirs[0], "release.toml", flowText)
	w.do("POST", "/v1/flow-runs", w.flowStart("r1")).want(202)
	q := w.question()
	stop(t, w.server, w.http)
	p, err := project.Find(w.dirs[0], w.environ, nil)
	check(t, err)
	runner, done, err := p.Open(t.Context(), "test")
	check(t, err)
	check(t, runner.Log().Record(event.NewFact(event.FlowFinished, "user",
		event.Refs{Run: flow.RunID("r1"), Interaction: event.Flows}, fact.FlowFinished{Outcome: fact.FlowCancelled})))
	check(t, done())
	w.again()
	w.do("POST", "/v1/flow-runs/r1/cancel", object{}).problem(runOver)
	w.answer(q, "answer").problem(questionClosed)
}

// TestFlowCancelledAfterDeath cancels a flow run after its driver died during a call. The end is on record at once. The
// step of the call is shown as unknown, and nothing is called again.
func TestFlowCancelledAfterDeath(t *testing.T) {
	w := newWorld(t, 1)
	w.flowFile(w.dirs[0], "release.toml", flowText)
	p, err := project.Find(w.dirs[0], w.environ, nil)
	check(t, err)
	file, err := flow.Load(filepath.Join(w.dirs[0], "flows", "release.toml"))
	check(t, err)
	runner, done, err := p.Open(t.Context(), "test")
	check(t, err)
	_, err = (&flow.Driver{Log: runner.Log(), By: "me"}).Begin(t.Context(), file, "r1", map[string]string{"word": "hello"})
	check(t, err)
	refs := event.Refs{Run: "run-dead", Session: "session-dead", Input: "flow:r1/first"}
	_, err = runner.Log().Append(t.Context(),
		event.NewFact(event.MessageReceived, "user", refs, fact.MessageReceived{Text: "hello", Source: "flow"}),
		event.NewFact(event.Requested, "perlica", refs, fact.Requested{}))
	check(t, err)
	check(t, done())
	if run := w.do("GET", "/v1/flow-runs/r1", nil).want(200).object(); run["state"] != "unknown" {
		t.Errorf("%v", run)
	}
	w.do("POST", "/v1/flow-runs/r1/cancel", object{}).want(200)
	run := w.do("GET", "/v1/flow-runs/r1", nil).want(200).object()
	first := stepOf(t, run, "first")
	if run["state"] != fact.FlowCancelled || first["state"] != "unknown" || first["run_id"] != "run-dead" ||
		stepOf(t, run, "last")["state"] != "waiting" {
		t.Errorf("%v", run)
	}
	for kind, n := range map[event.Type]int{event.Requested: 1, event.OutcomeUnknown: 1, event.FlowFinished: 1} {
		if got := w.count(w.dirs[0], kind); got != n {
			t.Errorf("%d events %s", got, kind)
		}
	}
}

// TestFlowRetried checks that a retry makes a failed step call again when the flow run is continued, and only then. The
// recorded errors of steps and items come in the language of the request.
func TestFlowRetried(t *testing.T) {
	w := newWorld(t, 1)
	w.flowFile(w.dirs[0], "release.toml",
		"name = \"release\"\n[inputs.word]\n[[step]]\nid = \"first\"\ntext = \"@error -32603 {{ inputs.word }}\"\n"+
			"[[step]]\nid = \"second\"\nneeds = [\"first\"]\ntext = \"x\"\n"+
			"[[step]]\nid = \"loop\"\nfor_each = \"['a']\"\ntext = \"{{ item + 1 }}\"\n")
	w.do("POST", "/v1/flow-runs", w.flowStart("r1")).want(202)
	run := w.awaitFlow("r1", endedFlow)
	if step := stepOf(t, run, "first"); run["state"] != fact.FlowFailed || step["error"] == nil {
		t.Errorf("%v", run)
	}
	chinese := func(r *http.Request) { r.Header.Set("Accept-Language", "zh") }
	said := w.do("GET", "/v1/flow-runs/r1", nil, chinese).want(200).object()
	second, item := stepOf(t, said, "second"), items(stepOf(t, said, "loop"), "items")[0]
	if second["error"] != "步骤 first 失败" || second["code"] != "flow.step-failed" ||
		item["error"] != "+ 需要两个文本或两个数字：位于 {{ item + 1 }}" || item["code"] != "flow.in-expression" {
		t.Errorf("%v, %v", second, item)
	}
	if english := stepOf(t, run, "second"); english["error"] != "step first failed" {
		t.Errorf("%v", english)
	}
	o := w.do("POST", "/v1/flow-runs/r1/retry", object{"step": "none"}, chinese).problem(unfit)
	if o.Detail != "流程 release 没有步骤 none" || o.Code != "flow.no-step" {
		t.Errorf("%v", o)
	}
	w.do("POST", "/v1/flow-runs/r1/retry", object{"step": "first", "item": 1}).problem(unfit)
	got := w.do("POST", "/v1/flow-runs/r1/retry", object{"step": "first"}).want(200).object()
	if got["input_id"] != "flow:r1/first/retry-1" {
		t.Errorf("%v", got)
	}
	w.do("POST", "/v1/flow-runs/r1/retry", object{"step": "first"}).problem(unfit)
	if n := w.count(w.dirs[0], event.Requested); n != 1 {
		t.Errorf("%d calls", n)
	}
	w.do("POST", "/v1/flow-runs", w.flowStart("r1")).want(202)
	w.awaitFlow("r1", endedFlow)
	if n := w.count(w.dirs[0], event.Requested); n != 2 {
		t.Errorf("%d calls", n)
	}
}

// TestFlowAfterRestart checks that a stopped server leaves the question of a flow run open. The next server begins no
// step until a request continues the flow run, and each step is called once.
func TestFlowAfterRestart(t *testing.T) {
	w := newWorld(t, 1)
	w.flowFile(w.dirs[0], "release.toml", flowText)
	w.do("POST", "/v1/flow-runs", w.flowStart("r1")).want(202)
	w.question()
	stop(t, w.server, w.http)
	w.again()
	if run := w.do("GET", "/v1/flow-runs/r1", nil).want(200).object(); run["state"] != "asked" {
		t.Errorf("%v", run)
	}
	w.answer(w.question(), "answer").want(200)
	if n := w.count(w.dirs[0], event.Requested); n != 1 {
		t.Errorf("%d calls", n)
	}
	w.do("POST", "/v1/flow-runs", w.flowStart("r1")).want(202)
	if run := w.awaitFlow("r1", endedFlow); run["state"] != "done" {
		t.Errorf("%v", run)
	}
	if n := w.count(w.dirs[0], event.Requested); n != 2 {
		t.Errorf("%d calls", n)
	}
}

// TestFlowOfARevokedDevice checks that no step begins after the device that started the flow run was revoked.
func TestFlowOfARevokedDevice(t *testing.T) {
	w := newWorld(t, 1)
	w.flowFile(w.dirs[0], "release.toml", flowText)
	lost := w.newToken("lost", access.Ask)
	w.do("POST", "/v1/flow-runs", w.flowStart("r1"), bearer(lost)).want(202)
	q := w.question()
	_, err := w.devices.Revoke(t.Context(), "lost", "test")
	check(t, err)
	h := &w.server.flowRunsHere
	h.mu.Lock()
	driven := h.driven[flowRunKey{w.server.logs.here(), "r1"}]
	h.mu.Unlock()
	w.answer(q, "answer").want(200)
	<-driven.over
	run := w.do("GET", "/v1/flow-runs/r1", nil).want(200).object()
	if run["state"] != "stopped" || !strings.Contains(fmt.Sprint(run["fault"]), "revoked") {
		t.Errorf("%v", run)
	}
	if n := w.count(w.dirs[0], event.Requested); n != 1 {
		t.Errorf("%d calls", n)
	}
}

// TestFlowOfTwoDevices checks that a flow run goes on if one of the two devices that sent its start was revoked.
func TestFlowOfTwoDevices(t *testing.T) {
	w := newWorld(t, 1)
	w.flowFile(w.dirs[0], "release.toml", flowText)
	lost := w.newToken("lost", access.Ask)
	w.do("POST", "/v1/flow-runs", w.flowStart("r1"), bearer(lost)).want(202)
	w.do("POST", "/v1/flow-runs", w.flowStart("r1")).want(202)
	q := w.question()
	_, err := w.devices.Revoke(t.Context(), "lost", "test")
	check(t, err)
	w.answer(q, "answer").want(200)
	if run := w.awaitFlow("r1", endedFlow); run["state"] != "done" {
		t.Errorf("%v", run)
	}
}

// TestFlowKeepsItsPermissions checks that a flow run goes on with the mode of its start if the continuing request names
// no mode.
func TestFlowKeepsItsPermissions(t *testing.T) {
	w := newWorld(t, 1)
	w.flowFile(w.dirs[0], "release.toml", strings.Replace(flowText, "@say last{{ inputs.end }}", "@ask execute Build", 1))
	start := w.flowStart("r1")
	start["permissions"] = "deny"
	w.do("POST", "/v1/flow-runs", start).want(202)
	w.question()
	stop(t, w.server, w.http)
	w.again()
	w.answer(w.question(), "answer").want(200)
	w.do("POST", "/v1/flow-runs", w.flowStart("r1")).want(202)
	asked := func() []object { return items(w.do("GET", "/v1/questions", nil).want(200).object(), "questions") }
	run := w.awaitFlow("r1", func(run object) bool { return endedFlow(run) || len(asked()) > 0 })
	if list := asked(); len(list) > 0 || run["state"] != "done" {
		t.Errorf("%v, and a person was asked: %v", run, list)
	}
}
