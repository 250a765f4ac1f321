package interaction

import "time"

// The times that a yes needs at a place where it names no question: a key, a tap, a bare number.
const (
	// ReadTime is the time after a question was drawn in which nothing allows.
	ReadTime = 500 * time.Millisecond
	// QuietTime is the time without input that comes before a key that allows.
	QuietTime = 300 * time.Millisecond
	// HeldTime is the time without input that follows a key that allows: a key that is held down repeats sooner.
	HeldTime = 150 * time.Millisecond
)

// Wait says when a key that allows begins to count at a question. The zero value belongs to a question that was not
// drawn yet.
type Wait struct {
	drawn, input time.Time
}

// Drawn takes note that the question, or more of it, stands on the screen.
func (w *Wait) Drawn(now time.Time) { w.drawn = now }

// Input takes note that something was typed, whatever it was.
func (w *Wait) Input(now time.Time) { w.input = now }

// Left is the time until a key that allows counts, if nothing is typed until then. It is 0 if the wait is over.
func (w *Wait) Left(now time.Time) time.Duration {
	end := w.drawn.Add(ReadTime)
	if quiet := w.input.Add(QuietTime); quiet.After(end) {
		end = quiet
	}
	return max(end.Sub(now), 0)
}
