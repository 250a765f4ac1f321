package web

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/service/access"
)

// chooses is an agent with modes and models. The registry knows the strict modes of claude.
const chooses = `[session/new]
@set modes {"currentModeId":"default","availableModes":[{"id":"default","name":"Default"},{"id":"acceptEdits","name":"Accept edits"},{"id":"plan","name":"Plan"}]}
@set configOptions [{"id":"model","name":"Model","category":"model","type":"select","currentValue":"small","options":[{"value":"small","name":"Small"},{"value":"large","name":"Large"}]}]`

// TestModelAndMode checks that an input can choose a model of its agent, and a mode in which the
// agent asks as much or does less. An input with an impossible choice is not sent.
func TestModelAndMode(t *testing.T) {
	w := newWorld(t, 1, namedProvider(t, "claude", chooses))
	in := func(more object) object {
		o := object{"project": w.dirs[0], "provider": "claude", "text": "@show session", "wait": true}
		for k, v := range more {
			o[k] = v
		}
		return o
	}
	w.do("POST", "/v1/inputs", in(object{"mode": "acceptEdits"})).problem(forbidden)
	w.do("POST", "/v1/inputs", in(object{"mode": "none"})).problem(unfit)
	w.do("POST", "/v1/inputs", in(object{"model": "huge"})).problem(unfit)
	if n := w.count(w.dirs[0], event.Requested); n != 0 {
		t.Errorf("%d calls", n)
	}
	first := w.do("POST", "/v1/inputs", in(object{"mode": "plan", "model": "large"})).want(200).object()
	session := first["session_id"].(string)
	shown := w.do("GET", "/v1/sessions/"+session, nil).want(200).object()["offers"].(object)
	if shown["mode"] != "plan" || shown["model"] != "large" || fmt.Sprint(shown["models"]) != "[small large]" {
		t.Errorf("%v", shown)
	}
	if modes := items(shown, "modes"); len(modes) != 2 || modes[0]["id"] != "default" || modes[1]["id"] != "plan" {
		t.Errorf("%v", modes)
	}
	// The choice holds in the session until a later input changes it.
	w.do("POST", "/v1/inputs", object{"project": w.dirs[0], "session": session, "text": "@say next",
		"wait": true}).want(200)
	if shown := w.do("GET", "/v1/sessions/"+session, nil).object()["offers"].(object); shown["mode"] != "plan" {
		t.Errorf("%v", shown)
	}
	w.do("POST", "/v1/inputs", object{"project": w.dirs[0], "session": session, "text": "@say next", "mode": "default",
		"wait": true}).want(200)
	if shown := w.do("GET", "/v1/sessions/"+session, nil).object()["offers"].(object); shown["mode"] != "default" ||
		shown["model"] != "large" {
		t.Errorf("%v", shown)
	}
	// A new session has no choice yet.
	for _, p := range items(w.do("GET", "/v1/providers?project="+w.dirs[0], nil).want(200).object(), "providers") {
		if o, _ := p["offers"].(object); p["id"] == "claude" && (fmt.Sprint(o["models"]) != "[small large]" ||
			o["mode"] != nil) {
			t.Errorf("%v", p)
		}
	}
}

// TestDevicesOverHTTP checks that an administrator sees and revokes all devices. Another device can
// revoke only itself.
func TestDevicesOverHTTP(t *testing.T) {
	w := newWorld(t, 1)
	admin, other := bearer(w.newToken("boss", access.Admin)), bearer(w.newToken("other", access.Ask))
	ids := map[string]string{}
	for _, d := range items(w.do("GET", "/v1/devices", nil, admin).want(200).object(), "devices") {
		ids[d["name"].(string)] = d["id"].(string)
		if d["key"] != nil || d["token"] != nil || d["kind"] != "program" {
			t.Errorf("%v", d)
		}
	}
	if len(ids) != 3 {
		t.Fatalf("%v", ids)
	}
	revoke := func(ref string, who func(*http.Request)) *response {
		return w.do("POST", "/v1/devices/"+ref+"/revoke", object{}, who)
	}
	revoke(ids["program"], other).problem(forbidden)
	revoke("nothing", admin).problem(notFound)
	revoke("program", admin).problem(notFound) // a name is not an id
	revoke(ids["other"], other).want(200)
	revoke(ids["other"], other).problem(unauthorized)
	s := w.follow("/v1/events", "")
	s.next()
	revoke(ids["program"], admin).want(200)
	for name := ""; name != "end"; name, _ = s.next() {
	}
	w.do("GET", "/v1/runs", nil).problem(unauthorized)
	if n := len(items(w.do("GET", "/v1/devices", nil, admin).want(200).object(), "devices")); n != 1 {
		t.Errorf("%d devices", n)
	}
	e, ok, err := w.user.Log().Last(t.Context(), event.Query{Types: []event.Type{event.DeviceRevoked}})
	if check(t, err); !ok || !strings.Contains(string(e.Payload), `"boss (web:`+ids["boss"]) {
		t.Errorf("%s", e.Payload)
	}
}

// bearer gives a request another token.
func bearer(token string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+token) }
}
