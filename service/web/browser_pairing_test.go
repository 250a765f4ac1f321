//go:build !race

package web

import (
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/perlica/perlica/service/access"
)

// testPairing checks that a browser becomes a device, that its key stays in the browser, and that a
// code counts once.
func testPairing(t *testing.T, b *browser) {
	p := b.open(nil, phone)
	p.do(chromedp.Navigate(b.http.URL + "/"))
	p.sees("Pair this browser")
	p.show("welcome")
	p.looks("welcome")
	js[any](p, "localStorage.setItem('left', 'by another server')")
	p.do(chromedp.Navigate("about:blank"))
	code := b.pair(p, "Anna's phone", true, access.Read, access.Ask, access.Approve)
	p.wait("document.querySelector('.link-state.live')")
	if left := js[string](p, "location.hash + localStorage.getItem('left')"); left != "null" {
		t.Errorf("the address or the storage still has %q", left)
	}
	kept := js[object](p, `new Promise((resolve) => {
		const open = indexedDB.open('perlica');
		open.onsuccess = () => {
			const get = open.result.transaction('device').objectStore('device').get('self');
			get.onsuccess = () => resolve({name: get.result.name, private: get.result.key.privateKey.extractable, usages: get.result.key.privateKey.usages.join()});
		};
	})`)
	if kept["name"] != "Anna's phone" || kept["private"] != false || kept["usages"] != "sign" {
		t.Errorf("kept: %v", kept)
	}
	p.do(chromedp.Reload())
	p.wait("document.querySelector('.link-state.live')")
	p.visit("#/devices")
	p.sees("Anna's phone")

	other := b.open(nil, phone)
	other.do(chromedp.Navigate(b.http.URL + "/#pair=" + code))
	other.sees("Not paired")

	devices := b.devicesNamed("Anna's phone")
	if len(devices) != 1 {
		t.Fatalf("%d devices", len(devices))
	}
	if _, err := b.devices.Revoke(t.Context(), devices[0].ID, "test"); err != nil {
		t.Fatal(err)
	}
	p.sees("no longer accepts this device")
}

// testRefusedPairing checks that a browser stays out after the terminal has refused it.
func testRefusedPairing(t *testing.T, b *browser) {
	p := b.open(nil, phone)
	b.pair(p, "stranger", false, access.Read)
	p.sees("The terminal refused this browser")
	if n := len(b.devicesNamed("stranger")); n != 0 {
		t.Errorf("%d devices", n)
	}
}
