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
	"github.com/perlica/perlica/eventlog/message"
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
		`1 +`: "ends too early", `1 2`: `unexpected "2"`, `"a`: "has no end",
		`a.1`: "expected a name", `"\q"`: "unknown escape",
		`o.missing`: "there is no member missing", `missing`: "there is no missing here", `o.no.x`: "nil has no member x",
		`list[2]`: "no element 2", `1 / 0`: "division by zero", `a + 1`: "two texts or two numbers",
		`not 1`: "expected true or false", `int("x")`: "not a number", `json("x")`: "the text is not JSON",
		`map(a, #)`: "expected a list", `split(a, "")`: "the separator is empty", `@`: `unexpected "@"`,
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
		if !errors.As(err, &cut) || !strings.Contains(err.Error(), "the expression needs more than") &&
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

// wrongFlow is a text that is not a flow, and the error of Load after the path of the file.
type wrongFlow struct{ text, code, want string }

// wrongFlows returns a text for each mistake in a file.
func wrongFlows() []wrongFlow {
	const top, one = "name = 'f'\n", "[[step]]\nid = 'a'\ntext = 'x'\n"
	in := func(expression string) string { return top + "[[step]]\nid = 'a'\ntext = '{{ " + expression + " }}'" }
	return []wrongFlow{
		{"", "flow.name", `the name "" is not 1 to 64 letters, digits, dots, dashes or underscores; change it`},
		{"name = ", "flow.not-toml", "line 1: "},
		{top + one + "text = 'y'", "flow.not-toml", "line 5: "},
		{"\xff", "flow.not-toml", "line 1: "},
		{top + "x = 1\n" + one, "flow.unknown-key", "line 2: unknown key x; correct or remove it"},
		{top + one + "nedes = []", "flow.unknown-key", "line 5: unknown key step.nedes; correct or remove it"},
		{top + one + "needs = 'b'", "flow.wrong-type",
			"line 5: step.needs has a value of a wrong type; see docs/flows.md"},
		{top, "flow.no-steps", "there is no [[step]]; add one"},
		{top + "[inputs.a-b]\n" + one, "flow.input-name",
			`the input "a-b" is not a name of letters, digits and underscores; rename it`},
		{top + "[[step]]\nid='a-b'\ntext='x'", "flow.step-id",
			`step 1: the id "a-b" is not a name of letters, digits and underscores; change it`},
		{top + one + one, "flow.same-id", "two steps have the id a; rename one"},
		{top + one + "needs = ['b']", "flow.unknown-step", "step a: needs: there is no step b; correct its name"},
		{top + one + "needs = ['a']", "flow.cycle", "the steps need each other: a → a; remove one of these needs"},
		{top + one + "needs = ['b']\n[[step]]\nid='b'\ntext='x'\nneeds=['a']", "flow.cycle",
			"the steps need each other: a → b → a; remove one of these needs"},
		{top + one + "ask = 'y'", "flow.one-kind",
			"step a: a step has exactly one of text, ask and flow; add or remove one"},
		{top + "[[step]]\nid='a'\nask='x'\noptions=['y']\nschema='s'", "flow.other-step",
			"step a: schema: this belongs to a step with text; remove it"},
		{top + one + "parallel = 2", "flow.other-step",
			"step a: parallel, max_items: this belongs to a step with for_each; remove it"},
		{top + one + "options = ['y']", "flow.other-step", "step a: options: this belongs to a step with ask; remove it"},
		{top + one + "inputs = {}", "flow.other-step", "step a: inputs: this belongs to a step with flow; remove it"},
		{top + one + "permissions = 'yes'", "flow.choice",
			`step a: permissions must be one of ask, reads, deny, allow, not "yes"`},
		{top + one + "for_each = '[1]'\nmax_items = 10001", "flow.range",
			"step a: max_items must be a number from 1 to 10000"},
		{top + one + "for_each = '[1]'\nparallel = 65", "flow.range", "step a: parallel must be a number from 1 to 64"},
		{top + "[[step]]\nid='a'\nask='x'", "flow.options", "step a: a question needs 1 to 20 options; change options"},
		{top + "[[step]]\nid='a'\nask='x'\noptions=['y','y']", "flow.option", `step a: the option "y" is empty, ` +
			"repeated, longer than 100 bytes, or has a space at its beginning or end; change it"},
		{top + one + "session = 'b'", "flow.unknown-step", "step a: session: there is no step b; correct its name"},
		{top + one + "[[step]]\nid='b'\ntext='x'\nsession='a'", "flow.not-needed",
			"step b: session: the step does not need a; add it to needs"},
		{top + one + "[[step]]\nid='b'\ntext='x'\nsession='a'\nneeds=['a']\nfor_each='[1]'", "flow.single-calls",
			"step b: session: both steps must be single calls; remove session or for_each"},
		{top + one + "[[step]]\nid='b'\ntext='x'\nsession='a'\nneeds=['a']\nprovider='p'", "flow.same-provider",
			`step b: session: a session stays with its provider, ""; remove provider`},
		{top + one + "when = 'steps.b.text'", "flow.unknown-step",
			"step a: when: there is no step b; correct its name: in {{ steps.b.text }}"},
		{top + one + "for_each = '1 +'", "flow.early-end",
			"step a: for_each: the expression ends too early; complete it: in {{ 1 + }}"},
		{top + one + "[[step]]\nid='b'\ntext='{{ steps.a.text }}'", "flow.not-needed",
			"step b: the step does not need a; add it to needs: in {{ steps.a.text }}"},
		{top + one + "[[step]]\nid='b'\nneeds=['a']\ntext='{{ steps.a.txt }}'", "flow.step-member", "step b: a step " +
			"has no txt; it has state, text, json, answer, error, run, items: in {{ steps.a.txt }}"},
		{in("inputs.x"), "flow.no-input",
			"step a: there is no input x; declare it with [inputs.x]: in {{ inputs.x }}"},
		{in("item"), "flow.item",
			"step a: item can be used only in the text of a step with for_each; add for_each: in {{ item }}"},
		{in("env.HOME"), "flow.no-variable",
			"step a: there is no env; there are inputs, steps, item and index: in {{ env.HOME }}"},
		{in(`exec("ls")`), "flow.no-function", "step a: there is no function exec; the functions are all, any, count, filter, " +
			"find, first, float, int, join, json, keys, last, len, lines, lower, map, none, split, string, sum, toJSON, " +
			`trim, upper: in {{ exec("ls") }}`},
		{in("#"), "flow.element", "step a: # and .name belong into the second argument of a function such as map; " +
			"move them: in {{ # }}"},
		{in("len()"), "flow.arguments", "step a: len has 0 arguments, and it takes 1 to 1: in {{ len() }}"},
		{in("steps"), "flow.bare-name", "step a: steps needs a name; write steps.NAME: in {{ steps }}"},
		{in("1 2"), "flow.unexpected",
			`step a: unexpected "2"; remove it, or write an operator before it: in {{ 1 2 }}`},
		{in("1 @"), "flow.unexpected",
			`step a: unexpected "@"; remove it, or write an operator before it: in {{ 1 @ }}`},
		{in("(1 2"), "flow.expected", `step a: expected ")" before 2; write it: in {{ (1 2 }}`},
		{in("(1"), "flow.expected-end", `step a: expected ")" at the end; write it: in {{ (1 }}`},
		{in("1 + ]"), "flow.expected-value", "step a: expected a value before ]; write one: in {{ 1 + ] }}"},
		{in("{1: 2}"), "flow.member-name", "step a: the name of a member must be a text: in {{ {1: 2} }}"},
		{in("steps.1"), "flow.expected-name", "step a: expected a name before 1; write one: in {{ steps.1 }}"},
		{in("1.2.3"), "flow.no-number", "step a: 1.2.3 is not a number: in {{ 1.2.3 }}"},
		{in(`"\q"`), "flow.escape", `step a: unknown escape \q; write \\ for a backslash: in {{ "\q" }}`},
		{top + one + "when = '\"x'", "flow.string-end",
			`step a: when: the string that begins with "x has no end; add its quote: in {{ "x }}`},
		{top + "[[step]]\nid = 'a'\ntext = '{{ inputs.x'", "flow.template-end", "step a: {{ inputs.x has no }}; add it"},
		{in(strings.Repeat("(", 200) + "1" + strings.Repeat(")", 200)), "flow.deep-expression", "step a: the expression " +
			"is nested more than 100 times; simplify it: in {{ " + strings.Repeat("(", 79) + "… }}"},
		{in(strings.Repeat("1+", 5000) + "1"), "flow.long-expression", "step a: the expression has 10001 bytes, and the " +
			"limit is 8192; shorten it: in {{ " + strings.Repeat("1+", 39) + "1… }}"},
		{top + one + "schema = 'none.json'", "message.no-entry", "step a: schema none.json: no such file or directory"},
		{top + "[[step]]\nid='a'\nflow='none.toml'", "message.no-entry", "step a: none.toml: no such file or directory"},
		{top + "[[step]]\nid='a'\nflow='.'", "flow.not-file", "step a: .: this is a folder or a device; name a file"},
		{top + "[[step]]\nid='a'\nflow='needs-input.toml'", "flow.input-needed",
			"step a: the flow needs needs the input base; give it"},
		{top + "[[step]]\nid='a'\nflow='needs-input.toml'\ninputs={more='x'}", "flow.other-input",
			"step a: the flow needs has no input more; correct its name"},
		{top + "[[step]]\nid='a'\nflow='self.toml'", "flow.nested-flows", "step a: self.toml: step a: self.toml: step a: " +
			"self.toml: step a: self.toml: step a: flows are nested more than 4 times; remove an inner flow"},
	}
}

