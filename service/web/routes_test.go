package web

import (
	"flag"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/perlica/perlica/service/access"
)

var update = flag.Bool("update", false, "rewrite docs/http.md")

// TestDescriptionIsLinted checks openapi.json with an independent linter; testdata/lint names its
// version.
func TestDescriptionIsLinted(t *testing.T) {
	name, err := filepath.Abs("openapi.json")
	check(t, err)
	cmd := exec.CommandContext(t.Context(), "npx", "--no-install", "redocly", "lint", "--config", "redocly.yaml", name)
	cmd.Dir = filepath.Join("testdata", "lint")
	if _, err := os.Stat(filepath.Join(cmd.Dir, "node_modules")); err != nil || cmd.Err != nil {
		t.Skip("NOT TESTED: openapi.json by a linter: run npm ci in testdata/lint")
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// TestRoutes checks that routes and descriptions correspond. Each route answers as described,
// before and after a first run, with its own right and with no other.
func TestRoutes(t *testing.T) {
	w := newWorld(t, 2)
	at := "?project=" + url.QueryEscape(w.dirs[0])
	w.do("GET", "/v1/contexts", nil).want(200)
	w.do("GET", "/v1/runs", nil).want(200)
	sent := w.do("POST", "/v1/inputs", object{"project": w.dirs[0], "text": "@say Hello", "wait": true}).want(200).object()
	run, session := sent["run_id"].(string), sent["session_id"].(string)
	if sent["result"].(object)["text"] != "Hello" || sent["state"] != "ended" {
		t.Errorf("%v", sent)
	}
	open := map[string]bool{"/healthz": true}
	for _, path := range []string{
		"/v1/self", "/v1/push", "/v1/contexts", "/v1/providers" + at, "/v1/sessions", "/v1/sessions/" + session, "/v1/runs",
		"/v1/runs?state=open",
		"/v1/runs/" + run, "/v1/runs/" + run + "/story", "/v1/questions", "/v1/search?q=hello",
		"/v1/search?q=hello&kind=answer",
		"/v1/changes" + at, "/v1/policy/suggest" + at, "/v1/policy/suggest", "/v1/stats", "/v1/verify" + at, "/v1/proofs/1" + at, "/v1/report" + at,
		"/v1/flows" + at, "/v1/flow-runs", "/metrics", "/readyz", "/openapi.json", "/healthz",
	} {
		w.do("GET", path, nil).want(200)
		if !open[path] {
			w.do("GET", path, nil, without).problem(unauthorized)
		}
	}
	page := w.do("GET", "/v1/events?after=0", nil, json_).want(200).object()
	if n := len(items(page, "events")); n < 4 || page["more"] != false {
		t.Errorf("%d events: %v", n, page)
	}
	story := w.do("GET", "/v1/runs/"+run+"/story", nil).object()
	var kinds []string
	for _, step := range items(story, "steps") {
		kinds = append(kinds, step["kind"].(string))
	}
	if got := strings.Join(kinds, " "); !strings.HasPrefix(got, "input") || !strings.Contains(got, "said") ||
		!strings.HasSuffix(got, "outcome") && !strings.HasSuffix(got, "note") {
		t.Errorf("the story is %q", got)
	}
	for _, path := range []string{"/v1/runs/none", "/v1/sessions/none", "/v1/questions/none", "/v1/nothing",
		"/v1/proofs/900" + at, "/page.js"} {
		w.do("GET", path, nil).want(404)
	}
	if p := w.do("GET", "/v1/proofs/900"+at, nil).problem(notFound); p.Detail != `the log has no event "900"` {
		t.Errorf("%q", p.Detail)
	}
	for _, path := range []string{"/v1/runs?stat=open", "/v1/runs?limit=0", "/v1/runs?page=x", "/v1/verify",
		"/v1/report?zone=x", "/v1/proofs/1", "/v1/providers", "/v1/flows", "/v1/flow-runs?limit=0",
		"/v1/events?after=x", "/v1/search"} {
		w.do("GET", path, nil).problem(badRequest)
	}
	w.do("POST", "/v1/contexts", object{}).problem(badMethod)
	w.do("GET", "/v1/inputs", nil).problem(badMethod)
}

// TestReport checks that a report is a file to be saved, without secrets, and that its parameters count.
func TestReport(t *testing.T) {
	w := newWorld(t, 1)
	path := "/v1/report?project=" + url.QueryEscape(w.dirs[0])
	w.do("GET", path, nil).want(http.StatusNotFound)
	// The checkpoint follows the answer, and precedes the next answer.
	for _, text := range []string{"@say AKIAIOSFODNN7EXAMPLE", "@say Hello"} {
		w.do("POST", "/v1/inputs", object{"project": w.dirs[0], "text": text, "wait": true}).want(200)
	}
	got := w.do("GET", path, nil).want(200)
	kind, to := got.header.Get("Content-Type"), got.header.Get("Content-Disposition")
	if kind != "text/html; charset=utf-8" || to != `attachment; filename="report.html"` {
		t.Errorf("a report is %s, %s", kind, to)
	}
	if text := string(got.body); strings.Contains(text, "AKIAIOSFODNN7EXAMPLE") ||
		!strings.Contains(text, "<p>No input was sent twice: ") {
		t.Errorf("the report shows a secret, or does not count the calls: %.200s", text)
	}
	for _, none := range []string{"&session=none", "&before=2020-01-01T00:00:00Z", "&since=2100-01-01T00:00:00Z"} {
		got := w.do("GET", path+none, nil).want(http.StatusUnprocessableEntity)
		if !strings.Contains(string(got.body), "the log has no event in this period") {
			t.Errorf("with %s: %s", none, got.body)
		}
	}
	// A report takes the turn of a verification. During one, it waits until the server stops.
	w.server.verifying <- struct{}{}
	w.server.Stop()
	w.do("GET", path, nil).want(http.StatusServiceUnavailable)
	<-w.server.verifying
}

// without removes the credential.
func without(r *http.Request) { r.Header.Del("Authorization") }

// json_ asks for JSON.
func json_(r *http.Request) { r.Header.Set("Accept", "application/json") }

// TestRights checks that a route requires its own right and accepts no other.
func TestRights(t *testing.T) {
	w := newWorld(t, 1)
	all := []access.Right{access.Read, access.Ask, access.Approve, access.Admin}
	tokens := map[access.Right]string{}
	for _, r := range all {
		tokens[r] = w.newToken(string(r), r)
	}
	for _, rt := range []struct {
		method, path string
		right        access.Right
	}{
		{"GET", "/v1/contexts", access.Read}, {"GET", "/v1/events", access.Read}, {"GET", "/metrics", access.Read},
		{"POST", "/v1/inputs", access.Ask}, {"GET", "/acp", access.Ask}, {"POST", "/v1/runs/x/cancel", access.Ask},
		{"GET", "/v1/devices", access.Admin}, {"POST", "/v1/devices/x/revoke", access.Admin},
		{"POST", "/v1/questions/x/answer", access.Approve}, {"GET", "/v1/push", access.Approve},
		{"POST", "/v1/push/subscribe", access.Approve}, {"GET", "/v1/flows", access.Read},
		{"GET", "/v1/changes", access.Read}, {"GET", "/v1/blame", access.Read},
		{"POST", "/v1/policy/try", access.Read}, {"GET", "/v1/policy/suggest", access.Read},
		{"GET", "/v1/report", access.Read}, {"GET", "/v1/flow-runs", access.Read}, {"GET", "/v1/flow-runs/x", access.Read},
		{"POST", "/v1/flow-runs", access.Ask},
		{"POST", "/v1/flow-runs/x/cancel", access.Ask}, {"POST", "/v1/flow-runs/x/retry", access.Ask},
	} {
		for right, token := range tokens {
			var body any
			if rt.method == "POST" {
				body = object{}
			}
			got := w.do(rt.method, rt.path, body, bearer(token),
				json_)
			if may := got.status != http.StatusForbidden; may != (right == rt.right) {
				t.Errorf("%s %s with %q: %d", rt.method, rt.path, right, got.status)
			}
		}
	}
	// A client reads the description before it knows its rights.
	for _, token := range tokens {
		w.do("GET", "/openapi.json", nil, bearer(token)).want(200)
	}
}
