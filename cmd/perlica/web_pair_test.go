//go:build linux

package main

import (
	"errors"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/perlica/perlica/eventlog"
	"github.com/perlica/perlica/kernel/config"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/kernel/filelock"
	"github.com/perlica/perlica/service/web/device"
	"github.com/perlica/perlica/service/web/device/devicetest"
)

// serving announces an address and returns the devices, as a process that serves the page does.
func (w *world) serving(at string) *device.Devices {
	w.t.Helper()
	paths, err := config.Dirs{State: filepath.Join(w.home, ".perlica", "state")}.EnsureOwn()
	if err != nil {
		w.t.Fatal(err)
	}
	log, err := eventlog.Open(w.t.Context(), paths.EventLog, eventlog.Options{Context: "user"})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = log.Close() }) // Every append was synced, so a failed close loses no data.
	d, err := device.Open(w.t.Context(), log, device.Options{})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = d.Close() })
	lock, err := filelock.Acquire(filelock.Server(paths.Locks))
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(lock.Release)
	lock.Sign(at, time.Now())
	return d
}

var pairCode = regexp.MustCompile(`/#pair=([A-Z0-9]+)`)

// asks lets a browser with the address on the screen ask for pairing. It returns the handle of the request.
func (s *terminal) asks(d *device.Devices, key devicetest.Key) (handle string) {
	s.w.t.Helper()
	s.finds(pairCode.String())
	code := pairCode.FindStringSubmatch(s.text())[1]
	from := fact.From{Address: "192.0.2.7", Browser: "Firefox \u202eand more"}
	handle, err := d.Begin(s.w.t.Context(), code, from)
	if err != nil {
		s.w.t.Fatal(err)
	}
	word, err := d.Ask(s.w.t.Context(), handle, "phone", key.JWK(), from)
	if err != nil {
		s.w.t.Fatal(err)
	}
	for _, text := range []string{"A browser asks to be paired", "phone", "Firefox", "192.0.2.7", word, "Pair it? [y/N]"} {
		s.expect(text)
	}
	return handle
}

// confirms presses a key again and again until the question is answered. The question first ignores all keys for a
// moment.
func (s *terminal) confirms(key, answer string) {
	s.w.t.Helper()
	s.w.eventually("the key is taken", func() error {
		if strings.Contains(s.text(), "[y/N]\x1b[22m "+answer) || strings.Contains(s.text(), "[y/N] "+answer) {
			return nil
		}
		s.press(key)
		return errors.New(s.text())
	})
}

// TestWebPair checks that a terminal shows a browser that asks for pairing, with the word on the browser's page. A
// key pairs the browser or refuses it.
func TestWebPair(t *testing.T) {
	w := newWorld(t)
	d := w.serving("http://127.0.0.1:7333")
	key := devicetest.NewKey()
	s := w.terminal(nil, "web", "pair", "--rights", "read,ask")
	s.finds(`http://127\.0\.0\.1:7333`)
	handle := s.asks(d, key)
	s.confirms("y", "yes")
	state := d.Await(t.Context(), handle)
	if state.State != "paired" || len(state.Rights) != 2 {
		t.Errorf("the browser: %+v", state)
	}
	s.expect("is paired, with the rights read, ask")
	s.exits(0)
	if strings.Contains(s.text(), "█") {
		t.Error("a code for a camera is drawn of an address that no phone can open")
	}

	s = w.terminal(nil, "web", "pair")
	handle = s.asks(d, devicetest.NewKey())
	s.confirms("x", "no")
	if state := d.Await(t.Context(), handle); state.State != "refused" {
		t.Errorf("the browser that was refused: %+v", state)
	}
	s.expect("the browser was refused")
	s.exits(1)

	s = w.terminal(nil, "web", "pair")
	s.finds(pairCode.String())
	for range 5 {
		if _, err := d.Begin(t.Context(), "guess", fact.From{}); !errors.Is(err, device.ErrCode) {
			t.Fatal(err)
		}
	}
	s.expect("no browser was paired: too many wrong codes were entered")
	s.exits(1)

	list := w.run("web", "devices")
	list.exits(0)
	if out := list.stdout.String(); !strings.Contains(out, state.Device) || strings.Contains(out, "\u202e") {
		t.Errorf("%q", out)
	}
	if dev, err := d.Authenticate(devicetest.Request(key, d, state.Device), nil); err != nil || dev.Name != "phone" {
		t.Errorf("%+v, %v", dev, err)
	}
	revoked := d.Revoked(state.Device)
	w.run("web", "revoke", "phone").exits(0)
	<-revoked
	w.gone()
}

// TestWebPairElsewhere checks that a QR code is drawn if another machine can open the address. Without a server no
// address is shown.
func TestWebPairElsewhere(t *testing.T) {
	w := newWorld(t)
	s := w.terminal(nil, "web", "pair")
	s.expect("nothing serves the page now")
	s.exits(1)
	d := w.serving("https://perlica.example")
	s = w.terminal(nil, "web", "pair")
	s.asks(d, devicetest.NewKey())
	s.shows("https://perlica.example/#pair=")
	s.shows("█")
	s.confirms("n", "no")
	s.exits(1)
	w.gone()
}
