package device_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/service/access"
	"github.com/perlica/perlica/service/web/device"
)

// TestPaired checks that a browser paired by the terminal of another process is known in every
// running process and in a later one.
func TestPaired(t *testing.T) {
	h := newHome(t)
	terminal, server := h.open(t), h.open(t)
	b := h.pair(t, terminal, server, "phone", access.Read, access.Ask)
	for _, d := range []*device.Devices{server, terminal, h.open(t)} {
		v, err := d.Authenticate(b.signed(d, "POST", "/v1/inputs?a=b%20c", `{"text":"hello"}`), []byte(`{"text":"hello"}`))
		if err != nil || v.ID != b.id || v.Label() != "phone (web:"+b.id+")" || v.Rights.String() != "read,ask" || v.Token {
			t.Errorf("%+v, %v", v, err)
		}
	}
	list, err := device.List(t.Context(), &h.log(t).Reader)
	if err != nil || len(list) != 1 || list[0].ID != b.id || list[0].Kind != device.Browser ||
		list[0].Address != from.Address || list[0].Browser != from.Browser {
		t.Errorf("%+v, %v", list, err)
	}
	if other := h.pair(t, terminal, server, "phone", access.Read); other.id == b.id {
		t.Error("two devices have one id")
	}
	if list, err = device.List(t.Context(), &h.log(t).Reader); err != nil || len(list) != 2 || list[1].Name != "phone 2" {
		t.Errorf("a second phone: %+v, %v", list, err)
	}
}

// TestRevokedInMidStream checks that a revocation by another process ends the streams of the device
// and keeps it out. Another device's stream continues.
func TestRevokedInMidStream(t *testing.T) {
	h := newHome(t)
	server, other := h.open(t), h.open(t)
	lost := h.pair(t, other, server, "lost", access.Read)
	kept := h.pair(t, other, server, "kept", access.Read)
	gone, stays := server.Revoked(lost.id), server.Revoked(kept.id)
	if _, err := other.Revoke(t.Context(), "nothing", "alice"); !errors.Is(err, device.ErrNoDevice) {
		t.Errorf("got %v; want errors.Is(err, device.ErrNoDevice)", err)
	}
	if dev, err := other.Revoke(t.Context(), "lost", "alice"); err != nil || dev.ID != lost.id {
		t.Fatalf("got %+v, %v; want err == nil && dev.ID == %v", dev, err, lost.id)
	}
	<-gone
	if _, err := server.Authenticate(lost.signed(server, "GET", "/v1/self", ""), nil); !errors.Is(err, device.ErrRevoked) {
		t.Errorf("a revoked device: %v", err)
	}
	<-server.Revoked(lost.id) // a stream that began after the revocation
	select {
	case <-stays:
		t.Error("another device was revoked, too")
	default:
	}
	if _, err := server.Authenticate(kept.signed(server, "GET", "/v1/self", ""), nil); err != nil {
		t.Error(err)
	}
	if err := server.Close(); err != nil {
		t.Error(err)
	}
	<-stays
}

// TestRevokedBeforeTheRequest checks that a request is refused after another process has revoked
// the device, even if this process has not yet read the revocation.
func TestRevokedBeforeTheRequest(t *testing.T) {
	h := newHome(t)
	server, other := h.open(t), h.open(t)
	for range 6 {
		b := h.pair(t, server, server, "phone", access.Read)
		if _, err := other.Revoke(t.Context(), b.id, "alice"); err != nil {
			t.Fatal(err)
		}
		if _, err := server.Authenticate(b.signed(server, "GET", "/v1/self", ""), nil); !errors.Is(err, device.ErrRevoked) {
			t.Fatalf("a revoked device: %v", err)
		}
	}
}

