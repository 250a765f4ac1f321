package screen

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/chzyer/readline"
)

// PickList is a list for [Pick].
type PickList struct {
	Out    io.Writer         // the terminal, which turns \n into \r\n
	Size   func() (w, h int) // returns the columns and rows of the terminal
	Styles Styles
	Title  string
	Words  string // the words of the first search
	// returns the indexes of the rows that match the words, in the order of the screen
	Find func(words string) []int
	Row  func(row, columns int) []string // returns the texts of a row that fit the columns; the second text is drawn dim
}

// mostRows is the largest number of rows that a PickList shows at once.
const mostRows = 12

// Pick shows a list until the person chooses a row. Typed words search the list. Pick fails with [ErrInterrupted]
// for Esc and Ctrl-C, with io.EOF if the terminal is closed, and with ctx's error.
func Pick(ctx context.Context, keys *Keys, l PickList) (row int, err error) {
	p := picker{l: l, words: []rune(l.Words)}
	p.found = l.Find(l.Words)
	defer p.eraseList()
	var typing typingReader
	defer func() { keys.Unread(typing.buf) }() // The keys that were not used are for the next reader.
	read := func(ctx context.Context, wait time.Duration) ([]byte, error) { return keys.Read(ctx, wait) }
	for {
		p.drawList()
		k, err := typing.nextKey(ctx, read)
		if err != nil {
			return 0, err
		}
		if chosen, err := p.pressKey(k); chosen || err != nil {
			if err == nil {
				row = p.found[p.at]
			}
			return row, err
		}
	}
}

type picker struct {
	l     PickList
	words []rune
	found []int
	at    int    // the selected row, as an index of found
	head  string // the row with the typed words, as it was drawn
}

// pressKey handles a key and reports whether a row was chosen.
func (p *picker) pressKey(k Key) (chosen bool, err error) {
	typed := p.words
	switch {
	case k.Kind == KeyEsc, k.IsControl(readline.CharInterrupt):
		return false, ErrInterrupted
	case k.IsControl(readline.CharDelete) && len(p.words) == 0:
		return false, ErrInterrupted
	case k.IsControl(readline.CharEnter):
		return len(p.found) > 0, nil
	case k.IsControl(readline.CharPrev):
		p.at = max(p.at-1, 0)
		return false, nil
	case k.IsControl(readline.CharNext):
		p.at = max(min(p.at+1, len(p.found)-1), 0)
		return false, nil
	case k.Kind == KeyRune:
		p.words = append(p.words, k.Rune)
	case k.Kind == keyPaste, k.Kind == keyLines:
		p.words = append(p.words, []rune(strings.Join(strings.Fields(visible(k.text)), " "))...)
	case k.IsControl(readline.CharCtrlU):
		p.words = nil
	case k.isBackspace():
		p.words = p.words[:max(len(p.words)-1, 0)]
	}
	if len(typed) != len(p.words) {
		p.found, p.at = p.l.Find(string(p.words)), 0
	}
	return false, nil
}

func (p *picker) drawList() {
	w, h := p.l.Size()
	if w < 1 {
		w = 80
	}
	most := mostRows
	if h > 0 {
		most = max(min(most, h-3), 1)
	}
	first := max(0, p.at-most+1)
	head := ending(p.l.Title+" ❯ "+string(p.words), w-1)
	lines := []string{p.l.Styles.Bold(head)}
	for i := first; i < min(first+most, len(p.found)); i++ {
		mark, row := "  ", p.l.Row(p.found[i], w-3)
		if i == p.at {
			mark = p.l.Styles.Cyan("❯ ")
			row[0] = p.l.Styles.Bold(row[0])
		}
		lines = append(lines, mark+strings.Join(row, ""))
	}
	hint := fmt.Sprintf("%d of them; type to search, ↑ ↓ and Enter choose, Esc leaves", len(p.found))
	if len(p.found) == 0 {
		hint = "nothing is found; Backspace and Ctrl-U take words back, Esc leaves"
	}
	lines = append(lines, p.l.Styles.Dim(fitting(hint, w-1)))
	// After the list is drawn, the cursor moves back to the typed words. If the terminal is closed, reading the next
	// key fails, too.
	back := fmt.Sprintf("\r\x1b[%dA\x1b[%dC", len(lines)-1, max(TextWidth(head), 1))
	_, _ = io.WriteString(p.l.Out, p.home(w)+strings.Join(lines, "\n")+back)
	p.head = head
}

// home returns a sequence that moves to the beginning of the list and clears the list. A terminal that became
// narrower may have broken the first row.
func (p *picker) home(columns int) string {
	if up := TextRows(p.head, columns) - 1; up > 0 {
		return fmt.Sprintf("\r\x1b[%dA", up) + ClearBelow
	}
	return "\r" + ClearBelow
}

// eraseList removes the list from the screen. The cursor stays at the place where the list began.
func (p *picker) eraseList() {
	w, _ := p.l.Size()
	_, _ = io.WriteString(p.l.Out, p.home(w))
}

// fitting returns the beginning of a text that fits in the columns. The function ending returns the end that fits.
func fitting(text string, columns int) string {
	r := []rune(text)
	for len(r) > 0 && TextWidth(string(r)) > columns {
		r = r[:len(r)-1]
	}
	return string(r)
}

func ending(text string, columns int) string {
	r := []rune(text)
	for len(r) > 0 && TextWidth(string(r)) > columns {
		r = r[1:]
	}
	return string(r)
}
