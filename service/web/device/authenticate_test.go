package device_test

import (
	"crypto/elliptic"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"math/big"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/service/access"
	"github.com/perlica/perlica/service/web/device"
	"github.com/perlica/perlica/service/web/device/devicetest"
)

// TestSignatureCovers checks that a signature counts only for its method, host, path, query, body
// and device.
func TestSignatureCovers(t *testing.T) {
	h := newHome(t)
	d := h.open(t)
	b := h.pair(t, d, d, "phone", access.Read, access.Ask)
	other := h.pair(t, d, d, "tablet", access.Read)
	const body = `{"text":"hello"}`
	for name, c := range map[string]struct {
		change func(r *http.Request)
		body   string
		want   error
	}{
		"nothing":         {func(*http.Request) {}, body, nil},
		"another method":  {func(r *http.Request) { r.Method = "PUT" }, body, device.ErrSignature},
		"another host":    {func(r *http.Request) { r.Host = "evil.example" }, body, device.ErrSignature},
		"another port":    {func(r *http.Request) { r.Host = "127.0.0.1:3000" }, body, device.ErrSignature},
		"another path":    {func(r *http.Request) { r.URL.Path = "/v1/runs/x/cancel" }, body, device.ErrSignature},
		"an escaped path": {func(r *http.Request) { r.URL.RawPath = "/v1/%69nputs" }, body, device.ErrSignature},
		"another query":   {func(r *http.Request) { r.URL.RawQuery = "wait=false" }, body, device.ErrSignature},
		"no query":        {func(r *http.Request) { r.URL.RawQuery = "" }, body, device.ErrSignature},
		"another body":    {func(*http.Request) {}, `{"text":"hellO"}`, device.ErrSignature},
		"no body":         {func(*http.Request) {}, "", device.ErrSignature},
		"another's digest": {func(r *http.Request) {
			r.Header.Set("Content-Digest",
				"sha-256=:"+strings.Repeat("A", 43)+"=:")
		}, body, device.ErrSignature},
		"another device": {func(r *http.Request) {
			r.Header.Set("Signature-Input", strings.ReplaceAll(r.Header.Get("Signature-Input"), b.id, other.id))
		}, body, device.ErrSignature},
		"no such device": {func(r *http.Request) {
			r.Header.Set("Signature-Input", strings.ReplaceAll(r.Header.Get("Signature-Input"), b.id, "0000000000"))
		}, body, device.ErrUnknown},
		"two fields": {func(r *http.Request) { r.Header.Add("Signature", r.Header.Get("Signature")) }, body,
			device.ErrMalformed},
		"no digest":    {func(r *http.Request) { r.Header.Del("Content-Digest") }, body, device.ErrMalformed},
		"no signature": {func(r *http.Request) { r.Header.Del("Signature") }, body, device.ErrMalformed},
		"a token beside it": {func(r *http.Request) { r.Header.Set("Authorization", "Bearer x") }, body,
			device.ErrMalformed},
		"another credential": {func(r *http.Request) { r.Header = http.Header{"Authorization": {"Basic YTpi"}} }, body,
			device.ErrMalformed},
		"no credential": {func(r *http.Request) { r.Header = http.Header{} }, body, device.ErrNone},
		"a cookie": {func(r *http.Request) { r.Header = http.Header{"Cookie": {"device=" + b.id}} }, body,
			device.ErrNone},
	} {
		r := b.signed(d, "POST", "/v1/inputs?wait=true", body)
		c.change(r)
		// Precheck runs before the body is read.
		early := c.want
		if c.body != body {
			early = nil
		}
		if err := d.Precheck(r); !errors.Is(err, early) {
			t.Errorf("%s: before the body: %v, want %v", name, err, early)
		}
		v, err := d.Authenticate(r, []byte(c.body))
		if !errors.Is(err, c.want) || (err == nil) != (v.ID == b.id) || err != nil &&
			v.Label() != (device.Visitor{}).Label() {
			t.Errorf("%s: %+v, %v, want %v", name, v, err, c.want)
		}
	}
}

