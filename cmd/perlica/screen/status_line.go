package screen

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/mattn/go-runewidth"
)

const redrawEvery = 100 * time.Millisecond

// Clock is the time a [StatusLine] goes by.
type Clock struct {
	Now       func() time.Time
	AfterFunc func(d time.Duration, f func()) (stop func() bool)
	Sleep     func(d time.Duration)
}

// ClearBelow clears, from the first column on, the row of the cursor and all below it, and leaves the cursor
// there. tmux takes what would clear a whole screen for a reason to keep all of it in its history: this
// clears the first column by itself.
const ClearBelow = "\x1b[K\x1b[C\x1b[J\r"

// SystemClock returns the clock on the wall.
func SystemClock() Clock {
	return Clock{
		Now:       time.Now,
		AfterFunc: func(d time.Duration, f func()) func() bool { return time.AfterFunc(d, f).Stop },
		Sleep:     time.Sleep,
	}
}

// StatusLine is one line at the bottom of a terminal that says what is going on and for
// how long, counted from [NewStatusLine] or Restart. Below it stands what is being typed. It is drawn at most ten times a second, and
// only when the text or the second has changed; while it shows nothing no timer
// runs. All that goes to the same terminal must go through Print or Through. While the terminal's size
// changes nothing is drawn, and what is printed waits: see [settling]. It is
// safe for concurrent use; errors of the terminal are ignored.
type StatusLine struct {
	w      io.Writer
	width  func() int
	styles Styles
	clock  Clock

	mu      sync.Mutex // guards what follows, and writing to the terminal
	start   time.Time
	text    string
	typed   string // what stands below the line
	drawn   string // what is on the screen, row by row; "" if there is no line
	last    time.Time
	stop    func() bool // the timer of the next drawing, if one is set
	midline bool        // permanent text ended without a newline: no room for the line
	aside   bool        // somebody else has the terminal
	closed  bool
	live    *LiveText // text above the line that may change; nil: there is none
	settle  settling  // after a change of the terminal's size
}

// NewStatusLine returns a status line on w, which shows nothing yet. With a nil width it
// never does: see [StatusWidth].
func NewStatusLine(w io.Writer, width func() int, styles Styles, clock Clock) *StatusLine {
	return &StatusLine{w: w, width: width, styles: styles, clock: clock, start: clock.Now()}
}

// Set changes the text; control characters in it are made visible. "" hides the line.
func (s *StatusLine) Set(text string) {
	text = strings.Join(strings.Fields(Sanitize(text)), " ")
	s.mu.Lock()
	defer s.mu.Unlock()
	if text == s.text || s.closed || s.width == nil {
		return
	}
	s.text = text
	if text == "" {
		s.cancel()
		s.atRest()
		s.erase()
		return
	}
	s.redraw()
}

// SetTyped changes what is being typed, which stands in full below the line: as many rows as that
// takes. Control characters in it are made visible.
func (s *StatusLine) SetTyped(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if text = Sanitize(text); text == s.typed || s.closed || s.width == nil {
		return
	}
	s.typed = text
	s.redraw()
}

// Restart counts the time from now.
func (s *StatusLine) Restart() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.start = s.clock.Now()
}

// Clear takes the line away until the next Set.
func (s *StatusLine) Clear() { s.Set("") }

// Print takes the line away, calls f with the terminal at the beginning of a line,
// and draws the line again. f must not use the Status.
func (s *StatusLine) Print(f func(w io.Writer)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.atRest()
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
func (s *StatusLine) Through(out io.Writer) io.Writer { return streamWriter{s, out} }

type streamWriter struct {
	s   *StatusLine
	out io.Writer
}

func (t streamWriter) Write(p []byte) (int, error) {
	t.s.mu.Lock()
	defer t.s.mu.Unlock()
	t.s.atRest()
	t.s.erase()
	tl := &tail{w: t.out}
	defer t.s.after(tl)
	return tl.Write(p)
}

// Aside takes the line away while f runs: somebody else has the terminal, or the process is
// stopped.
func (s *StatusLine) Aside(f func()) {
	s.mu.Lock()
	s.atRest()
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

// Redraw draws the line again, at once: somebody else had the terminal.
func (s *StatusLine) Redraw() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drawn = ""
	if s.live != nil {
		s.live.hidden()
	}
	s.last = time.Time{}
	s.redraw()
}

// Close takes the line away for good. What is printed later is passed through.
func (s *StatusLine) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.atRest()
	s.closed = true
	s.cancel()
	s.erase()
	if s.live != nil {
		s.live.cancel()
	}
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
func (s *StatusLine) after(t *tail) {
	if t.last != 0 {
		s.midline = t.last != '\n'
	}
	s.redraw()
}

// redraw draws now, or as soon as that may be, and arranges for the next second.
func (s *StatusLine) redraw() {
	if s.live != nil && !s.closed {
		s.live.resized()
		s.live.due()
	}
	if s.text == "" || s.closed || s.midline || s.aside {
		s.cancel()
		return
	}
	now := s.clock.Now()
	wait := s.unsettled()
	if since := redrawEvery - now.Sub(s.last); since <= redrawEvery {
		wait = max(wait, since)
	}
	if wait > 0 {
		s.arm(wait)
		return
	}
	if line := s.line(now); line != s.drawn {
		home, rest := s.home(0)
		if rest == ClearBelow || strings.Contains(line, "\n") {
			rest = "\x1b[J" // behind the line
		}
		s.write(home + strings.ReplaceAll(line, "\n", "\x1b[K\n") + rest)
		s.drawn, s.last = line, now
	}
	s.arm(time.Second - now.Sub(s.start)%time.Second)
}

func (s *StatusLine) arm(wait time.Duration) {
	s.cancel()
	s.stop = s.clock.AfterFunc(wait, s.tick)
}

func (s *StatusLine) cancel() {
	if s.stop != nil {
		s.stop()
		s.stop = nil
	}
}

func (s *StatusLine) tick() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.redraw()
}

