//go:build !race

package report

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"github.com/perlica/perlica/eventlog/event"
)

// reader opens reports in Chromium.
type reader struct {
	t   *testing.T
	ctx context.Context
}

// browser starts Chromium for all tests. TestMain ends it.
var browser = sync.OnceValues(func() (context.Context, error) {
	name, err := exec.LookPath("chromium")
	if err != nil {
		return nil, err
	}
	opts := []chromedp.ExecAllocatorOption{chromedp.ExecPath(name), chromedp.Flag("disable-dev-shm-usage", true)}
	if os.Geteuid() == 0 {
		opts = append(opts, chromedp.NoSandbox)
	}
	ctx, cancel := chromedp.NewContext(context.Background(), chromedp.WithAllocatorOptions(opts...))
	endBrowser = cancel
	return ctx, chromedp.Do(ctx)
})

var endBrowser = func() {}

func TestMain(m *testing.M) {
	code := m.Run()
	endBrowser()
	os.Exit(code)
}

// newReader returns a reader without a tab. The race detector excludes these tests: compiling the browser's whole
// protocol takes minutes.
func newReader(t *testing.T) reader {
	t.Helper()
	if testing.Short() {
		t.Skip("a browser is started")
	}
	in, err := browser()
	if errors.Is(err, exec.ErrNotFound) {
		t.Skip("NOT TESTED: the report in a browser: Chromium is not installed")
	}
	if err != nil {
		t.Fatal(err)
	}
	return reader{t, in}
}

// newTab opens a tab. It closes with the test.
func (r reader) newTab() reader {
	r.t.Helper()
	ctx, cancel := chromedp.NewContext(r.ctx)
	r.t.Cleanup(cancel)
	if err := chromedp.Do(ctx); err != nil { // The tab lives as long as the context of its first action.
		r.t.Fatal(err)
	}
	return reader{r.t, ctx}
}

// open opens a report in a new tab, after the code "before" of JavaScript has run there. It waits for the verdict and
// returns the tab with the class of the verdict.
func (r reader) open(file []byte, before string) (reader, string) {
	r.t.Helper()
	path := filepath.Join(r.t.TempDir(), "report.html")
	if err := os.WriteFile(path, file, 0o600); err != nil {
		r.t.Fatal(err)
	}
	r = r.newTab()
	r.do(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, cdppage.AddScriptToEvaluateOnNewDocument,
			cdppage.AddScriptToEvaluateOnNewDocumentParams{Source: before})
		return err
	}), chromedp.Navigate("file://"+filepath.ToSlash(path)))
	js[bool](r, `new Promise(done => {
		const seen = () => document.getElementById("verdict").className && done(true);
		new MutationObserver(seen).observe(document.getElementById("verdict"), {attributes: true});
		seen();
	})`)
	return r, js[string](r, `document.getElementById("verdict").className`)
}

func (r reader) do(steps ...chromedp.Action[chromedp.Void]) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.ctx, 5*time.Minute)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		r.t.Fatal(err)
	}
}

// js returns the value of an expression of JavaScript.
func js[T any](r reader, expression string) T {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.ctx, 5*time.Minute)
	defer cancel()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		r.t.Fatalf("%s: %v", expression, err)
	}
	return v
}

