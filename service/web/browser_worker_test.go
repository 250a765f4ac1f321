//go:build !race

package web

import (
	"context"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/chromedp/cdproto/cdp"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/serviceworker"
	"github.com/chromedp/chromedp"

	"github.com/perlica/perlica/service/access"
)

// overTLS restarts the server over https, because a service worker needs https.
func (b *browser) overTLS() {
	b.t.Helper()
	stop(b.t, b.server, b.http)
	b.secure = true
	b.start()
}

// controlled waits until the service worker of this version controls the page.
func (p *tab) controlled() {
	p.t.Helper()
	p.wait("navigator.serviceWorker.controller && navigator.serviceWorker.controller.state === 'activated'")
}

// kept returns the paths that the service worker has cached.
func (p *tab) kept() []string {
	p.t.Helper()
	return js[[]string](p,
		"caches.open('shell').then((c) => c.keys()).then((all) => all.map((r) => new URL(r.url).pathname).sort())")
}

// reload loads the page again, from the cache or the server.
func (p *tab) reload() {
	p.t.Helper()
	p.do(chromedp.Reload())
}

// testShell checks that the page opens without the server and says so. The page keeps none of the
// server's answers. It shows the failure of an answer. A newer page replaces the cached one.
func testShell(t *testing.T, b *browser) {
	b.overTLS()
	p := b.paired("phone", phone)
	p.controlled()
	if wrong := p.installable(); len(wrong) > 0 {
		t.Errorf("the page cannot be installed: %q", wrong)
	}
	_, run := b.send(`@ask execute "Build it" command=make`, "")
	p.sees("Build it")
	p.visit("#/record")
	p.wait("document.querySelector('#logs button')")
	worker, err := fs.ReadFile(b.opt.Page, "sw.js")
	check(t, err)
	list, _, _ := strings.Cut(string(worker), "]")
	var want []string
	for _, m := range regexp.MustCompile(`'([^']+)'`).FindAllStringSubmatch(list, -1) {
		want = append(want, path.Join("/", m[1]))
	}
	slices.Sort(want)
	if kept := p.kept(); !slices.Equal(kept, want) {
		t.Errorf("kept are %q,\nand the first visit loads %q", kept, want)
	}
	p.visit("#/now")
	p.read()
	p.wait("document.querySelector($?)", ready)
	p.unplug()
	p.click(ready)
	p.sees("your answer was not confirmed")
	p.show("unplugged")
	p.reload()
	p.sees("Perlica cannot be reached")
	p.show("without a server")
	if n := js[int](p, "document.querySelectorAll('.question').length"); n != 0 {
		t.Errorf("%d questions are shown that nothing said are open", n)
	}
	b.opt.Page = newer(t, b.opt.Page)
	b.again()
	p.reload()
	// This text belongs to the newer page.
	p.sees("Now or never")
	p.wait("caches.open('shell').then((c) => c.match('newer.js')).then((r) => Boolean(r)).then((there) => { " +
		"window.there = there; }) && window.there")
	p.unplug()
	p.reload()
	p.sees("Now or never")
	b.again()
	p.wait("document.querySelector('.link-state.live')")
	if n := len(items(b.do("GET", "/v1/runs/"+run+"/story", nil).want(200).object(), "steps")); n == 0 {
		t.Error("nothing is on record")
	}
}

// unplug ends the server like a killed process.
func (p *tab) unplug() {
	p.t.Helper()
	p.w.http.CloseClientConnections()
	stop(p.t, p.w.server, p.w.http)
	p.wait("document.querySelector('.link-state:not(.live)')")
}

// newer returns the next version of the page with another text and another module.
func newer(t *testing.T, page fs.FS) fs.FS {
	t.Helper()
	next := fstest.MapFS{"newer.js": {Data: []byte("export const newer = true;\n")}}
	check(t, fs.WalkDir(page, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(page, name)
		text := string(data)
		switch name {
		case "en.json":
			text = strings.Replace(text, `"now":"Now"`, `"now":"Now or never"`, 1)
		case "sw.js":
			text = strings.Replace(text, "'now.js',", "'now.js', 'newer.js',", 1)
		}
		next[name] = &fstest.MapFile{Data: []byte(text)}
		return err
	}))
	return next
}

// installable returns the reasons why the page cannot be installed.
func (p *tab) installable() (wrong []string) {
	p.t.Helper()
	p.do(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		res, err := cdp.Call(ctx, t, cdppage.GetInstallabilityErrors, cdp.Empty{})
		if err == nil {
			for _, e := range res.InstallabilityErrors {
				if e.ErrorID != "in-incognito" { // the test's profile is incognito
					wrong = append(wrong, e.ErrorID)
				}
			}
		}
		return err
	}))
	return wrong
}

