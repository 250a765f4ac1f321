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

// httpPage is the page of the documentation. Its end is generated from openapi.json.
const httpPage = "../../docs/http.md"

// kindsOfProblems lists every kind of problem.
var kindsOfProblems = []kind{
	badRequest, unauthorized, forbidden, foreignOrigin, notFound, badMethod, inputDiffers, questionClosed, questionOther,
	sessionBusy,
	runOver, whichContext, logUnknown, logReplaced, tooLarge, mediaType, misdirected, unfit, wordNeeded, alwaysNeeded,
	budgetUsedUp, tooMany, internal,
	configuration, logFailed, stoppingNow, upgrade,
}

// TestHTTPPage compares the end of docs/http.md with the routes of openapi.json and with the kinds of problems.
func TestHTTPPage(t *testing.T) {
	text, err := os.ReadFile(httpPage)
	check(t, err)
	const begins = "## Problems\n"
	head, end, _ := strings.Cut(string(text), begins)
	var b strings.Builder
	b.WriteString(
		"\n<!-- The rest of this page comes from openapi.json: go test ./service/web -run TestHTTPPage -update -->\n\n")
	b.WriteString("| type | status | title |\n|---|---|---|\n")
	for _, k := range kindsOfProblems {
		fmt.Fprintf(&b, "| <a id=\"%s\"></a>`docs/http.md#%s` | %d | %s |\n", k.name, k.name, k.status, k.title)
	}
	var doc object
	check(t, json.Unmarshal(description, &doc))
	paths := doc["paths"].(object)
	for _, tag := range items(doc, "tags") {
		fmt.Fprintf(&b, "\n## %s\n\n| route | |\n|---|---|\n", tag["description"])
		for _, path := range slices.Sorted(maps.Keys(paths)) {
			for _, method := range []string{"get", "post"} {
				if op, ok := paths[path].(object)[method].(object); ok && op["tags"].([]any)[0] == tag["name"] {
					fmt.Fprintf(&b, "| `%s %s` | %s. |\n", strings.ToUpper(method), path, op["summary"])
				}
			}
		}
	}
	if *update {
		check(t, os.WriteFile(httpPage, []byte(head+begins+b.String()), 0o600))
	} else if end != b.String() {
		t.Error("docs/http.md is out of date: go test ./service/web -run TestHTTPPage -update")
	}
}

var fenced = regexp.MustCompile("(?s)```(sh|python|go)\n(.*?)```")

// TestExamples runs the programs of docs/http.md against a server.
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
