package flow

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/perlica/perlica/eventlog"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/kernel/fact"
)

// vars are the names for the expressions of the tests.
func vars() map[string]any {
	long := make([]any, maxItems)
	for i := range long {
		long[i] = float64(i)
	}
	return map[string]any{
		"a": "text", "n": 3.0, "list": []any{"x", "y"}, "long": long, "big": strings.Repeat("x", 1<<20),
		"o": map[string]any{"k": "v", "no": nil, "deep": map[string]any{"l": []any{1.0, 2.0}}},
	}
}

// TestExpressions checks the values of expressions. The test fails if the order of operators or the meaning of a
// function changes.
func TestExpressions(t *testing.T) {
	for text, want := range map[string]any{
		`1 + 2 * 3`: 7.0, `(1 + 2) * 3`: 9.0, `-2 + 1`: -1.0, `7 % 4`: 3.0, `1_000 / 8`: 125.0,
		`"a" + 'b' + ` + "`c\\`": `abc\`, `"\n\"" == "` + "\n" + `\""`: true,
		`1 < 2 and not (2 <= 1) or false`: true, `a == "text" && n != 4`: true, `true ? 1 : 2`: 1.0,
		`o.k`: "v", `o?.missing`: nil, `o.no ?? "d"`: "d", `o["k"]`: "v", `o.deep.l[-1]`: 2.0,
		`"x" in list`: true, `list contains "z"`: false, `a contains "ex"`: true, `"k" in o`: true,
		`a startsWith "te" and a endsWith "xt"`: true, `len(list)`: 2.0, `len("äö")`: 2.0,
		`join(map(list, # + "!"), ",")`: "x!,y!", `join(list)`: "xy", `map([{v: 1}], .v)[0]`: 1.0,
		`count(list, # == "x")`: 1.0, `sum([1, 2], #)`: 3.0, `filter(list, {# != "x"})[0]`: "y",
		`all(list, len(#) == 1)`: true, `any(list, # == "q")`: false, `none(list, # == "q")`: true,
		`find(list, # == "y")`: "y", `find(list, # == "q")`: nil, `first(list) + last(list)`: "xy", `first([])`: nil,
		`lines("a\n\n b \n")`: []any{"a", "b"}, `split("a,b", ",")`: []any{"a", "b"},
		`trim(" a ") + upper("b") + lower("C")`: "aBc", `int("12") + float("0.5")`: 12.5, `string(3)`: "3",
		`json("{\"a\": [1]}").a[0]`: 1.0, `toJSON({a: [1, "x"]})`: `{"a":[1,"x"]}`, `keys(o)`: []any{"deep", "k", "no"},
		`json("` + "```json\\n[1]\\n```" + `")[0]`: 1.0, `map(list, map([1], 2))[1][0]`: 2.0, `[1, 2,]`: []any{1.0, 2.0},
		`{a: 1} == {"a": 1}`: true, `false and o.missing`: false, `nil == null`: true,
	} {
		e, err := parseExpression(text)
		if err != nil {
			t.Error(err)
			continue
		}
		if got, err := e.evaluate(vars()); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %#v, %v; want %#v", text, got, err, want)
		}
	}
}

// TestFaultyExpressions checks the errors of expressions. The test fails if a missing name has a value.
func TestFaultyExpressions(t *testing.T) {
	for text, want := range map[string]string{
		`1 +`: "expected a value", `1 2`: `unexpected "2"`, `"a`: "has no end",
		`a.`: "expected a name", `"\q"`: "unknown escape",
		`o.missing`: "there is no member missing", `missing`: "there is no missing here", `o.no.x`: "nil has no member x",
		`list[2]`: "no element 2", `1 / 0`: "division by zero", `a + 1`: "two texts or two numbers",
		`not 1`: "expected true or false", `int("x")`: "not a number", `json("x")`: "the text is not JSON",
		`map(a, #)`: "expected a list", `split(a, "")`: "the separator is empty", `@`: "unexpected '@'",
		strings.Repeat("(", 200) + "1" + strings.Repeat(")", 200): "nested more than 100 times",
		strings.Repeat("-", 200) + "1":                            "nested more than 100 times",
		strings.Repeat("1+", 5000) + "1":                          "the limit is 8192",
	} {
		e, err := parseExpression(text)
		if err == nil {
			_, err = e.evaluate(vars())
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40s: %v, want %s", text, err, want)
		}
	}
}

// TestEndless checks that an expression that would take too long or make too much text is cut off. Each function must
// add the cost of its work.
func TestEndless(t *testing.T) {
	double := "big"
	for range 30 {
		double = "(" + double + " + " + double + ")"
		if len(double) > maxExpression/3 {
			break
		}
	}
	for _, text := range []string{
		`all(long, all(long, all(long, all(long, true))))`, `count(long, count(long, # >= 0) >= 0)`,
		`sum(long, sum(long, sum(long, #)))`, double, `join(map(long, big), "")`,
		`join(long == long ? map(long, "x") : [], big)`,
		`toJSON(map(long, big))`, `count(long, big contains "y")`, `map(long, upper(big))`, `count(long, big == big)`,
		`map(long, lines(big))`, `map(long, map(long, #))`,
		`find(long, split(big, "x") == [])`, `map(long, json("[\"" + big + "\"]"))`,
	} {
		e, err := parseExpression(text)
		if err != nil {
			t.Error(err)
			continue
		}
		_, err = e.evaluate(vars())
		var cut *expressionError
		if !errors.As(err, &cut) || !strings.Contains(err.Error(), "the expression takes more than") &&
			!strings.Contains(err.Error(), "the expression makes more than") {
			t.Errorf("%.60s: %v", text, err)
		}
	}
}

// FuzzExpression checks that no text makes the parser or the evaluator panic.
func FuzzExpression(f *testing.F) {
	for _, s := range []string{`a + n * 2`, `map(list, {#.x ?? 1})[0]?.y`, `{a: [1, "b"]} == o`,
		`1 in [1] ? not true : -n`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if e, err := parseExpression(s); err == nil {
			sc := scope{flow: &Flow{places: map[string]int{}}, step: &Step{}}
			if sc.check(e) == nil {
				_, _ = e.evaluate(vars()) // an error is allowed, and only a panic is a fault
			}
		}
	})
}

