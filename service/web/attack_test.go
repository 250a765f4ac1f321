package web

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/service/access"
	"github.com/perlica/perlica/service/web/device"
	"github.com/perlica/perlica/service/web/device/devicetest"
	"github.com/perlica/perlica/service/web/page"
)

// TestAttacks checks that a request from a foreign page or host is refused with any credential.
func TestAttacks(t *testing.T) {
	w := newWorld(t, 1)
	set := func(name, value string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set(name, value) }
	}
	host := func(name string) func(*http.Request) { return func(r *http.Request) { r.Host = name } }
	own := w.http.Listener.Addr().String()
	_, port, err := net.SplitHostPort(own)
	check(t, err)
	input := object{"project": w.dirs[0], "text": "@say no"}
	for name, a := range map[string]struct {
		change func(*http.Request)
		want   kind
	}{
		"another host":             {host("evil.example"), misdirected},
		"a name that was rebound":  {host("evil.example:" + port), misdirected},
		"another port":             {host("127.0.0.1:1"), misdirected},
		"a host that looks alike":  {host(own + ".evil.example"), misdirected},
		"no host":                  {host(" "), misdirected},
		"a foreign origin":         {set("Origin", "https://evil.example"), foreignOrigin},
		"another port's page":      {set("Origin", "http://127.0.0.1:1"), foreignOrigin},
		"a frame without origin":   {set("Origin", "null"), foreignOrigin},
		"an origin like ours":      {set("Origin", "http://"+own+".evil.example"), foreignOrigin},
		"an extension":             {set("Origin", "chrome-extension://"+own), foreignOrigin},
		"a page of another site":   {set("Sec-Fetch-Site", "cross-site"), foreignOrigin},
		"a page of the same site":  {set("Sec-Fetch-Site", "same-site"), foreignOrigin},
		"a form":                   {set("Content-Type", "application/x-www-form-urlencoded"), mediaType},
		"a form with files":        {set("Content-Type", "multipart/form-data; boundary=x"), mediaType},
		"a form as text":           {set("Content-Type", "text/plain"), mediaType},
		"a body in another coding": {set("Content-Encoding", "gzip"), mediaType},
		"no type":                  {func(r *http.Request) { r.Header.Del("Content-Type") }, mediaType},
		"a WebSocket": {func(r *http.Request) {
			r.Header.Set("Upgrade", "websocket")
			r.Header.Set("Connection",
				"Upgrade")
		}, badRequest},
		"no credential": {without, unauthorized},
		"a wrong token": {set("Authorization", "Bearer perlica_web_x_y"), unauthorized},
		"a cookie for a token": {func(r *http.Request) { without(r); r.Header.Set("Cookie", "token="+w.token) },
			unauthorized},
		"basic authentication": {func(r *http.Request) { r.SetBasicAuth("x", w.token) }, unauthorized},
		"a token in the address": {func(r *http.Request) { without(r); r.URL.RawQuery = "access_token=" + w.token },
			unauthorized},
		"a parameter of no meaning": {func(r *http.Request) { r.URL.RawQuery = "x=1" }, badRequest},
		"an id of two lines":        {set("Idempotency-Key", "a b"), badRequest},
	} {
		t.Run(name, func(t *testing.T) {
			req := w.request("POST", "/v1/inputs", input)
			a.change(req)
			res, err := w.http.Client().Do(req)
			if name == "no host" && err != nil {
				return
			}
			check(t, err)
			defer res.Body.Close()
			b, _ := io.ReadAll(res.Body)
			w.hold(req, res, b)
			(&response{t, res.StatusCode, res.Header, b}).problem(a.want)
		})
	}
	for _, change := range []func(*http.Request){host("evil.example"), set("Origin", "https://evil.example")} {
		// The answer reveals only that the server is alive.
		w.do("GET", "/healthz", nil, change).want(200)
	}
	if runs := items(w.do("GET", "/v1/runs", nil).object(), "runs"); len(runs) > 0 {
		t.Errorf("something was sent: %v", runs)
	}
}

// raw sends bytes and returns the status of the answer. 0 means that the connection was closed.
func (w *world) raw(text string) int {
	w.t.Helper()
	c, err := net.Dial("tcp", w.http.Listener.Addr().String())
	check(w.t, err)
	defer c.Close()
	check(w.t, c.SetDeadline(time.Now().Add(longest)))
	// The server may have closed the connection.
	_, _ = io.WriteString(c, text)
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return 0
	}
	defer res.Body.Close()
	return res.StatusCode
}

