package device

import (
	"context"
	"crypto/subtle"
	"errors"
	"net"
	"net/http"
	"regexp"
	"sync"
	"time"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/message"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/service/access"
)

// Visitor is a device that has proved its identity.
type Visitor struct {
	ID, Name string
	Rights   access.Rights
	Token    bool   // the visitor is a program
	Key      []byte // a browser's public key as SubjectPublicKeyInfo
}

// Label names the visitor on the record. Two devices may have the same name over time, but never
// the same id.
func (v Visitor) Label() string { return v.Name + " (web:" + v.ID + ")" }

// These errors are the reasons why a request does not come from a device.
var (
	ErrNone      = message.New("device.none", "the request has no credential")
	ErrMalformed = message.New("device.malformed", "the credential has an unknown form")
	ErrNonce     = message.New("device.nonce",
		"this server does not know the nonce: sign again with the nonce of this answer")
	ErrClock = message.New("device.clock",
		"the device's clock differs from the server's by more than ten minutes")
	ErrSignature = message.New("device.signature", "the device's signature does not match this request and its body")
	ErrReplayed  = message.New("device.replayed", "this signed request was made before")
	ErrUnknown   = message.New("device.unknown", "no device or program has this credential")
	ErrLimited   = message.New("device.limited",
		"too many requests, or too many wrong tokens: wait before the next one")
	ErrRevoked = message.New("device.revoked", "the device was revoked")
)

// unrecorded reports whether a refusal with this error stays off the record. Such an error shows no attempt to enter.
func unrecorded(err error) bool {
	return errors.Is(err, ErrNone) || errors.Is(err, ErrNonce) || errors.Is(err, ErrClock) || errors.Is(err, ErrLimited)
}

// Authenticate identifies the device that made a request with this body, by its bearer token or its
// signature. It knows every earlier revocation by any process. An error of another package means
// that the log could not be read; the request is then refused.
func (d *Devices) Authenticate(r *http.Request, body []byte) (Visitor, error) {
	return d.judgeRequest(r, func(s signed) error {
		if s.digest != digestOf(body) {
			return ErrSignature
		}
		// The server remembers a nonce only after it has verified the signature, so a stranger cannot fill the memory.
		switch first, full := d.seen.first(s.key, s.nonce, d.opt.Now()); {
		case !first:
			return ErrReplayed
		case full:
			return ErrLimited
		}
		return nil
	})
}

// Precheck fails if Authenticate would fail for every body. The server then does not read the body.
// Precheck covers every check except the digest of the body and the replay of the nonce.
func (d *Devices) Precheck(r *http.Request) error {
	_, err := d.judgeRequest(r, func(signed) error { return nil })
	return err
}

// judgeRequest does the common part of Authenticate and Precheck. The function "rest" judges the signed values.
func (d *Devices) judgeRequest(r *http.Request, rest func(s signed) error) (Visitor, error) {
	if err := d.refreshState(r.Context()); err != nil {
		return Visitor{}, err
	}
	var v Visitor
	what, err := "request", error(ErrNone)
	bearer, signature := r.Header.Values("Authorization"), len(r.Header.Values("Signature"))+
		len(r.Header.Values("Signature-Input")) > 0
	switch {
	case len(bearer) > 0 && signature, len(bearer) > 1:
		err = ErrMalformed
	case len(bearer) == 1:
		what = "token"
		v, err = d.byToken(bearer[0])
	case signature:
		what = "signature"
		v, err = d.bySignature(r, rest)
	}
	if err != nil && !unrecorded(err) {
		d.Refuse(r.Context(), fact.WebRefused{What: what, Why: err.Error(), Device: v.ID, From: d.From(r)})
	}
	if err != nil {
		return Visitor{}, err
	}
	return v, nil
}

// From returns the origin of a request for the record and for display.
func (d *Devices) From(r *http.Request) fact.From {
	return fact.From{Address: access.Cut(d.opt.Client(r), 64), Browser: access.Cut(r.UserAgent(), 160)}
}

