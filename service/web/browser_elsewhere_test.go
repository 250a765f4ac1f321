//go:build !race

package web

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// elsewhere tries several requests to this server from a page of another port. It lists their
// results.
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
	const framed = (name, src) => new Promise((resolve) => {
		const frame = document.createElement('iframe');
		Object.assign(frame, {name, src, onload: () => resolve(frame)});
		document.body.append(frame);
	});
	await framed('page', at);
	const target = await framed('form', 'about:blank');
	const form = document.createElement('form');
	form.method = 'POST';
	form.action = at + 'v1/inputs';
	form.enctype = 'text/plain';
	form.target = 'form';
	const field = document.createElement('input');
	field.name = input.slice(0, -1) + ',"x":"';
	field.value = '"}';
	form.append(field);
	document.body.append(form);
	const answered = new Promise((resolve) => { target.onload = resolve; });
	form.submit();
	await answered;
	return got;
})($?, $?)`

// testElsewhere uses a page of another port of the same host in the paired browser. This page can
// read and send nothing and cannot frame the server's page.
func testElsewhere(t *testing.T, b *browser) {
	own := b.paired("desk", desktop)
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, "<!DOCTYPE html><title>Elsewhere</title><body>")
	}))
	t.Cleanup(other.Close)
	before := len(items(b.do("GET", "/v1/runs", nil).object(), "runs"))
	p := b.open(own, desktop) // the same profile
	for _, name := range []string{"127.0.0.1", "localhost"} {
		p.do(chromedp.Navigate(strings.Replace(other.URL, "127.0.0.1", name, 1)))
		got := js[map[string]string](p, elsewhere, b.http.URL+"/", fmt.Sprintf(`{"project":%q,"text":"@say no"}`, b.dirs[0]))
		for what, want := range map[string]string{
			"read": "refused: TypeError", "shell": "refused: TypeError", "post": "refused: TypeError",
			"simple post": "refused: TypeError", "beacon": "sent", "stream": "refused",
			"WebSocket acp": "refused", "WebSocket v1/events": "refused", "script": "refused",
		} {
			if got[what] != want {
				t.Errorf("a page at %s, %s: %q, want %q", name, what, got[what], want)
			}
		}
		p.do(chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
			got, err := cdp.Call(ctx, target, cdppage.GetFrameTree, cdp.Empty{})
			if err != nil {
				return err
			}
			for _, inside := range got.FrameTree.ChildFrames {
				if inside.Frame.UnreachableURL == "" {
					t.Errorf("a page at %s has %s in a frame", name, inside.Frame.URL)
				}
			}
			return nil
		}))
	}
	if n := len(items(b.do("GET", "/v1/runs", nil).object(), "runs")); n != before {
		t.Errorf("%d inputs came from elsewhere", n-before)
	}
	own.front()
	// The paired page still works.
	own.wait("document.querySelector('.link-state.live')")
}
