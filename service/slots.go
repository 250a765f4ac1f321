package service

import (
	"context"
	"slices"
	"sync"
)

// slots are how many turns may go on at a time. A turn that waits for a person has none: its agent does
// nothing while a question is open, and the person may take hours.
type slots struct {
	mu   sync.Mutex // guards what follows
	free int        // below 0: so many turns were answered while others had their slots
	line []chan struct{}
}

func newSlots(n int) *slots { return &slots{free: n} }

// take takes a slot, in the order of the callers. It returns false if ctx ends before there is one.
func (s *slots) take(ctx context.Context) bool {
	mine := make(chan struct{})
	s.mu.Lock()
	s.line = append(s.line, mine)
	s.hand()
	s.mu.Unlock()
	select {
	case <-mine:
		return true
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.Index(s.line, mine); i >= 0 {
		s.line = slices.Delete(s.line, i, i+1)
		return false
	}
	s.free++ // it came at the same moment
	s.hand()
	return false
}

// ahead is how many turns wait for a slot; full: so does one that comes now.
func (s *slots) ahead() (n int, full bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.line), s.free <= 0
}

// give gives a slot back.
func (s *slots) give() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free++
	s.hand()
}

// retake takes a slot that was given back for a while, at once: the turn goes on already. Until then
// others have ended, there is one more than there may be.
func (s *slots) retake() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free--
}

// hand hands out what is free. The caller holds mu.
func (s *slots) hand() {
	for s.free > 0 && len(s.line) > 0 {
		s.free--
		close(s.line[0])
		s.line = s.line[1:]
	}
}

// asks takes note that a question of the turn under way waits for a person.
func (d *desk) asks() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.asking++; d.asking == 1 {
		d.b.slots.give()
	}
}

// asked takes note that one of those has its end.
func (d *desk) asked() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.asking == 0 {
		return
	}
	if d.asking--; d.asking == 0 {
		d.b.slots.retake()
	}
}

// rise gives the slot of a turn that is over back, unless the turn had none at its end.
func (d *desk) rise() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.asking == 0 {
		d.b.slots.give()
	}
	d.asking = 0
}
