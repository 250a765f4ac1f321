package screen

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode"
)

const drawEvery = 50 * time.Millisecond

// liveText is text above a [StatusLine] that may still change. It is drawn in place, at most twenty times a second,
// and only from the first changed row on. Rows that have left the screen are not drawn again. All methods are safe
// for concurrent use.
type liveText struct {
	s      *StatusLine
	out    io.Writer
	height func() int
	draw   drawFunc

	// The lock of the StatusLine guards the fields below.
	rows    []string // the rows on the screen
	columns int      // the width of the terminal at the last drawing
	last    time.Time
	stale   bool // The function draw has new rows.
	stop    func() bool
	err     error
}

// drawFunc is the callback of [StatusLine.showLive].
type drawFunc = func(columns, room, gone int) (final string, rows []string)

// showLive returns a liveText above the status line. The parameter "out" is the terminal of the status line. The caller
// must first finish an earlier liveText.
//
// The function draw returns the text that became final since its last call, and the rows that may still change.
// columns is the largest width of a row, and room is the largest number of rows. gone is the number of rows of the
// last result that have left the screen since then. These rows must not change. If the final text ends within a line,
// draw returns no rows.
func (s *StatusLine) showLive(out io.Writer, height func() int, draw drawFunc) *liveText {
	l := &liveText{s: s, out: out, height: height, draw: draw}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.live = l
	return l
}

// changeContent calls f, which changes the content, under the lock of draw. It returns the first error of the
// terminal, even if the error happened earlier.
func (l *liveText) changeContent(f func()) error {
	l.s.mu.Lock()
	defer l.s.mu.Unlock()
	f()
	l.stale = true
	l.paintWhenDue()
	return l.err
}

// finishContent calls f like changeContent and draws at once. After finishContent, no row may change.
func (l *liveText) finishContent(f func()) error {
	l.s.mu.Lock()
	defer l.s.mu.Unlock()
	l.s.atRest()
	f()
	l.stale = true
	if !l.s.aside {
		l.paintRows(l.s.clock.Now())
	}
	return l.err
}

// paintWhenDue draws the changes now, or as soon as the limit of drawings allows it.
func (l *liveText) paintWhenDue() {
	if !l.stale || l.s.aside || l.stop != nil {
		return
	}
	now := l.s.clock.Now()
	wait := l.s.unsettled()
	if since := drawEvery - now.Sub(l.last); since <= drawEvery {
		wait = max(wait, since)
	}
	if wait > 0 {
		l.stop = l.s.clock.AfterFunc(wait, l.onTimer)
		return
	}
	l.paintRows(now)
}

func (l *liveText) onTimer() {
	l.s.mu.Lock()
	defer l.s.mu.Unlock()
	l.stop = nil
	l.paintWhenDue()
}

func (l *liveText) cancelTimer() {
	if l.stop != nil {
		l.stop()
		l.stop = nil
	}
}

// forgetRows notes that the rows are no longer on the screen.
func (l *liveText) forgetRows() {
	l.stale = l.stale || len(l.rows) > 0
	l.rows = nil
}

// noteWidth asks for a new drawing if the width of the terminal has changed.
func (l *liveText) noteWidth() {
	l.stale = l.stale || len(l.rows) > 0 && l.s.width() != l.columns
}

// rowsOn returns the number of rows that the given rows need on a terminal. The terminal may break a row.
func rowsOn(rows []string, columns int) (n int) {
	for _, r := range rows {
		n += TextRows(r, columns)
	}
	return n
}

// goneRows counts the rows that have left a screen of the given size. It assumes that the status line is on the
// screen.
func (l *liveText) goneRows(columns, height int) (n int) {
	over := rowsOn(l.rows, columns) + l.s.drawnHeight(columns) - height
	for ; n < len(l.rows) && over > 0; n++ {
		over -= TextRows(l.rows[n], columns)
	}
	return n
}