// TestRawRequests checks that the server rejects paths with dots, repeated lengths, broken headers
// and large bodies. No sent text becomes a header of the answer or a line of the debug trail.
func TestRawRequests(t *testing.T) {
	var trail safeBuffer
	w := newWorld(t, 1, func(o *Options) {
		o.Trail = slog.New(slog.NewTextHandler(&trail, nil))
		o.Page = page.Files()
	})
	head := "\r\nHost: " + w.http.Listener.Addr().String() + "\r\nAuthorization: Bearer " + w.token + "\r\n"
	for _, path := range []string{
		"/../etc/passwd", "/..%2f..%2fetc/passwd", "/%2e%2e/page.go", "/./index.html", "//etc/passwd", "/v1/../v1/contexts",
		"/v1//contexts",
		"/.git/config", "/index.html/", "/assets/", "/v1/contexts/", "/v1/contexts%00", "/%5c..%5cwindows",
		"/v1/runs/..%2f..%2fx", "/index.html%0d%0aX-Evil:1",
	} {
		if got := w.raw("GET " + path + " HTTP/1.1" + head + "Connection: close\r\n\r\n"); got != 404 && got != 400 {
			t.Errorf("%s: %d", path, got)
		}
	}
	for name, text := range map[string]string{
		"two lengths": "POST /v1/inputs HTTP/1.1" + head +
			"Content-Type: application/json\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
		"length and parts": "POST /v1/inputs HTTP/1.1" + head +
			"Content-Type: application/json\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"two hosts":       "GET /v1/contexts HTTP/1.1" + head + "Host: evil.example\r\n\r\n",
		"a body with GET": "GET /v1/contexts HTTP/1.1" + head + "Content-Length: 2\r\n\r\n{}",
		"too large": "POST /v1/questions/x/answer HTTP/1.1" + head +
			"Content-Type: application/json\r\nContent-Length: 100000\r\n\r\n" + strings.Repeat(" ", 100_000),
		"no HTTP":                  "\x16\x03\x01\x02\x00\x01\x00\r\n\r\n",
		"another host in the line": "GET http://evil.example/v1/contexts HTTP/1.1" + head + "\r\n",
		"CONNECT":                  "CONNECT 127.0.0.1:22 HTTP/1.1" + head + "\r\n",
		"TRACE":                    "TRACE /v1/contexts HTTP/1.1" + head + "\r\n",
	} {
		if got := w.raw(text); got >= 200 && got < 400 {
			t.Errorf("%s: %d", name, got)
		}
	}
	w.do("GET", "/v1/runs/"+url.PathEscape("x\n2026 level=ERROR msg=forged"), nil).want(404)
	if strings.Contains(trail.String(), "\n2026") || strings.Contains(trail.String(), w.token) {
		t.Errorf("the trail: %s", trail.String())
	}
}

// TestSlowRequests checks that the server drops a client that reads its stream slowly. The other
// streams are not delayed.
func TestSlowRequests(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1, func(o *Options) { o.Patience = time.Second })
	narrow := httptest.NewUnstartedServer(w.server)
	narrow.Config.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		check(t, c.(*net.TCPConn).SetWriteBuffer(4096))
		return ctx
	}
	narrow.Start()
	defer narrow.Close()
	c, err := net.Dial("tcp", narrow.Listener.Addr().String())
	check(t, err)
	defer c.Close()
	check(t, c.(*net.TCPConn).SetReadBuffer(4096))
	_, err = io.WriteString(c, "GET /v1/events?after=0 HTTP/1.1\r\nHost: "+w.http.Listener.Addr().String()+
		"\r\nAuthorization: Bearer "+w.token+"\r\n\r\n")
	check(t, err)
	check(t, c.SetDeadline(time.Now().Add(longest)))
	w.ask(w.dirs[0], "@say first")
	for in := bufio.NewReader(c); ; {
		line, err := in.ReadString('\n')
		check(t, err)
		if strings.Contains(line, "run.finished") {
			// The client follows now and reads nothing further.
			break
		}
	}
	w.ask(w.dirs[0], "@say "+strings.Repeat("x", 1<<20))
	for end := time.Now().Add(longest); w.following() > 0; w.do("GET", "/v1/runs?limit=1", nil).want(200) {
		if time.Now().After(end) {
			t.Fatal("it is still waited for")
		}
	}
	if n, err := io.Copy(io.Discard, c); n > 1<<20 || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%d bytes came, %v", n, err)
	}
}

