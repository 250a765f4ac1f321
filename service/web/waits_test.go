package web

import (
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/service/access"
	shell "github.com/perlica/perlica/service/web/page"
)

// TestRevokedWhileWaiting checks that a revoked device does not learn the result that it waits for.
// Its input is not called if it was still waiting.
func TestRevokedWhileWaiting(t *testing.T) {
	w := newWorld(t, 1)
	token, dev, err := w.devices.NewToken(t.Context(), "leaver", access.Rights{access.Ask}, "test")
	check(t, err)
	in := object{"project": w.dirs[0], "text": "@ask execute Build command=make"}
	first := w.do("POST", "/v1/inputs", in, withKey("first")).want(202).object()
	w.question()
	queued := object{"project": w.dirs[0], "session": first["session_id"], "text": "@say queued"}
	w.do("POST", "/v1/inputs", queued, bearer(token), withKey("queued")).want(202)
	in["wait"] = true
	type answered struct {
		got *response
		err error
	}
	waits := make(chan answered, 1)
	go func() {
		got, err := w.try("POST", "/v1/inputs", in, bearer(token), withKey("first"))
		waits <- answered{got, err}
	}()
	_, err = w.devices.Revoke(t.Context(), dev.ID, "test")
	check(t, err)
	select {
	case a := <-waits:
		check(t, a.err)
		a.got.problem(unauthorized)
	case <-time.After(longest / 4):
		t.Fatal("the device that was revoked still waits")
	}
	w.answer(w.question(), "reject_once").want(200)
	w.do("POST", "/v1/inputs", in, withKey("first")).want(200)
	queued["wait"] = true
	for got := w.do("POST", "/v1/inputs", queued, withKey("queued")); got.status != http.StatusOK; got = w.do("POST",
		"/v1/inputs", queued, withKey("queued")) {
		// The request joined the pending input of the revoked device.
		got.problem(unfit)
	}
	if n := w.count(w.dirs[0], event.Requested); n != 2 {
		t.Errorf("%d calls", n)
	}
}

// TestTooManyInputs checks the limit of waiting inputs, because they wait in memory.
func TestTooManyInputs(t *testing.T) {
	w := newWorld(t, 1)
	first := w.do("POST", "/v1/inputs", object{"project": w.dirs[0],
		"text": "@ask execute Build command=make"}).want(202).object()
	q := w.question()
	in := object{"project": w.dirs[0], "session": first["session_id"], "text": "@say next"}
	for range mostInputs - 1 {
		w.do("POST", "/v1/inputs", in).want(202)
	}
	w.do("POST", "/v1/inputs", in).problem(tooMany)
	// Stop the server before its turn ends, so that no waiting input is sent.
	w.server.Stop()
	w.answer(q, "reject_once").want(200)
}

// TestTooManyStreams checks the limit of open streams. The end of one makes room for another.
func TestTooManyStreams(t *testing.T) {
	w := newWorld(t, 1)
	for range 999 { // a user may have 1,000 streams
		w.server.streams <- struct{}{}
	}
	last := w.follow("/v1/events", "")
	last.next() // the stream is open
	w.do("GET", "/v1/events", nil).problem(tooMany)
	w.do("GET", "/v1/events?after=0", nil, json_).want(200) // a page is not a stream
	last.close()
	for end := time.Now().Add(longest); len(w.server.streams) == 1000; w.do("GET", "/v1/runs?limit=1", nil).want(200) {
		if time.Now().After(end) {
			t.Fatal("a stream that has ended is still counted")
		}
	}
	again := w.follow("/v1/events", "")
	again.next()
	again.close()
}

// TestSeveralIDs checks that an input with several ids is refused.
func TestSeveralIDs(t *testing.T) {
	w := newWorld(t, 1)
	for _, keys := range [][]string{{"a", "b"}, {""}} {
		w.do("POST", "/v1/inputs", object{"project": w.dirs[0], "text": "@say no"},
			func(r *http.Request) { r.Header["Idempotency-Key"] = keys }).problem(badRequest)
	}
	if runs := items(w.do("GET", "/v1/runs", nil).object(), "runs"); len(runs) > 0 {
		t.Errorf("something was sent: %v", runs)
	}
}

// TestBase checks that the page has one address below a path.
func TestBase(t *testing.T) {
	w := newWorld(t, 1, withPage, func(o *Options) { o.Base = "/perlica" })
	client := *w.http.Client()
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	for path, want := range map[string]int{"/perlica": 308, "/perlica/": 200, "/": 200, "/perlica/v1/runs": 401,
		"/perlicax": 404, "//perlica": 404} {
		u, err := url.Parse(w.http.URL)
		check(t, err)
		u.Path = path
		res, err := client.Get(u.String())
		check(t, err)
		res.Body.Close()
		if res.StatusCode != want || want == 308 && res.Header.Get("Location") != "/perlica/" {
			t.Errorf("%s: %d %s", path, res.StatusCode, res.Header.Get("Location"))
		}
	}
}

func withPage(o *Options) { o.Page = shell.Files() }
