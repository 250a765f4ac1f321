//go:build !race

package web

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/serviceworker"
	"github.com/chromedp/chromedp"

	"github.com/perlica/perlica/service/access"
	"github.com/perlica/perlica/service/web/device"
)

// TestBrowser tests the page in one real Chromium. Each device has its own profile. The tests run
// one after the other because a covered page draws nothing. The race detector excludes them:
// compiling the browser's whole protocol takes minutes.
func TestBrowser(t *testing.T) {
	if testing.Short() {
		t.Skip("a browser is started")
	}
	t.Parallel()
	ctx := chromium(t)
	for name, test := range map[string]func(*testing.T, *browser){
		"pairing": testPairing, "refused pairing": testRefusedPairing, "turn": testTurn, "beside": testBeside,
		"question": testQuestion, "race": testRace, "offline": testOffline,
		"dangerous": testDangerous, "early": testEarly, "asleep": testAsleep, "killed": testKilled, "keyboard": testKeyboard,
		"hostile": testHostile, "many": testMany, "looks": testLooks,
		"shell": testShell, "push": testPush, "iphone": testIPhone, "devices": testDevices, "below a path": testBelowPath,
		"proxies": testProxies, "choices": testChoices, "chinese": testChinese, "two tabs": testTwoTabs,
		"pictures": testPictures, "elsewhere": testElsewhere, "networks": testNetworks,
		"flows": testFlows, "flow by keyboard": testFlowKeyboard, "hostile flow": testHostileFlow, "lost flow": testFlowLost,
		"reader of a flow": testFlowReader, "answers": testAnswers, "hostile changes": testHostileChanges,
	} {
		t.Run(name, func(t *testing.T) {
			test(t, &browser{t: t, ctx: ctx, world: newWorld(t, 2, withPage, namedProvider(t, "claude", chooses))})
		})
	}
}

// chromium starts the browser. The browser ends with the test.
func chromium(t *testing.T) context.Context {
	t.Helper()
	name := ""
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		for _, n := range []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome"} {
			if info, err := os.Stat(filepath.Join(dir, n)); err == nil && !info.IsDir() && name == "" {
				name = filepath.Join(dir, n)
			}
		}
	}
	if name == "" {
		t.Skip("NOT TESTED: the page in a browser: Chromium is not installed")
	}
	opts := []chromedp.ExecAllocatorOption{chromedp.ExecPath(name), chromedp.Flag("accept-lang", "en"),
		chromedp.Flag("disable-dev-shm-usage", true),
		chromedp.Flag("ignore-certificate-errors", true), // a service worker needs https
		// A test types into no address bar. The bar's two hidden pages would take half of the time.
		chromedp.Flag("disable-features",
			"Translate,BlinkGenPropertyTrees,WebUIOmniboxPopup,WebUIOmniboxAimPopup,SpareRendererForSitePerProcess")}
	if os.Geteuid() == 0 {
		opts = append(opts, chromedp.NoSandbox)
	}
	ctx, cancel := chromedp.NewContext(context.Background(), chromedp.WithAllocatorOptions(opts...))
	t.Cleanup(cancel)
	if err := chromedp.Do(ctx); err != nil {
		t.Fatal(err)
	}
	return ctx
}

// browser holds the world and the devices of one test.
type browser struct {
	*world
	t     *testing.T
	ctx   context.Context
	proxy string // address of a proxy that shows the page; empty without a proxy
}

// tab is an open page in a profile.
type tab struct {
	t   *testing.T
	w   *world
	ctx context.Context

	// pairing is called on each view of a pairing. It may be nil.
	pairing func(view string)

	mu sync.Mutex
	// errors lists the errors of the page.
	errors []string
	// worker is the id of the service worker's registration.
	worker string
}

// within limits the wait for an expected state. It is long because a loaded machine is slow.
const within = 2 * time.Minute

// phone and desktop are the sizes of screens.
var (
	phone   = []int64{390, 844}
	desktop = []int64{1280, 800}
)

