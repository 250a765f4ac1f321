package acp

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/perlica/perlica/provider"
	"github.com/perlica/perlica/provider/exception"
)

// schema is a JSON schema with the members that the protocol's schemas use.
type schema struct {
	Ref        string             `json:"$ref"`
	Type       any                `json:"type"`
	Const      any                `json:"const"`
	Enum       []any              `json:"enum"`
	Properties map[string]*schema `json:"properties"`
	Items      *schema            `json:"items"`
	OneOf      []*schema          `json:"oneOf"`
	AnyOf      []*schema          `json:"anyOf"`
	AllOf      []*schema          `json:"allOf"`
	Method     string             `json:"x-method"`
	Side       string             `json:"x-side"`
	Defs       map[string]*schema `json:"$defs"`
}

func readSchema(t *testing.T, name string) map[string]*schema {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", "schema", name+".json.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var s schema
	if err := json.NewDecoder(z).Decode(&s); err != nil {
		t.Fatal(err)
	}
	return s.Defs
}

// instances returns documents of a schema. Each variant of each union occurs in one of them.
func instances(defs map[string]*schema, s *schema, depth int) []any {
	switch {
	case s == nil || depth > 8:
		return []any{nil}
	case s.Ref != "":
		return instances(defs, defs[strings.TrimPrefix(s.Ref, "#/$defs/")], depth+1)
	case s.Const != nil:
		return []any{s.Const}
	case s.Enum != nil:
		return s.Enum
	}
	var all []any
	for _, v := range append(slices.Clone(s.OneOf), s.AnyOf...) {
		all = append(all, instances(defs, v, depth+1)...)
	}
	parts := [][]any{}
	if len(all) > 0 {
		parts = append(parts, all)
	}
	for _, v := range s.AllOf {
		parts = append(parts, instances(defs, v, depth+1))
	}
	if len(s.Properties) > 0 {
		parts = append(parts, objects(defs, s, depth))
	}
	if len(parts) == 0 {
		return scalars(defs, s, depth)
	}
	return merged(parts)
}

// merged joins the first documents of all parts into one document, then the second ones, and so on. A shorter part
// begins again.
func merged(parts [][]any) (list []any) {
	n := 0
	for _, p := range parts {
		n = max(n, len(p))
	}
	for i := range n {
		object := map[string]any{}
		var other any
		for _, p := range parts {
			if m, ok := p[i%len(p)].(map[string]any); ok {
				maps.Copy(object, m)
			} else {
				other = p[i%len(p)]
			}
		}
		if other != nil && len(object) == 0 {
			list = append(list, other)
		} else {
			list = append(list, object)
		}
	}
	return list
}

func objects(defs map[string]*schema, s *schema, depth int) []any {
	var parts [][]any
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		var of []any
		for _, v := range instances(defs, s.Properties[name], depth+1) {
			of = append(of, map[string]any{name: v})
		}
		parts = append(parts, of)
	}
	return merged(parts)
}

func scalars(defs map[string]*schema, s *schema, depth int) []any {
	kind, _ := s.Type.(string)
	if list, ok := s.Type.([]any); ok && len(list) > 0 {
		kind, _ = list[0].(string)
	}
	switch kind {
	case "string":
		return []any{"a \"text\" \u2028 €\U0001F600"}
	case "integer":
		return []any{json.Number("9007199254740993")}
	case "number":
		return []any{json.Number("1.10")}
	case "boolean":
		return []any{true}
	case "array":
		return []any{instances(defs, s.Items, depth+1)}
	case "null":
		return []any{nil}
	}
	return []any{map[string]any{"any": []any{json.Number("1e400"), nil, "x"}}}
}

// lines returns messages of a schema to one side: "agent" or "client".
func lines(t *testing.T, name, side, session, dir string) (list []string) {
	t.Helper()
	defs := readSchema(t, name)
	for _, def := range slices.Sorted(maps.Keys(defs)) {
		s := defs[def]
		if s.Method == "" || s.Side != side && s.Side != "both" && s.Side != "protocol" ||
			strings.HasSuffix(def, "Response") {
			continue
		}
		for i, params := range instances(defs, s, 0) {
			object, ok := params.(map[string]any)
			if !ok {
				continue
			}
			if _, ok := object["sessionId"]; ok {
				object["sessionId"] = session
			}
			if _, ok := object["cwd"]; ok {
				object["cwd"] = dir
			}
			id := ""
			if strings.HasSuffix(def, "Request") {
				id = fmt.Sprintf(`"id" : "%s-%s-%d",`, name, def, i)
			}
			list = append(list, fmt.Sprintf(`{"jsonrpc":"2.0",%s"method":%q, "params":%s}`, id, s.Method, js(object)))
		}
	}
	return list
}

