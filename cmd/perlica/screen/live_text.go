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

// LiveText is text above a [StatusLine] line that may still change. It is drawn again in place, at most
// twenty times a second and from the first row that differs; what has left the screen is never
// drawn again. Its methods are safe for concurrent use.
type LiveText struct {
	s      *StatusLine
	out    io.Writer
	height func() int
	draw   drawFunc

	// The Status's lock guards what follows.
	rows    []string // on the screen, above the line
	columns int      // of the terminal, when they were drawn
	last    time.Time
	stale   bool // draw has something else to show
	stop    func() bool
	err     error
}

// drawFunc is what [StatusLine.Live] takes.
type drawFunc = func(columns, room, gone int) (final string, rows []string)

// Live returns text that goes to out, which is the terminal of the line. It takes the place of an
// earlier one, which must have been finished. draw returns the text that is final since it was called
// last, and the rows of that which may change: each fits in one row of a terminal with that many
// columns, and there are at most room of them. gone is how many of the rows that it returned last have
// left the screen since: they stand above as they were. Final text that ends within a line has no rows
// below it.
func (s *StatusLine) Live(out io.Writer, height func() int, draw drawFunc) *LiveText {
	l := &LiveText{s: s, out: out, height: height, draw: draw}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.live = l
	return l
}

// Change calls f, which changes what there is to draw, under the lock that draw is called under.
// The error is the first that the terminal gave, now or before.
func (l *LiveText) Change(f func()) error {
	l.s.mu.Lock()
	defer l.s.mu.Unlock()
	f()
	l.stale = true
	l.due()
	return l.err
}

// Finish is Change where nothing is left that may change: it is drawn at once.
func (l *LiveText) Finish(f func()) error {
	l.s.mu.Lock()
	defer l.s.mu.Unlock()
	l.s.atRest()
	f()
	l.stale = true
	if !l.s.aside {
		l.paint(l.s.clock.Now())
	}
	return l.err
}

// due draws what has changed, now or as soon as that may be.
func (l *LiveText) due() {
	if !l.stale || l.s.aside || l.stop != nil {
		return
	}
	now := l.s.clock.Now()
	wait := l.s.unsettled()
	if since := drawEvery - now.Sub(l.last); since <= drawEvery {
		wait = max(wait, since)
	}
	if wait > 0 {
		l.stop = l.s.clock.AfterFunc(wait, l.tick)
		return
	}
	l.paint(now)
}

func (l *LiveText) tick() {
	l.s.mu.Lock()
	defer l.s.mu.Unlock()
	l.stop = nil
	l.due()
}

func (l *LiveText) cancel() {
	if l.stop != nil {
		l.stop()
		l.stop = nil
	}
}

// hidden says that the rows are not on the screen any more.
func (l *LiveText) hidden() {
	l.stale = l.stale || len(l.rows) > 0
	l.rows = nil
}

// resized has the rows drawn again if the terminal has another width than when they were drawn.
func (l *LiveText) resized() {
	l.stale = l.stale || len(l.rows) > 0 && l.s.width() != l.columns
}

// height of rows on a terminal that breaks those which are too long for it by now.
func rowsOn(rows []string, columns int) (n int) {
	for _, r := range rows {
		n += TextRows(r, columns)
	}
	return n
}

// gone counts the rows that have left a screen of that size; the line below them has not.
func (l *LiveText) gone(columns, height int) (n int) {
	over := rowsOn(l.rows, columns) + l.s.height(columns) - height
	for ; n < len(l.rows) && over > 0; n++ {
		over -= TextRows(l.rows[n], columns)
	}
	return n
}

