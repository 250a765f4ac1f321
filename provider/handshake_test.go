package provider_test

import (
	"encoding/json"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/coder/acp-go-sdk"

	"github.com/perlica/perlica/provider"
)

// needed lists the required member of an answer, by method.
var needed = map[string]string{acp.AgentMethodSessionNew: "sessionId"}

// fullAnswers are answers with every member of the schema.
var fullAnswers = map[string]string{
	acp.AgentMethodInitialize: `{"protocolVersion":1,"agentInfo":{"name":"a","title":"A","version":"1"},"agentCapabilities":{"loadSession":true,"auth":{"logout":{}},` +
		`"promptCapabilities":{"image":true,"audio":false,"embeddedContext":true},"mcpCapabilities":{"http":true,"sse":false},` +
		`"sessionCapabilities":{"list":{},"resume":{},"close":{},"delete":{},"fork":{},"additionalDirectories":{},"systemPrompt":{}}},` +
		`"authMethods":[` + goodLogin +
		`,{"id":"t","name":"T","type":"terminal","args":["x"],"env":{"A":"b"}},{"id":"e","name":"E","type":"env_var","vars":[{"name":"K","label":"L","secret":true,"optional":false}]}],"_meta":{"a":[1]}}`,
	acp.AgentMethodSessionNew: `{"sessionId":"s","modes":{"currentModeId":"ask","availableModes":[` + goodMode +
		`,{"id":"b","name":"B","description":"d"}]},` +
		`"models":{"currentModelId":"m","availableModels":[{"modelId":"m","name":"M"}]},` +
		`"configOptions":[` + goodOption +
		`,{"id":"fast","name":"F","description":"d","type":"boolean","currentValue":true},` +
		`{"id":"g","name":"G","type":"select","category":"mode","currentValue":"v","options":[{"group":"x","name":"X","options":[{"value":"v","name":"V","description":"d"}]}]}],"_meta":{}}`,
	acp.AgentMethodSessionList: `{"sessions":[{"sessionId":"a","cwd":"/x","title":"T","updatedAt":"2026-11-24T00:00:00Z","additionalDirectories":["/y"],"_meta":{}}],"nextCursor":"2"}`,
}

// odd are values that an agent may write instead of any other value.
var odd = []string{`null`, `true`, `-1`, `1.5`, `1e999`, `18446744073709551616`, `""`, `"x"`, `[]`, `{}`, `[null]`,
	`[[1]]`, `[{}]`, `{"":[{}]}`, `"\ud800"`}

// variants yields v as JSON texts in which one value is replaced with an odd value, doubled or removed.
func variants(v any, odd []string, whole func(string) string, yield func(text string)) {
	for _, o := range odd {
		yield(whole(o))
	}
	switch v := v.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			rest := maps.Clone(v)
			delete(rest, key)
			yield(whole(plain(rest)))
			variants(v[key], odd, func(text string) string {
				others := strings.TrimPrefix(plain(rest), "{")
				if others != "}" {
					others = "," + others
				}
				return whole("{" + plain(key) + ":" + text + others)
			}, yield)
		}
	case []any:
		yield(whole(plain(append(slices.Clone(v), v...))))
		for i, item := range v {
			variants(item, odd, func(text string) string {
				var items []string
				for j, other := range v {
					if items = append(items, plain(other)); j == i {
						items[j] = text
					}
				}
				return whole("[" + strings.Join(items, ",") + "]")
			}, yield)
		}
	}
}

func plain(v any) string { return string(must(json.Marshal(v))) }

// answersOfAgents returns the recorded answers of real agents before a prompt, by method.
func answersOfAgents(t testing.TB) map[string][]string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("testdata", "frames", "*_text.ndjson"))
	if err != nil || len(paths) < 3 {
		t.Fatalf("got %v, %v; want err == nil && len(paths) >= 3", paths, err)
	}
	answers := map[string][]string{}
	for method, text := range fullAnswers {
		answers[method] = []string{text}
	}
	answers[acp.AgentMethodSessionLoad] = answers[acp.AgentMethodSessionNew]
	for _, path := range paths {
		methods := map[string]string{}
		for _, l := range must(readRecording(path)) {
			env := provider.ParseMessage(l.Line)
			switch {
			case l.From == "client":
				methods[env.Key] = env.Method
			case env.Kind == provider.Response && env.Result != nil && provider.Handshake[methods[env.Key]] != nil:
				answers[methods[env.Key]] = append(answers[methods[env.Key]], string(env.Result))
			}
		}
	}
	return answers
}

