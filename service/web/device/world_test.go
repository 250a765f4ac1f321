package device_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/perlica/perlica/eventlog"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/verify"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/service/access"
	"github.com/perlica/perlica/service/web/device"
	"github.com/perlica/perlica/service/web/device/devicetest"
)

// host is the address of the test server.
const host = "127.0.0.1:7333"

// clock is a clock that moves only on request.
type clock struct{ now atomic.Int64 }

func newClock() *clock {
	c := &clock{}
	c.now.Store(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC).UnixNano())
	return c
}

func (c *clock) Now() time.Time        { return time.Unix(0, c.now.Load()) }
func (c *clock) pass(by time.Duration) { c.now.Add(int64(by)) }

// home is a user's own log, which several processes may open.
type home struct {
	path  string
	clock *clock
}

func newHome(t *testing.T) home {
	t.Helper()
	t.Parallel()
	h := home{filepath.Join(t.TempDir(), "eventlog.db"), newClock()}
	t.Cleanup(func() {
		log := h.log(t)
		rep, err := verify.Log(context.Background(), &log.Reader, verify.Options{})
		if err != nil || !rep.OK() {
			t.Errorf("the log: %+v, %v", rep, err)
		}
	})
	return h
}

// log opens the log as a separate process does.
func (h home) log(t *testing.T) *eventlog.Log {
	t.Helper()
	log, err := eventlog.Open(context.Background(), h.path, eventlog.Options{Context: "user"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := log.Close(); err != nil {
			t.Error(err)
		}
	})
	return log
}

// open opens the devices as a separate process does.
func (h home) open(t *testing.T) *device.Devices {
	t.Helper()
	d, err := device.Open(t.Context(), h.log(t), device.Options{Now: h.clock.Now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// events returns the events of a type, in order.
func (h home) events(t *testing.T, typ event.Type) (list []event.Event) {
	t.Helper()
	log := h.log(t)
	for e, err := range log.Events(t.Context(), event.Query{Types: []event.Type{typ}}) {
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, e)
	}
	return list
}

// browser is a paired browser.
type browser struct {
	devicetest.Key
	id    string
	clock *clock
}

var from = fact.From{Address: "192.0.2.7", Browser: "Firefox"}

// pair pairs a browser. The parameter "here" is the terminal's process, and "there" is the serving process.
func (h home) pair(t *testing.T, here, there *device.Devices, name string, rights ...access.Right) browser {
	t.Helper()
	b := browser{Key: devicetest.NewKey(), clock: h.clock}
	p, err := here.OpenPairing(t.Context(), rights, "alice")
	if err != nil {
		t.Fatal(err)
	}
	handle, err := there.Begin(t.Context(), p.Code, from)
	if err != nil {
		t.Fatal(err)
	}
	word, err := there.Ask(t.Context(), handle, name, b.JWK(), from)
	if err != nil {
		t.Fatal(err)
	}
	asks, err := p.Wait(t.Context())
	if err != nil || asks.Word != word || asks.Name != name || asks.From != from {
		t.Fatalf("the terminal shows %+v, the browser %q: %v", asks, word, err)
	}
	dev, err := p.Decide(t.Context(), true, "alice")
	if err != nil {
		t.Fatal(err)
	}
	s := there.Await(t.Context(), handle)
	if s.State != "paired" || s.Device != dev.ID || access.Rights(s.Rights).String() != access.Rights(rights).String() {
		t.Fatalf("the browser is %+v, the terminal has %+v", s, dev)
	}
	b.id = dev.ID
	return b
}

// request returns an unsigned request to the server.
func request(method, target, body string) *http.Request {
	r := httptest.NewRequest(method, "http://"+host+target, strings.NewReader(body))
	r.Host = host
	return r
}

// signed returns a request that the browser has signed.
func (b browser) signed(d *device.Devices, method, target, body string) *http.Request {
	r := request(method, target, body)
	b.SignAt(r, []byte(body), b.id, d.Nonce(), b.clock.Now())
	return r
}
