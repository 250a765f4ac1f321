package screen

import "time"

// settleFor is the pause of all drawing after a change of the terminal's size. It is needed because tmux reports a
// new size up to a quarter of a second late. mostSettling is the longest pause after several changes.
const (
	settleFor    = 400 * time.Millisecond
	mostSettling = 5 * time.Second
)

// settling tells when a terminal that was resized may be drawn on again. To find its rows, a drawing counts upwards
// from the cursor. It needs the terminal's width, because a narrower terminal breaks rows. While the reported width
// is wrong, a drawing would erase other text or leave remains. The zero value is a terminal that was not resized.
type settling struct {
	since, until time.Time
	columns      int // the width that was reported last
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

// Left returns the time that is left of the pause. The parameter "columns" is the present width of the terminal.
func (s *settling) Left(now time.Time, columns int) time.Duration {
	if columns != s.columns && s.columns > 0 {
		s.Changed(now)
	}
	s.columns = columns
	return max(s.until.Sub(now), 0)
}

// Resized draws the line again when the new size of the terminal has settled.
func (s *StatusLine) Resized() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.settle.Changed(s.clock.Now())
	s.last = time.Time{}
	s.redrawLine()
}

// atRest waits until the terminal may be drawn on, if it shows rows that may change. Callers that cannot draw later
// use it. The caller holds the lock, and atRest releases the lock while it waits.
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

// unsettled returns the time for which nothing may be drawn yet.
func (s *StatusLine) unsettled() time.Duration {
	if s.width == nil {
		return 0
	}
	return s.settle.Left(s.clock.Now(), s.width())
}

// shown reports whether the terminal shows rows that may change.
func (s *StatusLine) shown() bool { return s.drawn != "" || s.live != nil && len(s.live.rows) > 0 }
