package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/perlica/perlica/eventlog/store/storetest"
	"github.com/perlica/perlica/kernel/config"
	"github.com/perlica/perlica/service/access"
)

// writesFile lets the agent ask about a write of a file of the first project. The built-in agent changes no file, so
// writesFile writes it.
func (w *world) writesFile(name, text string) {
	w.t.Helper()
	w.changesFile("@ask", name, text)
}

// changesFile lets the agent report a write of a file by "@ask" or, without a question, by "@tool".
func (w *world) changesFile(command, name, text string) {
	w.t.Helper()
	escaped := strings.ReplaceAll(text, "\n", `\n`)
	w.do("POST", "/v1/inputs", object{"project": w.dirs[0], "wait": true,
		"text": fmt.Sprintf(`%s edit "Write it" path="%s" new="%s"`, command, name, escaped)}).want(200)
	path := filepath.Join(w.dirs[0], name)
	check(w.t, os.MkdirAll(filepath.Dir(path), 0o700))
	check(w.t, os.WriteFile(path, []byte(text), 0o600))
}

// allowing lets the mode allow the agent's requests.
func allowing(o *Options) {
	o.Environ = append(o.Environ, "PERLICA_PERMISSIONS_MODE=allow")
}

// of returns the address of a route for the first project.
func (w *world) of(path string, parameters ...string) string {
	q := url.Values{"project": {w.dirs[0]}}
	for i := 0; i < len(parameters); i += 2 {
		q.Set(parameters[i], parameters[i+1])
	}
	return path + "?" + q.Encode()
}

// TestChanges checks the pages, the filters and the diffs of the list of changes.
func TestChanges(t *testing.T) {
	w := newWorld(t, 1, allowing)
	if got := items(w.do("GET", w.of("/v1/changes"), nil).want(200).object(), "changes"); len(got) > 0 {
		t.Errorf("without a log: %v", got)
	}
	w.writesFile("a.txt", "one line of the first file\n")
	w.writesFile("src/b.txt", "one line of the second file\n")
	w.writesFile("src/c.txt", strings.Repeat("a line of a long file\n", mostOfDiff/16))
	var names, states []string
	for page := ""; ; {
		got := w.do("GET", w.of("/v1/changes", "limit", "1", "page", page), nil).want(200).object()
		for _, c := range items(got, "changes") {
			names = append(names, filepath.Base(c["path"].(string)))
			states = append(states, fmt.Sprint(c["now"], c["decision"].(object)["kind"]))
		}
		if page, _ = got["next"].(string); page == "" {
			break
		}
	}
	if fmt.Sprint(names) != "[c.txt b.txt a.txt]" || fmt.Sprint(states) != "[presentmode presentmode presentmode]" {
		t.Errorf("%v %v", names, states)
	}
	one := items(w.do("GET", w.of("/v1/changes", "path", "src/b.txt", "diff", "true"), nil).want(200).object(), "changes")
	if len(one) != 1 || one[0]["diff"] != "+one line of the second file\n" || one[0]["diff_cut"] != nil {
		t.Errorf("one file: %v", one)
	}
	long := items(w.do("GET", w.of("/v1/changes", "run", items(w.do("GET", w.of("/v1/changes", "path", "src/c.txt"),
		nil).object(), "changes")[0]["run_id"].(string), "diff", "true"), nil).want(200).object(), "changes")
	if len(long) != 1 || long[0]["diff_cut"] != true || len(long[0]["diff"].(string)) > mostOfDiff ||
		!strings.HasSuffix(long[0]["diff"].(string), "file\n") {
		t.Errorf("%d long changes", len(long))
	}
	for _, none := range [][]string{{"session", "x"}, {"run", "x"}, {"path", "b.txt"},
		{"before", "2020-01-01T00:00:00Z"}} {
		if got := items(w.do("GET", w.of("/v1/changes", none...), nil).want(200).object(), "changes"); len(got) > 0 {
			t.Errorf("%v: %v", none, got)
		}
	}
	for _, bad := range [][]string{{"limit", "201"}, {"page", "x"}, {"diff", "yes"}, {"lines", "1"}} {
		w.do("GET", w.of("/v1/changes", bad...), nil).problem(badRequest)
	}
}

