//go:build !race

package web

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// change returns an input that asks to change a file of this many lines. The change needs a
// permission.
func change(lines int) string {
	var old, changed strings.Builder
	for i := range lines {
		fmt.Fprintf(&old, "line %d\n", i)
		fmt.Fprintf(&changed, "line %d, changed\n", i)
	}
	return fmt.Sprintf("@ask edit \"Change all\" path=/etc/big.txt old=%q new=%q", old.String(), changed.String())
}

// ready selects the button of a yes that can be pressed.
const ready = ".question[data-still] .yes:not(.remember):not([aria-disabled]):not([disabled])"

// read scrolls through the page to its end as a person does.
func (p *tab) read() {
	p.t.Helper()
	p.front()
	js[any](p, `(async () => {
		const frame = () => new Promise((r) => setTimeout(r, 60));
		scrollTo(0, 0);
		for (let y = -1; y !== scrollY;) {
			y = scrollY;
			await frame();
			scrollBy(0, innerHeight / 2);
		}
		await frame();
	})()`)
}

// answerOf returns the recorded answer to the only question of a run.
func (w *world) answerOf(run string) object {
	w.t.Helper()
	o := w.do("GET", "/v1/events?after=0&limit=1000&type=answer&run="+run, nil,
		func(r *http.Request) { r.Header.Set("Accept", "application/json") }).want(200).object()
	list := items(o, "events")
	if len(list) != 1 {
		w.t.Fatalf("%d answers", len(list))
	}
	answer, _ := list[0]["answer"].(object)
	return answer
}

// ended waits for a run's outcome and returns the agent's text.
func (w *world) ended(p *tab, run string) string {
	w.t.Helper()
	return js[string](p, `(async () => {
		const {get} = await import('./api.js');
		for (;;) {
			const r = await get('v1/runs/' + $?);
			if (r.state === 'ended') return r.answer;
			await new Promise((next) => setTimeout(next, 50));
		}
	})()`, run)
}

// testQuestion checks that a yes is possible only after the whole question was on the screen.
func testQuestion(t *testing.T, b *browser) {
	p := b.paired("phone", phone)
	_, run := b.send(change(150), "")
	p.sees("Change all")
	p.show("question")
	p.wait("document.querySelector('.question[data-still] .yes[aria-disabled=true]')")
	// This click scrolls to the unseen part and does not answer.
	p.click(".question .yes")
	js[any](p, "scrollTo(0, document.documentElement.scrollHeight)")
	p.wait("document.querySelector('.unread-yet:not([hidden])')")
	if n := len(items(b.do("GET", "/v1/questions", nil).object(), "questions")); n != 1 {
		t.Fatalf("%d questions are open", n)
	}
	if text := js[string](p, "document.querySelector('.question').innerText"); !strings.Contains(text,
		"line 149, changed") || !strings.Contains(text, "line 0\n") {
		t.Errorf("not all of the change is shown: %s", text)
	}
	p.read()
	p.wait("document.querySelector($?)", ready)
	p.show("question read")
	p.click(ready)
	p.sees("You answered: Yes, once")
	if said := b.ended(p, run); !strings.Contains(said, "permission: allow-once") {
		t.Errorf("the agent was answered %q", said)
	}
	a := b.answerOf(run)
	shown, _ := a["shown"].(object)
	if a["by"] != "phone (web:"+b.devicesNamed("phone")[0].ID+")" || a["signature"] == nil || a["digest"] == nil ||
		shown["rows"] != shown["of"] {
		t.Errorf("on record: %v", a)
	}
}

// testRace checks that one of two answers counts, and that the page with the other answer names the sender of the
// first.
func testRace(t *testing.T, b *browser) {
	one, two := b.paired("one", phone), b.paired("two", desktop)
	_, run := b.send(`@ask execute "Build it" command=make`, "")
	for _, p := range []*tab{one, two} {
		p.sees("Build it")
		p.read()
		p.wait("document.querySelector($?)", ready)
	}
	press := fill("void document.querySelector($?).click()", []any{ready})
	js[any](one, press)
	js[any](two, press)
	one.wait("document.querySelector('.question.closed .closing')")
	two.wait("document.querySelector('.question.closed .closing')")
	winner := strings.Fields(b.answerOf(run)["by"].(string))[0]
	for name, p := range map[string]*tab{"one": one, "two": two} {
		want := "You answered: Yes, once"
		if name != winner {
			want = winner + " (web:"
		}
		p.sees(want)
		p.show("race " + name)
	}
}

