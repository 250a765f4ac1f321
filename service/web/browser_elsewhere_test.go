package web

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// elsewhere tries from a page of another port what a page can do to this server, and lists what came of it.
const elsewhere = `(async (at, input) => {
	const got = {};
	const tried = async (name, f) => { got[name] = await f().catch((err) => 'refused: ' + err.name); };
	const send = (more) => fetch(at + 'v1/inputs', {method: 'POST', body: input, ...more}).then((r) => 'answered ' + r.status + ' ' + r.type);
	await tried('read', () => fetch(at + 'v1/runs').then((r) => 'answered ' + r.status));
	await tried('shell', () => fetch(at).then((r) => 'answered ' + r.status));
	await tried('post', () => send({headers: {'Content-Type': 'application/json'}}));
	await tried('simple post', () => send({mode: 'no-cors', credentials: 'include', headers: {'Content-Type': 'text/plain'}}));
	await tried('beacon', async () => { navigator.sendBeacon(at + 'v1/inputs', new Blob([input], {type: 'text/plain'})); return 'sent'; });
	await tried('stream', () => new Promise((resolve) => {
		const s = new EventSource(at + 'v1/events', {withCredentials: true});
		s.onopen = () => resolve('opened');
		s.onerror = () => { s.close(); resolve('refused'); };
	}));
	for (const path of ['acp', 'v1/events']) await tried('WebSocket ' + path, () => new Promise((resolve) => {
		const s = new WebSocket(at.replace('http', 'ws') + path);
		s.onopen = () => resolve('opened');
		s.onclose = () => resolve('refused');
	}));
	await tried('script', () => new Promise((resolve) => {
		const s = document.createElement('script');
		s.src = at + 'app.js';
		s.onload = () => resolve('loaded');
		s.onerror = () => resolve('refused');
		document.head.append(s);
	}));
	const frame = document.createElement('iframe');
	frame.name = 'inside';
	document.body.append(frame);
	const loaded = () => new Promise((resolve) => { frame.onload = resolve; });
	const inside = () => { try { return frame.contentDocument ? 'empty' : 'closed'; } catch { return 'closed'; } };
	let over = loaded();
	frame.src = at;
	await over;
	got.frame = frame.contentWindow.length + ' ' + inside();
	const form = document.createElement('form');
	form.method = 'POST';
	form.action = at + 'v1/inputs';
	form.enctype = 'text/plain';
	form.target = 'inside';
	const field = document.createElement('input');
	field.name = input.slice(0, -1) + ',"x":"';
	field.value = '"}';
	form.append(field);
	document.body.append(form);
	over = loaded();
	form.submit();
	await over;
	got.form = inside();
	return got;
})($?, $?)`

// testElsewhere: a page of another port of the same host, in the browser that is paired, reads nothing, sends nothing, and
// shows nothing of this server in a frame.
func testElsewhere(t *testing.T, b *browser) {
	own := b.paired("desk", desk)
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, "<!DOCTYPE html><title>Elsewhere</title><body>")
	}))
	t.Cleanup(other.Close)
	before := len(items(b.do("GET", "/v1/runs", nil).object(), "runs"))
	p := b.open(own, desk) // the same profile
	for _, name := range []string{"127.0.0.1", "localhost"} {
		p.do(chromedp.Navigate(strings.Replace(other.URL, "127.0.0.1", name, 1)))
		got := js[map[string]string](p, elsewhere, b.http.URL+"/", fmt.Sprintf(`{"project":%q,"text":"@say no"}`, b.dirs[0]))
		for what, want := range map[string]string{
			"read": "refused: TypeError", "shell": "refused: TypeError", "post": "refused: TypeError", "simple post": "refused: TypeError", "beacon": "sent", "stream": "refused",
			"WebSocket acp": "refused", "WebSocket v1/events": "refused", "script": "refused", "frame": "0 closed", "form": "closed",
		} {
			if got[what] != want {
				t.Errorf("a page at %s, %s: %q, want %q", name, what, got[what], want)
			}
		}
	}
	if n := len(items(b.do("GET", "/v1/runs", nil).object(), "runs")); n != before {
		t.Errorf("%d inputs came from elsewhere", n-before)
	}
	own.front()
	own.wait("document.querySelector('.link-state.live')") // who is paired goes on
}
