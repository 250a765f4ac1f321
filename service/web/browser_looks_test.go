//go:build !race

package web

import (
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// looks is a JavaScript function that lists the faults of the page's appearance.
//
// //go:embed testdata/looks.js
//
//go:embed testdata/looks.js
var looks string

// accessible is a JavaScript function that lists the faults above "minor" that axe-core finds.
//
//go:embed testdata/axe.js
var accessible string

// axe is the text of axe-core. It is empty if axe-core is not installed in testdata/lint.
var axe = sync.OnceValue(func() string {
	text, _ := os.ReadFile(filepath.Join("testdata", "lint", "node_modules", "axe-core", "axe.min.js"))
	return string(text)
})

// testKeyboard checks that every action works without a mouse.
func testKeyboard(t *testing.T, b *browser) {
	p := b.paired("desk", desktop)
	// A button on an empty view has the usual height, too.
	for _, size := range [][]int64{{360, 740}, phone, desktop} {
		p.do(chromedp.EmulateViewport(size[0], size[1]))
		p.wait("document.querySelector('.empty a.button')")
		p.show(fmt.Sprintf("quiet-%d", size[0]))
		if high := js[float64](p, "document.querySelector('.empty a.button').getBoundingClientRect().height"); high > 48 {
			t.Errorf("at a width of %d the button is %g high", size[0], high)
		}
	}
	p.press("a[href='#/new']", kb.Enter)
	p.wait("document.activeElement.matches('.composer textarea')")
	p.do(chromedp.KeyEvent(`@ask execute "Build it" command=make`))
	// Wait for the project, because an input needs one.
	p.sees("project-0")
	p.do(chromedp.KeyEvent(kb.Enter))
	p.wait("document.querySelector($?)", ready)
	p.press(".question .yes:not(.remember)", kb.Enter)
	p.wait("document.querySelector('.turn .outcome')")
	if got := js[string](p, turns); !strings.Contains(got, "permission: allow-once") {
		t.Errorf("the turn: %s", got)
	}
	p.press(".turn .outcome a", kb.Enter)
	p.wait("document.querySelector('.story li')")
	p.press(".tabs a[href='#/devices']", kb.Enter)
	p.wait("document.querySelector('select[name=language]')")
	p.press("select[name=language]", kb.ArrowDown)
	p.sees("此设备")
}

// press moves the focus by the Tab key until an element matches, and presses a key there.
func (p *tab) press(selector, key string) {
	p.t.Helper()
	for range 60 {
		if js[bool](p, "Boolean(document.activeElement.matches($?))", selector) {
			if !js[bool](p, "document.activeElement.matches(':focus-visible')") {
				p.t.Errorf("%s: one cannot see that it has the focus", selector)
			}
			p.wait("!document.activeElement.matches('.question .yes') || document.querySelector('.question[data-still]')")
			p.do(chromedp.KeyEvent(key))
			return
		}
		p.do(chromedp.KeyEvent(kb.Tab))
	}
	p.show("failed")
	p.t.Fatalf("no way to %s", selector)
}

// hostile is agent text with active content.
const hostile = "<script>window.owned = 1</script> <img src=x onerror=\"window.owned = 2\"> [click](javascript:window.owned=3) " +
	"<svg onload=\"window.owned = 4\"> ![i](https://evil.example/i.png) [ok](https://good.example/a) \\x1b[31mred " +
	"\\u202eevil\\u202c &amp; <b>x</b>"

// testHostile checks that the page shows an agent's words as plain text in every place.
func testHostile(t *testing.T, b *browser) {
	p := b.paired("desk", desktop)
	session, _ := b.send("@say "+hostile+"\n@thought "+hostile+
		"\n@tool read \"<script>window.owned=5</script>\" text=\"<svg onload=window.owned=6>\"\n"+
		"@plan \"<img src=x onerror=window.owned=7>\"\n@ask execute \"<script>window.owned=8</script>\" command=\"echo "+
		"<script>window.owned=9</script>\" options=a:allow_once:<b>yes</b>,c:reject_once", "")
	p.visit(b.sessionAt(session))
	p.sees("“<b>yes</b>”")
	p.read()
	p.wait("document.querySelector($?)", ready)
	js[any](p, "document.querySelectorAll('details').forEach((d) => { d.open = true; })")
	for _, want := range []string{"<script>window.owned = 1</script>", "⟨ESC⟩[31mred", "⟨U+202E⟩evil",
		"(javascript:window.owned=3)", "(good.example)", "<svg onload=window.owned=6>", "“<b>yes</b>”"} {
		p.sees(want)
	}
	p.show("hostile")
	if n := js[int](p,
		"document.querySelectorAll('main :is(script, img, iframe, object, embed, style, link, b:not(.who b)), main "+
			"svg:not(.icon)').length"); n != 0 {
		t.Errorf("%d elements are the agent's", n)
	}
	if got := js[string](p,
		"[...document.querySelectorAll('.markdown a')].map((a) => a.protocol).join()"); got != "https:,https:" {
		t.Errorf("links lead to %s", got)
	}
	p.click(ready)
	p.wait("document.querySelector('.turn .outcome a')")
	p.click(".turn .outcome a")
	p.wait("document.querySelectorAll('.story > li').length > 5")
	p.visit("#/record")
	p.wait("document.querySelector('.item')")
	if owned := js[any](p, "window.owned || null"); owned != nil {
		t.Errorf("script %v ran", owned)
	}
}

// looks fails for each fault of the page's appearance, and for each fault that axe-core finds if it is installed.
func (p *tab) looks(where string) {
	p.t.Helper()
	faults := js[[]string](p, "("+looks+")()")
	if axe() == "" {
		p.t.Log("NOT TESTED: the page with axe-core: run npm ci in testdata/lint")
	} else {
		js[any](p, axe())
		faults = append(faults, js[[]string](p, "("+accessible+")()")...)
	}
	for _, wrong := range faults {
		p.t.Errorf("%d px, %s: %s", js[int](p, "innerWidth"), where, wrong)
	}
}

// testLooks checks that every view can be read, reached and pressed on a phone and on a desktop,
// dark and light.
func testLooks(t *testing.T, b *browser) {
	session, run :=
		b.send("@thought Hm.\n@plan completed:One pending:Two\n@tool edit \"Change it\" path=a.go old=1 new=2\n@tool "+
			"execute Fails steps=pending,failed text=no\n"+
			"@say # A title\\n\\nText with `code`, a [link](https://example.com/x), and:\\n\\n- one\\n- [x] two\\n\\n| a | b "+
			"|\\n|---|---|\\n| 1 | 2 |\\n\\n```go\\nfunc main() {}\\n```\n@tokens 1200 300", "")
	_, asking := b.send(`@ask execute "Run the tests" command="go test ./..."`, "")
	_ = asking
	for _, size := range [][]int64{phone, desktop} {
		p := b.paired(map[int64]string{390: "phone", 1280: "desk"}[size[0]], size)
		for _, scheme := range []string{"light", "dark"} {
			p.like(scheme)
			for view, there := range map[string]string{
				"#/now": ".question .yes", "#/sessions": ".list .item", b.sessionAt(session): ".turn .outcome",
				"#/new":    "select[name=provider] option",
				"#/record": "#logs button", "#/numbers": ".chart .bar", strings.Replace(b.sessionAt(run), "session", "run", 1): ".story > li:nth-child(6)", "#/devices": "#self .chip",
			} {
				p.visit(view)
				p.wait("document.querySelector($?)", there)
				js[any](p, "document.querySelectorAll('details').forEach((d) => { d.open = true; })")
				name := strings.Split(strings.TrimPrefix(view, "#/"), "/")[0]
				p.show(strings.Join([]string{"looks", map[int64]string{390: "phone", 1280: "desk"}[size[0]], scheme, name}, " "))
				p.looks(scheme + " " + name)
			}
		}
	}
}