func (s *StatusLine) erase() {
	above := 0
	if s.live != nil {
		above = rowsOn(s.live.rows, s.width())
		s.live.hidden()
	}
	if s.drawn != "" || above > 0 {
		home, rest := s.home(above)
		s.write(home + rest)
		s.drawn = ""
	}
}

// home goes to the beginning of what is drawn, with the rows above the line that are meant, and rest
// clears what is left of it there. A terminal that was made narrower since has broken the line.
func (s *StatusLine) home(above int) (home, rest string) {
	if up := above + s.height(s.width()) - 1; up > 0 {
		return fmt.Sprintf("\r\x1b[%dA", up), ClearBelow
	}
	return "\r", "\x1b[K"
}

func (s *StatusLine) write(text string) {
	_, _ = io.WriteString(s.w, text) // a terminal that is gone is no reason to stop
}

// height is how many rows of a terminal of that width the line takes, with what stands below it; where
// nothing is drawn, the row of the cursor.
func (s *StatusLine) height(columns int) (n int) {
	for _, row := range strings.Split(s.drawn, "\n") {
		n += TextRows(row, columns)
	}
	return n
}

// lines is how many rows the line was given when it was drawn.
func (s *StatusLine) lines() int { return strings.Count(s.drawn, "\n") + 1 }

// mostTyped is how many rows of what is being typed are shown: the last ones.
const mostTyped = 10

// line is the text and the elapsed time, cut to the terminal's width, with the rows of what is being
// typed below it. The last column stays empty: in it some terminals wrap.
func (s *StatusLine) line(now time.Time) (line string) {
	elapsed := elapsed(now.Sub(s.start))
	columns := s.width() - 1
	if room := columns - len(elapsed) - 1; room < 1 {
		line = truncate(s.text, max(columns, 0))
	} else {
		line = truncate(s.text, room) + " " + s.styles.Dim(elapsed)
	}
	const mark = "❯ "
	if s.typed == "" || columns <= 2*len(mark) {
		return line
	}
	c := runewidth.Condition{StrictEmojiNeutral: true}
	rows := strings.Split(c.Wrap(mark+strings.ReplaceAll(s.typed, "\t", " "), columns), "\n")
	if n := len(rows) - mostTyped; n > 0 {
		rows = rows[n:]
		rows[0] = truncate("…"+rows[0], columns)
	}
	return line + "\n" + strings.Join(rows, "\n")
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

// TextWidth is the width of text on a terminal; styles in it take none. It does not ask the locale, as
// runewidth's own functions do.
func TextWidth(text string) int {
	c := runewidth.Condition{StrictEmojiNeutral: true}
	before, rest, styled := strings.Cut(text, "\x1b[")
	if styled {
		_, rest, _ = strings.Cut(rest, "m")
		return c.StringWidth(before) + TextWidth(rest)
	}
	return c.StringWidth(text)
}

// TextRows is how many rows of a terminal of that many columns a line takes that is drawn as text. A wide
// character for which there is no room goes to the next row. A terminal of no columns does not say how many
// it has.
func TextRows(text string, columns int) int {
	if columns < 1 || TextWidth(text) <= columns {
		return 1
	}
	rows, used := 1, 0
	c := runewidth.Condition{StrictEmojiNeutral: true}
	for before, rest, styled := strings.Cut(text, "\x1b["); ; before, rest, styled = strings.Cut(rest, "\x1b[") {
		for _, r := range before {
			w := c.RuneWidth(r)
			if used += w; used > columns {
				rows, used = rows+1, w
			}
		}
		if !styled {
			return rows
		}
		_, rest, _ = strings.Cut(rest, "m")
	}
}

// truncate cuts text to a display width; it does not ask the locale either.
func truncate(text string, columns int) string {
	if columns == 0 {
		return ""
	}
	c := runewidth.Condition{StrictEmojiNeutral: true}
	return c.Truncate(text, columns, "…")
}
