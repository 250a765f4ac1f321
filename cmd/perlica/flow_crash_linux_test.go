package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

var (
	flowKills = flag.Int("flow-kills", 10, "how often TestFlowKilled kills Perlica")
	flowSeed  = flag.Uint64("flow-seed", 1, "the seed of TestFlowKilled")
)

// countedAgent configures the built-in agent so that each of its processes copies its standard input to a file. The
// function heard returns the number of prompts that contain a text. further is a further part of the configuration.
func (w *world) countedAgent(further string) (heard func(text string) int) {
	dir := w.t.TempDir()
	w.config(fmt.Sprintf("[providers.counted]\nadapter.command = \"sh\"\nadapter.args = [\"-c\", %q]\n",
		"tee "+dir+"/$$ | perlica agent predictable") + further)
	return func(text string) (n int) {
		w.t.Helper()
		files, err := filepath.Glob(filepath.Join(dir, "*"))
		if err != nil {
			w.t.Fatal(err)
		}
		for _, f := range files {
			b, err := os.ReadFile(f)
			if err != nil {
				w.t.Fatal(err)
			}
			for line := range strings.Lines(string(b)) {
				if strings.Contains(line, "session/prompt") && strings.Contains(line, text) {
					n++
				}
			}
		}
		return n
	}
}

// flowFile writes a flow and its list of items, and returns the path of the flow.
func (w *world) flowFile(text string, items int) (path, input string) {
	w.t.Helper()
	dir := w.t.TempDir()
	path, list := filepath.Join(dir, "flow.toml"), filepath.Join(dir, "items.txt")
	var b strings.Builder
	for i := range items {
		fmt.Fprintf(&b, "item-%05d\n", i+1)
	}
	for p, s := range map[string]string{path: text, list: b.String()} {
		if err := os.WriteFile(p, []byte(s), 0o600); err != nil {
			w.t.Fatal(err)
		}
	}
	return path, "--input=items=@" + list
}

const fanOut = `name = "fan"
[inputs.items]
[[step]]
id = "each"
for_each = "lines(inputs.items)"
max_items = 10000
parallel = 8
text = "@say ({{ item }})\n@sleep 20ms"
[[step]]
id = "all"
needs = ["each"]
text = "@say {{ join(map(steps.each.items, .text), '') }}"
`

// flowShown is a part of the output of flow show --format json.
type flowShown struct {
	State string `json:"state"`
	Steps []struct {
		Step, State string
		Run         string `json:"run_id"`
		Items       []struct {
			Item   int
			State  string
			Run    string `json:"run_id"`
			Worker string
		}
	}
}

func (w *world) flowShown(id string) (s flowShown) {
	w.t.Helper()
	j := w.run("flow", "show", id, "--format=json")
	j.exits(0)
	if err := json.Unmarshal([]byte(j.stdout.String()), &s); err != nil {
		w.t.Fatal(err)
	}
	return s
}

// onlyQuestion returns the short id of the only open question.
func (w *world) onlyQuestion() string {
	w.t.Helper()
	j := w.run("pending", "list", "--json")
	var open []struct {
		Short string `json:"short_id"`
	}
	if err := json.Unmarshal([]byte(j.stdout.String()), &open); err != nil || len(open) != 1 {
		w.t.Fatalf("%s: %v", j.stdout.String(), err)
	}
	return open[0].Short
}

// TestFlowKilled kills a flow of 200 items at random points and starts it again. The agent must hear each input at most
// once. An unknown outcome must stop the last step until a person has judged it and wants a new call. The result must
// be that of an undisturbed flow.
//
// The test fails if the driver makes new ids after a restart, or if it counts an unknown outcome as done.
func TestFlowKilled(t *testing.T) {
	if testing.Short() {
		t.Skip("takes half a minute")
	}
	w := newWorld(t)
	const items = 200
	heard := w.countedAgent("")
	path, input := w.flowFile(fanOut, items)
	args := []string{"flow", "run", path, input, "--id=torn", "--provider=counted"}
	random := rand.New(rand.NewPCG(*flowSeed, 0))
	for range *flowKills {
		j := w.start(args...)
		select {
		case <-time.After(time.Duration(50+random.IntN(900)) * time.Millisecond):
			j.signal(syscall.SIGKILL)
		case <-j.done:
		}
		j.wait()
		w.gone()
	}
	j := w.run(args...)
	shown := w.flowShown("torn")
	retried := map[int]bool{}
	for _, it := range shown.Steps[0].Items {
		if it.State != "unknown" {
			continue
		}
		retried[it.Item] = true
		if it.Run != "" { // a kill before the commit leaves the input in the .intents file only, without a run
			w.run("log", "resolve", it.Run, "--not-sent", "--note=killed").exits(0)
		}
		w.run("flow", "retry", "torn", fmt.Sprint("each/", it.Item)).exits(0)
	}
	t.Logf("%d of %d items had an unknown outcome after %d kills", len(retried), items, *flowKills)
	if len(retried) > 0 {
		j.exits(6)
		if n := heard(")(item-"); n != 0 || shown.Steps[1].State != "waiting" {
			t.Errorf("the last step was called %d times and is %s, with unknown outcomes before it", n, shown.Steps[1].State)
		}
		j = w.run(args...)
	}
	j.exits(0)
	want := ""
	for i := range items {
		text := fmt.Sprintf("(item-%05d)", i+1)
		want += text
		most := 1
		if retried[i+1] {
			most = 2
		}
		if n := heard("@say " + text + `\n@sleep`); n > most {
			t.Errorf("the agent heard %s %d times", text, n)
		}
	}
	w.logged(1, "llm.responded", `"text":"`+want+`"`)
	if n := heard("@say (item-00001)(item-00002)"); n != 1 {
		t.Errorf("the agent heard the last step %d times", n)
	}
	w.audit()
}

