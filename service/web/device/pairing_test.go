package device_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/service/access"
	"github.com/perlica/perlica/service/web/device"
	"github.com/perlica/perlica/service/web/device/devicetest"
)

// opened opens a pairing at the terminal.
func opened(t *testing.T, d *device.Devices) *device.Pairing {
	t.Helper()
	p, err := d.OpenPairing(t.Context(), access.OfDevices(), "alice")
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestStolenAddress checks that the first use of a code uses it up, in all running processes and in
// a later one. The log's files contain neither the code nor the browser's handle.
func TestStolenAddress(t *testing.T) {
	h := newHome(t)
	terminal, server := h.open(t), h.open(t)
	p := opened(t, terminal)
	handle, err := server.Begin(t.Context(), p.Code, from)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []*device.Devices{server, terminal, h.open(t)} {
		if _, err := d.Begin(t.Context(), p.Code, from); !errors.Is(err, device.ErrCode) {
			t.Errorf("the code counts again: %v", err)
		}
	}
	if _, err := server.Ask(t.Context(), handle, "phone", devicetest.NewKey().JWK(), from); err != nil {
		t.Errorf("who was first: %v", err)
	}
	for _, suffix := range []string{"", "-wal"} {
		file, err := os.ReadFile(h.path + suffix)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(file, []byte(p.Code)) || bytes.Contains(file, []byte(handle)) {
			t.Errorf("the code or the handle is in %s", h.path+suffix)
		}
	}
}

// TestFiveTries checks that the right code does not count after five wrong codes at any process.
// The terminal learns of it.
func TestFiveTries(t *testing.T) {
	h := newHome(t)
	terminal, server := h.open(t), h.open(t)
	p := opened(t, terminal)
	for i := range 5 {
		d := []*device.Devices{server, terminal}[i%2]
		if _, err := d.Begin(t.Context(), p.Code+"x", from); !errors.Is(err, device.ErrCode) {
			t.Fatalf("a wrong code: %v", err)
		}
	}
	if _, err := h.open(t).Begin(t.Context(), p.Code, from); !errors.Is(err, device.ErrCode) {
		t.Errorf("the sixth try: %v", err)
	}
	if _, err := p.Wait(t.Context()); err == nil || !strings.Contains(err.Error(), "too many wrong codes") {
		t.Errorf("the terminal: %v", err)
	}
	if n := len(h.events(t, event.WebPairingAttempted)); n != 5 {
		t.Errorf("%d tries are on record", n)
	}
	p = opened(t, terminal)
	for range 4 {
		if _, err := server.Begin(t.Context(), "x", from); !errors.Is(err, device.ErrCode) {
			t.Fatalf("a wrong code: %v", err)
		}
	}
	if _, err := server.Begin(t.Context(), p.Code, from); err != nil {
		t.Errorf("the fifth try is the right one: %v", err)
	}
}

// TestTriesAtOnce checks that simultaneous guesses at several processes share the five tries.
func TestTriesAtOnce(t *testing.T) {
	h := newHome(t)
	servers := []*device.Devices{h.open(t), h.open(t)}
	opened(t, servers[0])
	var wg sync.WaitGroup
	for i := range 12 {
		wg.Go(func() {
			if _, err := servers[i%2].Begin(t.Context(), "x", from); !errors.Is(err, device.ErrCode) {
				t.Errorf("got %v; want errors.Is(err, device.ErrCode)", err)
			}
		})
	}
	wg.Wait()
	if n := len(h.events(t, event.WebPairingAttempted)); n != 5 {
		t.Errorf("%d tries are on record", n)
	}
}

// TestTwoBrowsers checks that one browser continues if several send one code to several processes
// at the same time.
func TestTwoBrowsers(t *testing.T) {
	h := newHome(t)
	servers := []*device.Devices{h.open(t), h.open(t)}
	for range 3 {
		p := opened(t, servers[0])
		won := make(chan string, 6)
		var wg sync.WaitGroup
		for i := range cap(won) {
			wg.Go(func() {
				handle, err := servers[i%2].Begin(t.Context(), p.Code, from)
				if err == nil {
					won <- handle
				} else if !errors.Is(err, device.ErrCode) {
					t.Errorf("got %v; want errors.Is(err, device.ErrCode)", err)
				}
			})
		}
		wg.Wait()
		close(won)
		if len(won) != 1 {
			t.Fatalf("%d browsers go on", len(won))
		}
		if _, err := servers[1].Ask(t.Context(), <-won, "phone", devicetest.NewKey().JWK(), from); err != nil {
			t.Error(err)
		}
	}
}

// TestRefusedAtTheTerminal checks that a person's no ends a pairing without a device.
func TestRefusedAtTheTerminal(t *testing.T) {
	h := newHome(t)
	terminal, server := h.open(t), h.open(t)
	p := opened(t, terminal)
	handle, err := server.Begin(t.Context(), p.Code, from)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := server.Ask(t.Context(), handle, "phone", devicetest.NewKey().JWK(), from); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Decide(t.Context(), false, "alice"); err != nil {
		t.Fatal(err)
	}
	if s := server.Await(t.Context(), handle); s.State != "refused" || s.Device != "" {
		t.Errorf("the browser: %+v", s)
	}
	if _, err := p.Decide(t.Context(), true, "alice"); err == nil {
		t.Error("a yes behind the no counts")
	}
	if list, err := device.List(t.Context(), &h.log(t).Reader); err != nil || len(list) != 0 {
		t.Errorf("paired: %+v, %v", list, err)
	}
	if list := h.events(t, event.WebRefused); len(list) != 1 ||
		!strings.Contains(string(list[0].Payload), `"by":"alice"`) ||
		!strings.Contains(string(list[0].Payload), from.Address) {
		t.Errorf("on record: %+v", list)
	}
}

// TestExpired checks that every step of a pairing fails two minutes after it was opened.
func TestExpired(t *testing.T) {
	h := newHome(t)
	d := h.open(t)
	key := devicetest.NewKey().JWK()
	for step := range 4 {
		p := opened(t, d)
		var handle string
		var err error
		if step > 0 {
			if handle, err = d.Begin(t.Context(), p.Code, from); err != nil {
				t.Fatal(err)
			}
		}
		if step > 1 {
			if _, err = d.Ask(t.Context(), handle, "phone", key, from); err != nil {
				t.Fatal(err)
			}
		}
		h.clock.pass(2*time.Minute - 1)
		if step > 2 {
			if _, err = p.Decide(t.Context(), true, "alice"); err != nil {
				t.Fatalf("two minutes are not over: %v", err)
			}
			continue
		}
		h.clock.pass(1)
		if _, err := d.Begin(t.Context(), p.Code, from); !errors.Is(err, device.ErrCode) {
			t.Errorf("step %d: the code: %v", step, err)
		}
		if _, err := d.Ask(t.Context(), handle, "phone", key, from); !errors.Is(err, device.ErrCode) {
			t.Errorf("step %d: the key: %v", step, err)
		}
		if s := d.Await(t.Context(), handle); s.State != "expired" {
			t.Errorf("step %d: the browser: %+v", step, s)
		}
		if _, err := p.Wait(t.Context()); err == nil {
			t.Errorf("step %d: the terminal goes on", step)
		}
		if _, err := p.Decide(t.Context(), true, "alice"); err == nil {
			t.Errorf("step %d: it is paired", step)
		}
	}
}

// TestOnlyTheBrowserThatHadTheCode checks that a pairing accepts one key, from the browser that had
// the code, and only while it was not replaced.
func TestOnlyTheBrowserThatHadTheCode(t *testing.T) {
	h := newHome(t)
	d := h.open(t)
	key := devicetest.NewKey().JWK()
	p := opened(t, d)
	handle, err := d.Begin(t.Context(), p.Code, from)
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"", p.Code, handle + "x", strings.ToLower(handle)} {
		if _, err := d.Ask(t.Context(), bad, "phone", key, from); !errors.Is(err, device.ErrCode) {
			t.Errorf("the handle %q: %v", bad, err)
		}
		if s := d.Await(t.Context(), bad); s.State != "expired" {
			t.Errorf("the handle %q: %+v", bad, s)
		}
	}
	if _, err := d.Ask(t.Context(), handle, "phone", device.JWK{}, from); !errors.Is(err, device.ErrKey) {
		t.Errorf("no key: %v", err)
	}
	soon, cancel := context.WithCancel(t.Context())
	cancel()
	if s := d.Await(soon, handle); s.State != "waiting" {
		t.Errorf("before the key: %+v", s)
	}
	if _, err := d.Ask(t.Context(), handle, "phone", key, from); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Ask(t.Context(), handle, "phone", devicetest.NewKey().JWK(), from); !errors.Is(err, device.ErrCode) {
		t.Errorf("another key: %v", err)
	}
	again := opened(t, d)
	if _, err := p.Decide(t.Context(), true, "alice"); err == nil {
		t.Error("a pairing that was replaced goes on")
	}
	if _, err := p.Wait(t.Context()); err == nil {
		t.Error("the terminal of a pairing that was replaced waits on")
	}
	if s := d.Await(t.Context(), handle); s.State != "expired" {
		t.Errorf("its browser: %+v", s)
	}
	if _, err := d.Begin(t.Context(), p.Code, from); !errors.Is(err, device.ErrCode) {
		t.Errorf("its code: %v", err)
	}
	if _, err := d.Begin(t.Context(), again.Code, from); err != nil {
		t.Errorf("the code of the new one: %v", err)
	}
}