// open opens a tab: in a new profile, or in the profile of another tab.
func (b *browser) open(beside *tab, size []int64) *tab {
	b.t.Helper()
	p := &tab{t: b.t, w: b.world}
	from, opts := b.ctx, []chromedp.ContextOption{chromedp.WithListener(p.heard)}
	if beside == nil {
		opts = append(opts, chromedp.WithNewBrowserContext())
	} else {
		from = beside.ctx
	}
	ctx, cancel := chromedp.NewContext(from, opts...)
	b.t.Cleanup(cancel)
	b.t.Cleanup(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, e := range p.errors {
			b.t.Errorf("on the page: %s", e)
		}
	})
	p.ctx = ctx
	// The tab lives as long as the context of its first action.
	check(b.t, chromedp.Do(ctx))
	var emulated []chromedp.EmulateViewportOption
	if size[0] < 800 {
		emulated = append(emulated, chromedp.EmulateMobile, chromedp.EmulateTouch, chromedp.EmulatePortrait)
	}
	p.do(chromedp.EmulateViewport(size[0], size[1], emulated...))
	return p
}

// heard records the browser's reports of errors.
func (p *tab) heard(ev any) {
	text := ""
	switch e := ev.(type) {
	case *serviceworker.EventWorkerRegistrationUpdated:
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, r := range e.Registrations {
			p.worker = string(r.RegistrationID)
		}
		return
	case *runtime.EventExceptionThrown:
		text = e.ExceptionDetails.Text
		if e.ExceptionDetails.Exception != nil {
			text += " " + e.ExceptionDetails.Exception.Description
		}
	case *runtime.EventConsoleAPICalled:
		if e.Type == "error" {
			text = fmt.Sprint("console: ", len(e.Args), " values")
		}
	}
	if text != "" {
		p.mu.Lock()
		p.errors = append(p.errors, text)
		p.mu.Unlock()
	}
}

func (p *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, within)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		p.show("failed")
		p.t.Fatal(err)
	}
}

// js returns the value of a JavaScript expression.
func js[T any](p *tab, expression string, args ...any) T {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, within)
	defer cancel()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](fill(expression, args), chromedp.EvalAwaitPromise))
	if err != nil {
		p.t.Fatalf("%s: %v", expression, err)
	}
	return v
}

// fill replaces each "$?" of an expression by a value in JSON.
func fill(expression string, args []any) string {
	for _, a := range args {
		b, _ := json.Marshal(a) // strings and numbers can always be encoded
		expression = strings.Replace(expression, "$?", string(b), 1)
	}
	return expression
}

// wait waits until an expression is true.
func (p *tab) wait(expression string, args ...any) {
	p.t.Helper()
	expression = fill(expression, args)
	ctx, cancel := context.WithTimeout(p.ctx, within)
	defer cancel()
	if _, err := chromedp.Run(ctx, chromedp.Poll[chromedp.Void]("Boolean("+expression+")",
		chromedp.WithPollingInterval(50*time.Millisecond), chromedp.WithPollingTimeout(within))); err != nil {
		p.show("failed")
		p.t.Fatalf("waited for %s: %v\non the page:\n%s", expression, err,
			js[string](p,
				"location.href + ', ' + document.querySelectorAll('dialog').length + ' dialogs\\n' + "+
					"document.body.innerText.slice(0, 3000)"))
	}
}

// sees waits until a text is on the page.
func (p *tab) sees(text string) {
	p.t.Helper()
	p.wait("document.body.innerText.includes($?)", text)
}

// click presses the mouse on an element as soon as it exists. When the page adds or redraws another element, the target
// may move away from the mouse. click then releases the mouse elsewhere and tries again.
func (p *tab) click(selector string) {
	p.t.Helper()
	for end := time.Now().Add(within); ; {
		p.wait("document.querySelector($?)", selector)
		at := js[[]float64](p, `(() => {
			const el = document.querySelector($?);
			if (!el) return [0, 0];
			const bars = [...document.querySelectorAll('.tabs, .composer')].map((b) => b.getBoundingClientRect()).filter((b) => b.top > 0);
			let box = el.getBoundingClientRect();
			if (box.top < 70 || box.bottom > Math.min(innerHeight, ...bars.map((b) => b.top)) && !el.closest('.tabs, .composer, dialog')) {
				el.scrollIntoView({block: 'center', behavior: 'instant'});
				box = el.getBoundingClientRect();
			}
			globalThis.hit = false;
			el.addEventListener('pointerdown', () => { globalThis.hit = true; }, {capture: true, once: true});
			return [box.left + box.width / 2, box.top + box.height / 2];
		})()`, selector)
		p.do(chromedp.MouseEvent(chromedp.MousePressed, at[0], at[1], left))
		if js[bool](p, "globalThis.hit === true") {
			p.do(chromedp.MouseEvent(chromedp.MouseReleased, at[0], at[1], left))
			return
		}
		p.do(chromedp.MouseEvent(chromedp.MouseReleased, 0, 0, left))
		if time.Now().After(end) {
			p.t.Fatalf("the mouse does not come to %s", selector)
		}
	}
}

