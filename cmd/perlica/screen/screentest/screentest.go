// Package screentest is a terminal for tests. It shows the drawing of a program as a person would see it.
//
// The terminal knows only the sequences that Perlica sends. It breaks lines at its width, moves the cursor up and
// right, and clears text after the cursor. It keeps a history of the rows that have left the screen. Any other
// sequence goes to [Terminal.Strange], so that a test can fail.
package screentest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/mattn/go-runewidth"
)

// Terminal is a screen with its history. Only one goroutine may use it.
type Terminal struct {
	Strange []string // sequences that the terminal does not know

	width, height int
	lines         []line // all lines, the oldest first; the lines above the screen are the history
	row, column   int    // place of the cursor; row is an index of lines
	noWrap        bool
	look          Look
	pending       string // the beginning of an incomplete escape sequence or character
}

// Look is the style of a character. Color is the parameter of the sequence that sets the color: 31, 32, 33
// or 36. 0 means no color.
type Look struct {
	Bold, Dim, Italic bool
	Color             int
}

// Cell is the text at one place of the screen. A wide character has two cells, and the second has no text.
type Cell struct {
	Text string
	Look Look
}

// line is one row. If broken is true, the text continues in the next row.
type line struct {
	cells  []string // a wide character has two cells, and the second is ""
	looks  []Look   // looks of the cells; may be shorter or longer than cells
	broken bool
}

// New returns an empty terminal of the given size.
func New(columns, rows int) *Terminal {
	return &Terminal{width: columns, height: rows, lines: make([]line, 1)}
}

// Write draws text as a terminal would.
func (t *Terminal) Write(p []byte) (int, error) {
	text := t.pending + string(p)
	t.pending = ""
	for text != "" {
		if text[0] == '\x1b' {
			n := t.sequence(text)
			if n == 0 {
				t.pending = text
				break
			}
			text = text[n:]
			continue
		}
		if !utf8.FullRuneInString(text) {
			t.pending = text
			break
		}
		r, n := utf8.DecodeRuneInString(text)
		t.put(r)
		text = text[n:]
	}
	return len(p), nil
}

func (t *Terminal) put(r rune) {
	switch r {
	case '\n':
		t.row++
		t.grow()
		t.column = 0
		return
	case '\r':
		t.column = 0
		return
	case '\a':
		return
	case '\b':
		t.column = max(t.column-1, 0)
		return
	case '\t':
		t.column = min((t.column/8+1)*8, t.width-1)
		return
	}
	c := runewidth.Condition{StrictEmojiNeutral: true}
	w := c.RuneWidth(r)
	cells := &t.lines[t.row].cells
	if w == 0 {
		if t.column > 0 && t.column <= len(*cells) {
			(*cells)[t.column-1] += string(r)
		}
		return
	}
	if t.column+w > t.width {
		if t.noWrap {
			t.column = t.width - w
		} else {
			t.lines[t.row].broken = true
			t.row, t.column = t.row+1, 0
			t.grow()
			cells = &t.lines[t.row].cells
		}
	}
	for len(*cells) < t.column+w {
		*cells = append(*cells, " ")
	}
	(*cells)[t.column] = string(r)
	if w == 2 {
		(*cells)[t.column+1] = ""
	}
	looks := &t.lines[t.row].looks
	for len(*looks) <= t.column {
		*looks = append(*looks, Look{})
	}
	(*looks)[t.column] = t.look
	t.column += w
}

// restyle sets the styles that the parameters of a sequence ask for.
func (t *Terminal) restyle(params string) {
	for param := range strings.SplitSeq(params, ";") {
		switch n, _ := strconv.Atoi(param); n {
		case 0:
			t.look = Look{}
		case 1:
			t.look.Bold = true
		case 2:
			t.look.Dim = true
		case 3:
			t.look.Italic = true
		case 22:
			t.look.Bold, t.look.Dim = false, false
		case 23:
			t.look.Italic = false
		case 31, 32, 33, 36:
			t.look.Color = n
		case 39:
			t.look.Color = 0
		}
	}
}

func (t *Terminal) grow() {
	for len(t.lines) <= t.row {
		t.lines = append(t.lines, line{})
	}
}

// top returns the index of the first line on the screen.
func (t *Terminal) top() int { return max(len(t.lines)-t.height, 0) }

