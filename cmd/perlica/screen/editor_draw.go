package screen

import (
	"io"
	"strconv"
	"strings"

	"github.com/mattn/go-runewidth"
)

// canvas is the place on the terminal where the line is shown.
type canvas struct {
	w    io.Writer
	size func() (w, h int)
	dumb bool

	rows   []string // that are shown
	row    int      // the one with the cursor
	column int      // and where the cursor is in it
	shown  string   // on a dumb terminal: what stands there
}

// fresh forgets what is shown: the cursor stands at the beginning of an empty line.
func (c *canvas) fresh() { c.rows, c.row, c.column, c.shown = nil, 0, 0, "" }

func (c *canvas) clear() {
	if !c.dumb {
		c.write("\x1b[H\x1b[2J")
		c.fresh()
	}
}

// leave goes below what is shown.
func (c *canvas) leave(end string) {
	if n := len(c.rows) - 1 - c.row; n > 0 {
		end = "\x1b[" + strconv.Itoa(n) + "B" + end
	}
	c.write(end)
	c.fresh()
}

// above writes lines in the place of what is shown, which is to be drawn below them.
func (c *canvas) above(lines string) {
	if c.dumb {
		c.leave("\n" + lines)
		return
	}
	w, _ := c.size()
	c.write(c.home(w) + ClearBelow + lines)
	c.fresh()
}

// home goes to the beginning of what is shown, on a terminal of w columns.
func (c *canvas) home(w int) string {
	up := 0
	if c.row < len(c.rows) { // a narrower terminal has broken the rows, that of the cursor perhaps before it
		for _, row := range c.rows[:c.row] {
			up += TextRows(row, w)
		}
		if row := c.rows[c.row]; TextRows(row, w) > 1 {
			up += TextRows(throughColumn(row, c.column), w) - 1
		}
	}
	if up == 0 {
		return "\r"
	}
	return "\r\x1b[" + strconv.Itoa(up) + "A"
}

func (c *canvas) write(s string) { _, _ = io.WriteString(c.w, s) } // shown or not, it was typed

// hang is how far the lines of a text but the first are indented.
const hang = 2

// layout breaks prompt and text into rows and says where the cursor is.
func layout(prompt string, text []rune, pos, columns int) (rows []string, row, column int) {
	line, used := prompt, TextWidth(prompt)
	next := func(indent int) {
		rows = append(rows, line)
		line, used = strings.Repeat(" ", indent), indent
	}
	c := runewidth.Condition{StrictEmojiNeutral: true}
	cluster, clusterW := "", 0 // what was drawn of the character so far
	for i, r := range text {
		if i == pos {
			row, column = len(rows), used
		}
		switch {
		case r == '\n':
			next(hang)
			cluster, clusterW = "", 0
			continue
		case r == '\t':
			r = ' '
		case r < ' ' || r == 0x7f:
			r = '·'
		}
		// Characters may join, such as flags and families: then the whole takes less.
		w := c.StringWidth(cluster+string(r)) - clusterW
		if w == c.RuneWidth(r) && w > 0 {
			cluster, clusterW = "", 0
		} else {
			w = max(w, 0)
		}
		if used+w > columns {
			next(0)
			cluster, clusterW = "", 0
			w = c.RuneWidth(r)
		}
		cluster += string(r)
		clusterW += w
		line += string(r)
		used += w
	}
	if pos >= len(text) {
		row, column = len(rows), used
	}
	rows = append(rows, line)
	if column >= columns && row == len(rows)-1 && pos >= len(text) {
		rows, row, column = append(rows, ""), row+1, 0
	}
	return rows, row, column
}

// draw shows prompt and text in place of what was shown before.
func (c *canvas) draw(prompt string, text []rune, pos int) {
	w, h := c.size()
	if w < 4 {
		w = 80
	}
	if c.dumb {
		c.drawDumb(prompt, text, pos, w)
		return
	}
	rows, row, column := layout(prompt, text, pos, w-1)
	if h > 1 && len(rows) > h-1 { // as much as fits, around the cursor
		from := min(max(row-(h-1)/2, 0), len(rows)-(h-1))
		rows, row = rows[from:from+h-1], row-from
	}
	var b strings.Builder
	b.WriteString(c.home(w))
	c.rows = c.rows[:0]
	for i, r := range rows {
		if i > 0 {
			b.WriteString("\n")
		}
		b.WriteString(r + "\x1b[K")
		c.rows = append(c.rows, r)
	}
	b.WriteString("\x1b[J\r")
	if n := len(rows) - 1 - row; n > 0 {
		b.WriteString("\x1b[" + strconv.Itoa(n) + "A")
	}
	if column > 0 {
		b.WriteString("\x1b[" + strconv.Itoa(column) + "C")
	}
	c.row, c.column = row, column
	c.write(b.String())
}

// drawDumb shows one line with nothing but backspaces; of a long text, what is around the
// cursor.
func (c *canvas) drawDumb(prompt string, text []rune, pos, w int) {
	flat := []rune(strings.NewReplacer("\n", "⏎", "\t", " ").Replace(string(text)))
	room := max(w-1-TextWidth(prompt), 10)
	from := 0
	for TextWidth(string(flat[from:pos])) >= room {
		from += max(room/2, 1)
	}
	to := len(flat)
	for TextWidth(string(flat[from:to])) > room {
		to--
	}
	line := prompt + string(flat[from:to])
	at := TextWidth(prompt) + TextWidth(string(flat[from:pos]))

	same := 0
	for same < len(line) && same < len(c.shown) && line[same] == c.shown[same] {
		same++
	}
	for same > 0 && same < len(line) && line[same]&0xc0 == 0x80 {
		same--
	}
	for same > 0 && same < len(c.shown) && c.shown[same]&0xc0 == 0x80 {
		same--
	}
	common := TextWidth(line[:same])
	var b strings.Builder
	if c.column > common {
		b.WriteString(strings.Repeat("\b", c.column-common))
	} else {
		b.WriteString(cut(line, c.column, common))
	}
	b.WriteString(line[same:])
	end := TextWidth(line)
	if gone := TextWidth(c.shown) - end; gone > 0 {
		b.WriteString(strings.Repeat(" ", gone) + strings.Repeat("\b", gone))
	}
	b.WriteString(strings.Repeat("\b", end-at))
	c.shown, c.column = line, at
	c.write(b.String())
}

// throughColumn is the beginning of a row, which may be styled, with the character in that column.
func throughColumn(row string, column int) string {
	for i := range row {
		if TextWidth(row[:i]) > column {
			return row[:i]
		}
	}
	return row
}

// cut is what of a text stands between two columns.
func cut(s string, from, to int) string {
	var b strings.Builder
	at := 0
	for _, r := range s {
		if at >= from && at < to {
			b.WriteRune(r)
		}
		at += TextWidth(string(r))
	}
	return b.String()
}
