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

// Clock is the clock of a [StatusLine].
type Clock struct {
	Now       func() time.Time
	AfterFunc func(d time.Duration, f func()) (stop func() bool)
	Sleep     func(d time.Duration)
}

// ClearBelow clears the row of the cursor and all rows below it. The cursor must stand in the first column and stays
// there. If one sequence clears a whole screen, tmux copies the screen into its history. ClearBelow avoids this,
// because it clears the first column separately.
const ClearBelow = "\x1b[K\x1b[C\x1b[J\r"

// SystemClock returns the real clock.
func SystemClock() Clock {
	return Clock{
		Now:       time.Now,
		AfterFunc: func(d time.Duration, f func()) func() bool { return time.AfterFunc(d, f).Stop },
		Sleep:     time.Sleep,
	}
}

// StatusLine is one line at the bottom of a terminal. It shows the current activity and its duration since
// [NewStatusLine] or Restart. The text that the person types stands below it.
//
// The line is drawn at most ten times a second, and only when the text or the second has changed. No timer runs
// while it shows nothing. All other output to the terminal must go through Print or Through. While the size of the
// terminal changes, nothing is drawn and Print waits, see [settling]. The methods are safe for concurrent use. They
// ignore errors of the terminal.
type StatusLine struct {
	w      io.Writer
	width  func() int
	styles Styles
	clock  Clock

	mu      sync.Mutex // guards the fields below and the writing to the terminal
	start   time.Time
	text    string
	typed   string // the text that the person types, below the line
	drawn   string // the rows of the line on the screen; "" without a line
	last    time.Time
	stop    func() bool // stops the timer of the next drawing; nil without a timer
	midline bool        // The last output ended without a newline, so there is no room for the line.
	aside   bool        // Another program uses the terminal.
	closed  bool
	live    *liveText // text above the line that may change; nil without such text
	settle  settling  // tells how long a resized terminal must not be drawn on
}

// NewStatusLine returns an empty status line on w. If width is nil, the line always stays empty, see [StatusWidth].
func NewStatusLine(w io.Writer, width func() int, styles Styles, clock Clock) *StatusLine {
	return &StatusLine{w: w, width: width, styles: styles, clock: clock, start: clock.Now()}
}

// Set changes the text of the line. It makes control characters visible. The text "" hides the line.
func (s *StatusLine) Set(text string) {
	text = strings.Join(strings.Fields(Sanitize(text)), " ")
	s.mu.Lock()
	defer s.mu.Unlock()
	if text == s.text || s.closed || s.width == nil {
		return
	}
	s.text = text
	if text == "" {
		s.cancelTimer()
		s.atRest()
		s.eraseLine()
		return
	}
	s.redrawLine()
}

// SetTyped changes the typed text. This text stands below the line in as many rows as it needs. SetTyped makes
// control characters visible.
func (s *StatusLine) SetTyped(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if text = Sanitize(text); text == s.typed || s.closed || s.width == nil {
		return
	}
	s.typed = text
	s.redrawLine()
}

// Restart sets the shown duration to 0.
func (s *StatusLine) Restart() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.start = s.clock.Now()
}

// Clear removes the line until the next Set.
func (s *StatusLine) Clear() { s.Set("") }

// Print removes the line, calls f, and draws the line again. When f begins, the cursor stands at the beginning of a
// row. f must not use the StatusLine.
func (s *StatusLine) Print(f func(w io.Writer)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.atRest()
	s.eraseLine()
	if s.midline {
		s.writeText("\n")
		s.midline = false
	}
	t := &tail{w: s.w}
	defer s.redrawAfter(t)
	f(t)
}

// Through returns a writer for a stream on the same terminal, such as standard output. While the last text of the
// stream does not end with a newline, the line is hidden.
func (s *StatusLine) Through(out io.Writer) io.Writer { return streamWriter{s, out} }

type streamWriter struct {
	s   *StatusLine
	out io.Writer
}

func (t streamWriter) Write(p []byte) (int, error) {
	t.s.mu.Lock()
	defer t.s.mu.Unlock()
	t.s.atRest()
	t.s.eraseLine()
	tl := &tail{w: t.out}
	defer t.s.redrawAfter(tl)
	return tl.Write(p)
}

// Aside removes the line, calls f and draws the line again. f lets another program use the terminal, or stops the
// process.
func (s *StatusLine) Aside(f func()) {
	s.mu.Lock()
	s.atRest()
	s.aside = true
	s.cancelTimer()
	s.eraseLine()
	s.mu.Unlock()
	f()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.aside = false
	s.last = time.Time{} // The zero time makes the next drawing happen at once.
	s.redrawLine()
}

// Redraw draws the line again at once. A caller needs it after another program has used the terminal.
func (s *StatusLine) Redraw() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drawn = ""
	if s.live != nil {
		s.live.forgetRows()
	}
	s.last = time.Time{}
	s.redrawLine()
}

