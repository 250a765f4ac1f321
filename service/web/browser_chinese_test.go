//go:build !race

package web

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/perlica/perlica/service/access"
	"github.com/perlica/perlica/service/web/device"
)

// english is a JavaScript function that lists the English texts of the page except the given words.
//
//go:embed testdata/english.js
var english string

// names lists the names that are the same in every language, and the test's own names.
var names = []string{"@ask execute", "@thought", "Hm.", "@error", "@say", "Clean up", "Run the tests", "Perlica",
	"perlica", "https", "localhost", "Web Push", "MB", "ms",
	"project-0", "project-1", "program", "predictable", "claude", "broken", "rm -rf /", "sudo", "make", "root", "none",
	"off", "fs/read_text_file", "go test ./...", "test", "auto", "Fails", "Change it", "@exit", "@hang", "command=",
	"database disk image is malformed"} // a message of SQLite

// reads sets the preferred languages of a tab's browser.
func (p *tab) reads(languages string) {
	p.t.Helper()
	agent := js[string](p, "navigator.userAgent")
	p.do(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, emulation.SetUserAgentOverride,
			emulation.SetUserAgentOverrideParams{UserAgent: agent, AcceptLanguage: languages})
		return err
	}))
}

// chinese fails for each English text of a view and for each fault of its appearance. The paths of the logs and
// the message of SQLite about the damaged log may be on the page.
func (p *tab) chinese(view string, more ...string) {
	p.t.Helper()
	js[any](p, "document.querySelectorAll('details').forEach((d) => { d.open = true; })")
	p.show(fmt.Sprint(js[int](p, "innerWidth"), " ", view))
	more = append(more, "file is not a database")
	for _, dir := range p.w.dirs {
		more = append(more, filepath.Join(dir, ".perlica_config", "contexts", "default", "eventlog.db"))
	}
	list, err := json.Marshal(append(more, names...))
	check(p.t, err)
	for _, left := range js[[]string](p, "("+english+")("+string(list)+")") {
		p.t.Errorf("%d px, %s: English is left: %s", js[int](p, "innerWidth"), view, left)
	}
	p.looks(view)
}

