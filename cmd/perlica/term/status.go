package term

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/mattn/go-runewidth"
)

const redrawEvery = 100 * time.Millisecond

// Clock is the time a [Status] goes by.
type Clock struct {
	Now       func() time.Time
	AfterFunc func(d time.Duration, f func()) (stop func() bool)
}

// SystemClock returns the clock on the wall.
func SystemClock() Clock {
	return Clock{
		Now:       time.Now,
		AfterFunc: func(d time.Duration, f func()) func() bool { return time.AfterFunc(d, f).Stop },
	}
}

// Status is one line at the bottom of a terminal that says what is going on and for
// how long, counted from [NewStatus] or Restart. It is drawn at most ten times a second, and
// only when the text or the second has changed; while it shows nothing no timer
// runs. All that goes to the same terminal must go through Print or Through. It is
// safe for concurrent use; errors of the terminal are ignored.
type Status struct {
	w      io.Writer
	width  func() int
	styles Styles
	clock  Clock

	mu      sync.Mutex // guards what follows, and writing to the terminal
	start   time.Time
	text    string
	drawn   string // what the line shows; "" if there is no line
	used    int    // its columns
	last    time.Time
	stop    func() bool // the timer of the next drawing, if one is set
	midline bool        // permanent text ended without a newline: no room for the line
	aside   bool        // somebody else has the terminal
	closed  bool
}

// NewStatus returns a status line on w, which shows nothing yet. With a nil width it
// never does: see [StatusWidth].
func NewStatus(w io.Writer, width func() int, styles Styles, clock Clock) *Status {
	return &Status{w: w, width: width, styles: styles, clock: clock, start: clock.Now()}
}

// Set changes the text; control characters in it are made visible. "" hides the line.
func (s *Status) Set(text string) {
	text = strings.Join(strings.Fields(Sanitize(text)), " ")
	s.mu.Lock()
	defer s.mu.Unlock()
	if text == s.text || s.closed || s.width == nil {
		return
	}
	s.text = text
	if text == "" {
		s.cancel()
		s.erase()
		return
	}
	s.redraw()
}

// Restart counts the time from now.
func (s *Status) Restart() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.start = s.clock.Now()
}

// Clear takes the line away until the next Set.
func (s *Status) Clear() { s.Set("") }

// Print takes the line away, calls f with the terminal at the beginning of a line,
// and draws the line again. f must not use the Status.
func (s *Status) Print(f func(w io.Writer)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.erase()
	if s.midline {
		s.write("\n")
		s.midline = false
	}
	t := &tail{w: s.w}
	defer s.after(t)
	f(t)
}

// Through returns a writer for a stream, such as standard output, that shares the
// terminal with the line. While the stream is in the middle of a line the status is
// not drawn.
func (s *Status) Through(out io.Writer) io.Writer { return through{s, out} }

type through struct {
	s   *Status
	out io.Writer
}

func (t through) Write(p []byte) (int, error) {
	t.s.mu.Lock()
	defer t.s.mu.Unlock()
	t.s.erase()
	tl := &tail{w: t.out}
	defer t.s.after(tl)
	return tl.Write(p)
}

// Aside takes the line away while f runs: somebody else has the terminal, or the process is
// stopped.
func (s *Status) Aside(f func()) {
	s.mu.Lock()
	s.aside = true
	s.cancel()
	s.erase()
	s.mu.Unlock()
	f()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.aside = false
	s.last = time.Time{} // at once
	s.redraw()
}

// Redraw draws the line again, at once: the size of the terminal has changed or, if the line is
// lost, somebody else had the terminal.
func (s *Status) Redraw(lost bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if lost {
		s.drawn, s.used = "", 0
	}
	s.last = time.Time{}
	s.redraw()
}

// Close takes the line away for good. What is printed later is passed through.
func (s *Status) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.cancel()
	s.erase()
	return nil
}

