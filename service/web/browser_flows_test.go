//go:build !race

package web

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/service/access"
)

// hostileFlow is a flow with active content in each text that the page shows.
var hostileFlow = `name = "hostile"
description = '` + active(1) + `'
[inputs.word]
description = '` + active(2) + `'
default = '` + active(3) + `'
[[step]]
id = "gate"
ask = '` + active(4) + `'
options = ['` + active(5) + `', "no"]
[[step]]
id = "fails"
needs = ["gate"]
text = '@error -32603 "{{ inputs.word }}"'
`

func active(n int) string { return fmt.Sprintf("<img src=x onerror=window.owned=%d><b>x</b>", n) }

// wideFlow is a flow with all kinds of steps. The step count fails for one item.
const wideFlow = `name = "review"
description = "项目"
[inputs.files]
description = "清单"
[inputs.base]
default = "main"
[[step]]
id = "plan"
text = "@say {{ inputs.base }}\n@tokens 1200 300"
[[step]]
id = "each"
needs = ["plan"]
for_each = "lines(inputs.files)"
parallel = 2
on_failure = "continue"
text = "@{{ item }}"
[[step]]
id = "side"
needs = ["plan"]
when = "inputs.base == 'x'"
on_skipped = "continue"
text = "@say no"
[[step]]
id = "gate"
needs = ["each", "side"]
ask = "{{ inputs.base }}?"
options = ["去", "停"]
[[step]]
id = "part"
needs = ["gate"]
flow = "inner.toml"
[[step]]
id = "last"
needs = ["part"]
text = "@hang"
`

const innerFlow = "name = \"inner\"\n[[step]]\nid = \"one\"\ntext = \"@say one\"\n"

// inField is the field of an input of a flow.
func inField(name string) string { return "#in-" + name }

// chooseFlow shows the form for a flow of the first project.
func (p *tab) chooseFlow(name string) {
	p.t.Helper()
	p.visit("#/flow")
	p.wait("[...document.querySelectorAll('select[name=flow] option')].some((o) => o.value === $?)", name)
	js[any](p, `(() => {
		const el = document.querySelector('select[name=flow]');
		el.value = $?;
		el.dispatchEvent(new Event('change'));
	})()`, name)
}

// stepIs waits until a step of the graph has a state, in words.
func (p *tab) stepIs(step, words string) {
	p.t.Helper()
	p.wait("document.querySelector('#step-' + $?)?.innerText.includes($?)", step, words)
}