// TestFlowTwice lets two processes drive one flow run. The agent must hear each input once, and both must report the
// same end. The test fails if the second process does not wait for the lock, and if ids differ between processes.
func TestFlowTwice(t *testing.T) {
	w := newWorld(t)
	heard := w.countedAgent("")
	path, input := w.flowFile(fanOut, 30)
	args := []string{"flow", "run", path, input, "--id=two", "--provider=counted"}
	one, other := w.start(args...), w.start(args...)
	one.wait()
	other.wait()
	one.exits(0)
	other.exits(0)
	for i := range 30 {
		if n := heard(fmt.Sprintf(`@say (item-%05d)\n@sleep`, i+1)); n != 1 {
			t.Errorf("the agent heard item %d %d times", i+1, n)
		}
	}
	w.logged(1, "flow.started")
	w.logged(1, "flow.finished", `"outcome":"done"`)
	w.logged(32, "flow.step.decided")
	w.audit()
}

// TestFlowQuestionKilled kills a flow that waits for a person. Its question must stay open over the start of other
// runs, and the next process must take the answer. The test fails if recovery closes the question.
func TestFlowQuestionKilled(t *testing.T) {
	w := newWorld(t)
	path, _ := w.flowFile("name = \"ask\"\n[[step]]\nid = \"q\"\nask = \"Go on?\"\noptions = [\"yes\", \"no\"]\n"+
		"[[step]]\nid = \"next\"\nneeds = [\"q\"]\ntext = \"{{ steps.q.answer }}\"\n", 0)
	j := w.start("flow", "run", path, "--id=ask", "--wait")
	w.until(1, "interaction.requested", "Go on?")
	j.signal(syscall.SIGKILL)
	j.wait()
	w.run("run", "hello").exits(0)
	w.logged(0, "interaction.lapsed")
	id := w.onlyQuestion()
	w.run("pending", "choose", id, "yes").exits(0)
	w.run("pending", "choose", id, "2").exits(1)
	w.run("flow", "run", path, "--id=ask").exits(0)
	w.logged(1, "inbound.message.received", `"text":"yes"`)
	w.logged(1, "interaction.requested")
	w.audit()

	// A process that waits sees the answer of another one at once.
	j = w.start("flow", "run", path, "--id=again", "--wait")
	w.until(2, "interaction.requested", "Go on?")
	w.run("pending", "choose", w.onlyQuestion(), "2").exits(0)
	j.wait()
	j.exits(0)
	w.logged(1, "inbound.message.received", `"text":"no"`)
}

// TestScheduledFlowKilled kills a process that keeps the schedule of a flow, during a call. The next process must
// continue this flow run and make no new one, while the schedule's further times overlap. Each step must be called
// once, also with two processes. The test fails if a keeper plans a new flow run before the first one has ended.
func TestScheduledFlowKilled(t *testing.T) {
	w := newWorld(t)
	path, _ := w.flowFile("name = \"night\"\n[[step]]\nid = \"first\"\ntext = \"@say step-first\"\n"+
		"[[step]]\nid = \"slow\"\nneeds = [\"first\"]\ntext = \"@say step-slow\\n@sleep 10m\"\n"+
		"[[step]]\nid = \"gate\"\nneeds = [\"first\"]\nask = \"Go on?\"\noptions = [\"yes\", \"no\"]\n"+
		"[[step]]\nid = \"last\"\nneeds = [\"gate\"]\ntext = \"@say step-last\"\n", 0)
	heard := w.countedAgent(fmt.Sprintf("[[schedule]]\nid = \"night\"\nevery = \"1s\"\nflow = %q\n"+
		"provider = \"counted\"\n", path))
	j := w.start("schedule", "run")
	w.until(2, "llm.requested")
	w.until(1, "interaction.requested")
	j.signal(syscall.SIGKILL)
	j.wait()
	w.gone()
	one, other := w.start("schedule", "run"), w.start("schedule", "run")
	w.until(1, "llm.outcome_unknown")
	w.until(1, "schedule.missed", `"why":"overlap"`)
	w.run("pending", "choose", w.onlyQuestion(), "yes").exits(0)
	w.until(2, "llm.responded")
	for _, text := range []string{"step-first", "step-slow", "step-last"} {
		if n := heard(text); n != 1 {
			t.Errorf("the agent heard %s %d times", text, n)
		}
	}
	w.logged(1, "flow.started")
	w.logged(1, "schedule.planned")
	// The flow run ends when a person has judged the unknown outcome. Then the schedule goes on.
	w.run("schedule", "pause", "night").exits(0)
	w.run("log", "resolve", w.flowShown("schedule:night").Steps[1].Run, "--sent", "--note=killed").exits(0)
	w.run("schedule", "resume", "night").exits(0)
	w.until(1, "flow.finished", `"outcome":"failed"`)
	w.until(2, "flow.started")
	for _, j := range []*job{one, other} {
		j.signal(syscall.SIGKILL)
		j.wait()
	}
	w.gone()
	w.run("run", "hello").exits(0) // this run records the outcomes of the killed calls
	w.audit()
}