// tail remembers the last byte that was written.
type tail struct {
	w    io.Writer
	last byte
}

func (t *tail) Write(p []byte) (int, error) {
	n, err := t.w.Write(p)
	if n > 0 {
		t.last = p[n-1]
	}
	return n, err
}

// after draws the line again below what was written through t.
func (s *Status) after(t *tail) {
	if t.last != 0 {
		s.midline = t.last != '\n'
	}
	s.redraw()
}

// redraw draws now, or as soon as that may be, and arranges for the next second.
func (s *Status) redraw() {
	if s.text == "" || s.closed || s.midline || s.aside {
		s.cancel()
		return
	}
	now := s.clock.Now()
	if wait := redrawEvery - now.Sub(s.last); wait > 0 && wait <= redrawEvery {
		s.arm(wait)
		return
	}
	if line, used := s.line(now); line != s.drawn {
		home, rest := s.home()
		s.write(home + line + rest)
		s.drawn, s.used, s.last = line, used, now
	}
	s.arm(time.Second - now.Sub(s.start)%time.Second)
}

func (s *Status) arm(wait time.Duration) {
	s.cancel()
	s.stop = s.clock.AfterFunc(wait, s.tick)
}

func (s *Status) cancel() {
	if s.stop != nil {
		s.stop()
		s.stop = nil
	}
}

func (s *Status) tick() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.redraw()
}

func (s *Status) erase() {
	if s.drawn != "" {
		home, rest := s.home()
		s.write(home + rest)
		s.drawn, s.used = "", 0
	}
}

// home goes to the beginning of what is drawn, and rest clears what is left of it there. A
// terminal that was made narrower since has broken the line.
func (s *Status) home() (home, rest string) {
	if up := Rows(s.used, s.width()) - 1; up > 0 {
		return fmt.Sprintf("\r\x1b[%dA", up), "\x1b[J"
	}
	return "\r", "\x1b[K"
}

func (s *Status) write(text string) {
	_, _ = io.WriteString(s.w, text) // a terminal that is gone is no reason to stop
}

// line is the text and the elapsed time, cut to the terminal's width, and how many columns they
// take. The last column stays empty: in it some terminals wrap.
func (s *Status) line(now time.Time) (line string, used int) {
	elapsed := elapsed(now.Sub(s.start))
	columns := s.width() - 1
	room := columns - len(elapsed) - 1
	if room < 1 {
		text := truncate(s.text, max(columns, 0))
		return text, Columns(text)
	}
	text := truncate(s.text, room)
	return text + " " + s.styles.Dim(elapsed), Columns(text) + 1 + len(elapsed)
}

func elapsed(d time.Duration) string {
	sec := int64(max(d, 0) / time.Second)
	switch {
	case sec < 60:
		return fmt.Sprintf("%ds", sec)
	case sec < 3600:
		return fmt.Sprintf("%dm%02ds", sec/60, sec%60)
	}
	return fmt.Sprintf("%dh%02dm", sec/3600, sec/60%60)
}

// Columns is the width of text on a terminal; styles in it take none. It does not ask the locale, as
// runewidth's own functions do.
func Columns(text string) int {
	c := runewidth.Condition{StrictEmojiNeutral: true}
	before, rest, styled := strings.Cut(text, "\x1b[")
	if styled {
		_, rest, _ = strings.Cut(rest, "m")
		return c.StringWidth(before) + Columns(rest)
	}
	return c.StringWidth(text)
}

// Rows is how many rows of a terminal a line takes that is used columns wide. A terminal of no
// columns does not say how many it has.
func Rows(used, columns int) int {
	if columns < 1 {
		return 1
	}
	return max(used-1, 0)/columns + 1
}

// truncate cuts text to a display width; it does not ask the locale either.
func truncate(text string, columns int) string {
	if columns == 0 {
		return ""
	}
	c := runewidth.Condition{StrictEmojiNeutral: true}
	return c.Truncate(text, columns, "…")
}
