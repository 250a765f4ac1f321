package web

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/store"
	"github.com/perlica/perlica/eventlog/store/storetest"
	"github.com/perlica/perlica/kernel/project"
	"github.com/perlica/perlica/service/access"
)

// stream is a client's view of a stream of events.
type stream struct {
	w      *world
	body   io.ReadCloser
	in     *bufio.Reader
	cancel context.CancelFunc
	cursor string
}

// follow opens a stream. The parameter "last" is the cursor at which the stream continues.
func (w *world) follow(path, last string, change ...func(*http.Request)) *stream {
	w.t.Helper()
	req := w.request("GET", path, nil)
	ctx, cancel := context.WithTimeout(w.t.Context(), longest)
	req = req.WithContext(ctx)
	if last != "" {
		req.Header.Set("Last-Event-ID", last)
	}
	for _, f := range change {
		f(req)
	}
	res, err := w.http.Client().Do(req)
	check(w.t, err)
	if res.StatusCode != http.StatusOK || res.Header.Get("Content-Type") != "text/event-stream" {
		b, _ := io.ReadAll(res.Body)
		w.t.Fatalf("%s: %d %s", path, res.StatusCode, b)
	}
	return &stream{w: w, body: res.Body, in: bufio.NewReader(res.Body), cancel: cancel}
}

func (s *stream) close() {
	s.cancel()
	_ = s.body.Close()
}

// next reads one event with its name. The name is "end" at the end of the stream.
func (s *stream) next() (name string, data object) {
	s.w.t.Helper()
	for {
		line, err := s.in.ReadString('\n')
		if err != nil {
			return "end", nil
		}
		field, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		switch field {
		case "event":
			name = value
		case "id":
			s.cursor = value
		case "data":
			if err := json.Unmarshal([]byte(value), &data); err != nil {
				s.w.t.Fatalf("%v: %s", err, value)
			}
			for _, member := range []string{"schema", "type", "seq", "session_id"} {
				if name == "" && data[member] == nil {
					s.w.t.Errorf("no %s in %s", member, value)
				}
			}
		case "":
			if data != nil {
				return name, data
			}
			if strings.HasPrefix(line, ":") {
				return "beat", nil
			}
		}
	}
}

// event reads the next event of a log.
func (s *stream) event() object {
	s.w.t.Helper()
	for {
		switch name, data := s.next(); name {
		case "":
			return data
		case "end":
			s.w.t.Fatal("the stream has ended")
		}
	}
}

// until reads events up to the first one of a type. It returns the events with their cursors, and it skips lines that
// only report a state.
func (s *stream) until(kind string) (list []string, cursors []string) {
	s.w.t.Helper()
	for {
		e := s.event()
		if !strings.HasPrefix(e["type"].(string), "session.") {
			list = append(list, fmt.Sprintf("%s %v %v", filepath.Base(e["project"].(string)), e["seq"], e["type"]))
			cursors = append(cursors, s.cursor)
		}
		if e["type"] == kind {
			return list, cursors
		}
	}
}

// ask sends an input and waits for its result.
func (w *world) ask(dir, text string) object {
	w.t.Helper()
	return w.do("POST", "/v1/inputs", object{"project": dir, "text": text, "wait": true}).want(200).object()
}

// TestCursor checks that a stream that continues at any cursor of another stream misses no event of any log and repeats
// none. The server reads these events from the ring of the newest lines in memory, or from the log.
func TestCursor(t *testing.T) {
	t.Parallel()
	for name, ring := range map[string]int{"ring": 0, "log": 1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 2, func(o *Options) { o.Ring = ring })
			live := w.follow("/v1/events?after=0", "")
			defer live.close()
			if name, data := live.next(); name != "open" || len(items(data, "logs")) != 1 {
				t.Errorf("%s %v", name, data)
			}
			w.ask(w.dirs[0], "@say one\n@say two")
			all, cursors := live.until("run.finished")
			w.ask(w.dirs[1], "@say three")
			more, others := live.until("run.finished")
			all, cursors = append(all, more...), append(cursors, others...)
			for i, c := range cursors {
				s := w.follow("/v1/events", c)
				var got []string
				for len(got) < len(all)-i-1 {
					part, _ := s.until("run.finished")
					got = append(got, part...)
				}
				s.close()
				want := slices.Clone(all[i+1:])
				// The server reads the logs at the same time, so the events of two logs have no fixed order.
				slices.Sort(want)
				slices.Sort(got)
				if !slices.Equal(got, want) {
					t.Errorf("after %s: %q, want %q", all[i], got, want)
				}
			}
			var paged []string
			at, more2 := "0", true
			for more2 {
				page := w.do("GET", "/v1/events?limit=2&after="+at, nil, json_).want(200).object()
				for _, e := range items(page, "events") {
					paged = append(paged, fmt.Sprintf("%s %v %v", filepath.Base(e["project"].(string)), e["seq"], e["type"]))
				}
				at, more2 = page["cursor"].(string), page["more"].(bool)
			}
			if !slices.Equal(paged, all) {
				t.Errorf("in pages: %q, want %q", paged, all)
			}
		})
	}
}

