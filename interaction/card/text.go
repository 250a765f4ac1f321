package card

import (
	"fmt"
	"math"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/mattn/go-runewidth"
)

// In an agent's text, only these characters are shown unchanged: printing ASCII, and the letters, digits, punctuation
// and symbols of Unicode that have a width. All other characters are replaced by their names between the brackets ⟨
// and ⟩. An agent's words therefore cannot contain these brackets.
const (
	open, shut = '⟨', '⟩'
	tabSign    = '⇥' // a tab
	lineSign   = '⏎' // a line break in a text that is shown as one line
	brokenSign = '↩' // a row that ends in the middle of a word
)

// ownSigns are signs that only Perlica uses. In an agent's words they are replaced by their names.
const ownSigns = string(open) + string(shut) + string(tabSign) + string(lineSign) + string(brokenSign) + "“”"

// Up to these limits, blanks and combining marks are shown unchanged. A longer run is replaced by its length.
const (
	mostIndent = 24 // columns at the beginning of a line
	mostBlanks = 4  // blanks within a line of a text of several lines
	mostMarks  = 2  // combining marks on a letter
)

// cell is a character of a row, with the number of columns that a terminal may give it.
type cell struct {
	r     rune
	width int8
	blank bool // the row may end here
}

// narrow and wide compute widths as the two kinds of terminals do. They differ in the characters that Unicode calls
// ambiguous.
var (
	narrow = &runewidth.Condition{}
	wide   = &runewidth.Condition{EastAsianWidth: true}
)

// columns returns the largest width that a terminal gives a character. Letters of ambiguous width, such as Greek and
// Cyrillic, are wide only in old East Asian settings and count as narrow.
func columns(r rune) int {
	if unicode.IsMark(r) || unicode.IsLetter(r) {
		return max(narrow.RuneWidth(r), 1)
	}
	if r >= 0x1F1E6 && r <= 0x1F1FF { // a terminal may draw half of a flag as wide as a flag
		return 2
	}
	return max(narrow.RuneWidth(r), wide.RuneWidth(r), 1)
}

// plain reports whether the character r is shown unchanged.
func plain(r rune) bool {
	switch {
	case r < 0x7f:
		return r >= ' '
	case strings.ContainsRune(ownSigns, r):
		return false
	case r == 0x2800, r == 0x1D159, r == 0xFFFC: // symbols that show nothing
		return false
	case unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r), unicode.Is(unicode.Variation_Selector, r):
		return false
	}
	return unicode.In(r, unicode.L, unicode.N, unicode.P, unicode.S) && narrow.RuneWidth(r) > 0
}

// stacks reports whether r is a combining mark that may follow a letter. A mark that strikes through or encloses the
// letter is not allowed.
func stacks(r rune) bool {
	return unicode.In(r, unicode.Mn, unicode.Mc) && (r < 0x334 || r > 0x338) && (r < 0x20d0 || r > 0x20ff) &&
		!unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r) && !unicode.Is(unicode.Variation_Selector, r)
}

// rightToLeft reports whether r belongs to a script that is written from right to left. Some terminals change the
// order of such words and of the signs between them.
func rightToLeft(r rune) bool {
	return r >= 0x590 && r <= 0x8ff || r >= 0xfb1d && r <= 0xfdff || r >= 0xfe70 && r <= 0xfeff ||
		r >= 0x10800 && r <= 0x10fff || r >= 0x1e800 && r <= 0x1efff
}

// names are the names of frequent control characters. All other characters have a number as their name.
var names = map[rune]string{'\r': "CR", 0x1b: "ESC", 0: "NUL", '\a': "BEL", '\b': "BS"}

// reader turns a text into cells.
type reader struct {
	text  string
	line  bool // the whole text becomes one line
	mixed bool // keep Perlica's own signs in the text, see [Marked]
	words Words
	cells []cell

	indent int  // columns of indentation so far; -1 after the indentation
	letter bool // the last cell is a letter or a mark on a letter
	marks  int  // the number of marks on that letter
	rtl    bool // the last cell belongs to a word that is written from right to left
}

// visible turns a line of a text into cells. If line is true, the text may have line breaks, and they are shown as
// signs.
func (w Words) visible(text string, line bool) []cell {
	rd := reader{text: text, line: line, words: w}
	if line {
		rd.indent = -1
	}
	return rd.readAll()
}