// TestVerifiableInABrowser opens reports in Chromium. Only an unchanged report is verified.
func TestVerifiableInABrowser(t *testing.T) {
	r := newReader(t)
	l := newSignedLog(t, auditEvents()...)
	file := l.report(t, event.Query{})
	changed := func(old, new string) []byte {
		t.Helper()
		if bytes.Count(file, []byte(old)) < 1 {
			t.Fatalf("%q is not in the report", old)
		}
		return bytes.Replace(file, []byte(old), []byte(new), 1)
	}
	const noEd25519 = `crypto.subtle.importKey = () => Promise.reject(new DOMException("", "NotSupportedError"))`
	otherKey := newSignedLog(t, failedEvents()...).key(t)
	for name, test := range map[string]struct {
		file    []byte
		before  string
		verdict string
		red     string // the text of the first red place
	}{
		"as written":     {file, "", "good", ""},
		"hostile":        {newSignedLog(t, hostileEvents()...).report(t, event.Query{}), "", "good", ""},
		"one session":    {l.report(t, event.Query{Session: "s"}), "", "good", ""},
		"edited payload": {changed(`\"by\":\"dave\"`, `\"by\":\"dale\"`), "", "bad", "dave"},
		"edited text":    {changed("<dd>dave</dd>", "<dd>mallory</dd>"), "", "bad", "mallory"},
		"added sentence": {changed("<section>\n<h2>In", "<p>All is well.</p>\n<section>\n<h2>In"), "", "bad",
			"All is well."},
		"hidden sentence": {changed("<h4>Outcome unknown</h4>", "<h4 hidden>Outcome unknown</h4>"), "", "bad",
			"Outcome unknown"},
		"other title":           {changed("<h1>Report of", "<h1>Audited report of"), "", "bad", ""},
		"other style":           {changed("</style>", "#e3{display:none}</style>"), "", "bad", ""},
		"other words":           {changed(`"Unknown outcomes",[`, `"Outcomes",[`), "", "bad", ""},
		"text in the body":      {changed("</main>", "</main>Audited."), "", "bad", ""},
		"element in the header": {changed("<form", "<p>Audited.</p><form"), "", "bad", ""},
		"element in the form":   {changed("<label", "<b>Audited.</b><label"), "", "bad", ""},
		"attribute of the body": {changed("<body>", `<body title="Audited">`), "", "bad", ""},
		"text at the end":       {slices.Concat(file, []byte("Audited.")), "", "bad", ""},
		"comment at the start":  {changed("<html", "<!-- Audited. --><html"), "", "bad", ""},
		"other header":          {changed(`"llm.outcome_unknown","fact"`, `"llm.provider_error","fact"`), "", "bad", "root"},
		"no Ed25519":            {file, noEd25519, "open", ""},
		"no WebCrypto":          {file, `Object.defineProperty(crypto, "subtle", {value: undefined})`, "open", ""},
		"other key":             {bytes.ReplaceAll(file, []byte(l.key(t)), []byte(otherKey)), "", "bad", ""},
		"no key at all":         {l.reportWithoutKey(t), "", "open", ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := reader{t, r.ctx}
			r, verdict := r.open(test.file, test.before)
			red := js[string](r, `document.querySelector(".changed")?.textContent ?? ""`)
			if verdict != test.verdict || !strings.Contains(red, test.red) || (red == "") != (test.red == "") {
				t.Errorf("the verdict is %q, and red is %q:\n%s", verdict, red,
					js[string](r, `document.getElementById("verdict").innerText`))
			}
			if n := js[int](r, `document.querySelectorAll(".good").length`); (n > 0) != (verdict == "good") {
				t.Errorf("the verdict is %s, and %d places are green", verdict, n)
			}
			if text := js[string](r, `document.getElementById("verdict").innerText`); name == "as written" &&
				!strings.Contains(text, "Payloads that are not in this file: 2. Without a verified reason: 2.") {
				t.Errorf("the verdict does not count the payloads: %s", text)
			}
			if n := js[int](r, `performance.getEntriesByType("resource").length`); n > 0 {
				t.Errorf("the page loaded %d files", n)
			}
		})
	}
}

// TestVerifiableShadow checks that a shadow root does not hide a verified sentence, because no comparison sees it.
func TestVerifiableShadow(t *testing.T) {
	file := newSignedLog(t, auditEvents()...).report(t, event.Query{})
	r, _ := newReader(t).open(bytes.Replace(file, []byte("<section>\n"),
		[]byte(`<section><template shadowrootmode="closed">Audited.</template>`+"\n"), 1), "")
	if js[int](r, `document.querySelector("main dd").getClientRects().length`) == 0 {
		t.Error("the shadow root hides a sentence")
	}
}