// following returns the number of streams.
func (w *world) following() int {
	w.server.logs.mu.Lock()
	defer w.server.logs.mu.Unlock()
	n := 0
	for _, l := range w.server.logs.open {
		l.mu.Lock()
		if f := l.feed; f != nil {
			f.mu.Lock()
			n += len(f.followers)
			f.mu.Unlock()
		}
		l.mu.Unlock()
	}
	return n
}

// TestDeviceSigns checks that a browser's answer counts only with a signature over the shown
// content. The signature is on record. An answer without it, or with the signature of another
// choice, does not count.
func TestDeviceSigns(t *testing.T) {
	w := newWorld(t, 1)
	key := devicetest.NewKey()
	id := w.pair(key, "phone", access.Read, access.Approve)
	w.do("POST", "/v1/inputs", object{"project": w.dirs[0], "text": "@ask execute Build command=make"}).want(202)
	q := w.question()
	option, digest := optionOf(t, q, "allow_once"), q["digest"].(string)
	say := func(signature string) *response {
		body := object{"option": option, "digest": digest, "signature": signature}
		return w.signed(key, id, "POST", "/v1/questions/"+q["id"].(string)+"/answer", body)
	}
	say("").problem(forbidden)
	say(key.SignAnswer(q["id"].(string), digest, "another")).problem(forbidden)
	say(key.SignAnswer(q["id"].(string), digest, option)).want(200)
	log := w.reader(w.dirs[0])
	defer log.Close()
	e, ok, err := log.Last(t.Context(), event.Query{Types: []event.Type{event.InteractionAnswered}})
	if check(t, err); !ok || !bytes.Contains(e.Payload, []byte(`"signature":`)) ||
		!bytes.Contains(e.Payload, []byte(digest)) || !bytes.Contains(e.Payload, []byte("phone (web:"+id+")")) {
		t.Errorf("%s", e.Payload)
	}
	w.signed(key, id, "POST", "/v1/inputs", object{"project": w.dirs[0], "text": "x"}).problem(forbidden)
}

// signed makes a request with a device's signature.
func (w *world) signed(key devicetest.Key, id, method, path string, body any) *response {
	w.t.Helper()
	return w.do(method, path, body, func(r *http.Request) {
		without(r)
		var b []byte
		if body != nil {
			in, err := r.GetBody()
			check(w.t, err)
			b, err = io.ReadAll(in)
			check(w.t, err)
		}
		key.Sign(r, b, id, w.devices.Nonce())
	})
}

// pair pairs a device over HTTP and returns its id. It plays both the browser and the person at the
// terminal.
func (w *world) pair(key devicetest.Key, name string, rights ...access.Right) string {
	w.t.Helper()
	p, err := w.devices.OpenPairing(w.t.Context(), rights, "test")
	check(w.t, err)
	w.do("POST", "/v1/pairing/begin", object{"code": "wrong"}, without).problem(forbidden)
	begun := w.do("POST", "/v1/pairing/begin", object{"code": p.Code}, without).want(200)
	if begun.header.Get("Clear-Site-Data") != `"storage"` {
		w.t.Errorf("%v", begun.header)
	}
	// A code counts once.
	w.do("POST", "/v1/pairing/begin", object{"code": p.Code}, without).problem(forbidden)
	handle := begun.object()["pairing"]
	word := w.do("POST", "/v1/pairing", object{"pairing": handle, "name": name, "key": key.JWK()}, without).
		want(202).object()["word"]
	asks, err := p.Wait(w.t.Context())
	check(w.t, err)
	if asks.Word != word || asks.Name != name {
		w.t.Errorf("%+v, %v", asks, word)
	}
	_, err = p.Decide(w.t.Context(), true, "test")
	check(w.t, err)
	var state device.PairingState
	w.do("GET", "/v1/pairing/"+handle.(string), nil, without).want(200).into(&state)
	if state.State != "paired" || state.Device == "" {
		w.t.Errorf("%+v", state)
	}
	return state.Device
}

// safeBuffer is a buffer for several goroutines.
type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *safeBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *safeBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}
