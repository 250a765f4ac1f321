//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/perlica/perlica/service/team/hub/hubtest"
)

// TestWebOfATeam checks that HTTP requests can read the copies of workers' logs, answer the workers' questions and
// stop their runs. They can change nothing else.
func TestWebOfATeam(t *testing.T) {
	w := newWorld(t)
	s, database := hubtest.Shared(t)
	w.env = append(w.env, "PERLICA_TEAM_URL="+s.URL(hubtest.Lead, database))
	w.run("team", "init").exits(0)
	w.run("team", "join", "alice").exits(0)
	worker := w.start("team", "work")
	page, at := w.webServer()
	made := w.run("web", "token", "program", "--rights", "read,ask,approve")
	made.exits(0)
	token := strings.TrimSpace(made.stdout.String())

	// ask makes a request, checks the status and the text of the response, and returns its JSON.
	ask := func(method, path string, body any, status int, has string) map[string]any {
		t.Helper()
		res := w.asks(t.Context(), token, method, at+path, body, "")
		defer res.Body.Close()
		b, err := io.ReadAll(res.Body)
		var v map[string]any
		if err != nil || res.StatusCode != status || !strings.Contains(string(b), has) || json.Unmarshal(b, &v) != nil {
			t.Fatalf("%s %s: %d %s %v, want %d with %q", method, path, res.StatusCode, b, err, status, has)
		}
		return v
	}
	// waits repeats a request until the response contains a text.
	waits := func(path, has string) (v map[string]any) {
		t.Helper()
		w.eventually(path+" with "+has, func() error {
			res := w.asks(t.Context(), token, "GET", at+path, nil, "")
			defer res.Body.Close()
			b, err := io.ReadAll(res.Body)
			if err == nil && !strings.Contains(string(b), has) {
				err = fmt.Errorf("%d %s", res.StatusCode, b)
			}
			if err == nil {
				err = json.Unmarshal(b, &v)
			}
			return err
		})
		return v
	}
	ask("GET", "/v1/self", nil, http.StatusOK, `"team":true`)

	// The test answers a question of the worker over HTTP. The first answer counts.
	asked := w.start("run", "--team", "--input-id", "one", "@say before\n@ask execute Build command=make\n@say behind")
	q := waits("/v1/questions?project=team", `"run_id":"0`)["questions"].([]any)[0].(map[string]any)
	if q["project"] != "team" || q["context"] != "alice" || q["session_id"] == "" || q["open"] != true {
		t.Errorf("%v", q)
	}
	of := "?project=team&context=alice"
	id := "/v1/questions/" + url.PathEscape(q["id"].(string))
	if shown := ask("GET", id+of, nil, http.StatusOK, `"open":true`); shown["digest"] != q["digest"] {
		t.Errorf("%v is not %v", shown["digest"], q["digest"])
	}
	var yes string
	for _, o := range q["options"].([]any) {
		if o := o.(map[string]any); o["allows"] == true && o["always"] == false {
			yes = o["id"].(string)
		}
	}
	answer := map[string]any{"option": yes, "digest": strings.Repeat("0", 64)}
	ask("POST", id+"/answer"+of, answer, http.StatusConflict, "question-differs")
	answer["digest"] = q["digest"]
	ask("POST", id+"/answer"+of, answer, http.StatusOK, `"by"`)
	asked.exits(0)
	if out := asked.stdout.String(); !strings.Contains(out, "behind") {
		t.Errorf("%q", out)
	}
	// The response has the end of the question at once, before the copy of the log has it.
	if shown := ask("GET", id+of, nil, http.StatusOK, `"open":false`); shown["answer"] == nil {
		t.Errorf("how it ended is not known: %v", shown["ended"])
	}
	ask("POST", id+"/answer"+of, answer, http.StatusConflict, "question-closed")

	// The subject of the question is read from the copy of the log.
	runs := waits("/v1/runs?project=team", `"outcome":"responded"`)
	run := runs["runs"].([]any)[0].(map[string]any)
	runID, session := run["run_id"].(string), run["session_id"].(string)
	ask("GET", "/v1/contexts?project=team", nil, http.StatusOK, `"context":"alice"`)
	ask("GET", "/v1/contexts", nil, http.StatusOK, w.project)
	ask("GET", "/v1/sessions?project=team", nil, http.StatusOK, session)
	ask("GET", "/v1/sessions/"+session+of, nil, http.StatusOK, "before")
	ask("GET", "/v1/runs/"+runID+of, nil, http.StatusOK, `"text":"before`)
	ask("GET", "/v1/runs/"+runID+"/story"+of, nil, http.StatusOK, `"kind":"outcome"`)
	ask("GET", "/v1/search?project=team&q=behind", nil, http.StatusOK, runID)
	ask("GET", "/v1/stats?project=team", nil, http.StatusOK, `"runs":1`)
	if _, cursor := w.follows(token, at+"/v1/events?after=0&project=team", "", "run.finished"); cursor == "" {
		t.Error("no cursor")
	}

	// The test stops a run of the worker.
	stopped := w.start("run", "--team", "--input-id", "two", "@say begun\n@sleep 1h")
	open := waits("/v1/runs?project=team&state=open", `"state":"running"`)
	last := open["runs"].([]any)[0].(map[string]any)["run_id"].(string)
	ask("POST", "/v1/runs/"+last+"/cancel"+of, map[string]any{}, http.StatusAccepted, last)
	stopped.wait()
	waits("/v1/runs/"+last+of, `"state":"ended"`)
	for kind, want := range map[string]string{"team.answered": `"option":"` + yes + `"`,
		"team.stop_requested": `"input":"two"`} {
		cmd := w.command("log", "tail", "--context", "team", "--json", "-n", "1000", "--type", kind)
		cmd.Dir = filepath.Join(w.home, ".perlica", "state", "teams")
		shown := w.startCmd(cmd)
		shown.wait()
		if out := shown.stdout.String(); !strings.Contains(out, want) || !strings.Contains(out, "web:") {
			t.Errorf("%s on record: %q %q", kind, out, shown.stderr.String())
		}
	}

	// Every other request is refused, because only the worker decides.
	ask("POST", "/v1/inputs", map[string]any{"project": "team", "context": "alice", "text": "no"},
		http.StatusUnprocessableEntity, "only its worker")
	ask("GET", "/v1/verify"+of, nil, http.StatusUnprocessableEntity, "perlica log verify --team")
	ask("GET", "/v1/proofs/1"+of, nil, http.StatusUnprocessableEntity, "")
	ask("GET", "/v1/providers"+of, nil, http.StatusNotFound, "")
	ask("GET", "/v1/runs?project=team&context=bob", nil, http.StatusNotFound, "")

	worker.signal(syscall.SIGTERM)
	worker.exits(0)
	page.signal(syscall.SIGTERM)
	page.exits(0)
}