// offline cuts the page's network or connects it again.
func (p *tab) offline(cut bool) {
	p.t.Helper()
	p.do(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, cdp.Command[object, cdp.Empty]{Method: "Network.emulateNetworkConditions"},
			object{"offline": cut, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1})
		return err
	}))
}

// testOffline checks that the page shows the failure of an answer that does not arrive.
func testOffline(t *testing.T, b *browser) {
	p := b.paired("phone", phone)
	_, run := b.send(`@ask execute "Build it" command=make`, "")
	p.sees("Build it")
	p.read()
	p.wait("document.querySelector($?)", ready)
	p.offline(true)
	p.click(ready)
	p.sees("your answer was not confirmed")
	p.show("offline")
	if n := len(items(b.do("GET", "/v1/questions", nil).object(), "questions")); n != 1 {
		t.Fatalf("%d questions are open", n)
	}
	p.offline(false)
	p.wait("document.querySelector($?)", ready)
	p.click(ready)
	p.sees("You answered: Yes, once")
	b.ended(p, run)
}

// testEarly checks that no tap and no key says yes before the buttons have stood still for a while.
// The same holds shortly after another press and for a repeating key. A no counts at once. The test
// controls the page's timers.
func testEarly(t *testing.T, b *browser) {
	p := b.paired("desk", desktop)
	js[any](p, `(() => {
		const real = setTimeout;
		globalThis.held = [];
		globalThis.setTimeout = (f, ms, ...args) => ms > 200 ? held.push(f) : real(f, ms, ...args);
		globalThis.goOn = () => held.splice(0).forEach((f) => f());
	})()`)
	_, run := b.send(`@ask execute "Build it" command=make`, "")
	p.sees("Build it")
	p.read()
	yes := ".question .yes:not(.remember):not([aria-disabled])"
	early := func(what string) {
		t.Helper()
		// The first early press adds this notice, and it stays after later ones.
		p.sees("You pressed too early")
		if js[bool](p, "Boolean(document.querySelector('.question .options button[disabled]'))") {
			t.Errorf("%s: an answer is on its way", what)
		}
		if n := len(items(b.do("GET", "/v1/questions", nil).object(), "questions")); n != 1 {
			t.Fatalf("%s: %d questions are open", what, n)
		}
	}
	p.click(yes)
	early("a tap where a button has just appeared")
	js[any](p, "document.querySelector($?).focus()", yes)
	p.do(chromedp.KeyEvent(kb.Enter))
	early("a key shortly after a tap")
	js[any](p, "goOn()")
	p.wait("document.querySelector($?)", ready)
	p.do(chromedp.KeyEvent(kb.Enter, func(k *input.DispatchKeyEventParams) { k.AutoRepeat = new(true) }))
	early("a key that repeats")
	p.click(".question .no")
	p.sees("You answered: No")
	if said := b.ended(p, run); !strings.Contains(said, "permission: reject-once") {
		t.Errorf("the agent was answered %q", said)
	}
}

// testDangerous checks that a refused command needs the typed word, and a lasting yes a second yes.
func testDangerous(t *testing.T, b *browser) {
	p := b.paired("desk", desktop)
	_, run := b.send(`@ask execute "Clean up" command="sudo rm -rf /" options=a:allow_once,b:allow_always,c:reject_once`,
		"")
	p.sees("Clean up")
	p.read()
	p.wait("document.querySelector($?)", ready)
	p.click(ready)
	p.wait("document.querySelector('dialog[open] button[value=yes][disabled]')")
	p.show("word")
	word := js[string](p, "document.querySelector('dialog .word').textContent")
	p.write("dialog input", word)
	p.click("dialog button[type=button]")
	p.wait("!document.querySelector('dialog')")
	p.click(".question[data-still] .always")
	p.sees("The agent will not ask again")
	p.show("always")
	p.click("dialog button[value=yes]:not([disabled])")
	p.write("dialog input", word)
	p.click("dialog button[value=yes]")
	p.sees("You answered: Always")
	a := b.answerOf(run)
	if a["always"] != true || a["text"] != word || a["option"] != "b" {
		t.Errorf("on record: %v", a)
	}
	b.ended(p, run)
}
