package interaction

import "time"

// These are the waiting times for a yes that does not name its question: a key, a tap, a bare number.
const (
	// ReadTime is the time after a question is drawn during which a key cannot allow.
	ReadTime = 500 * time.Millisecond
	// QuietTime is the time without input that must precede a key that allows.
	QuietTime = 300 * time.Millisecond
	// HeldTime is the time without input that must follow a key that allows. A key that is held down repeats faster.
	HeldTime = 150 * time.Millisecond
)

// Wait computes when a key that allows has an effect. The zero value is for a question that was not drawn yet.
type Wait struct {
	drawn, input time.Time
}

// Drawn records that the question, or a further part of it, is on the screen.
func (w *Wait) Drawn(now time.Time) { w.drawn = now }

// Input records that a key was pressed.
func (w *Wait) Input(now time.Time) { w.input = now }

// Left returns the time until a key that allows has an effect, if no other key is pressed. After that time it returns
// 0.
func (w *Wait) Left(now time.Time) time.Duration {
	end := w.drawn.Add(ReadTime)
	if quiet := w.input.Add(QuietTime); quiet.After(end) {
		end = quiet
	}
	return max(end.Sub(now), 0)
}