// left describes one press of the left button.
func left(p *input.DispatchMouseEventParams) { p.Button, p.ClickCount = input.MouseButtonLeft, 1 }

// write types into a field.
func (p *tab) write(selector, text string) {
	p.t.Helper()
	p.click(selector)
	p.do(chromedp.SendKeys(chromedp.CSS(selector), text))
}

// front brings the page to the front, because a covered page draws nothing.
func (p *tab) front() {
	p.t.Helper()
	p.do(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, cdppage.BringToFront, cdp.Empty{})
		return err
	}))
}

// like makes the page dark or light.
func (p *tab) like(scheme string) {
	p.t.Helper()
	p.do(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme},
				{Name: "prefers-reduced-motion", Value: "reduce"}},
		})
		return err
	}))
}

// show stores a picture of the page in the folder that PERLICA_SCREENSHOTS names.
func (p *tab) show(name string) {
	dir := os.Getenv("PERLICA_SCREENSHOTS")
	if dir == "" {
		return
	}
	png, err := chromedp.Run(p.ctx, chromedp.CaptureScreenshot())
	if err == nil {
		file := strings.NewReplacer("/", "-", " ", "-").Replace(p.t.Name() + "-" + name)
		err = os.WriteFile(filepath.Join(dir, file+".png"), png, 0o600)
	}
	if err != nil {
		p.t.Log("no picture: ", err)
	}
}

// paired opens a page and pairs it.
func (b *browser) paired(name string, size []int64, rights ...access.Right) *tab {
	b.t.Helper()
	if rights == nil {
		rights = []access.Right{access.Read, access.Ask, access.Approve}
	}
	p := b.open(nil, size)
	b.pair(p, name, true, rights...)
	p.wait("document.querySelector('.link-state.live')")
	return p
}

// pair pairs a page with the server. It acts as the person at the page and as the person at the terminal. It returns
// the code.
func (b *browser) pair(p *tab, name string, yes bool, rights ...access.Right) (code string) {
	b.t.Helper()
	pairing, err := b.devices.OpenPairing(b.t.Context(), rights, "test")
	check(b.t, err)
	p.do(chromedp.Navigate(cmp.Or(b.proxy, b.http.URL+"/") + "#pair=" + pairing.Code))
	p.wait("document.querySelector('input[name=device]')")
	if p.pairing != nil {
		p.pairing("name")
	}
	js[any](p, "document.querySelector('input[name=device]').value = ''")
	p.write("input[name=device]", name)
	p.click("button.primary")
	asked, err := pairing.Wait(b.t.Context())
	check(b.t, err)
	p.wait("document.querySelector('.word')")
	if word := js[string](p, "document.querySelector('.word').textContent"); word != asked.Word || asked.Name != name {
		b.t.Errorf("the page shows %q, the terminal %q of %q", word, asked.Word, asked.Name)
	}
	if p.pairing != nil {
		p.pairing("compare")
	}
	_, err = pairing.Decide(b.t.Context(), yes, "test")
	check(b.t, err)
	return pairing.Code
}

// devicesNamed returns the devices with this name.
func (w *world) devicesNamed(name string) (list []device.Device) {
	w.t.Helper()
	all, err := device.List(w.t.Context(), &w.user.Log().Reader)
	check(w.t, err)
	for _, d := range all {
		if d.Name == name {
			list = append(list, d)
		}
	}
	return list
}

// sessionAt returns the address of a session on the page.
func (w *world) sessionAt(id string) string {
	return "#/session/" + id + "?project=" + strings.ReplaceAll(w.dirs[0], "/", "%2F") + "&context=default"
}

// visit shows another view.
func (p *tab) visit(hash string) {
	p.t.Helper()
	js[any](p, "void (location.hash = $?)", hash)
}