// reportWithoutKey writes a report whose writer knows no key.
func (s signedLog) reportWithoutKey(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	if _, err := WriteVerifiable(t.Context(), &b, &s.Reader, event.Query{},
		VerifiableOptions{Keys: func(string) ([]string, error) { return nil, nil }}); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestVerifiableTypedKey checks that the key in the field counts.
func TestVerifiableTypedKey(t *testing.T) {
	l := newSignedLog(t, auditEvents()...)
	r, _ := newReader(t).open(l.reportWithoutKey(t), "")
	if got := js[string](r, `keyParts("log+12345678+Aa+ox274c7Q+QW").join()`); got != "log,12345678,Aa+ox274c7Q+QW" {
		t.Errorf("a key with the sign + in its last part has the parts %s", got)
	}
	for key, want := range map[string]string{l.key(t): "good", newSignedLog(t, failedEvents()...).key(t): "bad",
		"x": "bad", strings.Replace(l.key(t), "+", "+0", 1): "bad"} {
		quoted, _ := json.Marshal(key)
		if got := js[string](r, fmt.Sprintf(`check(%s).then(() => document.getElementById("verdict").className)`,
			quoted)); got != want {
			t.Errorf("with the key %s the verdict is %q, want %q", key, got, want)
		}
	}
}

// TestVerifiableFlipsInABrowser flips a bit of each thirtieth byte of the data, and exchanges each visible word, in
// Chromium.
func TestVerifiableFlipsInABrowser(t *testing.T) {
	l := newSignedLog(t, slices.Concat(failedEvents(), prunedEvents())...)
	r, verdict := newReader(t).open(l.report(t, event.Query{}), "")
	got := js[[]string](r, `(async () => {
		const wrong = [], verdict = document.getElementById("verdict"), data = document.getElementById("data");
		const main = document.getElementById("main"), whole = data.textContent;
		const judge = async what => { await check(""); if (verdict.className !== "bad") wrong.push(what); };
		for (let i = 0; i < whole.length; i += 30) {
			const other = String.fromCharCode(whole.charCodeAt(i) ^ 1 << i % 7);
			data.textContent = whole.slice(0, i) + other + whole.slice(i + 1);
			await judge("byte " + i);
		}
		data.textContent = whole;
		await check(""); // removes the marks of the last change
		const walker = document.createTreeWalker(main, NodeFilter.SHOW_TEXT), texts = [];
		while (walker.nextNode()) texts.push(walker.currentNode);
		for (const text of texts) {
			const before = text.data;
			for (const word of before.matchAll(/\S+/g)) {
				text.data = before.slice(0, word.index) + "other" + before.slice(word.index + word[0].length);
				await judge("word " + word[0]);
			}
			text.data = before;
		}
		await check("");
		return [...wrong, verdict.className];
	})()`)
	if verdict != "good" || !slices.Equal(got, []string{"good"}) {
		t.Errorf("the verdict is %s, and these changes do not matter: %q", verdict, got)
	}
}

// TestVerifiableWithoutScript checks that the report without JavaScript is readable and names the script of Python.
func TestVerifiableWithoutScript(t *testing.T) {
	r := newReader(t).newTab()
	path := filepath.Join(t.TempDir(), "report.html")
	if err := os.WriteFile(path, newSignedLog(t, auditEvents()...).report(t, event.Query{}), 0o600); err != nil {
		t.Fatal(err)
	}
	r.do(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, emulation.SetScriptExecutionDisabled,
			emulation.SetScriptExecutionDisabledParams{Value: true})
		return err
	}), chromedp.Navigate("file://"+filepath.ToSlash(path)))
	text := js[string](r, "document.body.innerText")
	for _, want := range []string{"python3 check-report.py FILE KEY", "Nothing below is verified yet",
		"Statement of a person", "No input was sent twice: 2 inputs, 2 calls."} {
		if !strings.Contains(text, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	if strings.Contains(text, "Verified here") || js[int](r, `document.querySelectorAll(".good").length`) > 0 {
		t.Error("something is green")
	}
}

// TestVerifiableAccessible checks that axe-core finds no fault above "minor" in a report, light and dark, verified and
// not.
func TestVerifiableAccessible(t *testing.T) {
	tests := filepath.Join("..", "..", "service", "web", "testdata")
	axe, err := os.ReadFile(filepath.Join(tests, "lint", "node_modules", "axe-core", "axe.min.js"))
	if err != nil {
		t.Skip("NOT TESTED: the report with axe-core: run npm ci in service/web/testdata/lint")
	}
	check, err := os.ReadFile(filepath.Join(tests, "axe.js"))
	if err != nil {
		t.Fatal(err)
	}
	r := newReader(t)
	file := newSignedLog(t, auditEvents()...).report(t, event.Query{})
	edited := bytes.Replace(file, []byte("<dd>dave</dd>"), []byte("<dd>mallory</dd>"), 1)
	for name, file := range map[string][]byte{"good": file, "bad": edited} {
		tab, verdict := r.open(file, "")
		if verdict != name {
			t.Errorf("the verdict is %s, want %s", verdict, name)
		}
		js[any](tab, string(axe))
		for _, scheme := range []string{"light", "dark"} {
			tab.do(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
				_, err := cdp.Call(ctx, t, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
					Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
				return err
			}))
			for _, wrong := range js[[]string](tab, "("+string(check)+")()") {
				t.Errorf("%s, %s: %s", name, scheme, wrong)
			}
		}
	}
}

// TestVerifiableScales checks that the script looks at each event a few times only. One run has all events, and the
// payload of each is pruned.
func TestVerifiableScales(t *testing.T) {
	r, _ := newReader(t).open(newSignedLog(t, auditEvents()...).report(t, event.Query{}), "")
	const n = 2000
	looks := js[int](r, fmt.Sprintf(`(() => {
		let looks = 0;
		const iterator = Array.prototype[Symbol.iterator], events = [];
		for (let i = 1; i <= %d; i++) {
			const e = {seq: i, ts: "1700000000000000000", why: "pruned", p: null, len: 1, sha: new Uint8Array(32), class: "fact",
				actor: "agent", session: "s", conversation: "", run: "r", question: "", input: ""};
			events.push(Object.defineProperty(e, "type", {get() { looks++; return "llm.responded"; }}));
		}
		Array.prototype[Symbol.iterator] = function() { looks += this.length; return iterator.call(this); };
		render({events, size: events.length, root: ""}, "log", "");
		Array.prototype[Symbol.iterator] = iterator;
		return looks;
	})()`, n))
	if looks > 200*n {
		t.Errorf("%d looks at %d events", looks, n)
	}
}
