// Package device decides which browsers and programs may use Perlica over HTTP.
//
// It promises that a visitor needs a credential that a person gave at a terminal of this machine. A
// browser has a key and signs each request with it; a program has a token. The list of devices is
// in the user's own log and is read from it at each start: a separate file could be changed without
// a trace. The package serves no requests itself.
package device

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/perlica/perlica/eventlog"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/message"
	"github.com/perlica/perlica/eventlog/store"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/service/access"
)

// Device is a paired browser or program.
type Device struct {
	ID      string        `json:"id"`
	Name    string        `json:"name"`
	Kind    Kind          `json:"kind"`
	Rights  access.Rights `json:"rights"`
	Address string        `json:"address,omitempty"` // address at the pairing
	Browser string        `json:"browser,omitempty"` // the browser's own description
	Paired  time.Time     `json:"paired"`

	key   publicKey // the key of a browser
	token []byte    // the SHA-256 of a program's token
}

// Kind is the kind of a device.
type Kind string

// These are the kinds of devices.
const (
	// Browser signs with a key that never leaves it.
	Browser Kind = "browser"
	// Program has a token.
	Program Kind = "program"
)

// List returns the paired devices of a user's own log in the order of their pairing.
func List(ctx context.Context, log *store.Reader) ([]Device, error) {
	s := newState()
	if err := s.readLog(ctx, log); err != nil {
		return nil, err
	}
	return s.list(), nil
}

// List returns the paired devices in the order of their pairing.
func (d *Devices) List(ctx context.Context) ([]Device, error) {
	if err := d.refreshState(ctx); err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.state.list(), nil
}

// Options configures Open.
type Options struct {
	// Base is the path below which a proxy shows the server. Signatures cover it.
	Base string
	// Client returns the address of a request's client. If it is nil, the connection's remote address is used.
	Client func(r *http.Request) string
	// Now is the clock. If it is nil, the system's clock is used.
	Now func() time.Time
}

// Devices authenticates requests. Its methods may be called from several goroutines.
type Devices struct {
	log    *eventlog.Log
	opt    Options
	nonces nonces
	seen   replays
	record access.Refusals
	end    context.CancelFunc
	over   sync.WaitGroup

	// mu guards the fields below. It is never held during I/O.
	mu      sync.Mutex
	state   *state
	changed chan struct{}            // closed when state changes
	streams map[string]chan struct{} // by the device's id
	guesses map[string]*guesses      // by the device's id
}

// Open reads the devices from the user's own log and follows the log, because other processes may
// write to it. The caller must Close the devices before the log.
func Open(ctx context.Context, log *eventlog.Log, opt Options) (*Devices, error) {
	if opt.Now == nil {
		opt.Now = time.Now
	}
	if opt.Client == nil {
		opt.Client = remote
	}
	d := &Devices{log: log, opt: opt, nonces: newNonces(), state: newState(), changed: make(chan struct{}),
		streams: map[string]chan struct{}{}, guesses: map[string]*guesses{}}
	// Following starts before the first reading, so that no event is missed between them.
	changes, err := log.Changes(ctx)
	if err != nil {
		return nil, err
	}
	if err := d.refreshState(ctx); err != nil {
		return nil, errors.Join(err, changes.Close())
	}
	following, end := context.WithCancel(context.WithoutCancel(ctx))
	d.end = end
	d.over.Go(func() { d.followLog(following, changes) })
	return d, nil
}

// Close ends the following of the log and the streams of all devices. It may be called again.
func (d *Devices) Close() error {
	d.end()
	d.over.Wait()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.endStreams()
	return nil
}

// lookEvery limits the delay until an event of another process is seen, if the system does not
// report changes.
const lookEvery = 500 * time.Millisecond

func (d *Devices) followLog(ctx context.Context, changes *store.Changes) {
	// The file was only read.
	defer func() { _ = changes.Close() }()
	for {
		_, err := changes.Wait(ctx, lookEvery)
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			err = d.refreshState(ctx)
		}
		if err == nil {
			continue
		}
		// The revocations are unknown now, so no stream may continue.
		d.mu.Lock()
		d.endStreams()
		d.mu.Unlock()
		select {
		case <-time.After(lookEvery):
		case <-ctx.Done():
			return
		}
	}
}

// endStreams ends the streams of all devices. The caller holds mu.
func (d *Devices) endStreams() {
	for id, c := range d.streams {
		close(c)
		delete(d.streams, id)
	}
}

