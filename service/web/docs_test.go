package web

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// httpPage is the page of the documentation with an end that is generated from the description.
const httpPage = "../../docs/http.md"

// kindsOfProblems lists all kinds of problems.
var kindsOfProblems = []kind{
	badRequest, unauthorized, forbidden, foreignOrigin, notFound, badMethod, inputDiffers, questionClosed, questionOther, sessionBusy,
	runOver, whichContext, logUnknown, logReplaced, tooLarge, mediaType, misdirected, unfit, wordNeeded, alwaysNeeded, tooMany, internal,
	configuration, logFailed, stoppingNow, upgrade,
}

// TestHTTPPage checks that docs/http.md lists every route and every kind of problem.
func TestHTTPPage(t *testing.T) {
	text, err := os.ReadFile(httpPage)
	check(t, err)
	const begins = "## Problems\n"
	head, end, _ := strings.Cut(string(text), begins)
	var b strings.Builder
	b.WriteString("\n<!-- From here on go test ./service/web -run TestHTTPPage -update writes what openapi.json says. -->\n\n")
	b.WriteString("| type | status | title |\n|---|---|---|\n")
	for _, k := range kindsOfProblems {
		fmt.Fprintf(&b, "| <a id=\"%s\"></a>`docs/http.md#%s` | %d | %s |\n", k.name, k.name, k.status, k.title)
	}
	var doc object
	check(t, json.Unmarshal(description, &doc))
	for _, tag := range items(doc, "tags") {
		fmt.Fprintf(&b, "\n## %s\n", tag["description"])
		paths := doc["paths"].(object)
		for _, path := range slices.Sorted(maps.Keys(paths)) {
			for _, method := range []string{"get", "post"} {
				if op, ok := paths[path].(object)[method].(object); ok && op["tags"].([]any)[0] == tag["name"] {
					writeRoute(&b, doc, strings.ToUpper(method), path, op)
				}
			}
		}
	}
	b.WriteString("\n## Objects\n")
	schemas := doc["components"].(object)["schemas"].(object)
	for _, name := range slices.Sorted(maps.Keys(schemas)) {
		writeSchema(&b, name, schemas[name].(object))
	}
	if *update {
		check(t, os.WriteFile(httpPage, []byte(head+begins+b.String()), 0o600))
	} else if end != b.String() {
		t.Error("docs/http.md is out of date: go test ./service/web -run TestHTTPPage -update")
	}
}

// resolve follows a reference.
func resolve(doc, o object) object {
	ref, ok := o["$ref"].(string)
	if !ok {
		return o
	}
	at := doc
	for part := range strings.SplitSeq(strings.TrimPrefix(ref, "#/"), "/") {
		at = at[part].(object)
	}
	return at
}

func writeRoute(b *strings.Builder, doc object, method, path string, op object) {
	fmt.Fprintf(b, "\n### %s %s\n\n%s.\n", method, path, op["summary"])
	if text, ok := op["description"].(string); ok {
		fmt.Fprintf(b, "\n%s\n", strings.TrimSpace(text))
	}
	if list := items(op, "parameters"); len(list) > 0 {
		b.WriteString("\n| parameter | in | |\n|---|---|---|\n")
		for _, p := range list {
			p = resolve(doc, p)
			what, _ := p["description"].(string)
			if p["required"] == true && p["in"] != "path" {
				what = "Required. " + what
			}
			fmt.Fprintf(b, "| `%s` | %s | %s |\n", p["name"], p["in"], cell(what))
		}
	}
	if body, ok := op["requestBody"].(object); ok {
		fmt.Fprintf(b, "\nIts body: %s.\n", contents(body))
	}
	responses := op["responses"].(object)
	for _, status := range slices.Sorted(maps.Keys(responses)) {
		switch r := resolve(doc, responses[status].(object)); {
		case status == "default", status == "4XX":
		case r["content"] == nil:
			fmt.Fprintf(b, "\n%s: %s\n", status, r["description"])
		default:
			fmt.Fprintf(b, "\n%s: %s %s.\n", status, r["description"], contents(r))
		}
	}
}

// contents describes a body.
func contents(of object) string {
	var list []string
	content := of["content"].(object)
	for _, kind := range slices.Sorted(maps.Keys(content)) {
		schema := content[kind].(object)["schema"].(object)
		list = append(list, fmt.Sprintf("`%s`%s", kind, named(schema, ": ")))
	}
	return strings.Join(list, ", or ")
}

