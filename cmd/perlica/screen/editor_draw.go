package screen

import (
	"io"
	"strconv"
	"strings"

	"github.com/mattn/go-runewidth"
)

// canvas draws the line and remembers the rows on the terminal that show it.
type canvas struct {
	w    io.Writer
	size func() (w, h int)
	dumb bool

	rows   []string // the rows on the screen
	row    int      // the row of the cursor, as an index of rows
	column int      // the column of the cursor
	shown  string   // the text on the screen of a dumb terminal
}

// forgetRows makes canvas forget its rows on the screen. The cursor must stand at the beginning of an empty row.
func (c *canvas) forgetRows() { c.rows, c.row, c.column, c.shown = nil, 0, 0, "" }

func (c *canvas) clearScreen() {
	if !c.dumb {
		c.writeText("\x1b[H\x1b[2J")
		c.forgetRows()
	}
}

// leaveRows moves the cursor below the rows and writes the text in the parameter "end".
func (c *canvas) leaveRows(end string) {
	if n := len(c.rows) - 1 - c.row; n > 0 {
		end = "\x1b[" + strconv.Itoa(n) + "B" + end
	}
	c.writeText(end)
	c.forgetRows()
}

// writeAbove overwrites the rows with other lines. The caller then draws the rows again below these lines.
func (c *canvas) writeAbove(lines string) {
	if c.dumb {
		c.leaveRows("\n" + lines)
		return
	}
	w, _ := c.size()
	c.writeText(c.home(w) + ClearBelow + lines)
	c.forgetRows()
}

// home returns a sequence that moves the cursor to the first of the rows. w is the present width of the terminal in
// columns.
func (c *canvas) home(w int) string {
	up := 0
	if c.row < len(c.rows) {
		// A terminal that became narrower has broken the rows. Each row counts with its new height.
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

// writeText writes to the terminal. It ignores errors: if the terminal is closed, reading the next key fails, too.
func (c *canvas) writeText(s string) { _, _ = io.WriteString(c.w, s) }

// hang is the indentation, in columns, of all lines of a text except the first.
const hang = 2

// layout breaks prompt and text into rows of the given columns. row and column are the place of the cursor.
func layout(prompt string, text []rune, pos, columns int) (rows []string, row, column int) {
	line, used := prompt, TextWidth(prompt)
	next := func(indent int) {
		rows = append(rows, line)
		line, used = strings.Repeat(" ", indent), indent
	}
	c := runewidth.Condition{StrictEmojiNeutral: true}
	cluster, clusterW := "", 0 // the part of the current character that was drawn already
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
		// Some characters join into one, such as flags and families. The joined character is narrower than its parts.
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

// drawRows draws prompt and text in place of the rows on the screen.
func (c *canvas) drawRows(prompt string, text []rune, pos int) {
	w, h := c.size()
	if w < 4 {
		w = 80
	}
	if c.dumb {
		c.drawDumb(prompt, text, pos, w)
		return
	}
	rows, row, column := layout(prompt, text, pos, w-1)
	if h > 1 && len(rows) > h-1 { // The text has more rows than the screen, which shows the rows around the cursor.
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
	c.writeText(b.String())
}

// drawDumb shows one row and moves the cursor only with backspaces. If the text is too long, it shows the part
// around the cursor.
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
		b.WriteString(columnsBetween(line, c.column, common))
	}
	b.WriteString(line[same:])
	end := TextWidth(line)
	if gone := TextWidth(c.shown) - end; gone > 0 {
		b.WriteString(strings.Repeat(" ", gone) + strings.Repeat("\b", gone))
	}
	b.WriteString(strings.Repeat("\b", end-at))
	c.shown, c.column = line, at
	c.writeText(b.String())
}

// throughColumn returns the beginning of a row, up to and including the character in the column. The row may contain
// styles.
func throughColumn(row string, column int) string {
	for i := range row {
		if TextWidth(row[:i]) > column {
			return row[:i]
		}
	}
	return row
}

// columnsBetween returns the characters between two columns of a text.
func columnsBetween(s string, from, to int) string {
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
