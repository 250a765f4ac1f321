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
// there. tmux copies a screen into its history when one sequence clears all of it. Therefore ClearBelow clears the
// first column separately.
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
// [NewStatusLine] or Restart. The typed text stands below it.
//
// The line is drawn at most ten times a second, and only when the text or the second has changed. No timer runs while
// it shows nothing. All other output to the terminal must go through Print or Through. While the size of the terminal
// changes, nothing is drawn and Print waits, see [settling]. The methods are safe for concurrent use. They ignore
// errors of the terminal.
type StatusLine struct {
	w      io.Writer
	width  func() int
	styles Styles
	clock  Clock

	mu      sync.Mutex // guards the fields below and the writing to the terminal
	start   time.Time
	text    string
	typed   string // the typed text below the line
	drawn   string // the rows on the screen; "" means that there is no line
	last    time.Time
	stop    func() bool // stops the timer of the next drawing; nil means that there is no timer
	midline bool        // the last output ended without a newline: there is no room for the line
	aside   bool        // another program has the terminal
	closed  bool
	live    *liveText // changing text above the line; nil means that there is none
	settle  settling  // tells when a resized terminal may be drawn on
}

// NewStatusLine returns a status line on w that is empty. With a nil width it always stays empty, see [StatusWidth].
func NewStatusLine(w io.Writer, width func() int, styles Styles, clock Clock) *StatusLine {
	return &StatusLine{w: w, width: width, styles: styles, clock: clock, start: clock.Now()}
}

// Set changes the text and makes its control characters visible. "" hides the line.
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

// SetTyped changes the typed text, which stands below the line in as many rows as it needs. Its control characters
// become visible.
func (s *StatusLine) SetTyped(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if text = Sanitize(text); text == s.typed || s.closed || s.width == nil {
		return
	}
	s.typed = text
	s.redrawLine()
}

// Restart begins to count the duration now.
func (s *StatusLine) Restart() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.start = s.clock.Now()
}

// Clear removes the line until the next Set.
func (s *StatusLine) Clear() { s.Set("") }

// Print removes the line, calls f, and draws the line again. The cursor stands at the beginning of a row when f begins.
// f must not use the StatusLine.
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

// Through returns a writer for a stream that shares the terminal with the line, such as standard output. The line is
// hidden while the stream is within a line.
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

// Aside removes the line while f runs. During f, another program has the terminal, or the process is stopped.
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
	s.last = time.Time{} // draw at once
	s.redrawLine()
}

// Redraw draws the line again at once. Call it after another program had the terminal.
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

// Close removes the line for good. Later output passes through.
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

// tail remembers the last written byte.
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

// redrawAfter draws the line again below the output of t.
func (s *StatusLine) redrawAfter(t *tail) {
	if t.last != 0 {
		s.midline = t.last != '\n'
	}
	s.redrawLine()
}

// redrawLine draws now or as soon as the limits allow, and sets the timer for the next second.
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
			rest = "\x1b[J" // clear only after the line
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

// home returns a sequence that moves to the beginning of the line, or above it by the given rows. rest clears the
// screen from there on. A narrower terminal has broken the line.
func (s *StatusLine) home(above int) (home, rest string) {
	if up := above + s.drawnHeight(s.width()) - 1; up > 0 {
		return fmt.Sprintf("\r\x1b[%dA", up), ClearBelow
	}
	return "\r", "\x1b[K"
}

func (s *StatusLine) writeText(text string) {
	_, _ = io.WriteString(s.w, text) // The reader of the keys notices a terminal that is gone.
}

// drawnHeight returns the rows of the line and the typed text on a terminal of the given width. Without a line it
// returns 1, the row of the cursor.
func (s *StatusLine) drawnHeight(columns int) (n int) {
	for _, row := range strings.Split(s.drawn, "\n") {
		n += TextRows(row, columns)
	}
	return n
}

// drawnLines returns the rows of the line when it was drawn.
func (s *StatusLine) drawnLines() int { return strings.Count(s.drawn, "\n") + 1 }

// mostTyped limits the shown rows of the typed text. The last rows are shown.
const mostTyped = 10

// lineText returns the text, the duration and the typed text, cut to the width of the terminal. The last column stays
// empty, because some terminals wrap there.
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

// TextWidth returns the columns of text on a terminal. Styles take no columns. Unlike the functions of runewidth, it
// ignores the locale.
func TextWidth(text string) int {
	c := runewidth.Condition{StrictEmojiNeutral: true}
	before, rest, styled := strings.Cut(text, "\x1b[")
	if styled {
		_, rest, _ = strings.Cut(rest, "m")
		return c.StringWidth(before) + TextWidth(rest)
	}
	return c.StringWidth(text)
}

// TextRows returns the rows of one line of text on a terminal of the given columns. A wide character without room goes
// to the next row. 0 columns mean that the width is unknown.
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

// truncate cuts text to a width. It ignores the locale.
func truncate(text string, columns int) string {
	if columns == 0 {
		return ""
	}
	c := runewidth.Condition{StrictEmojiNeutral: true}
	return c.Truncate(text, columns, "…")
}