// TestPagesOfOne checks that the pages of one run or session contain all its events in order. Other
// events lie between and around them.
func TestPagesOfOne(t *testing.T) {
	w := newWorld(t, 1)
	var runs []string
	for _, text := range []string{"@say one", "@say two", "@say three"} {
		runs = append(runs, w.ask(w.dirs[0], text)["run_id"].(string))
	}
	// pages returns the events of all pages, a few at a time.
	pages := func(filter string) (all []map[string]any) {
		for at, more := "0", true; more; {
			page := w.do("GET", "/v1/events?limit=3&after="+at+filter, nil, json_).want(200).object()
			all = append(all, items(page, "events")...)
			at, more = page["cursor"].(string), page["more"].(bool)
		}
		return all
	}
	all := pages("")
	for _, run := range runs {
		var want []map[string]any
		for _, e := range all {
			if e["run_id"] == run {
				want = append(want, e)
			}
		}
		if got := pages("&run=" + run); len(want) == 0 || !reflect.DeepEqual(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
	}
	if got := pages("&run=none"); got != nil {
		t.Errorf("%v", got)
	}
}

// TestFilters checks that a stream of a session, a run or a type contains only its events.
func TestFilters(t *testing.T) {
	w := newWorld(t, 1)
	one, two := w.ask(w.dirs[0], "@say one"), w.ask(w.dirs[0], "@say two")
	for _, filter := range []string{"session=" + two["session_id"].(string), "run=" + two["run_id"].(string),
		"type=text&type=run.finished&session=" + two["session_id"].(string)} {
		s := w.follow("/v1/events?after=0&"+filter, "")
		for {
			e := s.event()
			if e["session_id"] == one["session_id"] || strings.HasPrefix(filter, "type") && e["type"] != "text" &&
				e["type"] != "run.finished" {
				t.Errorf("%s: %v", filter, e)
			}
			if e["type"] == "run.finished" {
				break
			}
		}
		s.close()
	}
}

// TestRevokedInMidStream checks that a stream ends when its device is revoked and when the server
// stops.
func TestRevokedInMidStream(t *testing.T) {
	w := newWorld(t, 1, func(o *Options) { o.Heartbeat = 10 * time.Millisecond })
	token, dev, err := w.devices.NewToken(t.Context(), "phone", access.Rights{access.Read}, "test")
	check(t, err)
	s := w.follow("/v1/events", "", bearer(token))
	defer s.close()
	stays := w.follow("/v1/events", "")
	defer stays.close()
	if name, _ := s.next(); name != "open" {
		t.Errorf("%s", name)
	}
	if name, _ := s.next(); name != "beat" {
		t.Errorf("%s", name)
	}
	_, err = w.devices.Revoke(t.Context(), dev.ID, "test")
	check(t, err)
	for name := ""; name != "end"; name, _ = s.next() {
	}
	w.server.Stop()
	for name := ""; name != "end"; name, _ = stays.next() {
	}
	w.do("POST", "/v1/inputs", object{"project": w.dirs[0], "text": "x"}).problem(stoppingNow)
}

// TestReplacedLog checks that a stream reports the replacement of its log, and that a cursor of the
// earlier log is refused.
func TestReplacedLog(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	w.use(w.dirs[1])
	other := w.dirs[1] + "-other"
	check(t, os.Mkdir(other, 0o700))
	w.record(w.dirs[1], "first")
	w.record(other, "second")
	s := w.follow("/v1/events?after=0&project="+w.dirs[1], "")
	defer s.close()
	s.until("run.received")
	before := s.cursor
	paths := func(dir string) string { return filepath.Join(dir, ".perlica_config", "contexts", "default") }
	check(t, os.Rename(paths(w.dirs[1]), paths(w.dirs[1])+"-old"))
	check(t, os.Rename(paths(other), paths(w.dirs[1])))
	for {
		name, data := s.next()
		if name == "reset" {
			if data["project"] != w.dirs[1] {
				t.Errorf("%v", data)
			}
			break
		}
		if name == "end" {
			t.Fatal("the stream has ended")
		}
	}
	if e := s.event(); e["text"] != "second" || e["seq"] != 2.0 {
		t.Errorf("%v", e)
	}
	w.do("GET", "/v1/events?after="+before, nil, json_).problem(logReplaced)
	w.do("GET", "/v1/events?after="+before, nil).problem(logReplaced)
}

// record puts an input on a project's log without a call.
func (w *world) record(dir, text string) {
	w.t.Helper()
	p, err := project.Find(dir, w.environ, nil)
	check(w.t, err)
	r, done, err := p.Open(w.t.Context(), "test")
	check(w.t, err)
	_, err = r.Log().Append(w.t.Context(),
		event.NewFact(event.SessionCreated, "user", event.Refs{Session: "s"}, object{"provider": "predictable"}),
		event.NewFact(event.MessageReceived, "user", event.Refs{Session: "s", Run: event.RunID("run-" + text),
			Input: event.InputID(text)}, object{"text": text}))
	check(w.t, err)
	check(w.t, done())
}

// TestDamagedLog checks that an unreadable log is reported and that the other logs are shown as
// usual.
func TestDamagedLog(t *testing.T) {
	w := newWorld(t, 3)
	sent := w.ask(w.dirs[0], "@say fine")
	log := filepath.Join(w.dirs[1], ".perlica_config", "contexts", "default", "eventlog.db")
	for _, name := range []string{log, log + "-wal", log + "-shm"} {
		_ = os.Remove(name)
	}
	check(t, os.WriteFile(log, []byte(strings.Repeat("no database ", 1000)), 0o600))
	check(t, os.RemoveAll(w.dirs[2]))
	for _, c := range items(w.do("GET", "/v1/contexts", nil).want(200).object(), "contexts") {
		if bad, gone := c["error"] != nil, c["gone"] == true; bad != (c["project"] != w.dirs[0]) && !gone ||
			gone != (c["project"] == w.dirs[2]) {
			t.Errorf("%v", c)
		}
	}
	for _, path := range []string{"/v1/sessions", "/v1/runs", "/v1/questions", "/v1/search?q=fine", "/v1/stats"} {
		o := w.do("GET", path, nil).want(200).object()
		if bad := items(o, "unreadable"); len(bad) == 0 || bad[0]["project"] != w.dirs[1] {
			t.Errorf("%s: %v", path, o)
		}
	}
	w.do("GET", "/v1/runs/"+sent["run_id"].(string), nil).want(200)
	w.do("GET", "/v1/verify?project="+w.dirs[1], nil)
	w.do("POST", "/v1/inputs", object{"project": w.dirs[1], "text": "x"}).problem(logFailed)
	s := w.follow("/v1/events?after=0", "")
	defer s.close()
	if _, data := s.next(); len(items(data, "unreadable")) == 0 || len(items(data, "logs")) != 1 {
		t.Errorf("%v", data)
	}
	s.until("run.finished")
	w.do("GET", "/metrics", nil).want(200)
}

// TestForgedLog checks that no answer contains a forged text. Each answer about such a log reports the damage, even if
// it omits the event.
func TestForgedLog(t *testing.T) {
	for name, change := range map[string]string{
		"payload": `payload = CAST(replace(payload, '100 euro', '900 euro') AS BLOB)`,
		"emptied": `payload = x''`,
		"header":  `actor = 'policy'`,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 1)
			sent := w.ask(w.dirs[0], "@say 100 euro")
			w.follow("/v1/events?after=0", "").until("run.finished")
			w.alter(`DROP TRIGGER events_lose_nothing_but_payloads; UPDATE events SET ` + change +
				` WHERE instr(payload, '100 euro'); ` + statement("events_lose_nothing_but_payloads"))
			run := "/v1/runs/" + sent["run_id"].(string)
			for _, path := range []string{"/v1/search?q=euro", "/v1/stats", "/v1/runs", run, run + "/story", "/v1/sessions",
				"/v1/contexts", "/v1/verify?project=" + w.dirs[0]} {
				body := string(w.do("GET", path, nil).want(200).body)
				if !strings.Contains(body, "does not have its recorded hash") && !strings.Contains(body, "edited") {
					t.Errorf("%s says nothing of damage: %s", path, body)
				}
				if strings.Contains(body, "900 euro") {
					t.Errorf("%s shows what was forged: %s", path, body)
				}
			}
			s := w.follow("/v1/events?after=0", "")
			defer s.close()
			warned := false
			for name, data := s.next(); data["type"] != "run.finished" && name != "end"; name, data = s.next() {
				text := fmt.Sprint(data)
				warned = warned || strings.Contains(text, "does not have its recorded hash")
				if strings.Contains(text, "900 euro") {
					t.Errorf("the stream shows %s", text)
				}
			}
			if !warned {
				t.Error("the stream says nothing of damage")
			}
		})
	}
}