// paintRows draws the rows that have changed, and the status line below them.
func (l *liveText) paintRows(now time.Time) {
	s := l.s
	l.cancelTimer()
	columns, height := s.width(), l.height()
	if columns < 1 {
		columns = 80
	}
	if height < 2 {
		height = 24
	}
	gone := l.goneRows(columns, height)
	final, rows := l.draw(columns, max(height-s.drawnLines(), 1), gone)
	l.rows, l.stale, l.last = l.rows[gone:], false, now
	if s.closed {
		rows = nil
	}
	lines := strings.Split(final, "\n")
	lines, open := lines[:len(lines)-1], lines[len(lines)-1] // The last line is not complete.
	keep := 0
	for keep < len(l.rows) && columns == l.columns && l.rows[keep] == rowAt(lines, rows, keep) {
		keep++
	}
	if final == "" && keep == len(l.rows) && keep == len(rows) {
		return
	}
	p := painter{columns: columns}
	l.startPainting(&p, keep, final != "")
	for _, line := range lines[min(keep, len(lines)):] {
		p.drawRow(line)
	}
	if s.midline = open != "" || s.midline && final == ""; s.midline {
		p.clearBelow()
		p.b.WriteString(open)
		rows = nil
	}
	p.drawDrafts(rows[min(max(keep-len(lines), 0), len(rows)):])
	l.rows, l.columns = rows, columns
	s.drawBelow(&p, now)
	if _, err := io.WriteString(l.out, p.b.String()); err != nil && l.err == nil {
		l.err = err
	}
}

// painter draws rows over older rows. It does not clear a row that only becomes longer, so that the row does not
// flicker.
type painter struct {
	b       strings.Builder
	columns int
	old     []string // the older rows, from the row of the cursor on
	clean   bool     // There is no older row below the cursor.
}

func (p *painter) clearBelow() {
	if !p.clean {
		p.b.WriteString(ClearBelow)
		p.clean = true
	}
}

// drawRow draws a row and moves to the next row. If the terminal may break the row, the older rows are cleared
// first.
func (p *painter) drawRow(text string) {
	if TextWidth(text) >= p.columns || strings.Contains(text, "\t") {
		p.clearBelow()
	}
	p.clearUncovered(text)
	p.b.WriteString(text + "\n")
}

// clearUncovered clears the older row at the cursor, unless text begins with the older row.
func (p *painter) clearUncovered(text string) {
	if p.clean || len(p.old) == 0 {
		return
	}
	if !strings.HasPrefix(text, p.old[0]) {
		p.b.WriteString("\x1b[K")
	}
	p.old = p.old[1:]
}

// drawDrafts draws rows that may still change. Terminals disagree about the width of some characters, and one broken
// row would move all others. A row with such characters is drawn without wrapping. Other rows may wrap. A terminal
// that becomes narrower breaks them like the older rows, and goneRows counts both in the same way.
func (p *painter) drawDrafts(rows []string) {
	for _, text := range rows {
		p.clearUncovered(text)
		if hasSureWidth(text) {
			p.b.WriteString(text + "\n")
		} else {
			p.b.WriteString("\x1b[?7l" + text + "\n\x1b[?7h")
		}
	}
}

// hasSureWidth reports whether all terminals agree about the width of a row.
func hasSureWidth(row string) bool {
	for _, r := range row {
		wide := unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul) ||
			r >= 0x3000 && r <= 0x3030 || r >= 0xff01 && r <= 0xff60
		if r >= 0x7f && !wide {
			return false
		}
	}
	return true
}

// rowAt returns row i of two lists that follow each other. After the last row it returns a line break, which is
// different from every row.
func rowAt(first, second []string, i int) string {
	switch {
	case i < len(first):
		return first[i]
	case i-len(first) < len(second):
		return second[i-len(first)]
	}
	return "\n"
}

// startPainting moves the cursor to the first changed row. The parameter "keep" is the number of rows that stay. If the
// cursor is within an incomplete line and "more" is true, the text continues there and the cursor does not move.
func (l *liveText) startPainting(p *painter, keep int, more bool) {
	if l.s.midline {
		p.clean = true
		if more {
			return
		}
		p.b.WriteString("\n")
		l.s.midline = false
	}
	p.b.WriteString("\r")
	if up := rowsOn(l.rows[keep:], p.columns) + l.s.drawnHeight(p.columns) - 1; up > 0 {
		fmt.Fprintf(&p.b, "\x1b[%dA", up)
	}
	p.old = append(slices.Clone(l.rows[keep:]), strings.Split(l.s.drawn, "\n")...)
	if p.columns != l.columns && len(l.rows) > 0 || l.s.drawnHeight(p.columns) > l.s.drawnLines() {
		p.clearBelow()
	}
}

// drawBelow draws the status line below a liveText. It draws nothing if the text ended within a line.
func (s *StatusLine) drawBelow(p *painter, now time.Time) {
	s.drawn = ""
	if s.midline {
		return
	}
	p.clearBelow()
	if s.text == "" || s.closed {
		return
	}
	s.drawn = s.lineText(now)
	s.last = now
	p.b.WriteString(s.drawn)
	s.setTimer(time.Second - now.Sub(s.start)%time.Second)
}