// sequence obeys the sequence at the beginning of text and returns its length. It returns 0 if the sequence is
// incomplete.
func (t *Terminal) sequence(text string) int {
	if len(text) < 2 {
		return 0
	}
	if text[1] == ']' {
		return strings.IndexByte(text, '\a') + 1
	}
	if text[1] != '[' {
		t.Strange = append(t.Strange, text[:2])
		return 2
	}
	n := strings.IndexFunc(text[2:], func(r rune) bool { return r >= '@' && r <= '~' })
	if n < 0 {
		return 0
	}
	params, end := text[2:2+n], text[2+n]
	count, _ := strconv.Atoi(params)
	cells := &t.lines[t.row].cells
	switch {
	case end == 'm':
		t.restyle(params)
	case params == "?2004" && (end == 'h' || end == 'l'):
	case end == 'A':
		t.row = max(t.row-max(count, 1), t.top())
	case end == 'C':
		t.column = min(t.column+max(count, 1), t.width-1)
	case end == 'K' && params == "":
		*cells = (*cells)[:min(t.column, len(*cells))]
		t.lines[t.row].broken = false
	case end == 'J' && params == "" && t.row == t.top() && t.column == 0:
		t.keep()
	case end == 'J' && params == "":
		*cells = (*cells)[:min(t.column, len(*cells))]
		t.lines[t.row].broken = false
		for i := t.row + 1; i < len(t.lines); i++ {
			t.lines[i] = line{}
		}
	case params == "?7" && (end == 'h' || end == 'l'):
		t.noWrap = end == 'l'
	default:
		t.Strange = append(t.Strange, text[:3+n])
	}
	return 3 + n
}

// keep clears the whole screen as tmux does: the rows of the screen move to the history.
func (t *Terminal) keep() {
	used := len(t.lines)
	for used > t.row && len(t.lines[used-1].cells) == 0 {
		used--
	}
	t.lines = t.lines[:used]
	t.row = used
	for len(t.lines) < used+t.height {
		t.lines = append(t.lines, line{})
	}
}

// Resize changes the size of the terminal and breaks the lines again at the new width.
func (t *Terminal) Resize(columns, rows int) {
	var lines []line
	row, column := 0, 0
	for i := 0; i < len(t.lines); i++ {
		whole, at := t.lines[i].cells, -1
		if i == t.row {
			at = t.column
		}
		for t.lines[i].broken && i+1 < len(t.lines) {
			i++
			if i == t.row {
				at = len(whole) + t.column
			}
			whole = append(slices.Clone(whole), t.lines[i].cells...)
		}
		for len(whole) > columns {
			n := columns
			if whole[n] == "" {
				n--
			}
			if at >= 0 && at < n {
				row, column = len(lines), at
			}
			lines = append(lines, line{cells: slices.Clone(whole[:n]), broken: true})
			whole, at = whole[n:], at-n
		}
		if at >= 0 {
			row, column = len(lines), min(at, columns) // After the last character of a full row, the cursor stays in this row.
		}
		lines = append(lines, line{cells: slices.Clone(whole)})
	}
	t.lines, t.width, t.height = lines, columns, rows
	t.row, t.column = row, column
	for len(t.lines)-1 > t.row && len(t.lines) > t.height && len(t.lines[len(t.lines)-1].cells) == 0 {
		t.lines = t.lines[:len(t.lines)-1]
	}
	t.grow()
}

// All returns the history and the screen as text. Rows of one broken line are joined. Empty lines at the end are
// left out.
func (t *Terminal) All() string { return text(t.lines) }

// Cells returns the rows of the history and of the screen, with their styles.
func (t *Terminal) Cells() (rows [][]Cell) {
	for _, l := range t.lines {
		row := make([]Cell, len(l.cells))
		for i, text := range l.cells {
			row[i].Text = text
			if i < len(l.looks) {
				row[i].Look = l.looks[i]
			}
		}
		rows = append(rows, row)
	}
	return rows
}

// Screen returns the rows of the screen.
func (t *Terminal) Screen() []string {
	var rows []string
	for _, l := range t.lines[t.top():] {
		rows = append(rows, strings.TrimRight(strings.Join(l.cells, ""), " "))
	}
	return rows
}

// Cursor returns the place of the cursor on the screen.
func (t *Terminal) Cursor() (row, column int) { return t.row - t.top(), t.column }

// History returns the lines that have left the screen, as text.
func (t *Terminal) History() string { return text(t.lines[:t.top()]) }

func text(lines []line) string {
	var b strings.Builder
	for _, l := range lines {
		row := strings.Join(l.cells, "")
		if l.broken {
			b.WriteString(row)
			continue
		}
		fmt.Fprintln(&b, strings.TrimRight(row, " "))
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}
