package interaction

import "time"

// The waiting times before a yes that names no question: a key, a tap, a bare number.
const (
	// ReadTime is the time after the drawing of a question in which no key allows.
	ReadTime = 500 * time.Millisecond
	// QuietTime is the time without input before a key that allows.
	QuietTime = 300 * time.Millisecond
	// HeldTime is the time without input after a key that allows. A key that is held down repeats faster.
	HeldTime = 150 * time.Millisecond
)

// Wait computes when a key that allows begins to count. The zero value belongs to a question that was not drawn yet.
type Wait struct {
	drawn, input time.Time
}

// Drawn records that the question, or a further part of it, is on the screen.
func (w *Wait) Drawn(now time.Time) { w.drawn = now }

// Input records that a key was pressed.
func (w *Wait) Input(now time.Time) { w.input = now }

// Left returns the time until a key that allows counts, if no further key is pressed. It is 0 after the wait.
func (w *Wait) Left(now time.Time) time.Duration {
	end := w.drawn.Add(ReadTime)
	if quiet := w.input.Add(QuietTime); quiet.After(end) {
		end = quiet
	}
	return max(end.Sub(now), 0)
}