// TestNoPairing checks that no code counts while no pairing is open. Requests of strangers do not
// fill the log.
func TestNoPairing(t *testing.T) {
	h := newHome(t)
	d := h.open(t)
	for range 50 {
		if _, err := d.Begin(t.Context(), "", from); !errors.Is(err, device.ErrCode) {
			t.Fatalf("got %v; want errors.Is(err, device.ErrCode)", err)
		}
	}
	if n := len(h.events(t, event.WebRefused)); n == 0 || n > 5 {
		t.Errorf("%d refusals are on record", n)
	}
	if n := len(h.events(t, event.WebPairingAttempted)); n != 0 {
		t.Errorf("%d tries are on record", n)
	}
}

// TestWaiting checks that the terminal and the browser wait for the events of the other process.
func TestWaiting(t *testing.T) {
	h := newHome(t)
	terminal, server := h.open(t), h.open(t)
	p := opened(t, terminal)
	asked := make(chan error, 1)
	go func() {
		asks, err := p.Wait(t.Context())
		if err == nil && asks.Name != "phone" {
			err = errors.New(asks.Name)
		}
		asked <- err
	}()
	handle, err := server.Begin(t.Context(), p.Code, from)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := server.Ask(t.Context(), handle, "phone", devicetest.NewKey().JWK(), from); err != nil {
		t.Fatal(err)
	}
	if err := <-asked; err != nil {
		t.Fatal(err)
	}
	state := make(chan device.PairingState, 1)
	go func() { state <- server.Await(t.Context(), handle) }()
	if _, err := p.Decide(t.Context(), true, "alice"); err != nil {
		t.Fatal(err)
	}
	if s := <-state; s.State != "paired" || len(s.Rights) != 4 || s.Name != "phone" {
		t.Errorf(`got %+v; want s.State == "paired" && len(s.Rights) == 4 && s.Name == "phone"`, s)
	}
}
