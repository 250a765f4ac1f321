package device

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sort"
	"time"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/store"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/service/access"
)

// types lists the types of the events that this package reads and writes.
func types() []event.Type {
	return []event.Type{event.WebPairingOpened, event.WebPairingAttempted, event.WebPairingRequested,
		event.DevicePaired, event.DeviceRevoked, event.WebRefused}
}

// state is the state of the devices that follows from a log.
type state struct {
	head    event.Seq // the last event that is included
	devices map[string]*Device
	revoked map[string]bool
	pairing pairing // the newest one
}

// pairing is the state of a pairing.
type pairing struct {
	fact.Pairing
	attempts int
	handle   []byte                    // the SHA-256 of the browser's handle, set when the code is used up
	asks     *fact.WebPairingRequested // set when the browser has sent its key
	ended    string                    // "", paired or refused
	device   string                    // the paired device
}

func newState() *state {
	return &state{devices: map[string]*Device{}, revoked: map[string]bool{}}
}

// since returns this package's events after an event, and the last event that it has read.
func since(ctx context.Context, log *store.Reader, after event.Seq) (list []event.Event, end event.Seq, err error) {
	last, ok, err := log.Last(ctx, event.Query{})
	if err != nil || !ok || last.Seq == after {
		return nil, after, err
	}
	for e, err := range log.Events(ctx, event.Query{After: after, Until: last.Seq, Types: types(), Class: event.Fact}) {
		if err != nil {
			return nil, after, err
		}
		list = append(list, e)
	}
	return list, last.Seq, nil
}

// readLog applies all new events of a log.
func (s *state) readLog(ctx context.Context, log *store.Reader) error {
	events, end, err := since(ctx, log, s.head)
	for _, e := range events {
		s.applyEvent(e)
	}
	s.head = end
	return err
}

// applyEvent applies an event. An unreadable event is pruned or comes from a later version. It
// pairs and revokes no device.
func (s *state) applyEvent(e event.Event) {
	s.head = e.Seq
	switch e.Type {
	case event.WebPairingOpened:
		on(e, func(f fact.Pairing) { s.pairing = pairing{Pairing: f} })
	case event.WebPairingAttempted:
		on(e, func(f fact.WebPairingAttempted) {
			if f.Pairing == s.pairing.ID {
				s.pairing.attempts++
				if s.pairing.handle == nil { // only the first use of the code counts
					s.pairing.handle = f.Handle
				}
			}
		})
	case event.WebPairingRequested:
		on(e, func(f fact.WebPairingRequested) {
			if f.Pairing == s.pairing.ID && s.pairing.asks == nil {
				s.pairing.asks = &f
			}
		})
	case event.DevicePaired:
		on(e, func(f fact.DevicePaired) { s.paired(f, e.Time) })
	case event.DeviceRevoked:
		on(e, func(f fact.DeviceRevoked) {
			delete(s.devices, f.ID)
			s.revoked[f.ID] = true
		})
	case event.WebRefused:
		on(e, func(f fact.WebRefused) {
			if f.Pairing != "" && f.Pairing == s.pairing.ID && s.pairing.ended == "" {
				s.pairing.ended = stateRefused
			}
		})
	}
}

// on decodes the fact of an event and calls the function "do" with it. It ignores a fact that it cannot decode.
func on[T any](e event.Event, do func(f T)) {
	var f T
	if e.Payload != nil && e.Decode(&f) == nil {
		do(f)
	}
}

func (s *state) paired(f fact.DevicePaired, at time.Time) {
	dev := fromFact(f, at)
	if !s.revoked[f.ID] && (dev.key != nil || len(dev.token) > 0) {
		s.devices[f.ID] = &dev
	}
	if f.Pairing != "" && f.Pairing == s.pairing.ID && s.pairing.ended == "" {
		s.pairing.ended, s.pairing.device = statePaired, f.ID
	}
}

// fromFact returns the device that a fact describes.
func fromFact(f fact.DevicePaired, at time.Time) Device {
	dev := Device{ID: f.ID, Name: access.Name(f.Name), Kind: Program, Rights: f.Rights, Paired: at, token: f.Token}
	if f.Token == nil {
		dev.Kind, dev.Address, dev.Browser = Browser, f.Address, f.Browser
		dev.key, _ = keyOfRecord(f.Key) // an unreadable key is nil, which verifies no signature
	}
	return dev
}

// list returns the devices in the order of their pairing.
func (s *state) list() []Device {
	list := make([]Device, 0, len(s.devices))
	for _, dev := range s.devices {
		list = append(list, *dev)
	}
	sort.Slice(list, func(i, j int) bool {
		a, b := &list[i], &list[j]
		return cmp.Or(a.Paired.Compare(b.Paired), cmp.Compare(a.ID, b.ID)) < 0
	})
	return list
}

// named reports whether a device has this name or this id.
func (s *state) named(name string) bool {
	return slices.ContainsFunc(slices.Collect(maps.Values(s.devices)),
		func(dev *Device) bool { return dev.Name == name || dev.ID == name })
}

// mayPair returns the reason why no device can be paired under a name.
func (s *state) mayPair(name string) error {
	switch {
	case len(s.devices) >= mostDevices:
		return ErrTooMany
	case name == "" || s.named(name):
		return ErrName
	}
	return nil
}

// freeName returns an unused name similar to this one.
func (s *state) freeName(name string) string {
	name = cmp.Or(access.Name(name), "browser")
	for i, first := 2, name; s.named(name); i++ {
		name = fmt.Sprintf("%s %d", access.Cut(first, 44), i)
	}
	return name
}