// TestBlame checks the lines of a file: their numbers and origins, and the part that a page shows.
func TestBlame(t *testing.T) {
	w := newWorld(t, 1, allowing)
	w.writesFile("a.txt", "Rain falls on the hills.\nThe river rises slowly.\n")
	w.writesFile("b.txt", "Another file of the agent.\n")
	path := filepath.Join(w.dirs[0], "a.txt")
	check(t, os.WriteFile(path, []byte("By hand.\nRain falls on the hills.\nThe river rises slowly.\n"), 0o600))
	for _, name := range []string{"a.txt", path, "./b/../a.txt"} {
		got := w.do("GET", w.of("/v1/blame", "path", name), nil).want(200).object()
		var lines []string
		for _, l := range items(got, "lines") {
			lines = append(lines, fmt.Sprint(l["text"], l["change"]))
		}
		if want := "[By hand.-1 Rain falls on the hills.0 The river rises slowly.0]"; fmt.Sprint(lines) != want ||
			got["total"] != 3.0 || len(items(got, "changes")) != 1 {
			t.Errorf("%s: %v of %v, want %s", name, lines, got, want)
		}
	}
	got := w.do("GET", w.of("/v1/blame", "path", "a.txt", "limit", "1"), nil).want(200).object()
	if len(items(got, "lines")) != 1 || len(items(got, "changes")) != 0 || got["first"] != 1.0 || got["total"] != 3.0 {
		t.Errorf("the first line: %v", got)
	}
	if got = w.do("GET", w.of("/v1/blame", "path", "a.txt", "line", "3"), nil).want(200).object(); len(items(got,
		"lines")) != 1 || len(items(got, "changes")) != 1 || items(got, "lines")[0]["change"] != 0.0 {
		t.Errorf("the last line: %v", got)
	}
	w.do("GET", w.of("/v1/blame", "path", "a.txt", "line", "4"), nil).problem(badRequest)
	w.do("GET", w.of("/v1/blame"), nil).problem(badRequest)
	check(t, os.WriteFile(path, nil, 0o600))
	if got = w.do("GET", w.of("/v1/blame", "path", "a.txt"), nil).want(200).object(); got["total"] != 0.0 {
		t.Errorf("an empty file: %v", got)
	}
}

// TestBlameReadsOnlyRecordedFiles checks that the server refuses files outside the project, files without a recorded
// change, and Perlica's own files. The answer must not tell which of them exist.
func TestBlameReadsOnlyRecordedFiles(t *testing.T) {
	w := newWorld(t, 1, allowing)
	outside := filepath.Join(filepath.Dir(w.dirs[0]), "outside.txt")
	own := filepath.Join(w.dirs[0], ".perlica_config", "own.txt")
	for _, name := range []string{"a.txt", "gone.txt", "link.txt", "../outside.txt", "folder/out.txt", "big.txt", "dir",
		".perlica_config/own.txt"} {
		w.changesFile("@tool", name, "secret\n")
	}
	check(t, os.WriteFile(filepath.Join(w.dirs[0], "hand.txt"), []byte("secret\n"), 0o600))
	for _, name := range []string{"gone.txt", "link.txt", "dir"} {
		check(t, os.Remove(filepath.Join(w.dirs[0], name)))
	}
	check(t, os.Mkdir(filepath.Join(w.dirs[0], "dir"), 0o700))
	check(t, os.Symlink(outside, filepath.Join(w.dirs[0], "link.txt")))
	check(t, os.RemoveAll(filepath.Join(w.dirs[0], "folder")))
	check(t, os.Symlink(filepath.Dir(w.dirs[0]), filepath.Join(w.dirs[0], "folder")))
	check(t, os.Truncate(filepath.Join(w.dirs[0], "big.txt"), 5<<20))
	w.do("GET", w.of("/v1/blame", "path", "a.txt"), nil).want(200)
	for _, path := range []string{"../outside.txt", outside, "link.txt", "folder/outside.txt", "folder/out.txt",
		"hand.txt",
		"gone.txt", "none.txt", "/etc/passwd", own, ".perlica_config/own.txt", "a.txt\x00", "."} {
		p := w.do("GET", w.of("/v1/blame", "path", path), nil).problem(notFound)
		if p.Detail != fmt.Sprintf("the project has no file %q with a recorded change", path) ||
			strings.Contains(p.Detail, "secret") {
			t.Errorf("%q: %s", path, p.Detail)
		}
	}
	for _, path := range []string{"big.txt", "dir"} {
		w.do("GET", w.of("/v1/blame", "path", path), nil).problem(unfit)
	}
	for _, c := range items(w.do("GET", w.of("/v1/changes"), nil).want(200).object(), "changes") {
		if name := c["path"].(string); (c["now"] == nil) != (name == outside || name == own || strings.HasSuffix(name,
			"link.txt") || strings.Contains(name, "folder") || strings.HasSuffix(name, "big.txt") ||
			strings.HasSuffix(name, "dir")) {
			t.Errorf("%s was compared: %v", name, c["now"])
		}
	}
}

