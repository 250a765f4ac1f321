//go:build !race

package web

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/perlica/perlica/service/access"
)

// viewOf returns the address of a view of the first project on the page.
func (w *world) viewOf(view string, parameters ...string) string {
	return "#/" + strings.TrimPrefix(w.of(view, append(parameters, "context", "default")...), "/")
}

// testAnswers looks at the changed files, the lines of a file, the rules and the report, in two languages and widths.
func testAnswers(t *testing.T, b *browser) {
	b.changesFile("@tool", "src/rain.txt", "Rain falls on the hills.\nThe river rises slowly.\n")
	check(t, os.WriteFile(filepath.Join(b.dirs[0], "src", "rain.txt"),
		[]byte("By hand.\nRain falls on the hills.\nThe river rises slowly.\n"), 0o600))
	b.answered(0, "go test ./a", "allow_once")
	b.answered(0, "go test ./b", "allow_once")
	b.answered(0, "go vet x", "reject_once")
	for _, c := range []struct {
		size                        []int64
		languages, unknown, against string
	}{{phone, "zh-CN,zh", "来源未知", "曾被人拒绝"}, {desktop, "en", "Origin unknown", "A person refused"}} {
		p := b.open(nil, c.size)
		p.reads(c.languages)
		b.pair(p, fmt.Sprint(c.size[0]), true, access.Read)
		p.wait("document.querySelector('.link-state.live')")
		looks := func(view string) {
			t.Helper()
			p.show(fmt.Sprint(c.size[0], view))
			if c.languages == "en" {
				p.looks(view)
			} else {
				p.chinese(view, "src/rain.txt", "Write it", "go test", "go vet", "policy.rule", "check-report.py", "TOML", "Build",
					"Rain falls", "The river", "By hand", "@tool edit", "path=", "new=", "@ask", "allow", "(web:",
					b.devicesCalled("program"), b.dirs[0])
			}
		}
		p.visit("#/record")
		p.click("#logs a[href*='#/changes']")
		p.wait("document.querySelector('.list details')")
		js[any](p, "document.querySelectorAll('details').forEach((d) => { d.open = true; })")
		p.wait("document.querySelector('.line.added')")
		looks("changes")
		p.click("a.path")
		p.sees(c.unknown)
		looks("file")
		if got := js[string](p, `[...document.querySelectorAll('.block')].map((el) => el.className +
			el.querySelector('ol').start +
			[...el.querySelectorAll('li')].map((l) => l.innerText)).join()`); got != "block unknown1By hand.,block bad2Rain "+
			"falls on the hills.,The river rises slowly." {
			t.Errorf("the blocks are %s", got)
		}
		p.visit(b.viewOf("rules"))
		p.wait("document.querySelector('figure.code')")
		js[any](p, "document.getElementById('rules').value = 'allow go test ...\\nallow go vet ...'")
		p.click("form .primary")
		p.sees(c.against)
		p.wait("document.querySelectorAll('.item').length === 3 && document.querySelectorAll('.item.against').length === 1")
		looks("rules")
		p.visit(b.viewOf("report"))
		p.click("form .primary")
		p.wait("document.querySelector('a[target=_blank]')")
		looks("report")
		address := js[string](p, "document.querySelector('a[target=_blank]').href")
		p.do(chromedp.Navigate(address))
		p.wait("document.getElementById('verdict').className === 'good'")
		p.show(fmt.Sprint(c.size[0], "opened"))
		const store = "(() => { try { return String(localStorage.length); } catch (err) { return self.origin; } })()"
		if got := js[string](p, store); got != "null" {
			t.Errorf("the report has the origin of the page: %s", got)
		}
	}
}

// testHostileChanges checks that no name and no content of a file becomes markup, and that a large file stays usable by
// keyboard.
func testHostileChanges(t *testing.T, b *browser) {
	name := "<img src=x onerror=window.owned=1>\u202etxt.exe"
	text := "<script>window.owned=2</script>\u202eevil\n" + strings.Repeat("long ", 2000) + "\n"
	b.changesFile("@tool", name, text)
	var many strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&many, "line %d of the file\n", i+1)
	}
	b.changesFile("@tool", "many.txt", "line 1 of the file\n")
	check(t, os.WriteFile(filepath.Join(b.dirs[0], "many.txt"), []byte(many.String()), 0o600))
	p := b.paired("desk", []int64{360, 740})
	pure := func(view string, want ...string) {
		t.Helper()
		for _, text := range want {
			p.sees(text)
		}
		p.show("hostile " + view)
		p.looks(view)
		if n := js[int](p, "document.querySelectorAll('main :is(script, img, iframe)').length"); n != 0 {
			t.Errorf("%s: %d elements are the agent's", view, n)
		}
		if owned := js[any](p, "window.owned || null"); owned != nil {
			t.Errorf("%s: script %v ran", view, owned)
		}
	}
	p.visit(b.viewOf("changes"))
	p.wait("document.querySelectorAll('.list > li').length === 2")
	js[any](p, "document.querySelectorAll('details').forEach((d) => { d.open = true; })")
	pure("changes", "<img src=x onerror=window.owned=1>⟨U+202E⟩txt.exe", "<script>window.owned=2</script>⟨U+202E⟩evil")
	p.visit(b.viewOf("file", "path", name))
	pure("file", "<script>window.owned=2</script>⟨U+202E⟩evil", "Show all 10,000 characters")
	p.visit(b.viewOf("file", "path", "many.txt"))
	p.sees("of 20,000")
	p.press("input[name=line]", "15500")
	p.do(chromedp.KeyEvent(kb.Enter))
	p.wait("document.activeElement.id === 'L15500' && document.activeElement.innerText.includes('line 15500')")
	pure("many", "Lines 15,001 to 16,000 of 20,000")
	if n := js[int](p, "document.querySelectorAll('.source li').length"); n != 1000 {
		t.Errorf("%d lines are on the page", n)
	}
	p.press(".file > .row a:last-child", kb.Enter)
	p.sees("Lines 16,001 to 17,000")
	p.visit(b.viewOf("file", "path", "../outside"))
	p.sees("has no file")
}