// shakes reads an answer. It fails the test if the answer has its needed members and still cannot be used, or
// if a part was dropped without a warning.
func shakes(t *testing.T, method, text string) {
	t.Helper()
	w := &watcher{}
	answer := provider.ParseMessage([]byte(`{"jsonrpc":"2.0","id":1,"result":` + text + `}`))
	got, err := provider.Handshake[method](provider.Unconnected(w), answer)
	var top map[string]json.RawMessage
	usable := needed[method] == ""
	if json.Unmarshal([]byte(text), &top) == nil && !usable {
		value, there := top[needed[method]]
		var s string
		usable = !there || json.Unmarshal(value, &s) == nil
	}
	var said struct{ ProtocolVersion any }
	_ = json.Unmarshal([]byte(text), &said)
	version, stated := said.ProtocolVersion.(float64)
	if s, ok := said.ProtocolVersion.(string); ok {
		n, err := strconv.ParseFloat(s, 64)
		version, stated = n, err == nil
	}
	if method == acp.AgentMethodInitialize && stated && version != 1 {
		usable = false
	}
	if (err == nil) != usable && (usable || top != nil) {
		t.Fatalf("%s: %s: %v", method, text, err)
	}
	if err != nil {
		return
	}
	if s, ok := got.(*provider.Session); ok {
		got = []any{s.ID, s.Modes, s.Options, s.ModeOption}
		for _, o := range s.Options {
			if o.Select == nil && o.Boolean == nil {
				t.Fatalf("%s: %s: an option that is none", method, text)
			}
		}
	}
	if _, err := json.Marshal(got); err != nil {
		t.Fatalf("%s: got %s: %v; want err == nil", method, text, err)
	}
	strict := map[string]any{acp.AgentMethodInitialize: &acp.InitializeResponse{},
		acp.AgentMethodSessionList: &acp.ListSessionsResponse{}}[method]
	if strict == nil {
		strict = &provider.Offer{}
	}
	warned := slices.DeleteFunc(w.warned(), func(w string) bool { return w == "protocol_version" })
	if json.Unmarshal([]byte(text), strict) != nil && len(warned) != 1 || len(warned) > 1 {
		t.Fatalf("%s: %s: warnings %v", method, text, warned)
	}
}

// TestOddAnswers checks that any single value of an answer before a prompt may have any form. The rest of the answer is
// used, and a warning names the bad part. The answers come from real agents and from the full schema.
func TestOddAnswers(t *testing.T) {
	tried := 0
	for method, texts := range answersOfAgents(t) {
		for i, text := range texts {
			var v any
			if err := json.Unmarshal([]byte(text), &v); err != nil {
				t.Fatal(err)
			}
			values := odd
			if i > 0 { // a real agent's answer is long
				values = []string{`-1`, `[{}]`}
			}
			shakes(t, method, text)
			variants(v, values, func(s string) string { return s }, func(text string) {
				tried++
				if !testing.Short() || tried%8 == 0 {
					shakes(t, method, text)
				}
			})
		}
	}
	if tried < 3000 {
		t.Errorf("%d variants", tried)
	}
}

// FuzzHandshake is TestOddAnswers for any JSON text.
func FuzzHandshake(f *testing.F) {
	methods := slices.Sorted(maps.Keys(provider.Handshake))
	for i, method := range methods {
		for _, text := range answersOfAgents(f)[method] {
			f.Add(uint8(i), text)
		}
	}
	f.Add(uint8(2), `{"sessionId":"s","configOptions":[{"type":"x"},null,`+goodOption+`],"MODES":7,"modes":null}`)
	f.Add(uint8(0),
		`{"protocolVersion":1,"agentInfo":3,"agentCapabilities":{"loadSession":{},"sessionCapabilities":[]},"authMethods":{"a":[]}}`)
	f.Fuzz(func(t *testing.T, i uint8, text string) {
		var v map[string]any
		if json.Unmarshal([]byte(text), &v) != nil {
			t.Skip()
		}
		for key := range v {
			if name := needed[methods[int(i)%len(methods)]]; name != key && strings.EqualFold(name, key) || v == nil {
				t.Skip() // the decoder may choose either of two such members
			}
		}
		shakes(t, methods[int(i)%len(methods)], text)
	})
}
