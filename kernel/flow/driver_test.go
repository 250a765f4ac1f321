package flow

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/perlica/perlica/eventlog"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/interaction"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/kernel/filelock"
	"github.com/perlica/perlica/kernel/record"
)

// flowWorld has one log and the calls that drivers make on it.
type flowWorld struct {
	t   testing.TB
	log *eventlog.Log
	dir string
	// during plays the agent during a call. If it returns an error, the call fails with this error of the agent. It may
	// be nil.
	during func(Call) error

	mu      sync.Mutex
	calls   []string // the input id and the text of each call
	running int
	most    int // the calls at the same time
}

func newFlowWorld(t testing.TB) *flowWorld {
	w := &flowWorld{t: t, dir: t.TempDir()}
	var err error
	if w.log, err = eventlog.Open(t.Context(), filepath.Join(w.dir, "eventlog.db"), eventlog.Options{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.log.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

// driver returns a driver that answers each input with its text.
func (w *flowWorld) driver() *Driver {
	q := interaction.New(w.log, w.dir, time.Now)
	w.t.Cleanup(func() {
		if err := q.Close(); err != nil {
			w.t.Error(err)
		}
	})
	return &Driver{Log: w.log, Questions: q, Locks: w.dir, By: "me", Most: 16, Answer: w.answer}
}

func (w *flowWorld) answer(ctx context.Context, c Call) (record.Result, error) {
	w.mu.Lock()
	w.running++
	w.most = max(w.most, w.running)
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		w.running--
		w.mu.Unlock()
	}()
	run := event.RunID("run of " + string(c.Input))
	res := record.Result{Run: run, Outcome: record.OutcomeResponded, StopReason: "end_turn", Text: c.Text}
	refs := event.Refs{Input: c.Input, Run: run, Session: cmp.Or(c.Session, event.SessionID("session of "+c.Input))}
	_, err := w.log.Append(ctx, event.NewFact(event.Requested, "perlica", refs, fact.Requested{}))
	if errors.As(err, new(*eventlog.ConflictError)) {
		return res, nil
	}
	if err != nil {
		return record.Result{}, err
	}
	w.mu.Lock()
	w.calls = append(w.calls, string(c.Input)+" "+c.Text)
	w.mu.Unlock()
	if w.during != nil {
		if err := w.during(c); err != nil {
			res.StopReason = err.Error()
			return res, nil
		}
	}
	_, err = w.log.Append(ctx, event.NewFact(event.Responded, "agent", refs, fact.Responded{Text: c.Text}))
	return res, err
}

// flow checks the text of a flow.
func (w *flowWorld) flow(steps string) *Flow {
	w.t.Helper()
	path := filepath.Join(w.t.TempDir(), "f.toml")
	if err := os.WriteFile(path, []byte("name = 'f'\n"+steps), 0o600); err != nil {
		w.t.Fatal(err)
	}
	f, err := Load(path)
	if err != nil {
		w.t.Fatal(err)
	}
	return f
}

// drive runs a flow with the id "r" and returns its state.
func (w *flowWorld) drive(d *Driver, f *Flow) *State {
	w.t.Helper()
	s, err := d.Run(w.t.Context(), f, "r", nil)
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

// called compares the calls with the wanted ones, in any order.
func (w *flowWorld) called(want ...string) {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	slices.Sort(w.calls)
	if slices.Sort(want); !slices.Equal(w.calls, want) {
		w.t.Errorf("the calls:\n %s\nwant\n %s", strings.Join(w.calls, "\n "), strings.Join(want, "\n "))
	}
}

func (w *flowWorld) count(t event.Type) int {
	w.t.Helper()
	n, err := w.log.Count(w.t.Context(), event.Query{Types: []event.Type{t}})
	if err != nil {
		w.t.Fatal(err)
	}
	return n
}

// TestParallel checks the limits of calls at the same time: that of a loop, and that of the driver over all steps. The
// first calls wait until as many calls run as may run. The test fails if one of the limits is ignored.
func TestParallel(t *testing.T) {
	for _, c := range []struct{ loop, most, want int }{{1, 16, 1}, {3, 16, 3}, {64, 2, 2}} {
		w := newFlowWorld(t)
		var arrived atomic.Int64
		all := make(chan struct{})
		w.during = func(Call) error {
			if arrived.Add(1) == int64(c.want) {
				close(all)
			}
			<-all
			return nil
		}
		d := w.driver()
		d.Most = c.most
		s := w.drive(d, w.flow(fmt.Sprintf("[[step]]\nid = 'a'\ntext = '{{ item }}'\nparallel = %d\n"+
			"for_each = 'split(\"a,b,c,d,e,f,g,h,i,j,k,l\", \",\")'\n", c.loop)))
		if w.most != c.want || s.Outcome() != fact.FlowDone {
			t.Errorf("%+v: got %d calls at the same time, %s", c, w.most, s.Outcome())
		}
	}
}

// TestMaxItems checks that a loop with too many items fails without a call. The test fails if the limit, or its default
// of 50, is ignored.
func TestMaxItems(t *testing.T) {
	for limit, want := range map[string]string{"": "for_each has 51 items; max_items is 50",
		"max_items = 3": "for_each has 51 items; max_items is 3", "max_items = 51": ""} {
		w := newFlowWorld(t)
		s := w.drive(w.driver(), w.flow("[[step]]\nid = 'a'\ntext = 'x'\nfor_each = 'split(\""+strings.Repeat(",", 50)+
			"\", \",\")'\n"+limit))
		calls := 51
		if want != "" {
			calls = 0
		}
		if s.Steps[0].Error != want || len(w.calls) != calls {
			t.Errorf("%s: %q, %d calls", limit, s.Steps[0].Error, len(w.calls))
		}
	}
}

// TestMembers checks each member of a step and of an item that docs/flows.md names.
func TestMembers(t *testing.T) {
	w := newFlowWorld(t)
	w.during = func(c Call) error {
		if strings.Contains(c.Text, "bad") {
			return errors.New("refusal")
		}
		return nil
	}
	w.drive(w.driver(), w.flow(`
[[step]]
id = "a"
text = "{\"k\": 1}"
[[step]]
id = "bad"
on_failure = "continue"
text = "bad"
[[step]]
id = "each"
on_failure = "continue"
for_each = "['p', 'bad']"
text = "[\"{{ item }}\", {{ index }}]"
[[step]]
id = "end"
needs = ["a", "bad", "each"]
text = """{{ steps.a.state }} {{ steps.a.text }} {{ steps.a.json.k }} {{ steps.a.run }} [{{ steps.a.error }}] \
[{{ steps.a.answer }}] {{ steps.a.json?.none ?? 'nil' }} {{ steps.bad.state }} {{ steps.bad.error }} \
{{ join(map(steps.each.items, .item + string(.index) + .state + .error + .run), ' ') }} \
{{ steps.each.items[0].text }} {{ steps.each.items[0].json[0] }} {{ steps.each.state }}"""
`))
	q, err := digestOf("p")
	if err != nil {
		t.Fatal(err)
	}
	bad, err := digestOf("bad")
	if err != nil {
		t.Fatal(err)
	}
	one, two := "flow:r/each/1-"+q, "flow:r/each/2-"+bad
	w.called(`flow:r/a {"k": 1}`, "flow:r/bad bad", one+` ["p", 0]`, two+` ["bad", 1]`,
		`flow:r/end done {"k": 1} 1 run of flow:r/a [] [] nil failed the agent stopped: refusal `+
			`p0donerun of `+one+` bad1failedthe agent stopped: refusalrun of `+two+` ["p", 0] p failed`)
}

// TestPassedOn checks that a failure and a skip affect the later steps. If the failed step says "continue", the
// later steps and the flow run do not fail.
func TestPassedOn(t *testing.T) {
	const steps = "[[step]]\nid = 'a'\ntext = '1'\n%s\n[[step]]\nid = 'b'\nneeds = ['a']\ntext = '2'\n" +
		"[[step]]\nid = 'c'\nneeds = ['b']\ntext = '3'\n"
	for key, want := range map[string]string{
		"":                        "failed failed failed: failed",
		"on_failure = 'continue'": "failed done done: done",
		"when = 'false'":          "skipped skipped skipped: done",
		"when = 'false'\non_skipped = 'continue'": "skipped done done: done",
	} {
		w := newFlowWorld(t)
		w.during = func(c Call) error {
			if c.Step.ID == "a" {
				return errors.New("refusal")
			}
			return nil
		}
		s := w.drive(w.driver(), w.flow(fmt.Sprintf(steps, key)))
		got := fmt.Sprintf("%s %s %s: %s", s.Steps[0].Phase, s.Steps[1].Phase, s.Steps[2].Phase, s.Outcome())
		if got != want {
			t.Errorf("%q: %s, want %s", key, got, want)
		}
	}
}

// TestStopDriver closes Driver.Stop during a call. The call must end and be decided, and no further step may begin. The
// next driver goes on.
func TestStopDriver(t *testing.T) {
	w := newFlowWorld(t)
	d, stop := w.driver(), make(chan struct{})
	d.Stop = stop
	w.during = func(c Call) error {
		if c.Text == "1" {
			close(stop)
		}
		return nil
	}
	f := w.flow("[[step]]\nid = 'a'\ntext = '1'\n[[step]]\nid = 'b'\nneeds = ['a']\ntext = '2'\n")
	if s := w.drive(d, f); s.Steps[0].Phase != Done || s.Steps[1].Phase != Waiting || s.Finished != nil {
		t.Errorf("%s, %s, %v", s.Steps[0].Phase, s.Steps[1].Phase, s.Finished)
	}
	w.called("flow:r/a 1")
	w.drive(w.driver(), f)
	w.called("flow:r/a 1", "flow:r/b 2")
}

// TestTakeOver holds the lock of a flow run as another process does. Until the lock is released, the driver must show
// the changes and make no call. Then it must take over. The test fails if the driver does not wait, or shows nothing.
func TestTakeOver(t *testing.T) {
	w := newFlowWorld(t)
	f := w.flow("[[step]]\nid = 'a'\ntext = '1'\n[[step]]\nid = 'b'\nneeds = ['a']\ntext = '2'\n")
	refs := event.Refs{Run: RunID("r"), Interaction: event.Flows}
	if _, err := w.log.Append(t.Context(), event.NewFact(event.FlowStarted, "user", refs,
		fact.FlowStarted{Name: "f", Digest: f.Digest, File: f.Text})); err != nil {
		t.Fatal(err)
	}
	lock, err := filelock.Acquire(filelock.Run(w.dir, "flow:r"))
	if err != nil {
		t.Fatal(err)
	}
	d, shown := w.driver(), make(chan string, 100)
	d.Show = func(_ *State, st *StepState, item int) {
		if item == 0 {
			shown <- st.ID + " " + string(st.Phase)
		}
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, err = d.Run(t.Context(), f, "r", nil)
	}()
	until := func(want string) {
		for got := range shown {
			if got == want {
				return
			}
		}
	}
	until("b waiting")
	refs.Interaction = "flow:r/a"
	if _, err := w.log.Append(t.Context(), event.NewFact(event.FlowStepDecided, "perlica", refs,
		fact.FlowDecided{Step: "a", Decision: fact.FlowDone})); err != nil {
		t.Fatal(err)
	}
	until("a done")
	w.called()
	lock.Release()
	<-ended
	if err != nil {
		t.Fatal(err)
	}
	w.called("flow:r/b 2")
}

// TestTwoDrivers lets two drivers drive one flow run, each with its own folder of locks. Even so, each input is called
// once and each decision is on the log once. The test fails if a decision is recorded without its condition.
func TestTwoDrivers(t *testing.T) {
	w := newFlowWorld(t)
	f := w.flow("[[step]]\nid = 'a'\nfor_each = 'split(\"a,b,c,d,e,f,g,h\", \",\")'\nparallel = 2\n" +
		"text = '{{ item }}'\n[[step]]\nid = 'b'\nneeds = ['a']\ntext = 'end'\n")
	var wg sync.WaitGroup
	for range 2 {
		d := w.driver()
		d.Locks = t.TempDir()
		wg.Go(func() {
			if _, err := d.Run(t.Context(), f, "r", nil); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if len(w.calls) != 9 || w.count(event.FlowStarted) != 1 || w.count(event.FlowFinished) != 1 {
		t.Errorf("%d calls, %d starts, %d ends", len(w.calls), w.count(event.FlowStarted), w.count(event.FlowFinished))
	}
	if got := w.count(event.FlowStepDecided); got != 10 { // eight items, their list and the last step
		t.Errorf("got %d decisions, want 10", got)
	}
}

// TestCancelDuringCall cancels a flow run during a call. No further step begins, and the flow run has one end.
func TestCancelDuringCall(t *testing.T) {
	w := newFlowWorld(t)
	w.during = func(Call) error {
		s, err := readState(t.Context(), &w.log.Reader, "r")
		if err == nil {
			err = cancel(t.Context(), w.log, s, "me")
		}
		if err == nil {
			if err = cancel(t.Context(), w.log, s, "other"); errors.Is(err, ErrFinished) {
				return nil
			}
			return fmt.Errorf("a second cancel: %w", err)
		}
		return err
	}
	s := w.drive(w.driver(), w.flow("[[step]]\nid = 'a'\ntext = '1'\n"))
	if s.Outcome() != fact.FlowCancelled || w.count(event.FlowFinished) != 1 {
		t.Errorf("%s with %d ends", s.Outcome(), w.count(event.FlowFinished))
	}
}

// TestRetryTwice lets two people retry the same failed step at the same time. There is one new attempt. Later steps
// without a call are decided again, and the calls of other steps are not repeated.
func TestRetryTwice(t *testing.T) {
	w := newFlowWorld(t)
	bad := true
	w.during = func(c Call) error {
		if c.Step.ID == "a" && bad {
			return errors.New("refusal")
		}
		return nil
	}
	f := w.flow("[[step]]\nid = 'a'\non_failure = 'continue'\ntext = '1'\n" +
		"[[step]]\nid = 'heard'\nneeds = ['a']\ntext = '2'\n" +
		"[[step]]\nid = 'quiet'\nneeds = ['a']\nwhen = 'steps.a.state == \"done\"'\ntext = '3'\n")
	s := w.drive(w.driver(), f)
	w.called("flow:r/a 1", "flow:r/heard 2")
	input, err := Retry(t.Context(), w.log, s, "a", 0, "me")
	if err != nil || input != "flow:r/a/retry-1" {
		t.Fatalf("%s, %v", input, err)
	}
	if _, err := Retry(t.Context(), w.log, s, "a", 0, "other"); !errors.As(err, new(*eventlog.ConflictError)) {
		t.Errorf("a second person: %v", err)
	}
	bad = false
	if s = w.drive(w.driver(), f); s.Outcome() != fact.FlowDone {
		t.Errorf("got %s", s.Outcome())
	}
	w.called("flow:r/a 1", "flow:r/heard 2", "flow:r/a/retry-1 1", "flow:r/quiet/retry-1 3")
}

// TestChangedItems retries a step from which the recorded items of a loop follow, and one of the items. The list then
// differs from the recorded one, so the driver must make no call with its elements. The test fails if the driver does
// not compare the digests.
func TestChangedItems(t *testing.T) {
	w := newFlowWorld(t)
	w.during = func(c Call) error {
		if c.Text == "a" || c.Text == "x" {
			return errors.New("refusal")
		}
		return nil
	}
	f := w.flow("[[step]]\nid = 'a'\non_failure = 'continue'\ntext = 'a'\n" +
		"[[step]]\nid = 'each'\nneeds = ['a']\nfor_each = '[steps.a.state, \"x\"]'\ntext = '{{ item }}'\n")
	s := w.drive(w.driver(), f)
	for step, item := range map[string]int{"a": 0, "each": 2} {
		if _, err := Retry(t.Context(), w.log, s, step, item, "me"); err != nil {
			t.Fatal(err)
		}
	}
	w.during, w.calls = nil, nil
	_, err := w.driver().Run(t.Context(), f, "r", nil)
	if err == nil || !strings.Contains(err.Error(), "step each: item 1 is not the recorded one") {
		t.Errorf("got %v", err)
	}
	w.called("flow:r/a/retry-1 a")
}

// TestSession checks that a step continues the session of the step that it names, and no other one.
func TestSession(t *testing.T) {
	w := newFlowWorld(t)
	sessions := make(chan event.SessionID, 3)
	w.during = func(c Call) error {
		sessions <- c.Session
		return nil
	}
	w.drive(w.driver(), w.flow("[[step]]\nid = 'a'\ntext = '1'\n"+
		"[[step]]\nid = 'b'\nneeds = ['a']\nsession = 'a'\ntext = '2'\n"+
		"[[step]]\nid = 'c'\nneeds = ['b']\ntext = '3'\n"))
	for _, want := range []event.SessionID{"", "session of flow:r/a", ""} {
		if got := <-sessions; got != want {
			t.Errorf("got the session %q, want %q", got, want)
		}
	}
}

// TestFindRun checks that a beginning of an id names a flow run only if it is the beginning of one id alone.
func TestFindRun(t *testing.T) {
	w := newFlowWorld(t)
	for _, id := range []string{"one", "one-more", "two"} {
		refs := event.Refs{Run: RunID(id), Interaction: event.Flows}
		e := event.NewFact(event.FlowStarted, "user", refs, fact.FlowStarted{Name: "f"})
		if _, err := w.log.Append(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	for ref, want := range map[string]string{"one": "one", "one-": "one-more", "": "two", "t": "two", "o": "", "x": ""} {
		if got, err := FindRun(t.Context(), &w.log.Reader, ref); got != want || (err != nil) != (want == "") {
			t.Errorf("%q: %q, %v; want %q", ref, got, err, want)
		}
	}
}

// TestDigest checks that the digest of a flow changes with each file that the flow names. Otherwise a flow run could
// continue with another schema or another inner flow.
func TestDigest(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("f.toml", "name = 'f'\n[[step]]\nid = 'a'\ntext = 'x'\nschema = 's.json'\n"+
		"[[step]]\nid = 'b'\nflow = 'i.toml'\n")
	seen := map[string]string{}
	for _, c := range []struct{ name, text string }{{"s.json", "{}"},
		{"i.toml", "name = 'i'\n[[step]]\nid = 'a'\ntext = 'x'\nschema = 'deep.json'\n"}, {"deep.json", "{}"},
		{"s.json", "true"}, {"deep.json", "true"}, {"i.toml", "name = 'i'\n[[step]]\nid = 'a'\ntext = 'y'\n"}} {
		write(c.name, c.text)
		f, err := Load(filepath.Join(dir, "f.toml"))
		if err != nil {
			continue // a file is not written yet
		}
		if before, ok := seen[f.Digest]; ok {
			t.Errorf("the digest is the same after %s and after %s %s", before, c.name, c.text)
		}
		seen[f.Digest] = c.name + " " + c.text
	}
	if len(seen) != 4 {
		t.Errorf("got %d digests, want 4", len(seen))
	}
}

// TestSizes checks the limits of a file's steps and of a text that is decoded as JSON.
func TestSizes(t *testing.T) {
	var b strings.Builder
	for i := range mostSteps + 1 {
		fmt.Fprintf(&b, "[[step]]\nid = 's%d'\ntext = 'x'\n", i)
	}
	if _, err := parseAlone("name = 'f'\n" + b.String()); err == nil || !strings.Contains(err.Error(), "limit is 1000") {
		t.Errorf("%d steps: %v", mostSteps+1, err)
	}
	if _, err := decodeJSON(`"` + strings.Repeat("x", 8<<20) + `"`); err == nil ||
		!strings.Contains(err.Error(), "may have at most 8388608") {
		t.Errorf("large JSON: %v", err)
	}
}

// BenchmarkDrive measures the driver alone: the calls take no time and record nothing. The metrics are the durable
// rows of one step of a loop, the time of one step, and the memory in use at the end. The memory includes the state
// of the flow run.
func BenchmarkDrive(b *testing.B) {
	for _, items := range []int{100, maxItems} {
		b.Run(fmt.Sprint(items), func(b *testing.B) {
			for b.Loop() {
				w := newFlowWorld(b)
				d := w.driver()
				d.Answer = func(_ context.Context, c Call) (record.Result, error) {
					return record.Result{Run: event.RunID("run of " + c.Input), Outcome: record.OutcomeResponded,
						StopReason: "end_turn"}, nil
				}
				list := strings.Repeat("item,", items-1) + "item"
				f := w.flow("[inputs.list]\n[[step]]\nid = 'a'\nfor_each = 'split(inputs.list, \",\")'\nparallel = 8\n" +
					"max_items = 10000\ntext = '{{ item }}'\n")
				began := time.Now()
				s, err := d.Run(b.Context(), f, "r", map[string]string{"list": list})
				if err != nil || s.Steps[0].Count(Done) != items {
					b.Fatal(s, err)
				}
				took := time.Since(began)
				runtime.GC()
				var m runtime.MemStats
				runtime.ReadMemStats(&m)
				runtime.KeepAlive(s)
				b.ReportMetric(float64(w.count(event.FlowStepDecided)-1)/float64(items), "rows/step")
				b.ReportMetric(float64(took.Microseconds())/1000/float64(items), "ms/step")
				b.ReportMetric(float64(m.HeapAlloc)/(1<<20), "MB")
			}
		})
	}
}

// TestPersons checks that a process of an agent continues the flow run of an agent, and not the one of a person. The
// test fails if the start does not record its origin.
func TestPersons(t *testing.T) {
	w := newFlowWorld(t)
	f := w.flow("[[step]]\nid = 'a'\ntext = '1'\n")
	agent := w.driver()
	agent.Limited = true
	if _, err := agent.Begin(t.Context(), f, "r", nil); err != nil {
		t.Fatal(err)
	}
	w.drive(agent, f)
	w.called("flow:r/a 1")
	if _, err := w.driver().Begin(t.Context(), f, "p", nil); err != nil {
		t.Fatal(err)
	}
	if _, err := agent.Run(t.Context(), f, "p", nil); !errors.Is(err, ErrPersons) {
		t.Errorf("an agent continues the flow run of a person: %v", err)
	}
	w.called("flow:r/a 1")
}

// TestQuestionsOfARetriedFlow retries an inner flow with an open question. The new inner flow asks again, and the
// driver forgets both questions at its end. A cancellation must close both. The test fails if only the questions of the
// last attempt are found.
func TestQuestionsOfARetriedFlow(t *testing.T) {
	w := newFlowWorld(t)
	dir := t.TempDir()
	for name, text := range map[string]string{
		"inner.toml": "name = 'i'\n[[step]]\nid = 'one'\ntext = '1'\n[[step]]\nid = 'gate'\nask = 'Go on?'\n" +
			"options = ['yes']\n",
		"outer.toml": "name = 'o'\n[[step]]\nid = 'inside'\nflow = 'inner.toml'\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	f, err := Load(filepath.Join(dir, "outer.toml"))
	if err != nil {
		t.Fatal(err)
	}
	d := w.driver()
	d.Answer = func(ctx context.Context, c Call) (record.Result, error) {
		refs := event.Refs{Input: c.Input, Run: event.RunID("run of " + c.Input)}
		_, err := w.log.Append(ctx, event.NewFact(event.Requested, "perlica", refs, fact.Requested{}),
			event.NewFact(event.OutcomeUnknown, "perlica", refs, struct{}{}))
		if errors.As(err, new(*eventlog.ConflictError)) {
			err = nil
		}
		return record.Result{Run: refs.Run, Outcome: record.OutcomeUnknown}, err
	}
	w.drive(d, f)
	s, err := Look(t.Context(), w.log, w.dir, "r")
	if err == nil {
		_, err = Retry(t.Context(), w.log, s, "inside", 0, "me")
	}
	if err != nil {
		t.Fatal(err)
	}
	w.drive(d, f)
	if open := d.Questions.Open(); len(open) != 0 {
		t.Errorf("the process has %d questions after the end of the driver", len(open))
	}
	runs := []event.RunID{RunID("r/inside"), RunID("r/inside/retry-1")}
	if open, err := interaction.Pending(t.Context(), w.log, runs); len(open) != 2 || err != nil {
		t.Fatalf("%d open questions, want 2: %v", len(open), err)
	}
	if err := CloseQuestions(t.Context(), w.log, d.Questions, "r"); err != nil {
		t.Fatal(err)
	}
	if open, err := interaction.Pending(t.Context(), w.log, runs); len(open) != 0 || err != nil {
		t.Errorf("%d questions are open after the cancellation: %v", len(open), err)
	}
}