// TestFlowCancelledEarly cancels a flow run while the agents of its steps start, so that no call has an intent yet. The
// command must stop the calls of the flow and of its inner flow. It must close the inner flow's question, and no further
// step may begin. The test fails if cancel looks for running calls only once, or if it leaves the inner flow running.
func TestFlowCancelledEarly(t *testing.T) {
	w := newWorld(t)
	gate := filepath.Join(t.TempDir(), "open")
	w.config(fmt.Sprintf("[providers.late]\nadapter.command = \"sh\"\nadapter.args = [\"-c\", %q]\n",
		"until [ -e "+gate+" ]; do sleep 0.05; done; exec perlica agent predictable"))
	inner, _ := w.flowFile("name = \"inner\"\n[[step]]\nid = \"one\"\non_failure = \"continue\"\n"+
		"text = \"@say inner-one\\n@sleep 10m\"\n"+
		"[[step]]\nid = \"two\"\nneeds = [\"one\"]\ntext = \"@say inner-two\\n@sleep 10m\"\n"+
		"[[step]]\nid = \"gate\"\nask = \"Go on?\"\noptions = [\"yes\"]\n", 0)
	path, _ := w.flowFile(fmt.Sprintf("name = \"outer\"\n[[step]]\nid = \"call\"\ntext = \"@say outer\\n@sleep 10m\"\n"+
		"[[step]]\nid = \"inside\"\nflow = %q\n", "inner.toml"), 0)
	text, err := os.ReadFile(inner)
	if err == nil {
		err = os.WriteFile(filepath.Join(filepath.Dir(path), "inner.toml"), text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	j := w.start("flow", "run", path, "--id=early", "--provider=late", "--wait")
	w.until(2, "inbound.message.received")
	w.until(1, "interaction.requested")
	w.logged(0, "llm.requested")
	cancel := w.start("flow", "cancel", "early")
	w.until(2, "flow.finished", `"outcome":"cancelled"`)
	w.until(1, "interaction.lapsed")
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	cancel.wait()
	cancel.exits(0)
	j.wait()
	j.exits(1)
	w.logged(0, "inbound.message.received", "inner-two")
	w.logged(0, "llm.responded", `"stop_reason":"end_turn"`)
	if state := w.flowShown("early").State; state != "cancelled" {
		t.Errorf("the flow run is %s", state)
	}
	w.audit()
}

// TestFlowInterrupted interrupts a flow twice during a call that does not end. The call must end, no further step may
// begin, and the flow run must stay unfinished. The test fails if a second signal does not stop the calls, and if the
// exit code is not that of the signal.
func TestFlowInterrupted(t *testing.T) {
	w := newWorld(t)
	path, _ := w.flowFile("name = \"stop\"\n[[step]]\nid = \"hangs\"\ntext = \"@hang\"\n"+
		"[[step]]\nid = \"next\"\nneeds = [\"hangs\"]\non_failure = \"continue\"\ntext = \"x\"\n", 0)
	j := w.start("flow", "run", path, "--id=stop")
	w.until(1, "acp.request.sent", "session/prompt")
	j.signal(syscall.SIGINT)
	j.signal(syscall.SIGTERM) // the system could merge two equal signals
	if code := j.wait(); code != 130 && code != 143 {
		t.Errorf("got exit code %d, want 130 or 143: %s", code, j.stderr.String())
	}
	w.gone()
	w.logged(1, "llm.requested")
	w.logged(0, "flow.finished")
	if s := w.flowShown("stop"); s.Steps[1].State != "waiting" {
		t.Errorf("the next step is %s", s.Steps[1].State)
	}
	w.audit()
}
