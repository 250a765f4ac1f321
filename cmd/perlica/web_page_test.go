//go:build linux

package main

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// page is a page of Perlica in a real browser.
type page struct {
	t   *testing.T
	ctx context.Context
}

// browser starts a browser. The browser ends with the test.
func (w *world) browser() *page {
	w.t.Helper()
	if testing.Short() {
		w.t.Skip("a browser is started")
	}
	name, err := exec.LookPath("chromium")
	if err != nil {
		w.t.Skip("NOT TESTED: the page in a browser: Chromium is not installed")
	}
	opts := []chromedp.ExecAllocatorOption{chromedp.ExecPath(name), chromedp.Flag("accept-lang", "en"),
		chromedp.Flag("disable-dev-shm-usage", true)}
	if os.Geteuid() == 0 {
		opts = append(opts, chromedp.NoSandbox)
	}
	thrown := func(ev any) {
		if e, ok := ev.(*runtime.EventExceptionThrown); ok {
			w.t.Errorf("on the page: %s", e.ExceptionDetails.Text)
		}
	}
	ctx, cancel := chromedp.NewContext(context.Background(), chromedp.WithAllocatorOptions(opts...),
		chromedp.WithListener(thrown))
	w.t.Cleanup(cancel)
	if err := chromedp.Do(ctx, chromedp.EmulateViewport(1280, 800)); err != nil {
		w.t.Fatal(err)
	}
	return &page{w.t, ctx}
}

func (p *page) do(steps ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		p.t.Fatal(err)
	}
}

// wait waits until an expression of JavaScript is true.
func (p *page) wait(expression string) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	if _, err := chromedp.Run(ctx, chromedp.Poll[chromedp.Void]("Boolean("+expression+")",
		chromedp.WithPollingTimeout(patience))); err != nil {
		p.t.Fatalf("waited for %s: %v, on the page:\n%s", expression, err, p.text())
	}
}

// sees waits until the page shows a text.
func (p *page) sees(text string) {
	p.t.Helper()
	b, _ := json.Marshal(text) // Marshalling a string cannot fail.
	p.wait("document.body.innerText.includes(" + string(b) + ")")
}

// text returns the visible text of the page.
func (p *page) text() string {
	p.t.Helper()
	text, err := chromedp.Run(p.ctx, chromedp.Evaluate[string]("document.body.innerText"))
	if err != nil {
		p.t.Fatal(err)
	}
	return text
}

// press presses a button as soon as it is enabled.
func (p *page) press(selector string) {
	p.t.Helper()
	b, _ := json.Marshal(selector) // Marshalling a string cannot fail.
	p.wait("document.querySelector(" + string(b) + ")")
	p.do(chromedp.Click(chromedp.CSS(selector)))
}

// sends writes text into the field for the next input, and sends it.
func (p *page) sends(text string) {
	p.t.Helper()
	p.wait("document.querySelector('.composer textarea')")
	b, _ := json.Marshal(text) // Marshalling a string cannot fail.
	p.do(chromedp.Click(chromedp.CSS(".composer textarea")))
	if _, err := chromedp.Run(p.ctx, chromedp.Evaluate[any]("void (document.activeElement.value = "+string(b)+
		")")); err != nil {
		p.t.Fatal(err)
	}
	p.do(chromedp.SendKeys(chromedp.CSS(".composer textarea"), kb.Enter))
}

// pairs pairs the browser with the server at an address.
func (p *page) pairs(w *world, at string) {
	p.t.Helper()
	s := w.terminal(nil, "web", "pair")
	s.finds(pairCode.String())
	p.do(chromedp.Navigate(at + pairCode.FindString(s.text())))
	p.press("input[name=device]")
	p.press("button.primary")
	s.expect("Pair it? [y/N]")
	s.confirms("y", "yes")
	s.exits(0)
	p.wait("document.querySelector('.link-state.live')")
}

// show stores a picture of the page in the folder that PERLICA_SCREENSHOTS names.
func (p *page) show(name string) {
	p.t.Helper()
	dir := os.Getenv("PERLICA_SCREENSHOTS")
	if dir == "" {
		return
	}
	png, err := chromedp.Run(p.ctx, chromedp.CaptureScreenshot())
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, strings.ReplaceAll(p.t.Name(), "/", "-")+"-"+name+".png"), png, 0o600)
	}
	if err != nil {
		p.t.Log("no picture: ", err)
	}
}

// TestWebKilledUnderThePage kills the server while a page shows a turn and its question. The page of the next server
// must show each acknowledged input once. Other inputs stay in the person's browser, and sending one again makes one
// call.
func TestWebKilledUnderThePage(t *testing.T) {
	w := newWorld(t)
	p := w.browser()
	j, at := w.webServer()
	p.pairs(w, at)
	live, broken := "document.querySelector('.link-state.live')", "document.querySelector('.link-state.broken')"

	p.do(chromedp.Navigate(at + "/#/new"))
	p.wait("document.querySelector('select[name=provider] option')")
	p.sends("@stream 300 20\n@ask execute Build command=\"sudo make\"\n@ask execute Again command=\"sudo make\"")
	p.sees("000000299")
	p.press(".question[data-still] .yes:not([aria-disabled])")
	p.sees("You answered: Yes, once") // The answer is on disk, because the server has acknowledged it.
	p.wait("document.querySelectorAll('.question').length === 2")
	p.sends("@say Afterwards")
	p.sees("queued")
	j.signal(syscall.SIGKILL)
	j.wait()
	p.wait(broken)
	p.press(".question:not(.closed)[data-still] .no")
	p.sees("your answer was not confirmed")
	p.sends("@say Once more")
	p.sees("Perlica did not confirm your input")

	j = w.start("web", "--listen", strings.TrimPrefix(at, "http://"))
	j.expect("the page is at " + at)
	p.wait(live)
	p.wait("document.querySelector('.turn .outcome')")
	p.sees("Perlica ended before the outcome was known")
	p.wait("document.querySelectorAll('.question.closed').length === 2")
	text := p.text()
	for _, part := range []string{"000000000 ", "000000150 ", "000000299 ", "You answered: Yes, once"} {
		if n := strings.Count(text, part); n != 1 {
			t.Errorf("%q is there %d times on\n%s", part, n, text)
		}
	}
	p.wait("document.querySelectorAll('.turn .outcome').length === 2")    // The next server sends the input that waits.
	p.do(chromedp.SendKeys(chromedp.CSS(".composer textarea"), kb.Enter)) // The text is still in the field.
	p.wait("document.querySelectorAll('.turn .outcome').length === 3")
	if n := strings.Count(p.text(), "Once more"); n != 2 { // The text appears in the input and in the answer.
		t.Errorf("what was sent again is there %d times on\n%s", n, p.text())
	}
	w.logged(3, "llm.requested")
	w.logged(1, "interaction.answered", "web:")
	if got := w.prompts(); got != 3 {
		t.Errorf("%d calls", got)
	}
	j.signal(syscall.SIGTERM)
	j.exits(0)
	w.audit()
}