func (rd *reader) readAll() []cell {
	for len(rd.text) > 0 {
		rd.readNext()
	}
	rd.endWord()
	return rd.cells
}

// readNext reads the next character, or a run of equal characters, and adds its cells.
func (rd *reader) readNext() {
	r, size := utf8.DecodeRuneInString(rd.text)
	unit := rd.text[:size]
	switch {
	case r == ' ' || r == '\t' || r == '\n' && rd.line:
		rd.putSpace(r, rd.takeRun(unit, len(rd.text)))
	case r == utf8.RuneError && size == 1:
		rd.putToken(rd.takeRun(unit, len(rd.text)), fmt.Sprintf("0x%02X", unit[0]))
	case plain(r), rd.mixed && strings.ContainsRune(ownSigns, r):
		rd.text = rd.text[size:]
		rd.putRune(r)
	case stacks(r) && rd.letter && rd.marks < mostMarks:
		rd.text = rd.text[size:]
		rd.marks++
		rd.cells = append(rd.cells, cell{r: r, width: int8(columns(r))})
	default:
		name := names[r]
		if name == "" {
			name = fmt.Sprintf("U+%04X", r)
		}
		rd.putToken(rd.takeRun(unit, len(rd.text)), name)
	}
}

// takeRun removes a run of the character unit from the text and returns the length of the run. The parameter "most" is
// the maximum length.
func (rd *reader) takeRun(unit string, most int) (n int) {
	for n < most && strings.HasPrefix(rd.text, unit) {
		rd.text = rd.text[len(unit):]
		n++
	}
	return n
}

func (rd *reader) putRune(r rune) {
	if rd.rtl && !rightToLeft(r) {
		rd.endWord()
	}
	rd.indent, rd.letter, rd.marks = -1, unicode.IsLetter(r), 0
	rd.rtl = rightToLeft(r)
	rd.cells = append(rd.cells, cell{r: r, width: int8(columns(r))})
}

// endWord adds a mark after a word that is written from right to left. The mark begins with Latin letters. After
// these, a terminal writes from left to right again, so the following text stays in its place.
func (rd *reader) endWord() {
	if rd.rtl {
		rd.rtl = false
		if rd.mixed { // [Line] has added the mark already
			return
		}
		rd.putOwn(string(open) + rd.words.word("rtl") + string(shut))
	}
}

// putSpace shows n blanks, tabs or line breaks.
func (rd *reader) putSpace(r rune, n int) {
	rd.endWord()
	rd.letter = false
	width := n
	if r == '\t' {
		width = 4 * n
	}
	switch {
	case rd.text == "" && (n > 1 || r != ' '), rd.text == "" && rd.line:
		rd.putCount(n, r)
	case rd.indent >= 0 && rd.indent+width <= mostIndent:
		rd.indent += width
		for range n {
			if r == '\t' {
				rd.putOwn(string(tabSign) + "   ")
			} else {
				rd.putOwn(" ")
			}
		}
	case r == ' ' && (n == 1 || n <= mostBlanks && !rd.line):
		rd.indent = -1
		for range n {
			rd.cells = append(rd.cells, cell{' ', 1, true})
		}
	case n == 1 && r == '\t':
		rd.indent = -1
		rd.putOwn(string(tabSign))
	case n == 1 && r == '\n':
		rd.putOwn(string(lineSign))
	default:
		rd.indent = -1
		rd.putCount(n, r)
	}
}

func (rd *reader) putCount(n int, r rune) {
	what := map[rune]string{' ': "blank", '\t': "tab", '\n': "line break"}[r]
	if n > 1 {
		what = fmt.Sprintf(rd.words.word("%d "+what+"s"), n)
	} else {
		what = rd.words.word(what)
	}
	rd.putOwn(string(open) + what + string(shut))
}

func (rd *reader) putToken(n int, name string) {
	rd.endWord()
	rd.indent, rd.letter = -1, false
	if n > 1 {
		name = fmt.Sprintf("%d × %s", n, name)
	}
	rd.putOwn(string(open) + name + string(shut))
}

