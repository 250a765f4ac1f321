//go:build linux

package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// object is a decoded JSON object.
type object = map[string]any

// printed runs a command and decodes the JSON that it prints.
func (w *world) printed(args ...string) (v any) {
	w.t.Helper()
	j := w.run(args...)
	j.exits(0)
	if err := json.Unmarshal([]byte(j.stdout.String()), &v); err != nil {
		w.t.Fatalf("%q prints %.200q: %v", args, j.stdout.String(), err)
	}
	return v
}

// TestRecordOverHTTP checks that the commands that answer from the record and the HTTP API give the same results for
// one log: changes, blame, policy try, policy suggest and report.
func TestRecordOverHTTP(t *testing.T) {
	w := newWorld(t)
	const first, second, third = "Rain falls on the hills.", "The river rises slowly.", "The lake is full of water."
	edit := func(prompt string, lines ...string) {
		t.Helper()
		w.run("run", "-q", "--permissions", "allow", prompt).exits(0)
		text := strings.Join(lines, "\n") + "\n"
		if err := os.WriteFile(filepath.Join(w.project, "notes.txt"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	edit(`@ask edit "Write" path=notes.txt new="`+first+`\n`+second+`\n"`, first, second, "By hand.")
	edit(`@tool edit "Change" path=notes.txt old="`+second+`\n" new="`+third+`\n"`, first, third, "By hand.")
	for _, q := range [][2]string{{"allow", "go test ./..."}, {"allow", "go vet ./a"}, {"deny", "git push origin main"}} {
		asking := w.start("run", "-q", "--wait-permissions", "10m", `@ask execute Run command="`+q[1]+`"`)
		var id string
		for _, id = range w.openIDs(1) {
		}
		w.run("pending", q[0], id).exits(0)
		asking.wait()
	}
	w.run("run", "-q", `@ask execute Build command="make"`).exits(5) // nobody is there to ask

	server, at := w.webServer()
	made := w.run("web", "token", "program", "--rights", "read")
	made.exits(0)
	token := strings.TrimSpace(made.stdout.String())
	answer := func(method, path string, body any) string {
		t.Helper()
		res := w.asks(t.Context(), token, method, at+path, body, "")
		defer res.Body.Close()
		b, err := io.ReadAll(res.Body)
		if err != nil || res.StatusCode != http.StatusOK {
			t.Fatalf("%s: %d %.200s %v", path, res.StatusCode, b, err)
		}
		return string(b)
	}
	decoded := func(method, path string, body any) (o object) {
		t.Helper()
		if err := json.Unmarshal([]byte(answer(method, path, body)), &o); err != nil {
			t.Fatal(err)
		}
		for _, own := range []string{"project", "context", "unreadable", "toml", "first", "total"} {
			delete(o, own) // members of the HTTP API alone
		}
		return o
	}
	same := func(what string, http, command any) {
		t.Helper()
		if !reflect.DeepEqual(http, command) {
			t.Errorf("%s: over HTTP\n%v\nby the command\n%v", what, http, command)
		}
	}
	here := "project=" + url.QueryEscape(w.project)

	changes := w.printed("changes", "--json", "--diff").([]any)
	if len(changes) != 2 {
		t.Errorf("%d changes", len(changes))
	}
	slices.Reverse(changes) // the command lists the newest last
	same("changes", decoded("GET", "/v1/changes?diff=true&"+here, nil)["changes"], changes)

	// Over HTTP, only the changes that a line names are listed. Here a line names each change.
	blame := w.printed("blame", "--json", "notes.txt").(object)
	if lines := blame["lines"].([]any); len(lines) != 3 || len(blame["changes"].([]any)) != 2 ||
		lines[0].(object)["change"] == lines[1].(object)["change"] || lines[2].(object)["change"] != -1.0 {
		t.Errorf("blame: %v", blame)
	}
	same("blame", decoded("GET", "/v1/blame?path=notes.txt&"+here, nil), blame)

	rules := []string{"deny go vet ...", "allow git push ...", "allow make ..."}
	try := w.printed(append([]string{"policy", "try", "--json"}, rules...)...).(object)
	if try["saved"] != 3.0 || try["against"] != 1.0 {
		t.Errorf("policy try: %v", try)
	}
	tried := decoded("POST", "/v1/policy/try", object{"project": w.project, "rules": rules})
	for _, o := range []object{try, tried} { // the two have different orders
		slices.SortFunc(o["list"].([]any), func(a, b any) int {
			return strings.Compare(a.(object)["run_id"].(string), b.(object)["run_id"].(string))
		})
	}
	same("policy try", tried, try)

	suggest := w.printed("policy", "suggest", "--json").(object)
	if suggest["answered"] != 3.0 {
		t.Errorf("policy suggest: %v", suggest)
	}
	same("policy suggest", decoded("GET", "/v1/policy/suggest?"+here, nil), suggest)

	report := w.run("report", "-o", "-")
	report.exits(0)
	if got := answer("GET", "/v1/report?"+here, nil); got != report.stdout.String() || len(got) < 10_000 {
		t.Errorf("the report over HTTP has %d bytes, the one of the command has %d", len(got), len(report.stdout.String()))
	}
	server.signal(syscall.SIGTERM)
	server.exits(0)
}