// TestTemplate checks the places at which an expression ends, and that a missing value is an error.
func TestTemplate(t *testing.T) {
	for text, want := range map[string]string{
		"plain": "plain", "{{ a }}!": "text!", "{{a}}{{ n }}": "text3", `{{ "}}" + a }}`: "}}text",
		`{"x": {{ toJSON({k: {l: 1}}) }}}`: `{"x": {"k":{"l":1}}}`, "{{ list }}": `["x","y"]`, "{{ n == 3 }}": "true",
		"{{ o.missing }}": "ERROR", "{{ o.no }}": "ERROR", "{{ a": "ERROR", "{{ }}": "ERROR",
	} {
		got := "ERROR"
		tmpl, err := parseTemplate(text)
		if err == nil {
			if s, err := tmpl.render(vars()); err == nil {
				got = s
			}
		}
		if got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

// TestCheck checks that Load finds the faults of flow files, before a flow runs.
func TestCheck(t *testing.T) {
	const one = "[[step]]\nid = 'a'\ntext = 'x'\n"
	for file, want := range map[string]string{
		"":                                     "the name",
		"name = 'f'":                           "there is no [[step]]",
		"name = 'f'\n" + one + one:             "two steps have the id a",
		"name = 'f'\nx = 1\n" + one:            "line 2: unknown key x",
		"name = 'f'\n" + one + "nedes = []":    "line 5: unknown key step.nedes",
		"name = 'f'\n" + one + "text = 'y'":    "line 5: ",
		"name = 'f'\n" + one + "ask = 'y'":     "exactly one of text, ask and flow",
		"name = 'f'\n" + one + "needs = 'b'":   "line 5: ",
		"name = 'f'\n" + one + "needs = ['b']": "there is no step b, which it needs",
		"name = 'f'\n" + one + "needs = ['a']": "a needs a",
		"name = 'f'\n" + one + "needs = ['b']\n[[step]]\nid='b'\ntext='x'\nneeds=['a']":  "a needs b needs a",
		"name = 'f'\n" + one + "when = 'steps.b.text'":                                   "there is no step b",
		"name = 'f'\n" + one + "[[step]]\nid='b'\ntext='{{ steps.a.text }}'":             "step b: the step does not need a",
		"name = 'f'\n" + one + "[[step]]\nid='b'\nneeds=['a']\ntext='{{ steps.a.txt }}'": "a step has no txt",
		"name = 'f'\n[[step]]\nid='a'\ntext='{{ inputs.x }}'":                            "there is no input x",
		"name = 'f'\n[[step]]\nid='a'\ntext='{{ item }}'":                                "item belongs",
		"name = 'f'\n[[step]]\nid='a'\ntext='{{ env.HOME }}'":                            "there is no env",
		"name = 'f'\n[[step]]\nid='a'\ntext='{{ exec(\"ls\") }}'":                        "there is no function exec",
		"name = 'f'\n[[step]]\nid='a'\ntext='{{ # }}'":                                   "belong into the second argument",
		"name = 'f'\n[[step]]\nid='a'\ntext='{{ len() }}'":                               "len has 0 arguments",
		"name = 'f'\n[[step]]\nid='a'\ntext='{{ steps }}'":                               "steps needs a name",
		"name = 'f'\n[[step]]\nid='a-b'\ntext='x'":                                       "is not a name",
		"name = 'f'\n[[step]]\nid='a'\nask='x'":                                          "a question needs 1 to 20 options",
		"name = 'f'\n[[step]]\nid='a'\nask='x'\noptions=['y','y']":                       `the option "y" is empty, repeated`,
		"name = 'f'\n" + one + "parallel = 2":                                            "belong to a step with for_each",
		"name = 'f'\n" + one + "for_each = '[1]'\nmax_items = 10001":                     "max_items is a number from 1",
		"name = 'f'\n" + one + "for_each = '[1]'\nparallel = 65":                         "parallel is a number from 1 to 64",
		"name = 'f'\n" + one + "permissions = 'yes'":                                     "permissions is ask, reads",
		"name = 'f'\n" + one + "session = 'b'":                                           "there is no step b",
		"name = 'f'\n" + one + "schema = 'missing.json'":                                 "schema missing.json: no such file",
		"name = 'f'\n[[step]]\nid='a'\nflow='self.toml'":                                 "nested more than",
	} {
		dir := t.TempDir()
		for _, name := range []string{"f.toml", "self.toml"} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(file), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := Load(filepath.Join(dir, "f.toml")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", file, err, want)
		}
	}
	large := filepath.Join(t.TempDir(), "large.toml")
	if err := os.WriteFile(large, make([]byte, maxFile+1), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(large); err == nil || !strings.Contains(err.Error(), "the limit is 1048576") {
		t.Errorf("a large file: %v", err)
	}
}

// TestIDs checks the input ids, which must never change: a changed id would call a step again.
func TestIDs(t *testing.T) {
	f, err := parseAlone("name = 'f'\n[[step]]\nid = 'a'\ntext = 'x'\nfor_each = '[\"p\", \"q\"]'\n[[step]]\nid = 'b'\n" +
		"ask = 'x'\noptions = ['y']")
	if err != nil {
		t.Fatal(err)
	}
	s, err := newState(event.NewFact(event.FlowStarted, "user", event.Refs{Run: RunID("r")}, fact.FlowStarted{File: f.Text,
		Digest: f.Digest}), nil)
	if err != nil {
		t.Fatal(err)
	}
	digest, err := digestOf("q")
	if err != nil {
		t.Fatal(err)
	}
	a, b := s.Steps[0], s.Steps[1]
	a.Items = []Unit{{}, {Digest: digest}}
	log, err := eventlog.Open(t.Context(), filepath.Join(t.TempDir(), "eventlog.db"), eventlog.Options{})
	if err != nil {
		t.Fatal(err)
	}
	question, err := s.questionID(t.Context(), &log.Reader, b)
	if err = errors.Join(err, log.Close()); err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprint(s.InputID(a, 2), " ", s.InputID(b, 0), " ", question)
	b.Attempt = 2
	got += fmt.Sprint(" ", s.InputID(b, 0))
	const want = "flow:r/a/2-90edba1c flow:r/b 78ff6637-eb2f-5124-91fb-f3d75a165cfe flow:r/b/retry-2"
	if got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// tenThousand makes a log with a flow run of 10,000 items.
func tenThousand(tb testing.TB) *eventlog.Log {
	tb.Helper()
	log, err := eventlog.Open(tb.Context(), filepath.Join(tb.TempDir(), "eventlog.db"), eventlog.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = log.Close() }) // the test has read all it needs
	const text = "name = 'f'\n[[step]]\nid = 'a'\ntext = 'x'\nfor_each = '[]'\nmax_items = 10000\n"
	refs := event.Refs{Run: RunID("r"), Interaction: event.Flows}
	d := fact.FlowDecided{Step: "a", Decision: fact.FlowExpanded, Items: make([]string, maxItems)}
	for i := range d.Items {
		d.Items[i] = fmt.Sprintf("%08x", i)
	}
	events := []event.Event{event.NewFact(event.FlowStarted, "user", refs, fact.FlowStarted{Name: "f", File: text}),
		event.NewFact(event.FlowStepDecided, "perlica", event.Refs{Run: refs.Run, Interaction: "flow:r/a/items"}, d)}
	for i := range maxItems {
		key := event.InteractionID(fmt.Sprintf("flow:r/a/%d-%08x", i+1, i))
		events = append(events, event.NewFact(event.FlowStepDecided, "perlica", event.Refs{Run: refs.Run, Interaction: key},
			fact.FlowDecided{Step: "a", Item: i + 1, Decision: fact.FlowDone, Run: "r1", DurationMS: 12}))
	}
	if _, err := log.Append(context.Background(), events...); err != nil {
		tb.Fatal(err)
	}
	return log
}

// TestTenThousand checks that a flow run of 10,000 items is read from its events.
func TestTenThousand(t *testing.T) {
	log := tenThousand(t)
	s, err := Look(t.Context(), &log.Reader, t.TempDir(), "r")
	if err != nil {
		t.Fatal(err)
	}
	if got := s.Steps[0].Progress(); got != "10000 of 10000" || s.Steps[0].Phase != Done {
		t.Errorf("%s, %s", s.Steps[0].Phase, got)
	}
}

// TestLongRunInOrder checks that the events of a long flow run are applied in their order, although two parts of the log
// are read at the same time: a retry continues a flow run that ended long before. The error of an event in a later part
// ends the reading.
func TestLongRunInOrder(t *testing.T) {
	log := tenThousand(t)
	refs := event.Refs{Run: RunID("r"), Interaction: event.Flows}
	ended := event.NewFact(event.FlowFinished, "perlica", refs, fact.FlowFinished{Outcome: fact.FlowFailed})
	retry := func(item int) event.Event {
		key := event.InteractionID(fmt.Sprint("retry of ", item))
		return event.NewFact(event.FlowStepDecided, "user", event.Refs{Run: refs.Run, Interaction: key},
			fact.FlowDecided{Step: "a", Item: item, Attempt: 1, Decision: fact.FlowRetry})
	}
	events := []event.Event{ended}
	for range 2 * minPart { // the retry lies in a later part than the end
		events = append(events, event.NewFact(event.SessionCreated, "user", event.Refs{}, struct{}{}))
	}
	if _, err := log.Append(t.Context(), append(events, retry(300))...); err != nil {
		t.Fatal(err)
	}
	s, err := readState(t.Context(), &log.Reader, "r")
	if err != nil {
		t.Fatal(err)
	}
	if got := s.Steps[0].Progress(); s.Finished != nil || got != "9999 of 10000" {
		t.Errorf("%v, %s; want a flow run that goes on, and one item not done", s.Finished, got)
	}
	faulty := retry(1)
	faulty.Payload = []byte("[]")
	if _, err := log.Append(t.Context(), faulty); err != nil {
		t.Fatal(err)
	}
	if _, err := readState(t.Context(), &log.Reader, "r"); err == nil {
		t.Error("a faulty event is not found")
	}
}

// BenchmarkShow measures the reading of a flow run of 10,000 items. The promise of flow show is 100 ms.
func BenchmarkShow(b *testing.B) {
	log := tenThousand(b)
	for b.Loop() {
		if _, err := Look(b.Context(), &log.Reader, b.TempDir(), "r"); err != nil {
			b.Fatal(err)
		}
	}
}

// TestFileChangesDuringLoad checks that one load of a flow uses one version of each file, because a schedule trusts the
// digest that Files has. The test fails if a later read with other bytes replaces the digest of an earlier read.
func TestFileChangesDuringLoad(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	step := func(id, rest string) string { return "[[step]]\nid = '" + id + "'\n" + rest + "\n" }
	schema := write("s.json", "{}")
	inner := write("inner.toml", "name = 'inner'\n"+step("x", "text = 'x'\nschema = 's.json'"))
	outer := write("outer.toml", "name = 'outer'\n"+step("a", "flow = 'inner.toml'")+step("b", "flow = 'inner.toml'")+
		step("c", "text = 'x'\nschema = 's.json'"))
	f, err := Load(outer)
	if err != nil || len(f.Files) != 3 {
		t.Fatalf("%+v, %v", f, err)
	}
	for _, path := range []string{outer, inner, schema} {
		files := map[string]string{path: strings.Repeat("0", 64)} // an earlier read found other bytes
		want := "the file " + path + " changed while Perlica read the flow"
		if _, err := load(outer, 0, files); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", path, err)
		}
	}
}