// alter changes the first project's log like another program.
func (w *world) alter(statements string) {
	w.t.Helper()
	log := filepath.Join(w.dirs[0], ".perlica_config", "contexts", "default", "eventlog.db")
	db := sqlx.MustOpen("sqlite", "file:"+log+"?_pragma=busy_timeout(10000)")
	db.MustExec(storetest.Editable + statements)
	check(w.t, db.Close())
}

// statement returns the SQL statement that makes the named table or trigger of the log's schema.
func statement(name string) string {
	all := store.Statements()
	return all[slices.IndexFunc(all, func(s string) bool { return strings.Contains(s, " "+name+" ") })]
}

// TestChangedSchema checks that the server refuses a log after a change of its schema. The server had the log open for
// reading and for work during the change. Lists name it as unreadable, no input starts a run, and a stream pauses. A
// repaired log is served again.
func TestChangedSchema(t *testing.T) {
	for name, change := range map[string]struct{ made, repaired, fault string }{
		"removed trigger": {`DROP TRIGGER events_are_not_deleted`, statement("events_are_not_deleted"),
			"its schema was changed: the trigger events_are_not_deleted is missing"},
		"removed index": {`DROP INDEX events_one_intent_per_input`, statement("events_one_intent_per_input"),
			"its schema was changed: the index events_one_intent_per_input is missing"},
		"foreign trigger": {`CREATE TRIGGER mine AFTER INSERT ON entries BEGIN SELECT 1; END`, `DROP TRIGGER mine`,
			"its schema was changed: the trigger mine is not Perlica's"},
		"another version": {`PRAGMA user_version = 99`, fmt.Sprintf(`PRAGMA user_version = %d`, store.SchemaVersion),
			"schema 99"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 1)
			run := "/v1/runs/" + w.ask(w.dirs[0], "@say one")["run_id"].(string)
			s := w.follow("/v1/events?after=0", "")
			defer s.close()
			s.until("run.finished")
			l, err := w.server.logs.oneLog(t.Context(), place{})
			check(t, err)
			l.mu.Lock()
			feed, reader := l.feed, l.reader
			l.mu.Unlock()
			w.alter(change.made)
			refusal := "eventlog: open " + reader.Path() + ": "
			for _, path := range []string{"/v1/runs", "/v1/sessions", "/v1/questions", "/v1/search?q=one", "/v1/stats"} {
				bad := items(w.do("GET", path, nil).want(200).object(), "unreadable")
				if len(bad) != 1 || bad[0]["project"] != w.dirs[0] {
					t.Fatalf("%s: %v", path, bad)
				}
				if text := bad[0]["error"].(string); !strings.HasPrefix(text, refusal) || !strings.Contains(text, change.fault) {
					t.Errorf("%s: %s", path, text)
				}
			}
			for _, p := range []*problem{
				w.do("GET", run, nil).problem(logFailed),
				w.do("GET", run+"/story", nil).problem(logFailed),
				w.do("POST", "/v1/inputs", object{"project": w.dirs[0], "text": "@say two", "wait": true}).problem(logFailed),
			} {
				if !strings.HasPrefix(p.Detail, refusal) || !strings.Contains(p.Detail, change.fault) {
					t.Errorf("the problem is %q", p.Detail)
				}
			}
			<-feed.over
			if _, err := l.follow(&follower{}, reader); err == nil || !strings.Contains(err.Error(), change.fault) {
				t.Errorf("a feed begins again: %v", err)
			}
			w.alter(change.repaired)
			w.ask(w.dirs[0], "@say three")
			if e := s.event(); e["text"] != "@say three" {
				t.Errorf("after the repair the stream goes on with %v", e)
			}
		})
	}
}