// putOwn adds a text of Perlica's. No row may end at a blank of this text.
func (rd *reader) putOwn(s string) {
	for _, r := range s {
		rd.cells = append(rd.cells, cell{r: r, width: int8(columns(r))})
	}
}

func widthOf(cells []cell) (n int) {
	for _, c := range cells {
		n += int(c.width)
	}
	return n
}

// width returns the number of columns that one of Perlica's texts takes at most.
func width(s string) (n int) {
	for _, r := range s {
		n += columns(r)
	}
	return n
}

func textOf(cells []cell) string {
	var b strings.Builder
	for _, c := range cells {
		b.WriteRune(c.r)
	}
	return b.String()
}

// Line returns a text as one line. The parameter "most" is the maximum width in columns; 0 means no limit. Invisible
// characters are replaced by their names, and a longer line is cut.
func Line(text string, most int) string { return Words(nil).Line(text, most) }

// Line does the same as the function Line. It translates the words in brackets.
func (w Words) Line(text string, most int) string {
	if isPlain(text) && (most <= 0 || len(text) <= most) {
		return text // A list has thousands of such texts.
	}
	return w.lineOf(text, most)
}

// isPlain reports whether a text is visible ASCII with single blanks between its words. Line does not change such a
// text.
func isPlain(text string) bool {
	blank := true
	for i := range len(text) {
		if c := text[i]; c < ' ' || c > '~' || c == ' ' && blank {
			return false
		}
		blank = text[i] == ' '
	}
	return !blank || text == ""
}

func (w Words) lineOf(text string, most int) string {
	return textOf(cutTo(w.visible(strings.Trim(text, " \t\r\n"), true), most))
}

// restPrefix begins each row of [Marked] except the first.
const restPrefix = "  " + restBar

// Marked breaks a text of Perlica's into rows. The parameter "most" is the maximum width in columns; 0 means no limit.
// The text may contain an agent's words. Each row except the first begins with a bar, so a reader cannot mistake a row
// for Perlica's words. The caller passes the agent's words through [Line] before, because Marked keeps Perlica's own
// signs.
func Marked(text string, most int) string {
	room := math.MaxInt
	if most > 0 {
		room = max(most, MinWidth) - width(restPrefix)
	}
	var rows []string
	for line := range strings.SplitSeq(strings.TrimRight(text, "\n"), "\n") {
		rows = append(rows, Rows(line, room)...)
	}
	return strings.Join(rows, "\n"+restPrefix)
}

// Rows breaks a line of Perlica's into rows. The parameter "most" is the maximum width in columns. A row ends at a
// blank, and that blank is dropped. A longer word is broken in the middle, and a sign marks that row. The caller passes
// the agent's words through [Line] before.
func Rows(line string, most int) []string {
	return wrap((&reader{text: line, mixed: true}).readAll(), most)
}

// cutTo cuts cells to the maximum width in the parameter "most", in columns; 0 means no limit.
func cutTo(cells []cell, most int) []cell {
	if most <= 0 || widthOf(cells) <= most {
		return cells
	}
	w, n := columns('…'), 0
	for n < len(cells) && w+int(cells[n].width) <= most {
		w += int(cells[n].width)
		n++
	}
	return append(cells[:n:n], cell{r: '…', width: int8(columns('…'))})
}

// wrap breaks a line into rows. The parameter "most" is the maximum width in columns. A row ends at a blank, and that
// blank is dropped. A longer word is broken in the middle, and a sign marks that row.
func wrap(cells []cell, most int) (rows []string) {
	for {
		w, end, blank := 0, 0, -1
		for end < len(cells) && w+int(cells[end].width) <= most {
			if cells[end].blank && end > 0 {
				blank = end
			}
			w += int(cells[end].width)
			end++
		}
		switch {
		case end == len(cells):
			return append(rows, textOf(cells))
		case cells[end].blank:
			blank = end
		}
		if blank > 0 {
			rows = append(rows, textOf(cells[:blank]))
			cells = cells[blank+1:]
			continue
		}
		for end > 1 && (w > most-columns(brokenSign) || unicode.IsMark(cells[end].r)) {
			end--
			w -= int(cells[end].width)
		}
		end = max(end, 1)
		rows = append(rows, textOf(cells[:end])+string(brokenSign))
		cells = cells[end:]
	}
}