// named returns the referenced schema as a link after a text.
func named(schema object, ahead string) string {
	ref, ok := schema["$ref"].(string)
	if !ok {
		return ""
	}
	name := ref[strings.LastIndex(ref, "/")+1:]
	return fmt.Sprintf("%s[%s](#%s)", ahead, name, strings.ToLower(name))
}

func writeSchema(b *strings.Builder, name string, schema object) {
	fmt.Fprintf(b, "\n### %s\n", name)
	if text, ok := schema["description"].(string); ok {
		fmt.Fprintf(b, "\n%s\n", strings.TrimSpace(text))
	}
	if values, ok := schema["enum"].([]any); ok {
		fmt.Fprintf(b, "\nOne of %s.\n", code(values))
	}
	members, _ := schema["properties"].(object)
	if len(members) == 0 {
		return
	}
	required, _ := schema["required"].([]any)
	b.WriteString("\n| member | type | |\n|---|---|---|\n")
	for _, member := range slices.Sorted(maps.Keys(members)) {
		one := members[member].(object)
		what, _ := one["description"].(string)
		if !slices.Contains(required, any(member)) {
			what = "May be absent. " + what
		}
		fmt.Fprintf(b, "| `%s` | %s | %s |\n", member, typeOf(one), cell(what))
	}
}

// typeOf returns a member's type in words.
func typeOf(schema object) string {
	if link := named(schema, ""); link != "" {
		return link
	}
	if values, ok := schema["enum"].([]any); ok {
		return code(values)
	}
	if of, ok := schema["items"].(object); ok {
		return "list of " + typeOf(of)
	}
	if list, ok := schema["oneOf"].([]any); ok {
		var all []string
		for _, one := range list {
			all = append(all, typeOf(one.(object)))
		}
		return strings.Join(all, " or ")
	}
	switch kind := schema["type"].(type) {
	case string:
		if format, ok := schema["format"].(string); ok && format == "date-time" {
			return "time"
		}
		return kind
	case []any:
		return strings.Trim(strings.ReplaceAll(fmt.Sprint(kind), " ", " or "), "[]")
	}
	return "any"
}

func code(values []any) string {
	var list []string
	for _, v := range values {
		list = append(list, fmt.Sprintf("`%q`", v))
	}
	return strings.Join(list, ", ")
}

// cell escapes a text for a table.
func cell(s string) string {
	return strings.TrimSpace(strings.ReplaceAll(strings.ReplaceAll(s, "\n", " "), "|", "\\|"))
}

var fenced = regexp.MustCompile("(?s)```(sh|python|go)\n(.*?)```")

// TestExamples checks that the programs in docs/http.md do what the page promises.
func TestExamples(t *testing.T) {
	text, err := os.ReadFile(httpPage)
	check(t, err)
	w := newWorld(t, 1)
	runners := map[string]struct {
		file string
		argv []string
		want string
	}{
		"sh":     {"example.sh", []string{"sh"}, `"state":"ended"`},
		"python": {"example.py", []string{"python3"}, "responded"},
		"go":     {"main.go", []string{"go", "run"}, "200 OK ended"},
	}
	needs := map[string]string{"sh": "curl", "python": "python3", "go": "go"}
	found := 0
	for _, m := range fenced.FindAllStringSubmatch(string(text), -1) {
		r := runners[m[1]]
		found++
		t.Run(m[1], func(t *testing.T) {
			if _, err := exec.LookPath(needs[m[1]]); err != nil {
				t.Skip("there is no " + needs[m[1]])
			}
			file := filepath.Join(t.TempDir(), r.file)
			check(t, os.WriteFile(file, []byte(m[2]), 0o600))
			cmd := exec.CommandContext(t.Context(), r.argv[0], append(slices.Clone(r.argv[1:]), file)...)
			cmd.Env = append(os.Environ(), "PERLICA_URL="+w.http.URL, "PERLICA_TOKEN="+w.token, "PROJECT="+w.dirs[0])
			out, err := cmd.CombinedOutput()
			if err != nil || !strings.Contains(string(out), r.want) || !strings.Contains(string(out), "hello") {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
	if found != len(runners) {
		t.Errorf("%d examples", found)
	}
}