// Close removes the line for good. Later output is written without a line.
func (s *StatusLine) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.atRest()
	s.closed = true
	s.cancelTimer()
	s.eraseLine()
	if s.live != nil {
		s.live.cancelTimer()
	}
	return nil
}

// tail is a writer that remembers the last byte.
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

// redrawAfter draws the line again. t is the writer of the output above the line.
func (s *StatusLine) redrawAfter(t *tail) {
	if t.last != 0 {
		s.midline = t.last != '\n'
	}
	s.redrawLine()
}

// redrawLine draws the line now, or as soon as the limit of drawings allows it. It sets the timer for the next
// second.
func (s *StatusLine) redrawLine() {
	if s.live != nil && !s.closed {
		s.live.noteWidth()
		s.live.paintWhenDue()
	}
	if s.text == "" || s.closed || s.midline || s.aside {
		s.cancelTimer()
		return
	}
	now := s.clock.Now()
	wait := s.unsettled()
	if since := redrawEvery - now.Sub(s.last); since <= redrawEvery {
		wait = max(wait, since)
	}
	if wait > 0 {
		s.setTimer(wait)
		return
	}
	if line := s.lineText(now); line != s.drawn {
		home, rest := s.home(0)
		if rest == ClearBelow || strings.Contains(line, "\n") {
			rest = "\x1b[J" // clears only the part of the screen after the line
		}
		s.writeText(home + strings.ReplaceAll(line, "\n", "\x1b[K\n") + rest)
		s.drawn, s.last = line, now
	}
	s.setTimer(time.Second - now.Sub(s.start)%time.Second)
}

func (s *StatusLine) setTimer(wait time.Duration) {
	s.cancelTimer()
	s.stop = s.clock.AfterFunc(wait, s.onTimer)
}

func (s *StatusLine) cancelTimer() {
	if s.stop != nil {
		s.stop()
		s.stop = nil
	}
}

func (s *StatusLine) onTimer() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.redrawLine()
}

func (s *StatusLine) eraseLine() {
	above := 0
	if s.live != nil {
		above = rowsOn(s.live.rows, s.width())
		s.live.forgetRows()
	}
	if s.drawn != "" || above > 0 {
		home, rest := s.home(above)
		s.writeText(home + rest)
		s.drawn = ""
	}
}

// home returns a sequence that moves to the beginning of the line, and from there up by the number of rows in the
// parameter "above". The result "rest" is the sequence that clears the screen from there on. A terminal that became
// narrower has broken the line, so home uses the present number of its rows.
func (s *StatusLine) home(above int) (home, rest string) {
	if up := above + s.drawnHeight(s.width()) - 1; up > 0 {
		return fmt.Sprintf("\r\x1b[%dA", up), ClearBelow
	}
	return "\r", "\x1b[K"
}

func (s *StatusLine) writeText(text string) {
	_, _ = io.WriteString(s.w, text) // If the terminal is closed, nobody can see the line.
}

// drawnHeight returns the number of rows that the line and the typed text need on a terminal of the given width.
// Without a line it returns 1, because the cursor has a row.
func (s *StatusLine) drawnHeight(columns int) (n int) {
	for _, row := range strings.Split(s.drawn, "\n") {
		n += TextRows(row, columns)
	}
	return n
}

// drawnLines returns the number of rows that the line had when it was drawn.
func (s *StatusLine) drawnLines() int { return strings.Count(s.drawn, "\n") + 1 }

// mostTyped is the largest number of rows for the typed text. The last rows are shown.
const mostTyped = 10

// lineText returns the rows of the line: its text, the duration and the typed text, cut to the width of the
// terminal. The last column stays empty, because some terminals start a new row after it.
func (s *StatusLine) lineText(now time.Time) (line string) {
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

// TextWidth returns the number of columns of text on a terminal. Styles have no width. In contrast to the functions
// of runewidth, TextWidth ignores the locale.
func TextWidth(text string) int {
	c := runewidth.Condition{StrictEmojiNeutral: true}
	before, rest, styled := strings.Cut(text, "\x1b[")
	if styled {
		_, rest, _ = strings.Cut(rest, "m")
		return c.StringWidth(before) + TextWidth(rest)
	}
	return c.StringWidth(text)
}

// TextRows returns the number of rows of one line of text on a terminal with the given columns. A wide character
// that does not fit goes to the next row. If columns is 0, the width is unknown, and the result is 1.
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

// truncate cuts text to a number of columns. It ignores the locale.
func truncate(text string, columns int) string {
	if columns == 0 {
		return ""
	}
	c := runewidth.Condition{StrictEmojiNeutral: true}
	return c.Truncate(text, columns, "…")
}
