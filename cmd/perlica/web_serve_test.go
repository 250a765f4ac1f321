//go:build linux

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/perlica/perlica/eventlog/event"
)

var pageAt = regexp.MustCompile(`the page is at (http://127\.0\.0\.1:[0-9]+)/`)

// webServer starts perlica web on a free port and returns it with its address.
func (w *world) webServer() (*job, string) {
	w.t.Helper()
	j := w.start("web", "--listen", "127.0.0.1:0")
	j.expect("the page is at http://127.0.0.1:")
	return j, pageAt.FindStringSubmatch(j.stderr.String())[1]
}

// asks makes an HTTP request with a token. The parameter "last" is the id of the last event that a stream has
// delivered.
func (w *world) asks(ctx context.Context, token, method, url string, body any, last string) *http.Response {
	w.t.Helper()
	b, err := json.Marshal(body)
	if err != nil {
		w.t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(ctx, method, url, nil)
	if body != nil && err == nil {
		req, err = http.NewRequestWithContext(ctx, method, url, bytes.NewReader(b))
		req.Header.Set("Content-Type", "application/json")
	}
	if err != nil {
		w.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	if last != "" {
		req.Header.Set("Last-Event-ID", last)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	return res
}

// follows reads a stream until an event of the given kind. It returns the numbers of all entries and the last
// cursor.
func (w *world) follows(token, url, last, kind string) (seqs []int, cursor string) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	defer cancel()
	res := w.asks(ctx, token, "GET", url, nil, last)
	defer res.Body.Close()
	for in := bufio.NewReader(res.Body); ; {
		line, err := in.ReadString('\n')
		if err != nil {
			w.t.Fatalf("the stream ends before %s: %v", kind, err)
		}
		if id, ok := strings.CutPrefix(line, "id: "); ok {
			cursor = strings.TrimSpace(id)
		}
		var e struct {
			Type string
			Seq  int
		}
		data, ok := strings.CutPrefix(line, "data: ")
		if !ok || json.Unmarshal([]byte(data), &e) != nil || strings.HasPrefix(e.Type, "session.") || e.Seq == 0 {
			continue
		}
		seqs = append(seqs, e.Seq)
		if e.Type == kind {
			return seqs, cursor
		}
	}
}

// TestWebKilled kills the server in a turn. The next server must continue the stream at the cursor, report the
// unknown outcome, and make no second call.
func TestWebKilled(t *testing.T) {
	w := newWorld(t)
	j, at := w.webServer()
	made := w.run("web", "token", "program", "--rights", "read,ask,approve")
	made.exits(0)
	token := strings.TrimSpace(made.stdout.String())
	in := map[string]any{"project": w.project, "text": "@say Hello\n@ask execute Build command=make", "id": "job-1"}
	res := w.asks(t.Context(), token, "POST", at+"/v1/inputs", in, "")
	if b, _ := io.ReadAll(res.Body); res.StatusCode != http.StatusAccepted {
		t.Fatalf("%d %s", res.StatusCode, b)
	}
	before, cursor := w.follows(token, at+"/v1/events?after=0", "", "question")
	j.signal(syscall.SIGKILL)
	j.wait()
	j, at = w.webServer()
	in["wait"] = true
	res = w.asks(t.Context(), token, "POST", at+"/v1/inputs", in, "")
	b, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK || !bytes.Contains(b, []byte(`"outcome":"outcome_unknown"`)) ||
		!bytes.Contains(b, []byte(`"replayed":true`)) {
		t.Errorf("%d %s %v", res.StatusCode, b, err)
	}
	after, _ := w.follows(token, at+"/v1/events", cursor, "run.finished")
	all, _ := w.follows(token, at+"/v1/events?after=0", "", "run.finished")
	if got := append(before, after...); len(got) != len(all) {
		t.Errorf("%v and %v, want %v", before, after, all)
	}
	w.logged(1, "llm.requested")
	if got := w.prompts(); got != 1 {
		t.Errorf("%d calls", got)
	}
	j.signal(syscall.SIGTERM)
	j.exits(0)
	w.audit()
}

// TestWebKilledWithALine kills the server while inputs wait, and kills the next server while it sends them. No input
// may be lost or called twice, and their order must not change.
func TestWebKilledWithALine(t *testing.T) {
	w := newWorld(t)
	j, at := w.webServer()
	made := w.run("web", "token", "program", "--rights", "read,ask,approve")
	made.exits(0)
	token := strings.TrimSpace(made.stdout.String())
	session := ""
	send := func(id, text string, wait bool) string {
		in := map[string]any{"project": w.project, "text": text, "id": id, "session": session, "wait": wait}
		res := w.asks(t.Context(), token, "POST", at+"/v1/inputs", in, "")
		defer res.Body.Close()
		b, err := io.ReadAll(res.Body)
		if err != nil || res.StatusCode >= 300 {
			t.Fatalf("%s: %d %s %v", id, res.StatusCode, b, err)
		}
		return string(b)
	}
	first := send("job-0", "@ask execute Build command=make", false)
	session = regexp.MustCompile(`"session_id":"([^"]+)"`).FindStringSubmatch(first)[1]
	w.until(1, "interaction.requested")
	texts := map[string]string{"job-1": "@say one", "job-2": "@ask execute Build command=make", "job-3": "@say three"}
	for _, id := range []string{"job-1", "job-2", "job-3"} {
		if got := send(id, texts[id], false); !strings.Contains(got, `"queued"`) {
			t.Fatalf("%s is not queued: %s", id, got)
		}
	}
	w.logged(3, "inbound.message.queued")
	for n := range 2 { // The second server is killed during job-2, while job-3 waits.
		j.signal(syscall.SIGKILL)
		j.wait()
		j, at = w.webServer()
		w.until(2, "interaction.requested")
		w.until(n+1, "llm.responded")
	}
	if got := send("job-3", "@say three", true); !strings.Contains(got, `"text":"three"`) {
		t.Errorf("the result of job-3 is %s", got)
	}
	events, err := readLog(logFile(w.project))
	if err != nil {
		t.Fatal(err)
	}
	var called []string
	for _, e := range events {
		if e.Type == event.Requested {
			called = append(called, string(e.Input))
		}
	}
	if got, want := strings.Join(called, " "), "job-0 job-1 job-2 job-3"; got != want {
		t.Errorf("called %s, want %s", got, want)
	}
	w.logged(2, "llm.outcome_unknown")
	if got := w.prompts(); got != 4 {
		t.Errorf("%d calls, want 4", got)
	}
	j.signal(syscall.SIGTERM)
	j.exits(0)
	w.audit()
}

// TestWebStops checks that SIGTERM ends streams, and that a running turn may end.
func TestWebStops(t *testing.T) {
	w := newWorld(t)
	j, at := w.webServer()
	made := w.run("web", "token", "program", "--rights", "read,ask,approve")
	made.exits(0)
	token := strings.TrimSpace(made.stdout.String())
	stream := w.asks(t.Context(), token, "GET", at+"/v1/events", nil, "")
	defer stream.Body.Close()
	in := map[string]any{"project": w.project, "text": "@say Hello", "wait": true}
	res := w.asks(t.Context(), token, "POST", at+"/v1/inputs", in, "")
	if b, _ := io.ReadAll(res.Body); !bytes.Contains(b, []byte(`"text":"Hello"`)) {
		t.Errorf("%d %s", res.StatusCode, b)
	}
	for _, path := range []string{"/", "/healthz"} { // These paths need no credential.
		res, err := http.Get(at + path)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != http.StatusOK {
			t.Errorf("%s: %d", path, res.StatusCode)
		}
	}
	second := w.run("web", "--listen", strings.TrimPrefix(at, "http://"))
	second.exits(1)
	second.says("is taken")
	j.signal(syscall.SIGTERM)
	if _, err := io.Copy(io.Discard, stream.Body); err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("the stream: %v", err)
	}
	j.exits(0)
	j.says("stopping")
	w.audit()
}