// testPush checks that the page subscribes, the server wakes the device, and each push shows a
// notification. A browser subscribes only at its maker's push service, so the test replaces this
// one call.
func testPush(t *testing.T, b *browser) {
	service, option := withPush(t)
	option(&b.opt)
	b.overTLS()
	p := b.paired("phone", phone)
	p.controlled()
	p.do(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, cdp.Command[object, cdp.Empty]{Method: "Browser.grantPermissions"},
			object{"permissions": []string{"notifications"}, "origin": b.http.URL,
				"browserContextId": chromedp.FromContext(p.ctx).BrowserContextID})
		return err
	}))
	sub := service.Subscribe()
	js[any](p, `void (() => {
		let sub;
		PushManager.prototype.getSubscription = async () => sub;
		PushManager.prototype.subscribe = async (options) => {
			window.options = options;
			return sub = {toJSON: () => ({endpoint: $?, expirationTime: null, keys: {p256dh: $?, auth: $?}}), unsubscribe: async () => { sub = undefined; }};
		};
	})()`, sub.Endpoint, sub.Keys.P256dh, sub.Keys.Auth)
	p.visit("#/devices")
	p.wait("document.querySelector('#push')")
	p.click("#push[aria-pressed=false]")
	p.wait("document.querySelector('#push[aria-pressed=true]')")
	p.show("subscribed")
	p.looks("subscribed")
	if key := b.do("GET", "/v1/push", nil).object()["key"]; js[string](p, "window.options.applicationServerKey") != key ||
		!js[bool](p, "window.options.userVisibleOnly") {
		t.Error("it was subscribed under another key, or to be silent")
	}
	js[any](p, "void Object.defineProperty(document, 'hidden', {get: () => true}); void document.dispatchEvent(new "+
		"Event('visibilitychange'))")
	p.wait("document.querySelector('.link-state.hidden')")
	_, run := b.send(`@ask execute "Build it" command=make`, "")
	woken(t, service)
	p.deliver("a question waits")
	p.wait("navigator.serviceWorker.ready.then((r) => r.getNotifications()).then((all) => { window.shown = all.map((n) " +
		"=> n.title + ': ' + n.body); }) && window.shown && window.shown.length")
	want := []string{"Perlica: A question is waiting for an answer."}
	if shown := js[[]string](p, "window.shown"); !slices.Equal(shown, want) {
		t.Errorf("shown are %q", shown)
	}
	p.tap()
	p.wait("location.hash === '#/now'")
	note := `{"title":"A turn is finished in shop","body":"Session: <b>fixes</b>","tag":"one","page":"#/record"}`
	for range 2 { // a repetition replaces its notification
		p.deliver(note)
	}
	p.wait("navigator.serviceWorker.ready.then((r) => r.getNotifications({tag: 'one'})).then((all) => { window.told = " +
		"all.map((n) => n.title + ': ' + n.body); }) && window.told && window.told.length")
	want = []string{"A turn is finished in shop: Session: <b>fixes</b>"}
	if told := js[[]string](p, "window.told"); !slices.Equal(told, want) {
		t.Errorf("told are %q", told)
	}
	p.tap()
	p.wait("location.hash.startsWith('#/record')")
	p.visit("#/devices")
	p.click("#push[aria-pressed=true]")
	p.wait("document.querySelector('#push[aria-pressed=false]')")
	if list, err := b.server.push.Subscribed(); len(list) > 0 || err != nil {
		t.Errorf("subscribed are %v, %v", list, err)
	}
	b.do("POST", "/v1/runs/"+run+"/cancel", object{}).want(202)
}

// deliver hands a message to the page's service worker, as a push service does.
func (p *tab) deliver(text string) {
	p.t.Helper()
	p.do(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, serviceworker.Enable, cdp.Empty{})
		return err
	}))
	origin := p.w.http.URL
	id := ""
	for id == "" {
		js[any](p, "new Promise((r) => setTimeout(r, 20))")
		p.mu.Lock()
		id = p.worker
		p.mu.Unlock()
	}
	p.do(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, serviceworker.DeliverPushMessage,
			serviceworker.DeliverPushMessageParams{Origin: origin, RegistrationID: serviceworker.RegistrationID(id), Data: text})
		return err
	}))
}

// tap tells the service worker that its notification was tapped.
func (p *tab) tap() {
	p.t.Helper()
	all, err := chromedp.Targets(p.ctx)
	check(p.t, err)
	for _, info := range all {
		if info.Type != "service_worker" || !strings.HasPrefix(info.URL, p.w.http.URL) {
			continue
		}
		ctx, cancel := chromedp.NewContext(p.ctx, chromedp.WithTargetID(info.TargetID))
		defer cancel()
		_, err := chromedp.Run(ctx, chromedp.Evaluate[any](`registration.getNotifications().then(([n]) => {
			dispatchEvent(new NotificationEvent('notificationclick', {notification: n}));
		})`, chromedp.EvalAwaitPromise))
		check(p.t, err)
		return
	}
	p.t.Fatal("the service worker is not running")
}

// testIPhone checks that the page on an iPhone asks for its installation first and does not use up
// the code.
func testIPhone(t *testing.T, b *browser) {
	p := b.open(nil, phone)
	p.do(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, cdppage.AddScriptToEvaluateOnNewDocument, cdppage.AddScriptToEvaluateOnNewDocumentParams{
			Source: "Object.defineProperty(navigator, 'standalone', {value: false}); Object.defineProperty(navigator, " +
				"'maxTouchPoints', {value: 5});",
		})
		return err
	}))
	pairing, err := b.devices.OpenPairing(t.Context(), []access.Right{access.Read, access.Approve}, "test")
	check(t, err)
	p.do(chromedp.Navigate(b.http.URL + "/#pair=" + pairing.Code))
	p.sees("Add this page to the home screen")
	p.show("install")
	p.looks("install")
	if code := js[string](p, "document.querySelector('input[name=code]').value"); code != pairing.Code {
		t.Errorf("the code to be taken along is %q", code)
	}
	// The code is still valid here.
	p.click("button.primary")
	p.wait("document.querySelector('input[name=device]')")
}
