//go:build !race

package web

import (
	"fmt"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/perlica/perlica/service/access"
)

// testDevices checks that an administrator's page lists the devices and revokes one. The revoked
// page is out at once. A device that signs out is unknown afterwards.
func testDevices(t *testing.T, b *browser) {
	boss := b.paired("desk", desktop, access.Read, access.Admin)
	lost := b.paired("lost phone", phone)
	boss.visit("#/devices")
	// The list includes the program.
	boss.wait("document.querySelectorAll('#others li').length === 2")
	boss.looks("devices")
	boss.show("list")
	boss.click("#others button[aria-label='Revoke: lost phone']")
	boss.sees("lost phone loses its access at once")
	boss.show("revoke")
	boss.click("dialog button[value=yes]")
	boss.wait("document.querySelectorAll('#others li').length === 1")
	lost.sees("Perlica no longer accepts this device")
	if n := len(b.devicesNamed("lost phone")); n != 0 {
		t.Errorf("%d devices are the one that was revoked", n)
	}
	boss.click("#self .danger")
	boss.click("dialog button[value=yes]")
	// The page has changed to the pairing form.
	boss.do(chromedp.WaitVisible(chromedp.CSS("input[name=code]")))
	if n := len(b.devicesNamed("desk")); n != 0 {
		t.Error("who signed out may still come in")
	}
}

// testChoices checks that a known model and mode can be chosen with the next input. The page does
// not offer modes in which the agent asks less.
func testChoices(t *testing.T, b *browser) {
	p := b.paired("phone", phone)
	p.visit("#/new")
	p.wait("document.querySelector('select[name=provider] option[value=claude]')")
	js[any](p, "(() => { const s = document.querySelector('select[name=provider]'); s.value = 'claude'; "+
		"s.dispatchEvent(new Event('change')); })()")
	p.fill("@say Hello")
	p.click(".composer .send")
	p.wait("document.querySelector('.turn .outcome')")
	p.click(".choices summary")
	p.wait("document.querySelector('select[name=mode]')")
	p.looks("choices")
	p.show("choices")
	if got := js[string](p,
		"[...document.querySelectorAll('.choices option')].map((o) => "+
			"o.textContent).join()"); got != "small (now),large,Default (now),Plan" {
		t.Errorf("offered are %s", got)
	}
	js[any](p, "document.querySelector('select[name=mode]').value = 'plan'; void "+
		"(document.querySelector('select[name=model]').value = 'large')")
	session := js[string](p, "location.hash.split('/')[2].split('?')[0]")
	// A choice stays while turns end. The page reads the offers again after each turn.
	for n := 2; n < 5; n++ {
		b.send("@say between", session)
		p.wait(fmt.Sprintf("document.querySelectorAll('.turn .outcome').length === %d", n))
	}
	if got := js[string](p,
		"document.querySelector('select[name=mode]').value + ' ' + "+
			"document.querySelector('select[name=model]').value"); got != "plan large" {
		t.Errorf("of what was chosen %q is left", got)
		js[any](p,
			"document.querySelector('select[name=mode]').value = 'plan'; void "+
				"(document.querySelector('select[name=model]').value = 'large')")
	}
	p.fill("@show session")
	p.click(".composer .send")
	p.wait("document.querySelectorAll('.turn .outcome').length === 5")
	p.sees("mode plan")
	p.wait("[...document.querySelectorAll('.choices option')].some((o) => o.textContent === 'large (now)')")
	p.visit("#/new")
	p.wait("document.querySelector('select[name=provider] option[value=claude]')")
	js[any](p, "(() => { const s = document.querySelector('select[name=provider]'); s.value = 'claude'; "+
		"s.dispatchEvent(new Event('change')); })()")
	p.wait("document.querySelector('select[name=mode] option[value=plan]')")
}