// TestReplay checks that a signed request counts once, however often it arrives, also at the same
// time.
func TestReplay(t *testing.T) {
	h := newHome(t)
	d := h.open(t)
	b := h.pair(t, d, d, "phone", access.Ask)
	if _, err := d.Authenticate(b.signed(d, "GET", "/v1/self", ""), nil); err != nil {
		t.Fatal(err)
	}
	// The memory of nonces is rotated while this nonce is valid.
	h.clock.pass(4 * time.Minute)
	r := b.signed(d, "POST", "/v1/inputs", "{}")
	results := make(chan error, 8)
	var wg sync.WaitGroup
	for range cap(results) {
		wg.Go(func() {
			_, err := d.Authenticate(r, []byte("{}"))
			results <- err
		})
	}
	wg.Wait()
	close(results)
	counted := 0
	for err := range results {
		if err == nil {
			counted++
		} else if !errors.Is(err, device.ErrReplayed) {
			t.Errorf("got %v; want errors.Is(err, device.ErrReplayed)", err)
		}
	}
	if counted != 1 {
		t.Errorf("it counted %d times", counted)
	}
	// If (r, s) is a signature, (r, n - s) is a signature over the same text. It must count as the
	// same request.
	raw, err := base64.StdEncoding.DecodeString(strings.TrimSuffix(strings.TrimPrefix(r.Header.Get("Signature"),
		"perlica=:"), ":"))
	if err != nil {
		t.Fatal(err)
	}
	new(big.Int).Sub(elliptic.P256().Params().N, new(big.Int).SetBytes(raw[32:])).FillBytes(raw[32:])
	r.Header.Set("Signature", "perlica=:"+base64.StdEncoding.EncodeToString(raw)+":")
	for age := 30 * time.Second; age < 8*time.Minute; age += 30 * time.Second {
		h.clock.pass(30 * time.Second)
		want := device.ErrReplayed
		if age >= 5*time.Minute {
			want = device.ErrNonce
		}
		if _, err := d.Authenticate(r, []byte("{}")); !errors.Is(err, want) {
			t.Fatalf("%s later: %v", age, err)
		}
		if _, err := d.Authenticate(b.signed(d, "GET", "/v1/self", ""), nil); err != nil {
			t.Fatal(err)
		}
	}
}

// TestNonce checks that a nonce is valid for five minutes in the process that made it.
func TestNonce(t *testing.T) {
	h := newHome(t)
	d, elsewhere := h.open(t), h.open(t)
	b := h.pair(t, d, d, "phone", access.Ask)
	nonce := d.Nonce()
	try := func(nonce string) error {
		r := request("GET", "/v1/self", "")
		b.SignAt(r, nil, b.id, nonce, h.clock.Now())
		_, err := d.Authenticate(r, nil)
		return err
	}
	h.clock.pass(5*time.Minute - 1)
	if err := try(nonce); err != nil {
		t.Errorf("a nonce of five minutes: %v", err)
	}
	h.clock.pass(1)
	for name, bad := range map[string]string{"expired": nonce, "another process's": elsewhere.Nonce(),
		"made up": strings.Repeat("A", 32)} {
		if err := try(bad); !errors.Is(err, device.ErrNonce) {
			t.Errorf("%s: got %v; want errors.Is(err, device.ErrNonce)", name, err)
		}
	}
	future := d.Nonce()
	h.clock.pass(-time.Second)
	if err := try(future); !errors.Is(err, device.ErrNonce) {
		t.Errorf("of the future: %v", err)
	}
	if n := len(h.events(t, event.WebRefused)); n != 0 {
		t.Errorf("what is signed again is recorded as refused, %d times", n)
	}
}

// TestClock checks that a device's clock may differ by ten minutes. The nonce limits the age of a
// request.
func TestClock(t *testing.T) {
	h := newHome(t)
	d := h.open(t)
	b := h.pair(t, d, d, "phone", access.Ask)
	for by, want := range map[time.Duration]error{
		-10 * time.Minute: nil, 10 * time.Minute: nil,
		-10*time.Minute - time.Second: device.ErrClock, 10*time.Minute + time.Second: device.ErrClock,
	} {
		r := request("GET", "/v1/self", "")
		b.SignAt(r, nil, b.id, d.Nonce(), h.clock.Now().Add(by))
		if _, err := d.Authenticate(r, nil); !errors.Is(err, want) {
			t.Errorf("%s: got %v; want errors.Is(err, %v)", by, err, want)
		}
	}
}

// TestProxyPath checks that the signed path is the path that the browser sees, including the path
// of the proxy.
func TestProxyPath(t *testing.T) {
	h := newHome(t)
	d, err := device.Open(t.Context(), h.log(t), device.Options{Now: h.clock.Now, Base: "/perlica"})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	b := h.pair(t, d, d, "phone", access.Ask)
	for target, want := range map[string]error{"/perlica/v1/self": nil, "/v1/self": device.ErrSignature,
		"/other/v1/self": device.ErrSignature} {
		r := b.signed(d, "GET", target, "")
		// The proxy removes its path.
		r.URL.Path = "/v1/self"
		if _, err := d.Authenticate(r, nil); !errors.Is(err, want) {
			t.Errorf("%s: got %v; want errors.Is(err, %v)", target, err, want)
		}
	}
}