// refreshState applies the events that were appended since the last call.
func (d *Devices) refreshState(ctx context.Context) error {
	d.mu.Lock()
	head := d.state.head
	d.mu.Unlock()
	events, end, err := since(ctx, &d.log.Reader, head)
	if err != nil || end == head {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	applied := false
	for _, e := range events {
		// Otherwise another goroutine has already applied the event.
		if e.Seq > d.state.head {
			applied = true
			d.state.applyEvent(e)
		}
	}
	d.state.head = max(d.state.head, end)
	if !applied {
		return nil
	}
	close(d.changed)
	d.changed = make(chan struct{})
	for id, c := range d.streams {
		if d.state.devices[id] == nil {
			close(c)
			delete(d.streams, id)
		}
	}
	return nil
}

// Find returns the device that has this id now.
func (d *Devices) Find(id string) (Device, bool) {
	dev, _ := d.findDevice(id)
	return dev, dev.ID != ""
}

// Revoked returns a channel that is closed within a second after any process has revoked the
// device. It is also closed by Close, and when the revocations become unknown.
func (d *Devices) Revoked(id string) <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	c := d.streams[id]
	if c == nil {
		c = make(chan struct{})
		if d.state.devices[id] == nil {
			close(c)
			return c
		}
		d.streams[id] = c
	}
	return c
}

// appendFact appends the event that the function "build" makes from the current state. No event can come between the
// state and the new event.
func (d *Devices) appendFact(ctx context.Context, build func(s *state) (event.Event, error)) error {
	for {
		if err := d.refreshState(ctx); err != nil {
			return err
		}
		d.mu.Lock()
		head := d.state.head
		e, err := build(d.state)
		d.mu.Unlock()
		if err != nil {
			return err
		}
		_, err = d.log.AppendUnless(ctx, event.Query{Types: types(), After: head}, e)
		if conflict := (*eventlog.ConflictError)(nil); errors.As(err, &conflict) {
			// Another process or goroutine has appended an event first, so build this event again from the new state.
			continue
		}
		if err != nil {
			return err
		}
		// An error does not matter, because the event counts without a checkpoint, and the next checkpoint covers it.
		_, _ = d.log.Checkpoint(ctx)
		return d.refreshState(ctx)
	}
}

// newFact returns an event of the user's own log.
func newFact(t event.Type, f any) event.Event { return event.NewFact(t, "user", event.Refs{}, f) }

// ErrNoDevice says that no device has the name.
var ErrNoDevice = message.New("device.no-device", "no device has this name")

// An AmbiguousError says that several devices have the name.
type AmbiguousError struct{ Name string }

func (e *AmbiguousError) Error() string { return fmt.Sprintf("several devices are named %q", e.Name) }

// Revoke ends the rights of the device with this id, or of the only device with this name, and
// returns it. After a nil error the device stays out, also after a power failure.
func (d *Devices) Revoke(ctx context.Context, ref, by string) (found Device, err error) {
	err = d.appendFact(ctx, func(s *state) (event.Event, error) {
		var called []*Device
		for _, dev := range s.devices {
			if dev.ID == ref {
				called = []*Device{dev}
				break
			}
			if dev.Name == ref {
				called = append(called, dev)
			}
		}
		switch len(called) {
		case 0:
			return event.Event{}, ErrNoDevice
		case 1:
			found = *called[0]
			return newFact(event.DeviceRevoked, fact.DeviceRevoked{ID: found.ID, Name: found.Name, By: by}), nil
		}
		return event.Event{}, &AmbiguousError{ref}
	})
	return found, err
}

// These errors are the limits of devices.
var (
	// ErrTooMany says that the largest number of devices is paired. Another one is probably a
	// mistake.
	ErrTooMany = fmt.Errorf("%d devices are paired: revoke one first", mostDevices)
	// ErrName says that a name is invalid or belongs to another device.
	ErrName = message.New("device.name", "the name is empty, or another device has it")
)

// mostDevices limits the number of paired devices.
const mostDevices = 64

// tokenPrefix begins every token, so that people and the masking of secrets recognise one.
const tokenPrefix = "perlica_tok_"

// NewToken makes the token of a program. It returns the token once. The record has only the hash.
func (d *Devices) NewToken(ctx context.Context, name string, rights access.Rights,
	by string) (token string, dev Device, err error) {
	f := fact.DevicePaired{ID: newID(), Name: access.Name(name), Rights: rights, By: by}
	token = tokenPrefix + f.ID + strings.ToLower(rand.Text())
	f.Token = hashed(token)
	err = d.appendFact(ctx, func(s *state) (event.Event, error) {
		if err := s.mayPair(f.Name); err != nil {
			return event.Event{}, err
		}
		return newFact(event.DevicePaired, f), nil
	})
	if err != nil {
		return "", Device{}, err
	}
	return token, fromFact(f, d.opt.Now()), nil
}

// lengthID is the length of an id.
const lengthID = 10

// newID returns the id of a device. An id is unique and not secret.
func newID() string { return strings.ToLower(rand.Text()[:lengthID]) }

// hashed returns the SHA-256 of a secret. A secret has 130 random bits and needs no salt.
func hashed(secret string) []byte {
	sum := sha256.Sum256([]byte(secret))
	return sum[:]
}
