package screen

import "time"

// settleFor is how long nothing is drawn after the size has changed: tmux gives its windows another size up to a
// quarter of a second before it says so. mostSettling is when something is drawn all the same.
const (
	settleFor    = 400 * time.Millisecond
	mostSettling = 5 * time.Second
)

// settling says when a terminal whose size changes may be drawn on again. Rows that may change are found by counting
// them upwards, as often as a terminal of the size that it says has broken them: while it has another one, that
// would erase what stands above, or leave pieces. The zero value is a terminal at rest.
type settling struct {
	since, until time.Time
	columns      int // when it was looked at last
}

// Changed says that the size changes, or has just changed.
func (s *settling) Changed(now time.Time) {
	if !now.Before(s.until) {
		s.since = now
	}
	s.until = now.Add(settleFor)
	if last := s.since.Add(mostSettling); s.until.After(last) {
		s.until = last
	}
}

// Left is for how long a terminal that has so many columns now is not to be drawn on.
func (s *settling) Left(now time.Time, columns int) time.Duration {
	if columns != s.columns && s.columns > 0 {
		s.Changed(now)
	}
	s.columns = columns
	return max(s.until.Sub(now), 0)
}

// Resized draws the line again when the terminal has settled: its size changes.
func (s *StatusLine) Resized() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.settle.Changed(s.clock.Now())
	s.last = time.Time{}
	s.redraw()
}

// atRest waits, without the lock, until the terminal has settled if something is drawn on it: for those who cannot
// come back.
func (s *StatusLine) atRest() {
	for end := s.clock.Now().Add(mostSettling); s.shown() && s.clock.Now().Before(end); {
		left := s.unsettled()
		if left <= 0 {
			return
		}
		s.mu.Unlock()
		s.clock.Sleep(left)
		s.mu.Lock()
	}
}

// unsettled is for how long nothing is to be drawn.
func (s *StatusLine) unsettled() time.Duration {
	if s.width == nil {
		return 0
	}
	return s.settle.Left(s.clock.Now(), s.width())
}

// shown reports whether something is on the terminal that may change.
func (s *StatusLine) shown() bool { return s.drawn != "" || s.live != nil && len(s.live.rows) > 0 }