// TestForgedChange checks that a forged content of a change is named, and shown nowhere.
func TestForgedChange(t *testing.T) {
	w := newWorld(t, 1, allowing)
	w.writesFile("a.txt", "The true content of the file.\n")
	paths, err := config.Workspace{Root: w.dirs[0]}.Context("default")
	check(t, err)
	w.do("GET", w.of("/v1/changes", "diff", "true"), nil).want(200)
	db, err := sqlx.Open("sqlite", paths.EventLog)
	check(t, err)
	_, err = db.Exec(storetest.Editable + `
		DROP TRIGGER events_lose_nothing_but_payloads;
		UPDATE events SET payload = CAST(replace(CAST(payload AS TEXT), 'The true content', 'A forged content')
			AS BLOB) WHERE class = 'frame'`)
	check(t, errors.Join(err, db.Close()))
	check(t, os.WriteFile(filepath.Join(w.dirs[0], "a.txt"), []byte("A forged content of the file.\n"), 0o600))
	for _, path := range []string{w.of("/v1/changes", "diff", "true"), w.of("/v1/blame", "path", "a.txt")} {
		got := w.do("GET", path, nil)
		text := string(got.body)
		if strings.Contains(text, "+A forged") || strings.Contains(text, `"change":0`) || !strings.Contains(text, "event") ||
			got.status == 200 && len(items(got.object(), "unreadable")) == 0 {
			t.Errorf("%s: %d %s", path, got.status, text)
		}
	}
}

// answered lets the agent of a project ask about a command, and gives an answer of this kind.
func (w *world) answered(project int, command, kind string) {
	w.t.Helper()
	run := w.do("POST", "/v1/inputs", object{"project": w.dirs[project],
		"text": fmt.Sprintf("@ask execute Build command=%q", command)}).want(202).object()["run_id"].(string)
	s := w.follow("/v1/events?after=0&type=question&type=run.finished&run="+run, "")
	defer s.close()
	w.answer(w.do("GET", "/v1/questions/"+s.event()["id"].(string), nil).want(200).object(), kind).want(200)
	for s.event()["type"] != "run.finished" {
		continue
	}
}

// TestRulesOverHTTP tries rules and asks for suggestions. The first page has the denied questions.
func TestRulesOverHTTP(t *testing.T) {
	w := newWorld(t, 2)
	w.answered(0, "go test ./a", "allow_once")
	w.answered(0, "go test ./b", "allow_once")
	w.answered(1, "go test ./c", "allow_once")
	w.answered(1, "go vet x", "reject_once")
	body := object{"rules": []string{"allow go test ...", "allow go vet ..."}, "limit": 1}
	var seen []string
	for page := ""; ; {
		body["page"] = page
		got := w.do("POST", "/v1/policy/try", body).want(200).object()
		for _, j := range items(got, "list") {
			seen = append(seen, fmt.Sprint(j["commands"], j["against"]))
		}
		if got["questions"] != 4.0 || got["saved"] != 4.0 || got["against"] != 1.0 || !strings.Contains(
			got["toml"].(string), `command = "go vet ..."`) {
			t.Fatalf("%v", got)
		}
		if page, _ = got["next"].(string); page == "" {
			break
		}
	}
	if want := "[[go vet x] true [go test ./a] false [go test ./b] false [go test ./c] false]"; fmt.Sprint(seen) != want {
		t.Errorf("got %v, want %s", seen, want)
	}
	found := w.do("GET", "/v1/policy/suggest", nil).want(200).object()
	rules := items(found, "rules")
	if len(rules) != 2 || rules[0]["allowed"] != 3.0 || rules[0]["projects"] != 2.0 || rules[0]["tier"] != "ordinary" {
		t.Errorf("%v", found)
	}
	if one := w.do("GET", w.of("/v1/policy/suggest", "limit", "1"), nil).want(200).object(); one["questions"] != 2.0 {
		t.Errorf("of one project: %v", one)
	}
	text := ""
	for _, r := range rules {
		text += r["toml"].(string)
	}
	got := w.do("POST", "/v1/policy/try", object{"toml": text, "replace": true}).want(200).object()
	if got["saved"] != 4.0 || got["against"] != 0.0 {
		t.Errorf("the suggested rules: %v", got)
	}
	for _, bad := range []object{{"rules": []string{"permit x"}}, {"rules": []string{"allow"}}, {"toml": "x = 1"},
		{"toml": "[[policy.rule]]\neffect = 'x'"}} {
		w.do("POST", "/v1/policy/try", bad).problem(unfit)
	}
	w.do("POST", "/v1/policy/try", object{"limit": 0}).problem(badRequest)
	w.do("POST", "/v1/policy/try", object{"project": "/none"}).problem(notFound)
}

// leavingClient is the context of a client that goes away after some checks.
type leavingClient struct {
	context.Context
	n    atomic.Int64
	done context.CancelFunc
}