// TestToken checks that a program is known by its token. The record has only the hash.
func TestToken(t *testing.T) {
	h := newHome(t)
	d := h.open(t)
	token, dev, err := d.NewToken(t.Context(), "ci", access.Rights{access.Ask}, "alice")
	if err != nil || dev.Kind != device.Program {
		t.Fatalf("got %v, %v; want err == nil && dev.Kind == device.Program", dev, err)
	}
	if _, _, err := d.NewToken(t.Context(), "ci", access.Rights{access.Ask}, "alice"); !errors.Is(err, device.ErrName) {
		t.Errorf("a second one of that name: %v", err)
	}
	r := request("POST", "/v1/inputs", "{}")
	r.Header.Set("Authorization", "Bearer "+token)
	v, err := d.Authenticate(r, []byte("{}"))
	if err != nil || v.ID != dev.ID || !v.Token || v.Rights.String() != "ask" {
		t.Errorf(`got %+v, %v; want err == nil && v.ID == %v && v.Token && v.Rights.String() == "ask"`, v, err, dev.ID)
	}
	for _, e := range h.events(t, event.DevicePaired) {
		if text := string(e.Payload); text == "" || strings.Contains(text, token[len(token)-20:]) {
			t.Errorf("on record: %s", text)
		}
	}
	if _, err := d.Revoke(t.Context(), "ci", "alice"); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Authenticate(r, []byte("{}")); !errors.Is(err, device.ErrRevoked) {
		t.Errorf("revoked: %v", err)
	}
}

// TestTokenGuessing checks that a client that guesses tokens with a known id must wait longer each
// time. The right token waits, too. A stranger's guesses do not fill the log.
func TestTokenGuessing(t *testing.T) {
	h := newHome(t)
	d := h.open(t)
	token, dev, err := d.NewToken(t.Context(), "ci", access.Rights{access.Ask}, "alice")
	if err != nil {
		t.Fatal(err)
	}
	try := func(token string) error {
		r := request("GET", "/v1/self", "")
		r.Header.Set("Authorization", "Bearer "+token)
		_, err := d.Authenticate(r, nil)
		return err
	}
	wrong := token[:len(token)-1] + "a"
	if wrong == token {
		wrong = token[:len(token)-1] + "b"
	}
	for _, wait := range []time.Duration{2 * time.Second, 4 * time.Second, 8 * time.Second} {
		if err := try(wrong); !errors.Is(err, device.ErrUnknown) {
			t.Fatalf("a guess: %v", err)
		}
		h.clock.pass(wait - time.Millisecond)
		for _, token := range []string{wrong, token} {
			if err := try(token); !errors.Is(err, device.ErrLimited) {
				t.Fatalf("%s behind a guess: %v", wait, err)
			}
		}
		h.clock.pass(time.Millisecond)
	}
	if err := try(token); err != nil {
		t.Errorf("the right one, when its time has come: %v", err)
	}
	if err := try(token); err != nil {
		t.Errorf("the right one, once more: %v", err)
	}
	before := len(h.events(t, event.WebRefused))
	for range 200 {
		if err := try("perlica_tok_" + "0000000000" + token[22:]); !errors.Is(err, device.ErrUnknown) {
			t.Fatalf("another id: %v", err)
		}
	}
	if n := len(h.events(t, event.WebRefused)); n-before > 5 || n == 0 {
		t.Errorf("%d refusals are on record, %d before", n, before)
	}
	if err := try(token); err != nil {
		t.Errorf("strangers keep %s out: %v", dev.Name, err)
	}
}

// TestTooMany checks the limit of devices.
func TestTooMany(t *testing.T) {
	h := newHome(t)
	d := h.open(t)
	n := 0
	for ; n < 1000; n++ {
		if _, _, err := d.NewToken(t.Context(), "p"+time.Duration(n).String(), access.Rights{access.Ask},
			"alice"); errors.Is(err, device.ErrTooMany) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if n != 64 {
		t.Errorf("%d devices", n)
	}
	if _, err := d.OpenPairing(t.Context(), access.OfDevices(), "alice"); !errors.Is(err, device.ErrTooMany) {
		t.Errorf("a pairing behind them: %v", err)
	}
}