// testFlows starts a flow by its form, answers its question, follows the graph, ends the flow run and looks at the
// list. It does this on a phone and on a desktop, in two languages, dark and light.
func testFlows(t *testing.T, b *browser) {
	b.flowFile(b.dirs[0], "review.toml", wideFlow)
	b.flowFile(b.dirs[0], "inner.toml", innerFlow)
	for _, c := range []struct {
		size      []int64
		languages string
		missing   string
		running   string
		done      string
	}{
		{phone, "zh-CN,zh", "需要填写此输入项", "进行中", "已完成"}, {desktop, "en", "This input is needed", "running", "done"},
	} {
		p := b.open(nil, c.size)
		p.reads(c.languages)
		b.pair(p, fmt.Sprint(c.size[0]), true, access.Read, access.Ask, access.Approve)
		p.wait("document.querySelector('.link-state.live')")
		looks := func(view string) {
			t.Helper()
			for _, scheme := range []string{"dark", "light"} {
				p.like(scheme)
				p.show(fmt.Sprint(c.size[0], scheme, view))
				if c.languages == "en" {
					p.looks(scheme + " " + view)
				} else {
					// The agent's words, names and ids are the same in every language.
					p.chinese(view, "plan", "each", "side", "gate", "part", "last", "files", "base", "main", "review", "inner",
						"one", "flow", "(web:", "when", "session/prompt: b (code -32603)", "390",
						b.devicesNamed("390")[0].ID)
				}
			}
		}
		p.visit("#/flows")
		if c.size[0] == 390 {
			p.wait("document.querySelector('.empty')")
			looks("none")
		}
		p.chooseFlow("review")
		p.wait("document.querySelector($?)", inField("files"))
		looks("form")
		p.click("form .primary")
		p.sees(c.missing)
		if js[string](p, "document.activeElement.id") != "in-files" ||
			!js[bool](p, "document.activeElement.getAttribute('aria-invalid') === 'true'") {
			t.Error("the field without a text has no focus")
		}
		looks("missing")
		p.write(inField("files"), "say a")
		js[any](p, `(() => {
			const el = document.querySelector('#in-files');
			el.value += '\nerror -32603 b\nsay c';
			el.dispatchEvent(new Event('input'));
		})()`)
		p.click("form .primary")
		p.wait("document.querySelector('.graph .stepbox')")
		p.wait("document.querySelector('.question')")
		p.stepIs("plan", c.done)
		js[any](p, "document.querySelectorAll('details').forEach((d) => { d.open = true; })")
		p.wait("document.querySelectorAll('#step-each .units > li').length === 3")
		looks("asks")
		if edges := js[int](p, "document.querySelectorAll('.edges path').length"); (edges == 6) != (c.size[0] > 600) {
			t.Errorf("%d lines at %d px", edges, c.size[0])
		}
		p.read()
		p.click(".question[data-still] [data-option='去']")
		p.stepIs("part", c.done)
		p.stepIs("last", c.running)
		p.wait("document.querySelector('#step-part a[href*=\"#/flow/\"]')")
		looks("running")
		p.click("#step-plan a")
		p.wait("document.querySelector('.story > li')")
		js[any](p, "history.back()")
		p.wait("document.querySelector('#step-last')")
		p.click(".card .danger")
		p.wait("document.querySelector('dialog')")
		p.click("dialog button[value=yes]")
		p.wait("!document.querySelector('.card .danger')")
		looks("cancelled")
		p.visit("#/flows")
		p.wait("document.querySelector('.list .item')")
		looks("list")
		p.click(".list .item")
		p.wait("document.querySelector('.graph .stepbox')")
	}
	if n := b.count(b.dirs[0], event.FlowStarted); n != 4 { // two flow runs with an inner one each
		t.Errorf("%d flow runs", n)
	}
}

// testFlowKeyboard starts a flow, lets a failed step call again, and ends the flow run without a mouse, at 360 px.
func testFlowKeyboard(t *testing.T, b *browser) {
	b.flowFile(b.dirs[0], "release.toml", `name = "release"
[inputs.word]
[[step]]
id = "first"
text = "@error -32603 {{ inputs.word }}"
on_failure = "continue"
[[step]]
id = "gate"
needs = ["first"]
ask = "Go on?"
options = ["go"]
`)
	p := b.paired("desk", []int64{360, 740})
	p.visit("#/flows")
	p.press("a[href='#/flow']", kb.Enter)
	p.wait("document.querySelector('#in-word')")
	p.press("#in-word", "hello")
	p.press("form .primary", kb.Enter)
	p.wait("document.querySelector('#step-first .danger')")
	p.looks("360")
	p.show("360")
	first := js[string](p, "document.querySelector('#step-first a').href")
	p.press("#step-first .danger", kb.Enter)
	p.wait("document.querySelector('dialog')")
	p.press("dialog button[value=yes]", kb.Enter)
	p.wait("document.querySelector('#step-first .danger') && document.querySelector('#step-first a').href !== $?", first)
	p.press(".card .danger", kb.Enter)
	p.wait("document.querySelector('dialog')")
	p.press("dialog button[value=yes]", kb.Enter)
	p.sees("cancelled")
	p.press("#step-first a", kb.Enter)
	p.wait("document.querySelector('.story li')")
}

