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
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/service/access"
)

// Visitor is a device that has proved who it is.
type Visitor struct {
	ID, Name string
	Rights   access.Rights
	Token    bool   // it is a program
	Key      []byte // a browser's public key, SubjectPublicKeyInfo
}

// Label names the visitor on the record: its name may be anybody's, its id is not.
func (v Visitor) Label() string { return v.Name + " (web:" + v.ID + ")" }

// Why a request does not come from a device.
var (
	ErrNone      = errors.New("the request has no credential")
	ErrMalformed = errors.New("the credential does not have the form that is read here")
	ErrNonce     = errors.New("the nonce is not, or not any more, one of this server: sign again with the one of this answer")
	ErrClock     = errors.New("the device's clock differs from the server's by more than ten minutes")
	ErrSignature = errors.New("the signature is not the device's over this request and its body")
	ErrReplayed  = errors.New("this signed request was made before")
	ErrUnknown   = errors.New("no device or program has this credential")
	ErrLimited   = errors.New("too many requests, or wrong guesses of a token: wait before the next one")
	ErrRevoked   = errors.New("the device was revoked")
)

// unrecorded are the errors that are no attempt to come in.
func unrecorded(err error) bool {
	return errors.Is(err, ErrNone) || errors.Is(err, ErrNonce) || errors.Is(err, ErrClock) || errors.Is(err, ErrLimited)
}

// Authenticate judges who makes a request, whose whole body is body, by its bearer token or its
// signature. What was revoked before by whatever process is known. Errors that are none of this
// package's mean that the log could not be read: then no one comes in.
func (d *Devices) Authenticate(r *http.Request, body []byte) (Visitor, error) {
	return d.judge(r, func(s signed) error {
		if s.digest != digestOf(body) {
			return ErrSignature
		}
		// Only what the device has signed is remembered: a stranger fills nothing.
		switch first, full := d.seen.first(s.key, s.nonce, d.opt.Now()); {
		case !first:
			return ErrReplayed
		case full:
			return ErrLimited
		}
		return nil
	})
}

// Precheck fails if Authenticate would whatever the body is, which has not to be read then: it covers
// all but that the body is the one that was signed, for the first time.
func (d *Devices) Precheck(r *http.Request) error {
	_, err := d.judge(r, func(signed) error { return nil })
	return err
}

// judge is Authenticate; rest judges what a device has signed.
func (d *Devices) judge(r *http.Request, rest func(s signed) error) (Visitor, error) {
	if err := d.refresh(r.Context()); err != nil {
		return Visitor{}, err
	}
	var v Visitor
	what, err := "request", ErrNone
	bearer, signature := r.Header.Values("Authorization"), len(r.Header.Values("Signature"))+len(r.Header.Values("Signature-Input")) > 0
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

// From is where a request comes from, as it is recorded and shown.
func (d *Devices) From(r *http.Request) fact.From {
	return fact.From{Address: access.Cut(d.opt.Client(r), 64), Browser: access.Cut(r.UserAgent(), 160)}
}

// remote is who is at the other end of the connection.
func remote(r *http.Request) string {
	if host, _, err := net.SplitHostPort(r.RemoteAddr); err == nil {
		return host
	}
	return r.RemoteAddr
}

// Refuse records that something was refused, unless too much was of late. That it cannot be recorded
// changes nothing: it is refused.
func (d *Devices) Refuse(ctx context.Context, f fact.WebRefused) {
	left, ok := d.record.Record(d.opt.Now())
	if !ok {
		return
	}
	f.Unrecorded = left
	_, _ = d.log.Append(ctx, newFact(event.WebRefused, f))
}

// clockTolerance is how much a device's clock may differ. How old a request is the nonce tells.
const clockTolerance = 10 * time.Minute

// bySignature is the device that has signed the request, if the rest of it is as it should be. With an
// error it may name the one that is said to have.
func (d *Devices) bySignature(r *http.Request, rest func(s signed) error) (Visitor, error) {
	s, err := parseSigned(r.Header)
	if err != nil {
		return Visitor{}, err
	}
	now := d.opt.Now()
	dev, revoked := d.find(s.key)
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

// find returns a device; with revoked set it was one.
func (d *Devices) find(id string) (dev Device, revoked bool) {
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

// bearerForm is the only form of the field Authorization.
var bearerForm = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^Bearer (` + tokenPrefix + `([a-z0-9]{10})[a-z0-9]{26})$`)
})

// guesses are those at a program's token since the last right one.
type guesses struct {
	wrong int
	last  time.Time
}

// byToken is the program that has the token. The id in it is no secret; who knows it and not the rest
// has to wait longer each time.
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
		d.guesses[dev.ID] = g // as many as there are programs
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
