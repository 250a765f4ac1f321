package screen

import "time"

// settleFor is the pause of all drawing after a change of the size: tmux reports a new size up to a quarter of a second
// late. mostSettling limits the pause.
const (
	settleFor    = 400 * time.Millisecond
	mostSettling = 5 * time.Second
)

// settling tells when a resized terminal may be drawn on again. The drawing finds its rows by counting upwards, and
// counts the rows that the terminal has broken at its reported width. While the reported width is wrong, a drawing
// would erase other text or leave pieces. The zero value is a terminal at rest.
type settling struct {
	since, until time.Time
	columns      int // the last reported width
}

// Changed notes that the size is changing.
func (s *settling) Changed(now time.Time) {
	if !now.Before(s.until) {
		s.since = now
	}
	s.until = now.Add(settleFor)
	if last := s.since.Add(mostSettling); s.until.After(last) {
		s.until = last
	}
}

// Left returns the remaining pause. columns is the current width of the terminal.
func (s *settling) Left(now time.Time, columns int) time.Duration {
	if columns != s.columns && s.columns > 0 {
		s.Changed(now)
	}
	s.columns = columns
	return max(s.until.Sub(now), 0)
}

// Resized draws the line again as soon as the new size of the terminal is certain.
func (s *StatusLine) Resized() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.settle.Changed(s.clock.Now())
	s.last = time.Time{}
	s.redrawLine()
}

// atRest waits until the terminal may be drawn on, if a part of it may change. It is for callers that cannot return
// later. The caller holds the lock, which atRest releases while it waits.
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

// unsettled returns the time for which nothing may be drawn.
func (s *StatusLine) unsettled() time.Duration {
	if s.width == nil {
		return 0
	}
	return s.settle.Left(s.clock.Now(), s.width())
}

// shown reports whether the terminal shows rows that may change.
func (s *StatusLine) shown() bool { return s.drawn != "" || s.live != nil && len(s.live.rows) > 0 }
