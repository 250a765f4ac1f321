// Package device says which browsers and programs come in over HTTP.
//
// It promises that nothing comes in without a credential that a person gave at a terminal of this
// machine: a browser's key, with which it signs each request, or a program's token. What it knows is
// in the user's own log and read from there at each start: a list in a file of its own could be
// changed without a trace. It serves nothing itself.
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
	"github.com/perlica/perlica/eventlog/store"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/service/access"
)

// Device is a browser or a program that was paired.
type Device struct {
	ID      string        `json:"id"`
	Name    string        `json:"name"`
	Kind    Kind          `json:"kind"`
	Rights  access.Rights `json:"rights"`
	Address string        `json:"address,omitempty"` // from which it was paired
	Browser string        `json:"browser,omitempty"` // what it said of itself
	Paired  time.Time     `json:"paired"`

	key   publicKey // of a browser
	token []byte    // of a program: the SHA-256 of its token
}

// Kind is what a device is.
type Kind string

// The kinds.
const (
	Browser Kind = "browser" // signs with a key that does not leave it
	Program Kind = "program" // has a token
)

// List returns the devices that a user's own log has as paired, in the order in which they were.
func List(ctx context.Context, log *store.Reader) ([]Device, error) {
	s := newState()
	if err := s.read(ctx, log); err != nil {
		return nil, err
	}
	return s.list(), nil
}

// List returns the devices that are paired now, in the order in which they were.
func (d *Devices) List(ctx context.Context) ([]Device, error) {
	if err := d.refresh(ctx); err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.state.list(), nil
}

// Options say how devices are judged.
type Options struct {
	Base   string                       // the path below which a proxy shows what is served; it is part of what is signed
	Client func(r *http.Request) string // the address from which a request comes; nil: who is at the other end
	Now    func() time.Time             // nil: the system's clock
}

// Devices judges who comes in. Its methods may be called from several goroutines.
type Devices struct {
	log    *eventlog.Log
	opt    Options
	nonces nonces
	seen   replays
	record access.Refusals
	end    context.CancelFunc
	over   sync.WaitGroup

	mu      sync.Mutex // guards what follows; never held during I/O
	state   *state
	changed chan struct{}            // closed when state changes
	streams map[string]chan struct{} // by the device's id
	guesses map[string]*guesses      // at a token, by its id
}

// Open reads which devices there are from the user's own log and follows it, whichever process writes there. The
// caller must Close it, before the log.
func Open(ctx context.Context, log *eventlog.Log, opt Options) (*Devices, error) {
	if opt.Now == nil {
		opt.Now = time.Now
	}
	if opt.Client == nil {
		opt.Client = remote
	}
	d := &Devices{log: log, opt: opt, nonces: newNonces(), state: newState(), changed: make(chan struct{}),
		streams: map[string]chan struct{}{}, guesses: map[string]*guesses{}}
	changes, err := log.Changes(ctx) // before the first look: nothing may lie between
	if err != nil {
		return nil, err
	}
	if err := d.refresh(ctx); err != nil {
		return nil, errors.Join(err, changes.Close())
	}
	following, end := context.WithCancel(context.WithoutCancel(ctx))
	d.end = end
	d.over.Go(func() { d.follow(following, changes) })
	return d, nil
}

// Close ends the following of the log, and what is being sent to every device. It may be called again.
func (d *Devices) Close() error {
	d.end()
	d.over.Wait()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.endStreams()
	return nil
}

// lookEvery is how long something that another process appended stays unseen at most, where the system
// does not tell of it.
const lookEvery = 500 * time.Millisecond

func (d *Devices) follow(ctx context.Context, changes *store.Changes) {
	defer func() { _ = changes.Close() }() // read from only
	for {
		_, err := changes.Wait(ctx, lookEvery)
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			err = d.refresh(ctx)
		}
		if err == nil {
			continue
		}
		// Which devices are revoked is not known: no stream goes on.
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

// endStreams ends what every device is being sent. d.mu is held.
func (d *Devices) endStreams() {
	for id, c := range d.streams {
		close(c)
		delete(d.streams, id)
	}
}

// refresh takes in what was appended since the last time.
func (d *Devices) refresh(ctx context.Context) error {
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
		if e.Seq > d.state.head { // else another goroutine was faster
			applied = true
			d.state.apply(e)
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
	dev, _ := d.find(id)
	return dev, dev.ID != ""
}

// Revoked returns a channel that is closed when the device is revoked, by whatever process, within a
// second; when it is not known any more whether it was; and by Close.
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

// append appends what build makes of what is known, which nothing can have changed in between.
func (d *Devices) append(ctx context.Context, build func(s *state) (event.Event, error)) error {
	for {
		if err := d.refresh(ctx); err != nil {
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
			continue // another process, or goroutine, was faster
		}
		if err != nil {
			return err
		}
		_, _ = d.log.Checkpoint(ctx) // what was appended counts without it; the next one covers both
		return d.refresh(ctx)
	}
}

// newFact is an event of the user's own log.
func newFact(t event.Type, f any) event.Event { return event.NewFact(t, "user", event.Refs{}, f) }

// ErrNoDevice says that nothing is paired under a name.
var ErrNoDevice = errors.New("no device has this name")

// An AmbiguousError says that several devices have a name.
type AmbiguousError struct{ Name string }

func (e *AmbiguousError) Error() string { return fmt.Sprintf("several devices are named %q", e.Name) }

// Revoke takes the rights of the device away that has this id or, alone, this name, and returns it.
// When it returns nil the device is out, also after a power failure.
func (d *Devices) Revoke(ctx context.Context, ref, by string) (found Device, err error) {
	err = d.append(ctx, func(s *state) (event.Event, error) {
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

// What limits devices.
var (
	// ErrTooMany says that so many devices are paired that another one is likely a mistake.
	ErrTooMany = fmt.Errorf("%d devices are paired: revoke one first", mostDevices)
	// ErrName says that a name cannot be one, or is another device's.
	ErrName = errors.New("that name is empty, or another device's")
)

// mostDevices is how many devices can be paired.
const mostDevices = 64

// tokenPrefix is how a token begins, so that people and the masking of secrets know one.
const tokenPrefix = "perlica_tok_"

// NewToken makes the token of a program. It is returned once and is not on record: its hash is.
func (d *Devices) NewToken(ctx context.Context, name string, rights access.Rights, by string) (token string, dev Device, err error) {
	f := fact.DevicePaired{ID: newID(), Name: access.Name(name), Rights: rights, By: by}
	token = tokenPrefix + f.ID + strings.ToLower(rand.Text())
	f.Token = hashed(token)
	err = d.append(ctx, func(s *state) (event.Event, error) {
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

// lengthID is how long an id is.
const lengthID = 10

// newID is the id of a device: it is no secret, and no two are the same.
func newID() string { return strings.ToLower(rand.Text()[:lengthID]) }

// hashed is the SHA-256 of a secret of 130 random bits, which needs no salt.
func hashed(secret string) []byte {
	sum := sha256.Sum256([]byte(secret))
	return sum[:]
}