var schemas = []string{"v1.schema", "v1.schema.unstable", "v2.schema", "v2.schema.unstable"}

// TestCorpusFromAgent checks that every message of the protocol's schemas, and invented ones, reach
// the client unchanged.
func TestCorpusFromAgent(t *testing.T) {
	w := newWorld(t, nil, nil)
	s := w.session("one")
	var want []string
	for _, name := range schemas {
		want = append(want, lines(t, name, "client", s, w.path("one"))...)
	}
	want = append(want,
		`{"jsonrpc":"2.0","method":"_vendor/invented","params":{"sessionId":"`+s+`","a":1,"a":2,"\u0061":"\ud800"}}`,
		`{"method":"session/update","params":{"update":{"sessionUpdate":"never_heard_of","n":123456789012345678901234567890},"sessionId":"`+s+`"},"jsonrpc":"2.0","x":{}}`,
		"{\"jsonrpc\":\"2.0\",\"method\":\"x\",\"params\":[\"\u202e\ufeff\u0085\"]}",
	)
	script, passed := "", []string{}
	for _, line := range want {
		m := provider.ParseMessage([]byte(line))
		if does := exception.Of(exception.Agent, m.Method).Does; does != "" && does != exception.Elicits {
			continue // exceptions with their own tests
		}
		script += "@line " + strings.ReplaceAll(line, `\`, `\\`) + "\n"
		passed = append(passed, line)
	}
	if len(passed) < 100 {
		t.Fatalf("only %d lines", len(passed))
	}
	m, before := w.until(w.prompt(s, script))
	if m.Error != nil {
		t.Fatal(m.line)
	}
	var got []string
	for _, m := range before {
		got = append(got, m.line)
	}
	if !slices.Equal(got, passed) {
		t.Errorf("%d lines of %d arrived; the first that differs: %s", len(got), len(passed), firstDifference(got, passed))
	}
	recorded := map[string]bool{}
	for _, e := range append(w.events("one"), w.events("home")...) {
		recorded[string(e.Payload)] = true
	}
	for _, line := range passed {
		if !recorded[line] {
			t.Fatalf("not on record as it came: %s", line)
		}
	}
}

func firstDifference(a, b []string) string {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return fmt.Sprintf("\n got %s\nwant %s", a[i], b[i])
		}
	}
	return "one has more"
}

// TestCorpusFromClient checks that the client's messages reach the agent unchanged, apart from the
// exceptions.
func TestCorpusFromClient(t *testing.T) {
	w := newWorld(t, nil, nil)
	s := w.session("one")
	var want []string
	for _, name := range schemas {
		for _, line := range lines(t, name, "agent", s, w.path("one")) {
			m := provider.ParseMessage([]byte(line))
			if m.Method == "initialize" || blocked(m) != "" {
				continue // exceptions with their own tests
			}
			want = append(want, line)
		}
	}
	want = append(want,
		`{"jsonrpc":"2.0","method":"_vendor/invented","params":{"sessionId":"`+s+`","a":1,"a":2,"\u0061":"\ud800"}}`,
		`{"jsonrpc":"2.0" , "id":9007199254740993,"method":"_vendor/asked","params":[1e400]}`)
	for _, line := range want {
		w.send(line)
		if m := provider.ParseMessage([]byte(line)); m.ID != "" {
			w.until(m.ID)
		}
	}
	w.until(w.request("_vendor/last", map[string]string{}))
	read := w.agentRead()
	i := 0
	for _, line := range want {
		for i < len(read) && read[i] != line {
			i++
		}
		if i == len(read) {
			t.Fatalf("the agent did not get, in its place: %s", line)
		}
	}
}

// TestHugeLines checks that lines of 30 MiB pass in both directions.
func TestHugeLines(t *testing.T) {
	if testing.Short() {
		t.Skip("the agent takes seconds for them")
	}
	w := newWorld(t, nil, nil)
	s := w.session("one")
	_, before := w.until(w.prompt(s, "@stream 1 31457280"))
	if len(before) != 1 || len(before[0].line) < 30<<20 {
		t.Errorf("%d lines", len(before))
	}
	huge := strings.Repeat("x", 30<<20)
	m, _ := w.until(w.prompt(s, "@unset x\n"+huge))
	if m.Result.StopReason != "end_turn" {
		t.Error(m.line[:100])
	}
	if read := w.agentRead(); len(read[len(read)-1]) < len(huge) {
		t.Errorf("the agent got %d bytes", len(read[len(read)-1]))
	}
}
