package service

import (
	"context"
	"slices"
	"sync"
)

// slots limits the number of turns that run at a time. A turn with an open question has no slot:
// its agent waits, and the person may take hours.
type slots struct {
	mu   sync.Mutex // guards the fields below
	free int        // negative means that more turns run than allowed; see retakeSlot
	line []chan struct{}
}

func newSlots(n int) *slots { return &slots{free: n} }

// takeSlot takes a slot in the order of the callers. It returns false if ctx ends first.
func (s *slots) takeSlot(ctx context.Context) bool {
	mine := make(chan struct{})
	s.mu.Lock()
	s.line = append(s.line, mine)
	s.handOut()
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
	s.free++ // the slot was handed out just before ctx ended, so it is returned
	s.handOut()
	return false
}

// ahead returns the number of turns that wait for a slot. The result "full" reports whether a new turn must wait.
func (s *slots) ahead() (n int, full bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.line), s.free <= 0
}

// giveBack releases a slot.
func (s *slots) giveBack() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free++
	s.handOut()
}

// retakeSlot takes back a released slot at once, because its turn continues after an answer. More turns than allowed
// may then run until other turns end.
func (s *slots) retakeSlot() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free--
}

// handOut hands out the free slots. The caller holds mu.
func (s *slots) handOut() {
	for s.free > 0 && len(s.line) > 0 {
		s.free--
		close(s.line[0])
		s.line = s.line[1:]
	}
}

// questionOpened records that a question of the running turn waits for a person.
func (ib *inbox) questionOpened() {
	ib.mu.Lock()
	defer ib.mu.Unlock()
	if ib.openQuestions++; ib.openQuestions == 1 {
		ib.b.slots.giveBack()
	}
}

// questionClosed records that a question of the running turn has ended. It does nothing if no question is open.
func (ib *inbox) questionClosed() {
	ib.mu.Lock()
	defer ib.mu.Unlock()
	if ib.openQuestions == 0 {
		return
	}
	if ib.openQuestions--; ib.openQuestions == 0 {
		ib.b.slots.retakeSlot()
	}
}

// releaseSlot releases the slot of a finished turn. A turn with an open question has no slot.
func (ib *inbox) releaseSlot() {
	ib.mu.Lock()
	defer ib.mu.Unlock()
	if ib.openQuestions == 0 {
		ib.b.slots.giveBack()
	}
	ib.openQuestions = 0
}
