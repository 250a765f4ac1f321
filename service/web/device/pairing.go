package device

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"time"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/message"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/service/access"
)

// Pairing is a pairing that was opened at a terminal. The terminal's process and the serving
// process may differ. They communicate through the user's own log.
type Pairing struct {
	Code    string // the one-time code in the browser's address; it is not on record
	Expires time.Time

	id string
	d  *Devices
}

// These errors are the reasons why a pairing ends.
var (
	// ErrCode says that no pairing is open, that its time or its tries are over, or that the code
	// is wrong. A guessing client does not learn which.
	ErrCode = message.New("device.code",
		"the code is not valid now: 'perlica web pair' shows a new one")
	errExpired  = message.New("device.expired", "the time of the pairing is over")
	errTries    = message.New("device.tries", "too many wrong codes were entered")
	errReplaced = message.New("device.replaced", "another pairing was opened")
	errOver     = message.New("device.over", "the pairing is over")
)

// OpenPairing opens a pairing for two minutes and five tries. It replaces an earlier one.
func (d *Devices) OpenPairing(ctx context.Context, rights access.Rights, by string) (*Pairing, error) {
	code := rand.Text() // 130 bits
	f, err := access.NewPairing(code, rights, by, d.opt.Now().Add(access.LimitsOfDevices().Time))
	if err != nil {
		return nil, err
	}
	err = d.appendFact(ctx, func(s *state) (event.Event, error) {
		if len(s.devices) >= mostDevices {
			return event.Event{}, ErrTooMany
		}
		return newFact(event.WebPairingOpened, f), nil
	})
	if err != nil {
		return nil, err
	}
	return &Pairing{code, f.Expires, f.ID, d}, nil
}

// live returns the reason why a pairing cannot continue. nil means that it can.
func (p *pairing) live(id string, now time.Time) error {
	switch {
	case p.ID != id:
		return errReplaced
	case p.ended != "":
		return errOver
	case !now.Before(p.Expires):
		return errExpired
	case p.handle == nil && p.attempts >= access.LimitsOfDevices().Attempts:
		return errTries
	}
	return nil
}

// Wait waits until a browser with the code asks to be paired. It returns the browser's request. The
// error is the reason why the pairing ended.
func (p *Pairing) Wait(ctx context.Context) (fact.WebPairingRequested, error) {
	for {
		p.d.mu.Lock()
		now := p.d.opt.Now()
		at, changed := p.d.state.pairing, p.d.changed
		p.d.mu.Unlock()
		if err := at.live(p.id, now); err != nil {
			return fact.WebPairingRequested{}, err
		}
		if at.asks != nil {
			return *at.asks, nil
		}
		if err := wait(ctx, changed, at.Expires.Sub(now)); err != nil {
			return fact.WebPairingRequested{}, err
		}
	}
}