// paint draws all that is different from what is on the screen, and the line below it.
func (l *LiveText) paint(now time.Time) {
	s := l.s
	l.cancel()
	columns, height := s.width(), l.height()
	if columns < 1 {
		columns = 80
	}
	if height < 2 {
		height = 24
	}
	gone := l.gone(columns, height)
	final, rows := l.draw(columns, max(height-s.lines(), 1), gone)
	l.rows, l.stale, l.last = l.rows[gone:], false, now
	if s.closed {
		rows = nil
	}
	lines := strings.Split(final, "\n")
	lines, open := lines[:len(lines)-1], lines[len(lines)-1] // open goes on
	keep := 0
	for keep < len(l.rows) && columns == l.columns && l.rows[keep] == at(lines, rows, keep) {
		keep++
	}
	if final == "" && keep == len(l.rows) && keep == len(rows) {
		return
	}
	p := painter{columns: columns}
	l.start(&p, keep, final != "")
	for _, line := range lines[min(keep, len(lines)):] {
		p.row(line)
	}
	if s.midline = open != "" || s.midline && final == ""; s.midline {
		p.clear()
		p.b.WriteString(open)
		rows = nil
	}
	p.draft(rows[min(max(keep-len(lines), 0), len(rows)):])
	l.rows, l.columns = rows, columns
	s.below(&p, now)
	if _, err := io.WriteString(l.out, p.b.String()); err != nil && l.err == nil {
		l.err = err
	}
}

// painter draws rows over others. Those that only grow are not cleared before, so that they do not
// flicker.
type painter struct {
	b       strings.Builder
	columns int
	old     []string // what stands in the rows from here on
	clean   bool     // nothing does
}

func (p *painter) clear() {
	if !p.clean {
		p.b.WriteString(ClearBelow)
		p.clean = true
	}
}

// row draws a row, and goes to the next. One that the terminal breaks must not cover others.
func (p *painter) row(text string) {
	if TextWidth(text) >= p.columns || strings.Contains(text, "\t") {
		p.clear()
	}
	p.over(text)
	p.b.WriteString(text + "\n")
}

// over clears the row if something stands there that a text would not cover.
func (p *painter) over(text string) {
	if p.clean || len(p.old) == 0 {
		return
	}
	if !strings.HasPrefix(text, p.old[0]) {
		p.b.WriteString("\x1b[K")
	}
	p.old = p.old[1:]
}

// draft draws rows that may change. One that is drawn while the terminal is made narrower is broken as those that stood
// there before: they are counted alike. But from breaking what it may take for wider than we do it is kept: that would
// shift all others.
func (p *painter) draft(rows []string) {
	for _, text := range rows {
		p.over(text)
		if sure(text) {
			p.b.WriteString(text + "\n")
		} else {
			p.b.WriteString("\x1b[?7l" + text + "\n\x1b[?7h")
		}
	}
}

// sure reports whether all terminals agree how wide a row is.
func sure(row string) bool {
	for _, r := range row {
		if r >= 0x7f && !unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul) && (r < 0x3000 || r > 0x3030) && (r < 0xff01 || r > 0xff60) {
			return false
		}
	}
	return true
}

// at is a row of two lists that follow each other; "\n", which is none, is behind them.
func at(first, second []string, i int) string {
	switch {
	case i < len(first):
		return first[i]
	case i-len(first) < len(second):
		return second[i-len(first)]
	}
	return "\n"
}

// start goes to the first row that is different. In the middle of a line it goes on there, if that
// is what comes next.
func (l *LiveText) start(p *painter, keep int, more bool) {
	if l.s.midline {
		p.clean = true
		if more {
			return
		}
		p.b.WriteString("\n")
		l.s.midline = false
	}
	p.b.WriteString("\r")
	if up := rowsOn(l.rows[keep:], p.columns) + l.s.height(p.columns) - 1; up > 0 {
		fmt.Fprintf(&p.b, "\x1b[%dA", up)
	}
	p.old = append(slices.Clone(l.rows[keep:]), strings.Split(l.s.drawn, "\n")...)
	if p.columns != l.columns && len(l.rows) > 0 || l.s.height(p.columns) > l.s.lines() {
		p.clear()
	}
}

// below draws the line behind text that a Live has drawn, unless that ended within a line.
func (s *StatusLine) below(p *painter, now time.Time) {
	s.drawn = ""
	if s.midline {
		return
	}
	p.clear()
	if s.text == "" || s.closed {
		return
	}
	s.drawn = s.line(now)
	s.last = now
	p.b.WriteString(s.drawn)
	s.arm(time.Second - now.Sub(s.start)%time.Second)
}