// testHostileFlow checks that no text of a flow becomes markup: neither the name of its file nor its descriptions,
// defaults, question, options and errors.
func testHostileFlow(t *testing.T, b *browser) {
	const file = "<img src=x onerror=window.owned=6>"
	b.flowFile(b.dirs[0], file+".toml", "step = 1\n")
	b.flowFile(b.dirs[0], "hostile.toml", hostileFlow)
	p := b.paired("desk", desktop)
	pure := func(view string, want ...string) {
		t.Helper()
		for _, text := range want {
			p.wait("document.querySelector('main').innerText.includes($?) || "+
				"[...document.querySelectorAll('main textarea')].some((el) => el.value.includes($?))", text, text)
		}
		p.show("hostile " + view)
		if n := js[int](p, "document.querySelectorAll('main :is(script, img, iframe, b:not(.said))').length"); n != 0 {
			t.Errorf("%s: %d elements are the flow's", view, n)
		}
		if owned := js[any](p, "window.owned || null"); owned != nil {
			t.Errorf("%s: script %v ran", view, owned)
		}
	}
	p.chooseFlow(file)
	pure("broken", file)
	p.chooseFlow("hostile")
	p.wait("document.querySelector('#in-word')")
	pure("form", active(1), active(2), active(3))
	p.click("form .primary")
	p.wait("document.querySelector('.question')")
	pure("asks", active(4), active(5))
	p.read()
	p.click(".question[data-still] button[data-n='1']")
	p.wait("document.querySelector('#step-fails .remark')")
	js[any](p, "document.querySelectorAll('details').forEach((d) => { d.open = true; })")
	pure("failed", active(5), "session/prompt: "+active(3))
	p.visit("#/flows")
	p.wait("document.querySelector('.list .item')")
	pure("list")
}

// testFlowLost checks that a start without a confirmed answer is sent again under the same id, so that the flow starts
// once.
func testFlowLost(t *testing.T, b *browser) {
	b.flowFile(b.dirs[0], "release.toml", flowText)
	p := b.paired("phone", phone)
	p.chooseFlow("release")
	p.write(inField("word"), "hello")
	js[any](p, `(() => {
		const real = fetch;
		globalThis.fetch = async (url, init) => {
			const res = await real(url, init);
			if (init && init.method === 'POST' && String(url).endsWith('flow-runs')) {
				globalThis.fetch = real;
				throw new TypeError('the answer is lost');
			}
			return res;
		};
	})()`)
	p.click("form .primary")
	p.sees("this cannot start it twice")
	p.show("lost")
	p.click("form .primary")
	p.wait("document.querySelector('.graph .stepbox')")
	if n := b.count(b.dirs[0], event.FlowStarted); n != 1 {
		t.Errorf("%d flow runs", n)
	}
}

// testFlowReader checks that a device without the right ask sees flow runs and changes none.
func testFlowReader(t *testing.T, b *browser) {
	b.flowFile(b.dirs[0], "release.toml", flowText)
	b.do("POST", "/v1/flow-runs", b.flowStart("r1")).want(202)
	b.question()
	p := b.paired("reader", phone, access.Read)
	p.visit("#/flows")
	p.click(".list .item")
	p.wait("document.querySelector('.question')")
	p.visit("#/flow/r1")
	p.stepIs("gate", "asks")
	if link := js[string](p, "document.querySelector('#step-first a').href"); !strings.Contains(link, "project-0") {
		t.Errorf("the link %s names no project", link)
	}
	p.do(chromedp.EmulateViewport(1280, 800))
	p.wait("document.querySelectorAll('.edges path').length === 2")
	p.show("reader")
	const buttons = "[...document.querySelectorAll('main button:not(.quiet)')].map((b) => b.innerText).join()"
	if got := js[string](p, buttons); got != "" {
		t.Errorf("a reader has the buttons %s", got)
	}
	if text := js[string](p, "document.querySelector('main').innerText"); strings.Contains(text, "Start a flow") {
		t.Error("a reader can start a flow")
	}
}