func (c *leavingClient) Err() error {
	if c.n.Add(-1) < 0 {
		c.done()
	}
	return c.Context.Err()
}

// TestAbandonedReadings checks that a reading stops when its client has gone, and that the next request has its turn.
func TestAbandonedReadings(t *testing.T) {
	w := newWorld(t, 1, allowing)
	w.writesFile("a.txt", "Some content of a file.\n")
	for path, serve := range map[string]func(http.ResponseWriter, *request) error{
		w.of("/v1/changes"): w.server.changes, w.of("/v1/blame", "path", "a.txt"): w.server.blame,
		w.of("/v1/policy/suggest"): w.server.suggestRules,
	} {
		for n := range 3 {
			ctx, cancel := context.WithCancel(t.Context())
			client := &leavingClient{Context: ctx, done: cancel}
			client.n.Store(int64(n))
			r := &request{Request: httptest.NewRequestWithContext(client, "GET", path, nil)}
			out := httptest.NewRecorder()
			if n == 0 {
				cancel()
			}
			err := serve(out, r)
			cancel()
			if n == 0 && !errors.Is(err, context.Canceled) || err != nil && out.Body.Len() > 0 {
				t.Errorf("%s after %d checks: %v, %s", path, n, err, out.Body)
			}
		}
	}
	if len(w.server.verifying) > 0 {
		t.Error("a reading keeps its turn")
	}
}

// TestReadersOnly checks that only the right read opens the answers from the record.
func TestReadersOnly(t *testing.T) {
	w := newWorld(t, 1, allowing)
	w.writesFile("a.txt", "Some content of a file.\n")
	token := w.newToken("others", access.Ask, access.Approve, access.Admin)
	for _, path := range []string{w.of("/v1/changes"), w.of("/v1/blame", "path", "a.txt"), w.of("/v1/policy/suggest")} {
		w.do("GET", path, nil).want(200)
		w.do("GET", path, nil, bearer(token)).problem(forbidden)
		w.do("GET", path, nil, without).problem(unauthorized)
	}
	body := object{"project": w.dirs[0], "rules": []string{"allow go test"}}
	w.do("POST", "/v1/policy/try", body).want(200)
	w.do("POST", "/v1/policy/try", body, bearer(token)).problem(forbidden)
	w.do("POST", "/v1/policy/try", body, without).problem(unauthorized)
}

// TestOpenReport checks that the address of a report needs no credential, gives the page no origin, and ends with the
// rights of its maker.
func TestOpenReport(t *testing.T) {
	w := newWorld(t, 1, allowing)
	w.writesFile("a.txt", "Some content of a file.\n")
	w.writesFile("b.txt", "The checkpoint precedes this answer.\n")
	body := object{"project": w.dirs[0]}
	reader := w.newToken("reader", access.Read)
	others := w.newToken("others", access.Ask, access.Approve, access.Admin)
	w.do("POST", "/v1/reports", body, bearer(others)).problem(forbidden)
	w.do("POST", "/v1/reports", object{}, bearer(reader)).problem(badRequest)
	path := "/" + w.do("POST", "/v1/reports", body, bearer(reader)).want(201).object()["path"].(string)
	got := w.do("GET", path, nil, without).want(200)
	const alone = "sandbox allow-scripts allow-forms; default-src 'none'; "
	policy, heading := got.header.Get("Content-Security-Policy"), "<h1>Report of a Perlica log</h1>"
	if !strings.HasPrefix(policy, alone) || !strings.Contains(string(got.body), heading) {
		t.Errorf("%s: %.200s", policy, got.body)
	}
	w.do("GET", path+"x", nil, without).problem(notFound)
	w.do("GET", path, nil, without, func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") }).
		problem(foreignOrigin)
	_, err := w.devices.Revoke(t.Context(), w.devicesCalled("reader"), "test")
	check(t, err)
	w.do("GET", path, nil, without).problem(notFound)
	now := time.Now()
	var kept openReports
	for i := range mostReports + 1 {
		kept.add(openReport{ticket: fmt.Sprint(i), expires: now.Add(ticketTime)}, now)
	}
	for ticket, at := range map[string]time.Time{"0": now, "1": now.Add(ticketTime)} {
		if _, ok := kept.find(ticket, at); ok {
			t.Errorf("the report %s is kept", ticket)
		}
	}
	if _, ok := kept.find("1", now); !ok {
		t.Error("a valid report is gone")
	}
}

// devicesCalled returns the id of the device or program with this name.
func (w *world) devicesCalled(name string) string {
	w.t.Helper()
	all, err := w.devices.List(w.t.Context())
	check(w.t, err)
	for _, d := range all {
		if d.Name == name {
			return d.ID
		}
	}
	w.t.Fatal("no device is called " + name)
	return ""
}