// TestTooManyRequests checks the limit of remembered requests of a device. Another device is not
// affected.
func TestTooManyRequests(t *testing.T) {
	h := newHome(t)
	d := h.open(t)
	b := h.pair(t, d, d, "phone", access.Ask)
	other := h.pair(t, d, d, "tablet", access.Ask)
	device.Fill(d, b.id, h.clock.Now())
	if _, err := d.Authenticate(b.signed(d, "GET", "/v1/self", ""), nil); !errors.Is(err, device.ErrLimited) {
		t.Errorf("one more: %v", err)
	}
	if _, err := d.Authenticate(other.signed(d, "GET", "/v1/self", ""), nil); err != nil {
		t.Errorf("another device: %v", err)
	}
	h.clock.pass(5 * time.Minute)
	if _, err := d.Authenticate(b.signed(d, "GET", "/v1/self", ""), nil); err != nil {
		t.Errorf("five minutes later: %v", err)
	}
}

// TestRefusedIsRecorded checks that a refused attempt is on record in one line of limited length
// without a secret.
func TestRefusedIsRecorded(t *testing.T) {
	h := newHome(t)
	d := h.open(t)
	r := request("GET", "/v1/self", "")
	secret := strings.ToLower(rand.Text())
	r.Header.Set("Authorization", "Bearer perlica_tok_0123456789"+secret)
	r.Header.Set("User-Agent", "a\u202eb\x1b[31m"+strings.Repeat("x", 5000))
	r.RemoteAddr = "203.0.113.9:1234"
	if _, err := d.Authenticate(r, nil); !errors.Is(err, device.ErrUnknown) {
		t.Errorf("got %v; want errors.Is(err, device.ErrUnknown)", err)
	}
	list := h.events(t, event.WebRefused)
	if len(list) != 1 {
		t.Fatalf("%d refusals", len(list))
	}
	var f fact.WebRefused
	if err := list[0].Decode(&f); err != nil || f.What != "token" || f.Address != "203.0.113.9" || len(f.Browser) > 200 ||
		strings.ContainsAny(f.Browser, "\u202e\x1b") || strings.Contains(string(list[0].Payload), secret) {
		t.Errorf("%s, %v", list[0].Payload, err)
	}
}

// TestAnswerIsSigned checks that an answer of a device counts only with its signature over
// question, digest and option. A program cannot sign.
func TestAnswerIsSigned(t *testing.T) {
	h := newHome(t)
	d := h.open(t)
	b := h.pair(t, d, d, "phone", access.Approve)
	v, err := d.Authenticate(b.signed(d, "GET", "/v1/self", ""), nil)
	if err != nil {
		t.Fatal(err)
	}
	a := device.Answer{Question: "q1", Digest: "d1", Option: "allow-once",
		Signature: b.SignAnswer("q1", "d1", "allow-once")}
	if err := v.CheckAnswer(a); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(a *device.Answer){
		"another question": func(a *device.Answer) { a.Question = "q2" },
		"another digest":   func(a *device.Answer) { a.Digest = "d2" },
		"another option":   func(a *device.Answer) { a.Option = "allow-always" },
		"no signature":     func(a *device.Answer) { a.Signature = "" },
		"another's": func(a *device.Answer) {
			a.Signature = devicetest.NewKey().
				SignAnswer("q1", "d1", "allow-once")
		},
		"fields moved over": func(a *device.Answer) { a.Question, a.Digest, a.Option = "q1\nd1", "allow-once", "" },
		"more fields": func(a *device.Answer) {
			a.Option = "allow-once\nx"
			a.Signature = b.SignAnswer("q1", "d1", "allow-once\nx")
		},
	} {
		bad := a
		change(&bad)
		if err := v.CheckAnswer(bad); !errors.Is(err, device.ErrSignature) {
			t.Errorf("%s: got %v; want errors.Is(err, device.ErrSignature)", name, err)
		}
	}
	program := device.Visitor{ID: "p", Token: true}
	if err := program.CheckAnswer(device.Answer{Question: "q1"}); err != nil {
		t.Error(err)
	}
	if err := program.CheckAnswer(a); !errors.Is(err, device.ErrSignature) {
		t.Errorf("a program with a signature: %v", err)
	}
}
