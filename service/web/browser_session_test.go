//go:build !race

package web

import (
	"flag"
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// fill sets the text of the field for the next input. Typing would send the first line at the first
// Enter.
func (p *tab) fill(text string) {
	p.t.Helper()
	p.click(".composer textarea")
	js[any](p, "void (document.activeElement.value = $?)", text)
}

// turns is an expression for the texts of a session's turns.
const turns = "[...document.querySelectorAll('.turn')].map((el) => el.innerText).join('\\n----\\n')"

// testTurn checks an input on the page: it is written and sent, its turn appears as it arrives, and
// then its story and the log.
func testTurn(t *testing.T, b *browser) {
	p := b.paired("desk", desktop)
	p.visit("#/new")
	p.wait("document.querySelector('select[name=provider] option')")
	p.show("new")
	p.fill("@thought Hm.\n@plan completed:One pending:Two\n@tool read \"Look at it\" path=a.go text=package\n@say # " +
		"Title\\n\\nSome **bold** text.")
	p.click(".composer .send")
	p.wait("document.querySelector('.turn .outcome')")
	p.show("turn")
	for selector, want := range map[string]string{
		".turn .asked": "@thought Hm.", ".turn details summary": "Thought", ".turn .plan": "Two",
		".turn details.tool summary": "Look at it",
		".turn .markdown h2":         "Title", ".turn .markdown strong": "bold", ".turn .outcome": "responded",
	} {
		if got := js[string](p, "document.querySelector($?).textContent", selector); !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", selector, got, want)
		}
	}
	p.write(".composer textarea", "again")
	p.do(chromedp.KeyEvent(kb.Enter))
	p.wait("document.querySelectorAll('.turn .outcome').length === 2")
	p.do(chromedp.Reload())
	p.wait("document.querySelectorAll('.turn .outcome').length === 2")
	if got := js[string](p, turns); strings.Count(got, "You said: again") != 1 ||
		strings.Count(got, "Some bold text.") != 1 {
		t.Errorf("read again: %s", got)
	}
	p.click(".turn .outcome a")
	p.wait("document.querySelectorAll('.story > li').length > 3")
	p.show("story")
	js[any](p, `void (() => {
		const send = fetch;
		window.fetch = async (url, options) => {
			const res = await send(url, options);
			if (String(url).includes('/v1/runs?limit=30')) await new Promise((r) => { window.release = r; });
			return res;
		};
	})()`)
	p.visit("#/record")
	// The list of runs arrives after the search.
	p.wait("window.release")
	p.write("input[name=q]", "bold")
	p.click("form .primary")
	p.wait("document.querySelector('mark')")
	js[any](p, "window.release(), new Promise((r) => setTimeout(r, 50))")
	if !js[bool](p, "Boolean(document.querySelector('mark'))") {
		t.Error("an older answer took the place of what was searched for")
	}
	p.click("#logs button")
	p.sees("This log is undamaged")
	p.show("record")
	p.visit("#/numbers")
	p.wait("document.querySelector('.chart .bar')")
	p.show("numbers")
}

// hide makes the page hidden or visible.
func (p *tab) hide(hidden bool) {
	p.t.Helper()
	js[any](p, "Object.defineProperty(document, 'hidden', {value: $?, configurable: true}); void "+
		"document.dispatchEvent(new Event('visibilitychange'))", hidden)
}

// lines checks that each numbered line is on the page once.
func (p *tab) lines(n int) {
	p.t.Helper()
	got := js[string](p, "[...document.querySelectorAll('.turn .markdown')].map((el) => el.textContent).join('\\n')")
	for i := range n {
		if c := strings.Count(got, fmt.Sprintf("%09d ", i)); c != 1 {
			p.t.Fatalf("line %d is there %d times", i, c)
		}
	}
}