// wait returns after a change, or after the duration in the parameter "most". Its error is the error of ctx.
func wait(ctx context.Context, changed <-chan struct{}, most time.Duration) error {
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-changed:
	case <-timer.C:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// Decide pairs the browser that Wait has returned, or refuses it. After a nil error the decision
// survives a power failure.
func (p *Pairing) Decide(ctx context.Context, yes bool, by string) (dev Device, err error) {
	err = p.d.appendFact(ctx, func(s *state) (event.Event, error) {
		if err := s.pairing.live(p.id, p.d.opt.Now()); err != nil {
			return event.Event{}, err
		}
		asks := s.pairing.asks
		if !yes {
			f := fact.WebRefused{What: "pairing", Why: "refused at the terminal", Pairing: p.id, By: by}
			if asks != nil {
				f.From = asks.From
			}
			return newFact(event.WebRefused, f), nil
		}
		if asks == nil {
			return event.Event{}, errExpired
		}
		f := fact.DevicePaired{ID: newID(), Name: s.freeName(asks.Name), Rights: s.pairing.Rights, Key: asks.Key,
			Pairing: p.id, From: asks.From, By: by}
		if err := s.mayPair(f.Name); err != nil {
			return event.Event{}, err
		}
		dev = fromFact(f, p.d.opt.Now())
		return newFact(event.DevicePaired, f), nil
	})
	return dev, err
}

// Begin is the browser's first step. It uses up the code and returns a handle that identifies the
// browser until it is paired. The try is on record before Begin returns. The error may be ErrCode.
func (d *Devices) Begin(ctx context.Context, code string, from fact.From) (handle string, err error) {
	handle = rand.Text()
	right := false
	err = d.appendFact(ctx, func(s *state) (event.Event, error) {
		p := &s.pairing
		if p.live(p.ID, d.opt.Now()) != nil || p.handle != nil {
			return event.Event{}, ErrCode
		}
		f := fact.WebPairingAttempted{Pairing: p.ID, From: from}
		if right = access.IsCode(p.Salt, p.Hash, code); right {
			f.Handle = hashed(handle)
		}
		return newFact(event.WebPairingAttempted, f), nil
	})
	switch {
	case errors.Is(err, ErrCode): // no try was recorded
		d.Refuse(ctx, fact.WebRefused{What: "pairing", Why: "no pairing is open", From: from})
	case err == nil && !right:
		err = ErrCode
	}
	if err != nil {
		return "", err
	}
	return handle, nil
}

// Ask is the browser's second step. It submits the browser's name and public key, once. It returns
// the word that the terminal also shows. The error may be ErrKey, or ErrCode for an invalid handle.
func (d *Devices) Ask(ctx context.Context, handle, name string, key JWK, from fact.From) (word string, err error) {
	der, err := key.record()
	if err != nil {
		return "", err
	}
	f := fact.WebPairingRequested{From: from, Name: access.Name(name), Key: der, Word: newWord()}
	err = d.appendFact(ctx, func(s *state) (event.Event, error) {
		f.Pairing = s.pairing.ID
		if !s.pairing.isHandle(handle) || s.pairing.asks != nil || s.pairing.live(f.Pairing, d.opt.Now()) != nil {
			return event.Event{}, ErrCode
		}
		return newFact(event.WebPairingRequested, f), nil
	})
	if err != nil {
		return "", err
	}
	return f.Word, nil
}

// isHandle reports whether the handle belongs to the browser that had the code.
func (p *pairing) isHandle(handle string) bool {
	return p.handle != nil && bytes.Equal(hashed(handle), p.handle)
}

// newWord returns a word of three syllables that can be read out in any language. There are 70
// syllables.
func newWord() string {
	const consonants, vowels = "bdfgklmnprstvz", "aeiou"
	b := make([]byte, 3)
	var w strings.Builder
	for w.Len() < 6 {
		_, _ = rand.Read(b)          // rand.Read never fails
		if n := int(b[0]); n < 210 { // so that all 70 syllables are equally likely
			w.WriteByte(consonants[n%14])
			w.WriteByte(vowels[n/14%5])
		}
	}
	return w.String()
}

// These are the states of a pairing.
const (
	stateWaiting = "waiting"
	statePaired  = "paired"
	stateRefused = "refused"
	stateExpired = "expired"
)

// PairingState is the state of a pairing.
type PairingState struct {
	State  string       `json:"state"` // waiting, paired, refused or expired
	Device string       `json:"device,omitempty"`
	Name   string       `json:"name,omitempty"`
	Rights []fact.Right `json:"rights,omitempty"`
}

// Await is the browser's third step. It waits until the pairing has ended or ctx is done; neither
// is an error. An unknown handle counts as expired.
func (d *Devices) Await(ctx context.Context, handle string) PairingState {
	for {
		d.mu.Lock()
		at, changed, now := d.state.pairing, d.changed, d.opt.Now()
		dev := d.state.devices[at.device]
		d.mu.Unlock()
		switch {
		case !at.isHandle(handle):
			return PairingState{State: stateExpired}
		case at.ended == statePaired && dev != nil:
			return PairingState{at.ended, dev.ID, dev.Name, dev.Rights}
		case at.ended != "":
			return PairingState{State: stateRefused}
		case !now.Before(at.Expires):
			return PairingState{State: stateExpired}
		}
		if wait(ctx, changed, at.Expires.Sub(now)) != nil {
			return PairingState{State: stateWaiting}
		}
	}
}