// remote returns the address of the other end of the connection.
func remote(r *http.Request) string {
	if host, _, err := net.SplitHostPort(r.RemoteAddr); err == nil {
		return host
	}
	return r.RemoteAddr
}

// Refuse records a refusal, unless too many were recorded recently. A failed record changes
// nothing: the request stays refused.
func (d *Devices) Refuse(ctx context.Context, f fact.WebRefused) {
	left, ok := d.record.Record(d.opt.Now())
	if !ok {
		return
	}
	f.Unrecorded = left
	_, _ = d.log.Append(ctx, newFact(event.WebRefused, f))
}

// clockTolerance is the largest accepted difference between a device's clock and this machine's clock. It may be large,
// because the nonce limits the age of a request.
const clockTolerance = 10 * time.Minute

// bySignature returns the device that has signed the request. The function "rest" must accept the signed values, too.
// With an error, the visitor may name the device that the request claims to come from.
func (d *Devices) bySignature(r *http.Request, rest func(s signed) error) (Visitor, error) {
	s, err := parseSigned(r.Header)
	if err != nil {
		return Visitor{}, err
	}
	now := d.opt.Now()
	dev, revoked := d.findDevice(s.key)
	switch {
	case revoked:
		err = ErrRevoked
	case dev.key == nil:
		return Visitor{}, ErrUnknown
	case !d.nonces.lives(s.server, now):
		err = ErrNonce
	case now.Sub(s.created).Abs() > clockTolerance:
		err = ErrClock
	case !verify(dev.key, base(r, d.opt.Base+r.URL.EscapedPath(), s.digest, s.params), s.sig):
		err = ErrSignature
	default:
		err = rest(s)
	}
	if err != nil {
		return Visitor{ID: s.key}, err
	}
	return dev.visitor(), nil
}

// findDevice returns a device. The result "revoked" reports whether the id belongs to a revoked device.
func (d *Devices) findDevice(id string) (dev Device, revoked bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if found := d.state.devices[id]; found != nil {
		return *found, false
	}
	return Device{}, d.state.revoked[id]
}

func (dev Device) visitor() Visitor {
	return Visitor{ID: dev.ID, Name: dev.Name, Rights: dev.Rights, Token: dev.Kind == Program, Key: recordOf(dev.key)}
}

// bearerForm is the only accepted form of the field Authorization.
var bearerForm = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^Bearer (` + tokenPrefix + `([a-z0-9]{10})[a-z0-9]{26})$`)
})

// guesses counts the wrong tokens of a program since its last right one.
type guesses struct {
	wrong int
	last  time.Time
}

// byToken returns the program that has the token. The id in a token is not secret. A client that
// knows only the id must wait longer after each guess.
func (d *Devices) byToken(field string) (Visitor, error) {
	m := bearerForm().FindStringSubmatch(field)
	if m == nil {
		return Visitor{}, ErrMalformed
	}
	now, sum := d.opt.Now(), hashed(m[1])
	d.mu.Lock()
	defer d.mu.Unlock()
	dev := d.state.devices[m[2]]
	switch {
	case d.state.revoked[m[2]]:
		return Visitor{ID: m[2]}, ErrRevoked
	case dev == nil || dev.token == nil:
		return Visitor{}, ErrUnknown
	}
	g := d.guesses[dev.ID]
	if g == nil {
		g = &guesses{}
		// The map cannot grow without limit, because it has at most one entry for each program.
		d.guesses[dev.ID] = g
	}
	switch {
	case !access.MayGuess(g.wrong, g.last, now):
		return Visitor{ID: dev.ID}, ErrLimited
	case subtle.ConstantTimeCompare(sum, dev.token) != 1:
		g.wrong, g.last = g.wrong+1, now
		return Visitor{ID: dev.ID}, ErrUnknown
	}
	g.wrong = 0
	return dev.visitor(), nil
}