// testAsleep checks that a page that was hidden during 5,000 updates shows each of them once.
func testAsleep(t *testing.T, b *browser) {
	p := b.paired("phone", phone)
	session, run := b.send("first", "")
	p.visit(b.sessionAt(session))
	p.wait("document.querySelectorAll('.turn .outcome').length === 1")
	b.ended(p, run)
	p.hide(true)
	p.wait("document.querySelector('.link-state.hidden')")
	_, run = b.send("@stream 5000 20", session)
	b.ended(p, run)
	if n := js[int](p, "document.querySelectorAll('.turn').length"); n != 1 {
		t.Errorf("a hidden page has %d turns", n)
	}
	p.hide(false)
	p.wait("document.querySelectorAll('.turn .outcome').length === 2")
	p.lines(5000)
	p.show("awake")
}

// testNetworks checks that a phone with broken connections shows each update once, as after changes
// of its network.
func testNetworks(t *testing.T, b *browser) {
	p := b.paired("phone", phone)
	session, run := b.send("@delay 1ms\n@stream 3000 20", "")
	p.visit(b.sessionAt(session))
	for i := 0; i < 5; i++ {
		p.wait("document.body.innerText.includes($?)", fmt.Sprintf("%09d", i*500))
		b.http.CloseClientConnections()
	}
	p.wait("document.querySelector('.turn .outcome')")
	b.ended(p, run)
	p.lines(3000)
	p.wait("document.querySelector('.link-state.live')")
}

// testKilled checks that the page continues with the next server after the first one ended during a
// turn.
func testKilled(t *testing.T, b *browser) {
	p := b.paired("phone", phone)
	session, _ := b.send("@stream 300 20\n@hang", "")
	p.visit(b.sessionAt(session))
	p.wait("document.body.innerText.includes('000000299')")
	b.http.CloseClientConnections()
	stop(t, b.server, b.http)
	p.wait("document.querySelector('.link-state.broken')")
	p.show("reconnecting")
	b.again()
	p.wait("document.querySelector('.link-state.live')")
	p.wait("document.querySelector('.turn .outcome')")
	p.lines(300)
}

// testTwoTabs checks two tabs of one device, one of them asleep. Both show each update once,
// although the server's connections break twice in one stream. Revoking the device in another
// stream ends both tabs.
func testTwoTabs(t *testing.T, b *browser) {
	one := b.paired("desk", desktop)
	two := b.open(one, desktop)
	two.do(chromedp.Navigate(b.http.URL + "/"))
	two.wait("document.querySelector('.link-state.live')")
	session, _ := b.send("@stream 4000 20 every=1ms", "")
	for _, p := range []*tab{one, two} {
		p.visit(b.sessionAt(session))
		p.wait("document.body.innerText.includes('000000099')")
	}
	two.hide(true)
	for _, line := range []string{"000000500", "000001500"} {
		one.wait("document.body.innerText.includes($?)", line)
		b.http.CloseClientConnections() // this cuts the streams, but the turn continues
		one.wait("document.querySelector('.link-state.live')")
	}
	two.hide(false)
	for _, p := range []*tab{one, two} {
		p.wait("document.querySelector('.turn .outcome')")
		p.lines(4000)
	}
	b.send("@stream 100 20\n@hang", session)
	for _, p := range []*tab{one, two} {
		p.wait("document.querySelectorAll('.turn').length === 2")
	}
	_, err := b.devices.Revoke(t.Context(), b.devicesNamed("desk")[0].ID, "test")
	check(t, err)
	for _, p := range []*tab{one, two} {
		p.sees("no longer accepts this device")
		if text := js[string](p, "document.body.innerText"); strings.Contains(text, "000000001") {
			t.Error("what the device was shown is still there")
		}
	}
}

// many is the number of events of the session in testMany; 'make bench' uses 10,000.
var many = flag.Int("many", 2000, "how many events are in the session of TestBrowser/many")