// testChinese checks that every view of the page is Chinese for a reader of Chinese.
func testChinese(t *testing.T, b *browser) {
	tabs := map[string]*tab{}
	for name, size := range map[string][]int64{"手机": phone, "电脑": desktop} {
		p := b.open(nil, size)
		tabs[name] = p
		p.reads("zh-CN,zh")
		p.pairing = func(view string) { p.chinese(view) }
		p.do(chromedp.Navigate(b.http.URL + "/"))
		p.sees("配对此浏览器")
		p.chinese("welcome")
		p.do(chromedp.Navigate("about:blank"))
		b.pair(p, name, false, access.Read)
		p.sees("终端拒绝了此浏览器")
		p.chinese("refused")
		p.do(chromedp.Navigate("about:blank"))
		b.pair(p, name, true, access.Read, access.Ask, access.Approve, access.Admin)
		p.wait("document.querySelector('.link-state.live')")
		// This browser prefers English, but its user chose Chinese on the page.
		if name == "电脑" {
			p.reads("en-GB,en")
			p.visit("#/devices")
			p.wait("document.querySelector('select[name=language]')")
			js[any](p, `(() => {
				localStorage.setItem('language', 'en');
				const el = document.querySelector('select[name=language]');
				el.value = 'zh';
				el.dispatchEvent(new Event('change'));
			})()`)
			p.wait("localStorage.getItem('language') === 'zh'")
		}
		for _, view := range []string{"now", "sessions", "record", "numbers"} {
			p.visit("#/" + view)
			p.wait("document.querySelector('.empty')")
			p.chinese("empty " + view)
		}
	}
	session, run :=
		b.send("@thought Hm.\n@plan completed:One pending:Two\n@tool edit \"Change it\" path=a.go old=1 new=2\n@tool "+
			"execute Fails steps=pending,failed text=no\n"+
			"@request fs/read_text_file wait=no\n@say Done.\n@tokens 1200 300", "")
	_, failed := b.send("@error -32603 broken", "")
	b.send(`@ask execute "Clean up" command="sudo rm -rf /" options=a:allow_once,b:allow_always,c:reject_once,d:reject_always`, "")
	b.send(`@ask execute "Run the tests" command="go test ./..."`, "")
	died, gone := b.send("@exit 3", "")
	unasked := b.do("POST", "/v1/inputs", object{"project": b.dirs[0],
		"text": "@ask execute \"Run the tests\" command=\"sudo make\"\n@mode auto\n@tool execute Fails command=\"go " +
			"test ./...\"",
		"permissions": "deny", "wait": true}).want(200).object()
	waits, stopped := b.send("@hang", "")
	b.do("POST", "/v1/runs/"+stopped+"/cancel", object{}).want(202)
	bad := filepath.Join(b.dirs[1], ".perlica_config", "contexts", "default", "eventlog.db")
	check(t, os.WriteFile(bad, []byte(strings.Repeat("no database ", 1000)), 0o600))
	decided := unasked["session_id"].(string)
	unaskedRun := unasked["run_id"].(string)
	tokens, err := device.List(t.Context(), &b.user.Log().Reader)
	check(t, err)
	runs := func(id string) string { return strings.Replace(b.sessionAt(id), "session", "run", 1) }
	for _, p := range tabs {
		p.front()
		for _, view := range []struct{ name, at, there string }{
			{"now", "#/now", ".question .yes"}, {"sessions", "#/sessions", ".list .item"},
			{"session", b.sessionAt(session), ".turn .outcome"},
			{"failed", runs(failed), ".story > li:nth-child(3)"}, {"new", "#/new", "select[name=provider] option"},
			{"record", "#/record", "#logs button"}, {"numbers", "#/numbers", ".chart .bar"},
			{"story", runs(run), ".story > li:nth-child(6)"},
			{"decided", b.sessionAt(decided), ".turn .outcome"}, {"decided story", runs(unaskedRun), ".story > li:nth-child(4)"},
			{"died", b.sessionAt(died), ".turn .outcome"}, {"died story", runs(gone), ".story > li:nth-child(3)"},
			{"stopped", b.sessionAt(waits), ".turn .outcome"}, {"stopped story", runs(stopped), ".story > li:nth-child(3)"},
			{"device", "#/devices", "#others li"}, {"no run", runs("none"), ".alert"},
			{"nothing found", "#/record?q=zzz", ".empty"}, {"found", "#/record?q=Done", "mark"},
		} {
			p.visit(view.at)
			p.wait("document.querySelector($?)", view.there)
			p.chinese(view.name, "zzz", "Done", "(web:"+tokens[0].ID+")", "reject-once", "ask", "off")
		}
		// The next events arrive while the page is open.
		p.visit(b.sessionAt(died))
		p.wait("document.querySelector('.turn .outcome')")
		was := js[int](p, "document.querySelectorAll('.turn .outcome').length")
		b.send("@mode auto\n@exit 3", died)
		p.wait("document.querySelectorAll('.turn .outcome').length > $?", was)
		p.chinese("died again", "(web:"+tokens[0].ID+")")
		p.visit("#/record?q=Done")
		p.wait("document.querySelector('mark')") // the results move the button
		p.click("#logs button")
		p.sees("此日志完好")
		p.chinese("verified", "Done")
		p.visit("#/devices")
		for button, says := range map[string]string{"self": "这会删除此浏览器中的密钥", "others": "将立即失去访问权限"} {
			p.click("#" + button + " .danger")
			p.sees(says)
			p.chinese("sure " + button)
			p.click("dialog button[value=back]")
			p.wait("!document.querySelector('dialog')")
		}
		p.visit("#/now")
		p.wait("document.querySelector('.question.refused')")
		p.read()
		p.click(".question.refused[data-still] .yes:not([aria-disabled])")
		p.sees("除非输入一个词")
		p.chinese("word")
		p.click("dialog button:not([value=yes])")
		p.wait("!document.querySelector('dialog')")
		p.click(".question.refused[data-still] .always")
		p.sees("始终允许")
		p.chinese("always")
		p.click("dialog button[value=back]")
		p.wait("!document.querySelector('dialog')")
		p.offline(true)
		p.click(".question.refused[data-still] .no")
		p.sees("你的回答没有得到确认")
		p.chinese("offline")
		p.offline(false)
		p.wait("document.querySelector('.link-state.live')")
	}
	p, other := tabs["手机"], tabs["电脑"]
	id := b.devicesNamed("手机")[0].ID
	p.front()
	p.read()
	p.click(".question.refused[data-still] .no:not([disabled])")
	p.sees("你已回答：否")
	p.chinese("answered")
	other.sees("回答：否")
	other.chinese("answered by another", "(web:"+id+")")
	_, err = b.devices.Revoke(t.Context(), id, "test")
	check(t, err)
	p.sees("不再接受此设备")
	p.chinese("revoked")
}
