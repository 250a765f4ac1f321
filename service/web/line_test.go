package web

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/kernel/project"
	"github.com/perlica/perlica/service/access"
)

// busy starts a session, lets its turn ask a question, and returns the session while the question is open.
func (w *world) busy() string {
	w.t.Helper()
	session, _ := w.send("@ask execute Build command=make", "")
	w.question()
	return session
}

// called returns the ids of the called inputs in the order of their calls.
func (w *world) called(dir string) (ids []string) {
	w.t.Helper()
	log := w.reader(dir)
	defer log.Close()
	for e, err := range log.Events(w.t.Context(), event.Query{Types: []event.Type{event.Requested}}) {
		check(w.t, err)
		ids = append(ids, string(e.Input))
	}
	return ids
}

// TestLineSurvivesTheServer checks that the next server sends the waiting inputs in their order, each with its own
// settings. Sending one of them again makes no second call.
func TestLineSurvivesTheServer(t *testing.T) {
	w := newWorld(t, 1)
	session := w.busy()
	file := object{"name": "notes.txt", "data": base64.StdEncoding.EncodeToString([]byte("some notes"))}
	ids := []string{"first", "second", "third"}
	bodies := map[string]object{
		"first":  {"project": w.dirs[0], "session": session, "text": "@say one", "attachments": []any{file}},
		"second": {"project": w.dirs[0], "session": session, "text": "@ask execute Build", "permissions": "deny"},
		"third":  {"project": w.dirs[0], "session": session, "text": "@say three"},
	}
	for _, id := range ids {
		if got := w.do("POST", "/v1/inputs", bodies[id], withKey(id)).want(202).object(); got["state"] != "queued" {
			t.Fatalf("%v", got)
		}
	}
	stop(t, w.server, w.http)
	if n := w.count(w.dirs[0], event.MessageWithdrawn); n != 0 {
		t.Fatalf("%d inputs were taken out of the line", n)
	}
	w.again()
	for _, id := range ids {
		bodies[id]["wait"] = true
		got := w.do("POST", "/v1/inputs", bodies[id], withKey(id)).want(200).object()
		if got["session_id"] != session {
			t.Errorf("%s was sent in the session %v, want %s", id, got["session_id"], session)
		}
		res := got["result"].(object)
		if p := res["permissions"].(object); id == "second" && p["denied"] != 1.0 {
			t.Errorf("the second input ran with other permissions: %v", p)
		}
		run := w.do("GET", "/v1/runs/"+got["run_id"].(string), nil).want(200).object()
		if files, _ := run["attachments"].([]any); id == "first" && len(files) != 1 {
			t.Errorf("the first input has the files %v", files)
		}
	}
	if got := w.called(w.dirs[0]); len(got) != 4 || !slices.Equal(got[1:], ids) {
		t.Errorf("called %v, want an id and %v", got, ids)
	}
}

// TestLineOfANewSession checks that an input that waits for a place in a new session continues in this session.
func TestLineOfANewSession(t *testing.T) {
	w := newWorld(t, 1, func(o *Options) { o.Here.Config.Service.Agents = 1 })
	w.server.slots <- struct{}{} // as if another turn had the only place
	body := object{"project": w.dirs[0], "text": "@say new"}
	session := w.do("POST", "/v1/inputs", body, withKey("new")).want(202).object()["session_id"]
	stop(t, w.server, w.http)
	w.again()
	body["wait"] = true
	got := w.do("POST", "/v1/inputs", body, withKey("new")).want(200).object()
	if got["session_id"] != session {
		t.Errorf("the input was sent in the session %v, want %v", got["session_id"], session)
	}
	if n := w.count(w.dirs[0], event.SessionCreated); n != 1 {
		t.Errorf("%d sessions", n)
	}
}

// TestLineOfARevokedDevice checks that the next server does not send the input of a device that was revoked.
func TestLineOfARevokedDevice(t *testing.T) {
	w := newWorld(t, 1)
	session := w.busy()
	token := w.newToken("second", access.Ask)
	body := object{"project": w.dirs[0], "session": session, "text": "@say late"}
	asSecond := bearer(token)
	w.do("POST", "/v1/inputs", body, withKey("late"), asSecond).want(202)
	stop(t, w.server, w.http)
	_, err := w.devices.Revoke(t.Context(), "second", "test")
	check(t, err)
	log := w.reader(w.dirs[0])
	defer log.Close()
	w.again()
	after := object{"project": w.dirs[0], "session": session, "text": "@say after", "wait": true}
	w.do("POST", "/v1/inputs", after).want(200)
	if got := w.called(w.dirs[0]); len(got) != 2 || slices.Contains(got, "late") {
		t.Errorf("called %v", got)
	}
	changes, err := log.Changes(t.Context())
	check(t, err)
	defer func() { check(t, changes.Close()) }()
	// The refused input may leave the line after the other one was answered.
	for ; w.count(w.dirs[0], event.MessageWithdrawn) == 0; check(t, err) {
		_, err = changes.Wait(t.Context(), longest)
	}
	if n := w.count(w.dirs[0], event.MessageWithdrawn); n != 1 {
		t.Errorf("%d inputs were taken out of the line, want 1", n)
	}
}