// testMany checks that the page shows a session of many events completely and still scrolls
// smoothly.
func testMany(t *testing.T, b *browser) {
	p := b.paired("desk", desktop)
	// A tool call has two events, and the turns have a few of their own.
	texts, tools := *many*6/10, *many*3/20
	session, _ := b.send(fmt.Sprintf("@stream %d 30", texts), "")
	p.visit(b.sessionAt(session))
	p.wait("document.querySelectorAll('.turn .outcome').length === 1")
	var script strings.Builder
	for i := range tools {
		fmt.Fprintf(&script, "@tool read \"Look at %d\" id=t%d text=x\n", i, i)
	}
	b.send(script.String(), session)
	p.wait("document.querySelectorAll('.turn .outcome').length === 2")
	p.lines(texts)
	if n := js[int](p, "document.querySelectorAll('.tool').length"); n != tools {
		t.Errorf("%d tools", n)
	}
	// A covered page draws nothing.
	p.front()
	measured := js[[]float64](p, `(async () => {
		let longest = 0;
		const watch = new PerformanceObserver((list) => { for (const e of list.getEntries()) longest = Math.max(longest, e.duration); });
		watch.observe({type: 'longtask'});
		const frame = () => new Promise((r) => requestAnimationFrame(() => setTimeout(r)));
		await frame();
		for (const until = performance.now() + 150; performance.now() < until;);
		while (longest === 0) await frame();
		const busy = longest;
		longest = 0;
		scrollTo(0, 0);
		for (let y = -1; y !== scrollY;) {
			y = scrollY;
			scrollBy(0, innerHeight);
			await frame();
		}
		for (let y = -1; y !== scrollY;) {
			y = scrollY;
			scrollBy(0, -1000);
			await frame();
		}
		for (let i = 0; i < 5; i++) await frame();
		watch.disconnect();
		return [busy, longest, document.documentElement.scrollHeight];
	})()`)
	t.Logf("the longest task while %.0f px were scrolled: %.0f ms (0: none of 50 ms; one that was busy for 150 ms was "+
		"measured as %.0f)", measured[2], measured[1], measured[0])
	p.do(chromedp.Reload())
	p.wait("document.querySelectorAll('.turn .outcome').length === 2")
	p.lines(texts)
	t.Logf("the longest task while the page was opened anew: %.0f ms", js[float64](p, `new Promise((done) => {
		new PerformanceObserver((list) => done(Math.max(...list.getEntries().map((e) => e.duration)))).observe({type: 'longtask', buffered: true});
		setTimeout(() => done(0), 1000);
	})`))
}

// testBeside checks that the page names the agent's other contents: pictures, links, notices,
// titles and unknown stop reasons. The page does not load them.
func testBeside(t *testing.T, b *browser) {
	p := b.paired("desk", desktop)
	p.visit("#/new")
	p.wait("document.querySelector('select[name=provider] option')")
	const chunk = `@update {"sessionUpdate":"agent_message_chunk","content":{`
	p.fill(chunk + `"type":"image","mimeType":"image/png","data":"aGVsbG8=","uri":"https://example.org/a.png"}}
` + chunk + `"type":"resource_link","uri":"file:///etc/passwd","name":"pw"}}
` + chunk + `"type":"audio","mimeType":"audio/wav","data":"cGl4ZWxz"}}
@update {"sessionUpdate":"notice","level":"info","message":"slow today"}
@update {"sessionUpdate":"notice","severity":"warning","title":"Quota","description":"9 % are left"}
@update {"sessionUpdate":"compaction_update","compactionId":"c","status":"in_progress"}
@title Of the agent
@say x
@stop weary`)
	p.click(".composer .send")
	p.wait("document.querySelector('.turn .outcome')")
	p.show("beside")
	// Read only the remarks and outcomes, because the input on the page has the same words.
	got := js[string](p,
		"[...document.querySelectorAll('.turn .remark, .turn .outcome')].map((e) => e.innerText).join('\\n')")
	for _, want := range []string{"image/png", "file:///etc/passwd", "audio/wav", "slow today", "Quota", "9 % are left",
		"compaction: in progress", "Of the agent", "weary"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in %s", want, got)
		}
	}
	if n := js[int](p, "document.querySelectorAll('.turn img, .turn audio, .turn a[href^=file]').length"); n != 0 {
		t.Errorf("%d things that an agent named are fetched or linked", n)
	}
	failed, run := b.send("@error -32603 \"the agent broke\"", "")
	for view, at := range map[string]string{"session": b.sessionAt(failed),
		"run": strings.Replace(b.sessionAt(run), "session", "run", 1)} {
		p.visit(at)
		p.wait("[...document.querySelectorAll('main .alert')].some((el) => el.innerText.includes('the agent broke'))")
		p.show("failed " + view)
	}
}