// TestCheck checks that Load finds the mistakes in flow files, before a flow runs. Each mistake has a code, so the
// pages and the phones show it in their language.
func TestCheck(t *testing.T) {
	for _, c := range wrongFlows() {
		dir := t.TempDir()
		for name, text := range map[string]string{"f.toml": c.text, "self.toml": c.text,
			"needs-input.toml": "name = 'needs'\n[inputs.base]\n[[step]]\nid = 'a'\ntext = 'x'\n"} {
			writeFile(t, filepath.Join(dir, name), text)
		}
		path := filepath.Join(dir, "f.toml")
		_, err := Load(path)
		if err == nil {
			t.Errorf("%q is accepted", c.text)
			continue
		}
		got, found := strings.CutPrefix(err.Error(), path+": ")
		// The words after the line of a text that is not TOML are the decoder's.
		if !found || got != c.want && !(c.code == "flow.not-toml" && strings.HasPrefix(got, c.want)) {
			t.Errorf("%.80q: %q, want %q", c.text, got, c.want)
		}
		if code := string(message.CodeOf(err)); code != c.code {
			t.Errorf("%.80q has the code %q, want %q", c.text, code, c.code)
		}
	}
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestFiles checks files of editors on other systems, files at the limit of the size, and paths that have no file.
func TestFiles(t *testing.T) {
	dir := t.TempDir()
	const text = "name = 'f'\n[[step]]\nid = 'a'\ntext = 'x'\nwhen = '''\n1 ==\n1'''\n"
	const comment = "# "
	for name, c := range map[string]struct{ text, code string }{
		"mark":    {"\ufeff" + text, ""},
		"windows": {"\ufeff" + strings.ReplaceAll(text, "\n", "\r\n"), ""},
		"full":    {text + comment + strings.Repeat("x", maxFile-len(text)-len(comment)), ""},
		"large":   {text + comment + strings.Repeat("x", maxFile-len(text)-len(comment)+1), "flow.large-file"},
		"empty":   {"\ufeff", "flow.name"},
	} {
		path := filepath.Join(dir, name)
		writeFile(t, path, c.text)
		f, err := Load(path)
		if code := string(message.CodeOf(err)); code != c.code || (err == nil) != (c.code == "") {
			t.Errorf("%s: %v (%s)", name, err, code)
		}
		if err == nil { // the text on the log is read in the same way
			if _, err := parseAlone(f.Text); err != nil {
				t.Errorf("%s on the log: %v", name, err)
			}
		}
	}
	secret := filepath.Join(dir, "secret")
	writeFile(t, secret, text)
	if err := os.Chmod(secret, 0); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]message.Code{dir: "flow.not-file", os.DevNull: "flow.not-file",
		filepath.Join(dir, "none"): "message.no-entry", secret: "message.permission"} {
		if path == secret && os.Geteuid() <= 0 {
			continue // root and, on Windows, each user may read it
		}
		if _, err := Load(path); err == nil || message.CodeOf(err) != want || strings.Count(err.Error(), path) != 1 {
			t.Errorf("%s: %v, want the code %s", path, err, want)
		}
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