// TestLineOfAnOpenSession checks that an input stays in the line while another process has its session. Another text
// with the id of this input is refused. The same text is sent once.
func TestLineOfAnOpenSession(t *testing.T) {
	w := newWorld(t, 1)
	session := w.busy()
	body := object{"project": w.dirs[0], "session": session, "text": "@say mine"}
	w.do("POST", "/v1/inputs", body, withKey("mine")).want(202)
	stop(t, w.server, w.http)
	p, err := project.Find(w.dirs[0], w.environ, nil)
	check(t, err)
	r, done, err := p.Open(t.Context(), "test")
	check(t, err)
	setup, err := p.Conversation(t.Context(), r, event.SessionID(session), "")
	check(t, err)
	conv, err := r.Converse(t.Context(), setup, 0, "chat")
	check(t, err)
	w.again()
	other := object{"project": w.dirs[0], "session": session, "text": "@say other"}
	w.do("POST", "/v1/inputs", other, withKey("mine")).problem(inputDiffers)
	body["wait"] = true
	w.do("POST", "/v1/inputs", body, withKey("mine")).problem(sessionBusy)
	shown := w.do("GET", "/v1/sessions/"+session, nil).want(200).object()
	if got := shown["inputs"].([]any); len(got) != 1 || got[0] != "mine" {
		t.Errorf("the inputs without a result are %v, want mine", got)
	}
	check(t, conv.Close(t.Context()))
	check(t, done())
	w.do("POST", "/v1/inputs", body, withKey("mine")).want(200)
	if got := w.called(w.dirs[0]); len(got) != 2 || got[1] != "mine" {
		t.Errorf("called %v", got)
	}
}

// TestLineOfMaskedText checks that an input does not wait on record if the log masks its text. The next server would
// send another text.
func TestLineOfMaskedText(t *testing.T) {
	w := newWorld(t, 1, func(o *Options) {
		check(t, os.MkdirAll(o.Dirs.Config, 0o700))
		text := "[log]\nredact_before_hash = true\n"
		check(t, os.WriteFile(filepath.Join(o.Dirs.Config, "config.toml"), []byte(text), 0o600))
	})
	session := w.busy()
	body := object{"project": w.dirs[0], "session": session, "text": "@say sk-ant-api03-" + strings.Repeat("aB3", 30)}
	w.do("POST", "/v1/inputs", body, withKey("secret")).want(202)
	body["text"] = "@say plain"
	w.do("POST", "/v1/inputs", body, withKey("plain")).want(202)
	if n := w.count(w.dirs[0], event.MessageQueued); n != 1 {
		t.Errorf("%d inputs are in the line, want the plain one", n)
	}
}

// TestLineOfAStoppedTurn checks an input that gets its place while the server ends. If the input was not called, it
// stays in the line.
func TestLineOfAStoppedTurn(t *testing.T) {
	w := newWorld(t, 1, func(o *Options) {
		o.Here.Config.Service.Agents = 1
		check(t, os.MkdirAll(o.Dirs.Config, 0o700))
		text := "[providers.deaf]\nadapter.command = \"sleep\"\nadapter.args = [\"1000\"]\n"
		check(t, os.WriteFile(filepath.Join(o.Dirs.Config, "config.toml"), []byte(text), 0o600))
	})
	w.server.slots <- struct{}{}
	body := object{"project": w.dirs[0], "text": "@say late", "provider": "deaf", "model": "any"}
	w.do("POST", "/v1/inputs", body).want(202)
	<-w.server.slots // the input takes the place and waits for its agent
	stop(t, w.server, w.http)
	queued, left := w.count(w.dirs[0], event.MessageQueued), w.count(w.dirs[0], event.MessageWithdrawn)
	if queued != 1 || left != 0 {
		t.Errorf("%d inputs entered the line and %d left it, want 1 and 0", queued, left)
	}
}
