package screen

import (
	"io"
	"strings"
)

// Drawing is a block of rows above a [StatusLine] that changes in place, such as a graph. Its methods are safe for
// concurrent use.
type Drawing struct {
	live *liveText
	rows func(columns, room int) []string
	left bool
}

// NewDrawing returns a Drawing. w is the terminal of the status line, and height returns its number of rows. The
// function rows returns the rows of the drawing: each is narrower than the columns, and there are at most "room" of
// them. It is called under a lock and must not use the StatusLine.
func NewDrawing(w io.Writer, status *StatusLine, height func() int, rows func(columns, room int) []string) *Drawing {
	d := &Drawing{rows: rows}
	d.live = status.showLive(w, height, d.draw)
	return d
}

// draw is the function draw of [StatusLine.showLive]. Rows that have left the screen stay in the terminal's history.
func (d *Drawing) draw(columns, room, _ int) (final string, rows []string) {
	if d.left {
		return "", nil
	}
	return "", d.rows(columns, room)
}

// Change calls f, which changes the content of the rows. It returns the first error of the terminal.
func (d *Drawing) Change(f func()) error { return d.live.changeContent(f) }

// Leave writes the rows in the parameter "last" in place of the drawing. They stay on the terminal, and later calls of
// Change draw nothing.
func (d *Drawing) Leave(last func(columns int) []string) error {
	d.live.s.mu.Lock()
	defer d.live.s.mu.Unlock()
	d.left = true
	d.live.s.atRest()
	d.live.draw = func(columns, _, _ int) (string, []string) {
		d.live.draw = d.draw
		return strings.Join(append(last(columns), ""), "\n"), nil
	}
	d.live.paintRows(d.live.s.clock.Now())
	return d.live.err
}
