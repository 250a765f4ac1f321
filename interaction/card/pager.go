package card

import (
	"fmt"
	"slices"
	"strings"

	"github.com/perlica/perlica/interaction"
)

// Hints are a front end's sentences about its keys.
type Hints struct {
	Choose    string // names the keys that choose an option; shown on the last page
	Turn      string // names the keys that turn the page; shown on all pages except the last
	Small     string // says that the screen is too small to show the question, so that only a no is possible
	Elsewhere string // tells how to answer in another place; the last row of each page
}

// Pager shows a card page by page and remembers which rows were on the screen. The last page has the options. If the
// card is longer than one page, the pager leaves optional rows out. A screen of another size needs a new Pager,
// because it shows other rows.
type Pager struct {
	card   Card
	width  int
	height int // rows of a page; the cursor has one more row
	hints  Hints

	pages [][]int // indexes of the card's rows on each page; omittedIndex is the row about the omitted rows
	hid   int     // number of omitted rows
	keys  []Row   // the hints below the options, if there is space
	small bool    // not even one row fits next to the options
	at    int
	seen  []bool
}

// omittedIndex stands in a page for the row that says how many rows were left out.
const omittedIndex = -1

// NewPager lays a question out for a screen of the given size.
func NewPager(q interaction.Question, width, height int, hints Hints) *Pager {
	p := &Pager{card: Lay(q, width), width: max(width, MinWidth), height: max(height-1, 1), hints: hints}
	p.seen = make([]bool, len(p.card.Rows))
	p.small = width < MinWidth || !p.layOutFooter()
	p.dividePages(false)
	return p
}

// Note lays out one of Perlica's own texts as rows of at most the given number of columns.
func Note(text string, most int) (rows []Row) {
	for _, row := range wrap(Words(nil).visible(text, true), max(most, MinWidth)-2) {
		rows = append(rows, Row{Head: "  " + row, Tone: Aside})
	}
	return rows
}

// layOutFooter lays out the options and the hints. It leaves hints out so that the question has at least one row. It
// returns false if the options do not fit.
func (p *Pager) layOutFooter() bool {
	short := Row{Head: "  " + Line(p.hints.Choose, p.width-2), Tone: Aside}
	elsewhere := Note(p.hints.Elsewhere, p.width)
	for _, hints := range [][]Row{
		slices.Concat(Note(p.hints.Choose, p.width), elsewhere), append([]Row{short},
			elsewhere...), elsewhere, {short}, nil,
	} {
		p.keys = hints
		if p.footHeight() < p.height && p.height > 1 {
			return true
		}
	}
	return false
}

// footHeight returns the number of rows below the question on the last page.
func (p *Pager) footHeight() int { return len(p.card.Options) + len(p.keys) }

// dividePages divides the rows into pages. If "all" is true, every row is on some page.
func (p *Pager) dividePages(all bool) {
	var head, must, every []int
	for i, r := range p.card.Rows {
		every = append(every, i)
		if r.Must || i == 0 && !all {
			must = append(must, i)
		} else {
			head = append(head, i)
		}
	}
	p.pages, p.hid, p.at = nil, 0, 0
	room := p.height - p.footHeight()
	rows := every
	if !all && len(every) > room && len(head) > 1 {
		// The page has the title, then as many optional rows as fit, then the mandatory rows.
		some := min(max(room-len(must)-1, 0), len(head)-2)
		p.hid = len(head) - some
		rows = slices.Concat([]int{0}, head[:some], []int{omittedIndex}, must[1:])
	}
	for len(rows) > room && !p.small {
		n := min(p.height-1, len(rows)-room) // another page follows, so the last row is the hint for turning the page
		p.pages, rows = append(p.pages, rows[:n]), rows[n:]
	}
	p.pages = append(p.pages, rows)
}

// Small reports whether the screen is too small for a yes.
func (p *Pager) Small() bool { return p.small }

// Draw returns the rows of the current page, without the rows that Keys returns. It records that these rows were on the
// screen.
func (p *Pager) Draw() (rows []Row) {
	if p.Small() {
		return p.tooSmall()
	}
	for _, i := range p.pages[p.at] {
		if i == omittedIndex {
			rows = append(rows, p.omittedRow())
			continue
		}
		p.seen[i] = true
		rows = append(rows, p.card.Rows[i])
	}
	if p.at < len(p.pages)-1 {
		return rows
	}
	return append(rows, p.card.Options...)
}

// Keys returns the last rows of the page: the hints about the keys. For a moment after a question is drawn, a front end
// ignores each key that allows. It draws the hints after this moment.
func (p *Pager) Keys() []Row {
	switch {
	case p.Small():
		return nil
	case p.at < len(p.pages)-1:
		turn := fmt.Sprintf("page %d of %d: %s", p.at+1, len(p.pages), p.hints.Turn)
		return []Row{{Head: "  " + Line(turn, p.width-2), Tone: Aside}}
	}
	return p.keys
}

// omittedRow returns the row that says how many rows were left out.
func (p *Pager) omittedRow() Row {
	text := fmt.Sprintf("%d rows are left out: v shows all", p.hid)
	if p.hid == 1 {
		text = "1 row is left out: v shows all"
	}
	return Row{Head: "  " + Line(text, p.width-2), Tone: Aside}
}

// tooSmall returns a short notice for a screen that is too small. If the notice has more rows than the screen, its
// first rows are left out.
func (p *Pager) tooSmall() []Row {
	rows := slices.Concat(p.card.Rows[:1], Note(p.hints.Small, p.width), Note(p.hints.Elsewhere, p.width))
	return rows[max(0, len(rows)-p.height):]
}

// Turn goes to the next page. On the last page it does nothing and returns false.
func (p *Pager) Turn() bool {
	if p.at >= len(p.pages)-1 {
		return false
	}
	p.at++
	return true
}

// All goes to the first page. From now on no row is left out.
func (p *Pager) All() { p.dividePages(true) }

// Ready reports whether a yes may count. The options must be on the screen, and all mandatory rows must have been on
// it.
func (p *Pager) Ready() bool {
	if p.Small() || p.at < len(p.pages)-1 {
		return false
	}
	for i, r := range p.card.Rows {
		if r.Must && !p.seen[i] {
			return false
		}
	}
	return true
}

// Shown returns the number of the question's rows that were on the screen, and the number of all its rows.
func (p *Pager) Shown() *interaction.Shown {
	s := &interaction.Shown{Of: len(p.card.Rows)}
	for _, seen := range p.seen {
		if seen {
			s.Rows++
		}
	}
	return s
}

// Block returns the card without its title and its options, as a block of Markdown.
func (c Card) Block() string {
	// Each row begins with two blanks, so no row can end the block.
	return "```\n" + Card{Rows: c.Rows[1:]}.Text() + "```"
}

// Text returns a card as text, one line for each row.
func (c Card) Text() string {
	var b strings.Builder
	for _, r := range c.Rows {
		b.WriteString(r.String() + "\n")
	}
	for _, r := range c.Options {
		b.WriteString(r.String() + "\n")
	}
	return b.String()
}
